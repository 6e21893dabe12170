use std::time::{Duration, SystemTime};

use evenkeel_threshold::{Observation, Status};

/// What came of one probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What was found, or that nothing could be.
    pub outcome: Outcome,
    /// The text for people: what the target said, or the cause of the failure
    /// and the phase it happened in. No times and no local port in it, so that
    /// the same failure gives the same text.
    pub output: String,
    /// How long each part took.
    pub phases: Phases,
    /// The phase in which the exchange ended early; `None` if it came to its
    /// end. A body that stalls after a good head is a passing probe with
    /// [`Phase::Transfer`] here.
    pub failed_phase: Option<Phase>,
    /// From the start to the end of the probe.
    pub took: Duration,
    /// What became of the echoes, for the kind that sends some.
    pub round_trips: Option<RoundTrips>,
    /// Of the TLS handshake, if there was one and the certificate could be
    /// read; after redirects, of the one that ends first.
    pub certificate: Option<Box<Certificate>>,
}

/// How long what the server showed in a TLS handshake will be valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Certificate {
    /// When the server's own certificate ends.
    pub not_after: SystemTime,
    /// When the first of all that it sent ends. An intermediate certificate
    /// that ended before counts only if nothing was verified.
    pub chain_not_after: SystemTime,
    /// Whole days from the probe to `chain_not_after`; negative when that was
    /// before.
    pub days_left: i64,
}

/// What became of a round of echoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoundTrips {
    /// Echoes sent.
    pub sent: u32,
    /// Echoes answered.
    pub answered: u32,
    /// The shortest round trip; `None` if nothing was answered. Never a sign of
    /// success: it may be zero (P058).
    pub shortest: Option<Duration>,
    /// The average round trip.
    pub average: Option<Duration>,
    /// The longest round trip.
    pub longest: Option<Duration>,
}

impl Report {
    /// A report of a probe that found `status`.
    pub fn observed(status: Status, output: impl Into<String>) -> Self {
        Self::of(Outcome::Observed(status.into()), output)
    }

    /// A report that nothing could be found out.
    pub fn unprobed(cause: Cause, output: impl Into<String>) -> Self {
        Self::of(Outcome::Unprobed(cause), output)
    }

    pub(crate) fn of(outcome: Outcome, output: impl Into<String>) -> Self {
        Self {
            outcome,
            output: output.into(),
            phases: Phases::default(),
            failed_phase: None,
            took: Duration::ZERO,
            round_trips: None,
            certificate: None,
        }
    }

    /// The status found, if the target was probed.
    pub fn status(&self) -> Option<Status> {
        match self.outcome {
            Outcome::Observed(observation) => Some(observation.status),
            Outcome::Unprobed(_) => None,
        }
    }
}

/// What a probe says of its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// This was found.
    Observed(Observation),
    /// Nothing was found out, for a reason on our side. It must count neither
    /// for nor against the target (P127, P128).
    Unprobed(Cause),
}

/// Why a target could not be probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cause {
    /// No file descriptor left in the process or the system (`EMFILE`,
    /// `ENFILE`).
    Descriptors,
    /// No free local port or address (`EADDRNOTAVAIL`).
    SourcePorts,
    /// The address to connect from is none of this machine (`EADDRNOTAVAIL` from
    /// `bind`).
    SourceAddress,
    /// No memory or buffer space (`ENOMEM`, `ENOBUFS`).
    Memory,
    /// The system forbids the connection (`EACCES`, `EPERM`): a local firewall
    /// or a sandbox.
    Permission,
    /// This machine has no route to the address, or not its address family
    /// (`ENETUNREACH` from `connect` itself, `EAFNOSUPPORT`).
    NoRoute,
    /// The name could not be looked up: `SERVFAIL`, `REFUSED`, no answer in
    /// time, no name server.
    Resolver,
    /// A CA or client certificate file is missing, unreadable or makes no
    /// sense, or the system has no CA certificates.
    TlsFiles,
    /// The file with the credentials of a check is missing, unreadable or makes
    /// no sense.
    Credentials,
    /// The proxy of a check is not there, or does not let us through.
    Proxy,
    /// The target policy forbids the address.
    TargetRefused,
    /// No more processes or threads may be made (`EAGAIN` at a fork).
    Processes,
    /// The Docker daemon is away, does not answer, or is at fault itself.
    Docker,
    /// Checks of this kind run commands and are not enabled.
    Disabled,
    /// Another fault of this machine.
    System,
}

impl Cause {
    /// All causes, e.g. to initialise a metric.
    pub const ALL: [Self; 15] = [
        Self::Descriptors,
        Self::SourcePorts,
        Self::SourceAddress,
        Self::Memory,
        Self::Permission,
        Self::NoRoute,
        Self::Resolver,
        Self::TlsFiles,
        Self::Credentials,
        Self::Proxy,
        Self::TargetRefused,
        Self::Processes,
        Self::Docker,
        Self::Disabled,
        Self::System,
    ];

    /// A stable word, for metric labels and event logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Descriptors => "descriptors",
            Self::SourcePorts => "source_ports",
            Self::SourceAddress => "source_address",
            Self::Memory => "memory",
            Self::Permission => "permission",
            Self::NoRoute => "no_route",
            Self::Resolver => "resolver",
            Self::TlsFiles => "tls_files",
            Self::Credentials => "credentials",
            Self::Proxy => "proxy",
            Self::TargetRefused => "target_refused",
            Self::Processes => "processes",
            Self::Docker => "docker",
            Self::Disabled => "disabled",
            Self::System => "system",
        }
    }
}

/// A part of a probe, in order (P136).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Phase {
    /// The name becomes addresses.
    Resolve,
    /// The TCP connection is made.
    Connect,
    /// The TLS handshake; certificate files are read in it.
    Tls,
    /// From the request to the end of the answer's head.
    FirstByte,
    /// The body.
    Transfer,
    /// The command of a Docker or script check runs.
    Run,
}

impl Phase {
    /// A stable word, for metric labels and event logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::FirstByte => "first_byte",
            Self::Transfer => "transfer",
            Self::Run => "run",
        }
    }
}

/// How long each phase took; `None` for a phase that was not reached. After
/// redirects, the sums over all hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases {
    /// See [`Phase::Resolve`]; `None` for a literal address.
    pub resolve: Option<Duration>,
    /// See [`Phase::Connect`].
    pub connect: Option<Duration>,
    /// See [`Phase::Tls`].
    pub tls: Option<Duration>,
    /// See [`Phase::FirstByte`].
    pub first_byte: Option<Duration>,
    /// See [`Phase::Transfer`].
    pub transfer: Option<Duration>,
    /// See [`Phase::Run`].
    pub run: Option<Duration>,
}

impl Phases {
    /// The phases that were reached, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Phase, Duration)> {
        [
            (Phase::Resolve, self.resolve),
            (Phase::Connect, self.connect),
            (Phase::Tls, self.tls),
            (Phase::FirstByte, self.first_byte),
            (Phase::Transfer, self.transfer),
            (Phase::Run, self.run),
        ]
        .into_iter()
        .filter_map(|(phase, took)| Some((phase, took?)))
    }

    pub(crate) fn add(&mut self, phase: Phase, took: Duration) {
        let sum = match phase {
            Phase::Resolve => &mut self.resolve,
            Phase::Connect => &mut self.connect,
            Phase::Tls => &mut self.tls,
            Phase::FirstByte => &mut self.first_byte,
            Phase::Transfer => &mut self.transfer,
            Phase::Run => &mut self.run,
        };
        *sum = Some(sum.unwrap_or_default() + took);
    }
}
