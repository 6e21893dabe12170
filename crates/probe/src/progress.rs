use std::net::{IpAddr, SocketAddr};
use std::sync::Weak;
use std::time::Duration;

use evenkeel_threshold::Status;
use rustls::ClientConfig;
use rustls_pki_types::UnixTime;
use tokio::time::Instant;

use crate::definition::{ConnectOptions, Family};
use crate::report::{Cause, Certificate, Outcome, Phase, Phases, Report};
use crate::tls::days_left;

/// What is known of a probe while it runs. It outlives the exchange, so that a
/// probe that is cut off at its deadline can still tell how far it came.
#[derive(Debug)]
pub(crate) struct Progress {
    /// When the probe is cut off, for kinds that say something better then.
    pub(crate) deadline: Instant,
    pub(crate) phases: Phases,
    /// Which addresses are connected to; if it is to be those of both families,
    /// the probe is run as two, with a progress of its own each.
    pub(crate) family: Family,
    /// The address to connect from. Boxed where there is one: all probes carry
    /// its place.
    pub(crate) source: Option<Box<IpAddr>>,
    phase: Option<Phase>,
    since: Instant,
    /// The latest address that a connection was tried to.
    pub(crate) address: Option<SocketAddr>,
    /// The name that was looked up, if one was.
    pub(crate) name: Option<Box<str>>,
    /// Where the latest redirect led.
    pub(crate) redirected_to: Option<Box<str>>,
    /// A fault of our own that could be what the time is running out on, e.g.
    /// with one of several addresses: no failure of the others can be blamed
    /// on the target then.
    pub(crate) own_fault: Option<(Cause, String)>,
    /// What the phase that runs is waiting for, where the phase's own words do
    /// not say it.
    pub(crate) waiting_for: Option<Awaited>,
    /// What the server showed in a TLS handshake.
    pub(crate) seen: Option<Box<Seen>>,
    /// What a command has said so far.
    #[cfg(any(feature = "docker", all(feature = "script", unix)))]
    pub(crate) said: Option<Box<crate::command::Ends>>,
    /// The answer, once its head is complete and it is the last one.
    pub(crate) answer: Option<Answer>,
}

/// What is known of the certificates that a server showed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) certificate: Option<Certificate>,
    /// That one ends too soon.
    pub(crate) expiry: Option<Expiry>,
    /// What the handshake was done with.
    pub(crate) made_with: Weak<ClientConfig>,
}

impl Seen {
    /// Whether at `now` the same would be said of them, and they are as valid
    /// as they were: that changes with the whole days that are left.
    pub(crate) fn is_current(&self, now: UnixTime) -> bool {
        let days = |known: &Certificate| known.days_left == days_left(known.chain_not_after, now);
        self.certificate.as_ref().is_none_or(days)
    }
}

/// A certificate that ends sooner than the check wants.
#[derive(Debug, Clone)]
pub(crate) struct Expiry {
    pub(crate) status: Status,
    /// One line.
    pub(crate) text: String,
}

impl Expiry {
    /// Makes `report` as bad as this, if it is not worse; `told` says that its
    /// text has this one's already.
    pub(crate) fn worsen(&self, report: &mut Report, told: bool) {
        let Outcome::Observed(observation) = &mut report.outcome else {
            return;
        };
        observation.status = observation.status.max(self.status);
        if !told {
            report.output.push_str(&format!(" ({})", self.text));
        }
    }
}

/// A head that is kept. Boxed where it is: few checks ask for it, and all
/// probes carry its place.
#[derive(Debug, Default)]
pub(crate) struct HeadBytes(pub(crate) Vec<u8>);

/// An answer that has no phase of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// To a call.
    #[cfg(feature = "grpc")]
    Answer,
    /// To a ping.
    #[cfg(feature = "h2ping")]
    Pong,
    /// Of a proxy, to the request for a tunnel.
    Tunnel,
    /// To a datagram.
    Datagram,
    /// To a datagram, among others that came and are none.
    AmongOthers,
    /// To a question over a connection.
    Reply,
}

