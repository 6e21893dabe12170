//! What a check probes. One file per kind, with its keys, and here one line for
//! each; what several have in common is in `common`.

mod alias;
mod common;
mod connect;
mod dns;
mod docker;
mod grpc;
mod h2ping;
mod handshake;
mod http;
mod icmp;
mod script;
mod tcp;
mod text_or;
mod tls;
mod udp;

use std::time::Duration;

use evenkeel_probe::{Definition, DefinitionError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::duration;
use crate::config::text::DurationText;

pub use self::alias::Alias;
use self::common::Common;
pub use self::connect::{Connect, Family};
pub use self::dns::Dns;
pub use self::docker::Docker;
pub use self::grpc::Grpc;
pub use self::h2ping::H2Ping;
pub use self::handshake::Handshake;
pub use self::http::{Expect, HeaderValues, Http};
pub use self::icmp::Icmp;
pub use self::script::Script;
pub use self::tcp::Tcp;
pub use self::text_or::TextOr;
pub use self::tls::Tls;
pub use self::udp::Udp;

/// The kinds, of which a check has one, and what they share.
#[derive(Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Kinds {
    /// Its keys stand in the check itself.
    #[serde(flatten)]
    pub http: Http,

    /// Probe by a connection to this host and port; or a table of its keys.
    #[serde(default)]
    #[schemars(example = &"db.example:5432")]
    pub tcp: Option<TextOr<Tcp>>,

    /// Probe by a datagram to this host and port; or a table of its keys.
    #[serde(default)]
    #[schemars(example = &"ntp.example:123")]
    pub udp: Option<TextOr<Udp>>,

    /// Probe by a question to a name server.
    #[serde(default)]
    pub dns: Option<Dns>,

    /// Probe by ICMP echoes to this name or address; or a table of its keys.
    #[serde(default)]
    #[schemars(example = &"gateway.example")]
    pub icmp: Option<TextOr<Icmp>>,

    /// Not probed: somebody has to report at least as often, by
    /// `PUT /v1/heartbeat/ID`; that nobody has is critical.
    #[serde(default, with = "duration::option")]
    #[schemars(with = "Option<DurationText>", example = &"5m")]
    pub heartbeat: Option<Duration>,

    /// Not probed: the worst of other checks.
    #[serde(default)]
    pub alias: Option<Alias>,

    /// Probe by asking the gRPC health service at this host and port, of this
    /// service if one follows after a slash; or a table of its keys.
    #[serde(default)]
    #[schemars(example = &"shop.example:50051/shop.Cart")]
    pub grpc: Option<TextOr<Grpc>>,

    /// Probe by an HTTP/2 ping to this host and port; or a table of its keys.
    #[serde(default)]
    #[schemars(example = &"edge.example:8443")]
    pub h2ping: Option<TextOr<H2Ping>>,

    /// Probe by a TLS handshake with this host and port, and its certificate; or a
    /// table of its keys.
    #[serde(default)]
    #[schemars(example = &"mail.example:993")]
    pub handshake: Option<TextOr<Handshake>>,

    /// Probe by a command in a Docker container; needs probe.docker.
    #[serde(default)]
    pub docker: Option<Docker>,

    /// Probe by a program on this machine; needs probe.scripts.
    #[serde(default)]
    pub script: Option<Script>,

    /// How TLS is spoken: by an https URL and in a handshake, or to a tcp,
    /// grpc or h2ping address, which without this table is connected to without TLS.
    #[serde(default)]
    pub tls: Option<Tls>,

    /// Over which address family a target is connected to, and from which
    /// address: http, tcp, udp, dns, handshake, grpc and h2ping, and icmp but for
    /// the source.
    #[serde(default)]
    pub connect: Option<Connect>,
}

/// A shorter one would be made as long by the least interval of the schedule.
const LEAST_SILENCE: Duration = Duration::from_secs(1);

/// A kind whose key is given.
pub(super) trait Kind {
    /// The key that makes a check one of this kind.
    fn key(&self) -> &'static str;

    /// The keys of [`Common`] that it can use; the others are faults.
    fn takes(&self) -> &'static [&'static str];

    /// What the prober is given.
    fn definition(&self, common: &Common<'_>) -> Result<Definition, DefinitionError>;

    /// What is wrong, as pairs of a key of the check and a sentence.
    fn faults(&self, common: &Common<'_>) -> Vec<(String, String)> {
        let fault = |error: DefinitionError| (self.key().to_owned(), error.to_string());
        self.definition(common)
            .err()
            .map(fault)
            .into_iter()
            .collect()
    }
}