impl Awaited {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            #[cfg(feature = "grpc")]
            Self::Answer => "awaiting the answer",
            #[cfg(feature = "h2ping")]
            Self::Pong => "awaiting the answer to the ping",
            Self::Tunnel => "awaiting the proxy's answer to CONNECT",
            Self::Datagram => "no answer",
            Self::AmongOthers => "datagrams came, but none with an answer to the question",
            Self::Reply => "tcp: no answer",
        }
    }
}

/// The answer that decides.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) reason: String,
    /// The head as it came, if something is expected of its fields.
    pub(crate) head: Option<Box<HeadBytes>>,
    /// What has been captured of the body.
    pub(crate) body: Vec<u8>,
    /// The body's length, if the head tells it.
    pub(crate) length: Option<u64>,
    pub(crate) end: BodyEnd,
}

/// How the capture of a body ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// Not yet; at the deadline this means that the body stalled.
    #[default]
    Open,
    /// All of it was captured.
    Complete,
    /// As much was captured as was wanted.
    Full,
    /// The connection broke, or the framing.
    Broken(String),
}

impl Progress {
    pub(crate) fn new(now: Instant, deadline: Instant) -> Self {
        Self {
            deadline,
            family: Family::Any,
            source: None,
            phases: Phases::default(),
            phase: None,
            since: now,
            address: None,
            name: None,
            redirected_to: None,
            own_fault: None,
            waiting_for: None,
            seen: None,
            #[cfg(any(feature = "docker", all(feature = "script", unix)))]
            said: None,
            answer: None,
        }
    }

    /// Has connections made in this way.
    pub(crate) fn connecting(mut self, options: &ConnectOptions) -> Self {
        self.family = options.wanted();
        self.source = options.source.map(Box::new);
        self
    }

    /// A certificate was shown; the one that ends first is kept.
    pub(crate) fn saw(&mut self, shown: Certificate) {
        let known = &mut self.seen.get_or_insert_default().certificate;
        if known.is_none_or(|known| shown.chain_not_after < known.chain_not_after) {
            *known = Some(shown);
        }
    }

    /// A certificate ends too soon; the worst case is kept.
    pub(crate) fn ends_soon(&mut self, expiry: Expiry) {
        let known = &mut self.seen.get_or_insert_default().expiry;
        if known
            .as_ref()
            .is_none_or(|known| expiry.status > known.status)
        {
            *known = Some(expiry);
        }
    }

    /// What was shown when the connection in use was made.
    pub(crate) fn saw_before(&mut self, before: Seen) {
        self.seen.get_or_insert_default().made_with = before.made_with;
        if let Some(shown) = before.certificate {
            self.saw(shown);
        }
        if let Some(expiry) = before.expiry {
            self.ends_soon(expiry);
        }
    }

    /// That a certificate ends too soon, if one does.
    pub(crate) fn expiry(&self) -> Option<&Expiry> {
        self.seen.as_ref()?.expiry.as_ref()
    }

    /// The phase that runs; before the first, `Resolve`.
    pub(crate) fn phase(&self) -> Phase {
        self.phase.unwrap_or(Phase::Resolve)
    }

    /// When the latest phase began or ended.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// The time of all phases so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.phases.iter().map(|(_, took)| took).sum()
    }

    /// Ends the phase that runs and begins `phase`.
    pub(crate) fn enter(&mut self, phase: Phase) {
        self.end(Instant::now());
        self.phase = Some(phase);
        self.waiting_for = None;
    }

    /// Ends the phase that runs. It stays the one to blame.
    pub(crate) fn end(&mut self, now: Instant) {
        if let Some(phase) = self.phase {
            self.phases.add(phase, now.duration_since(self.since));
        }
        self.since = now;
    }
}