/// The keys of all kinds. Where a kind\'s key is text or a table, the text stands
/// for the first key of the table that must be given.
pub const KEYS: [&str; 10] = [
    "http",
    "tcp",
    "udp",
    "dns",
    "icmp",
    "grpc",
    "h2ping",
    "handshake",
    "docker",
    "script",
];

/// The keys of checks that are not probed.
const WITHOUT_PROBES: [&str; 2] = ["heartbeat", "alias"];

/// All keys that say how a check comes to its results, as a list in a sentence.
pub(super) fn all_keys() -> String {
    [&KEYS[..], &WITHOUT_PROBES].concat().join(", ")
}

impl Kinds {
    /// The kinds whose keys are given.
    fn given(&self) -> impl Iterator<Item = &dyn Kind> {
        let kinds: [Option<&dyn Kind>; KEYS.len()] = [
            self.http.given(),
            self.tcp.as_ref().map(|TextOr(kind)| kind as _),
            self.udp.as_ref().map(|TextOr(kind)| kind as _),
            self.dns.as_ref().map(|kind| kind as _),
            self.icmp.as_ref().map(|TextOr(kind)| kind as _),
            self.grpc.as_ref().map(|TextOr(kind)| kind as _),
            self.h2ping.as_ref().map(|TextOr(kind)| kind as _),
            self.handshake.as_ref().map(|TextOr(kind)| kind as _),
            self.docker.as_ref().map(|kind| kind as _),
            self.script.as_ref().map(|kind| kind as _),
        ];
        kinds.into_iter().flatten()
    }

    fn common(&self, timeout: Duration) -> Common<'_> {
        Common {
            timeout,
            tls: self.tls.as_ref(),
            connect: self.connect.as_ref(),
        }
    }

    /// What is wrong, as pairs of the key (or nothing) and a sentence.
    pub(super) fn faults(&self) -> Vec<(String, String)> {
        let given: Vec<&dyn Kind> = self.given().collect();
        let without_probes = [
            ("heartbeat", self.heartbeat.is_some()),
            ("alias", self.alias.is_some()),
        ];
        let keys: Vec<&str> = given
            .iter()
            .map(|kind| kind.key())
            .chain(
                without_probes
                    .iter()
                    .filter(|(_, given)| *given)
                    .map(|(key, _)| *key),
            )
            .collect();
        let mut faults = Vec::new();
        match &*keys {
            [] => faults.push((String::new(), format!("has none of {}", all_keys()))),
            [key] => {
                let options = (*key != "http").then(|| self.http.options());
                for option in options.into_iter().flatten() {
                    let text = format!("is for http, and this check has {key}");
                    faults.push((option.to_owned(), text));
                }
                let shared = [
                    ("tls", self.tls.is_some()),
                    ("connect", self.connect.is_some()),
                ];
                for (option, is_given) in shared {
                    if is_given && !given.iter().any(|kind| kind.takes().contains(&option)) {
                        faults.push((option.to_owned(), format!("{key} has no use for it")));
                    }
                }
            }
            [one, other] => faults.push((String::new(), format!("has both {one} and {other}"))),
            keys => faults.push((String::new(), format!("has all of {}", keys.join(", ")))),
        }
        if self
            .heartbeat
            .is_some_and(|silence| silence < LEAST_SILENCE)
        {
            faults.push(("heartbeat".to_owned(), "must be at least 1s".to_owned()));
        }
        if let Some(alias) = &self.alias
            && alias.node.is_none()
            && alias.service.is_none()
        {
            faults.push((
                "alias".to_owned(),
                "has neither node nor service".to_owned(),
            ));
        }
        let common = self.common(Duration::ZERO);
        faults.extend(given.iter().flat_map(|kind| kind.faults(&common)));
        faults
    }

    /// What the prober is given; the first of [`Kinds::faults`] if there is one.
    pub(super) fn definition(&self, timeout: Duration) -> Result<Definition, DefinitionError> {
        let common = self.common(timeout);
        match self.given().next() {
            Some(kind) => kind.definition(&common),
            None => Kind::definition(&self.http, &common),
        }
    }
}
