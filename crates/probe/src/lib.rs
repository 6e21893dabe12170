//! One health check, run once, within a deadline.
//!
//! A [`Definition`] says what to probe, a [`Prober`] does it and gives a
//! [`Report`]: what was found (or that it could not be found out, and why that
//! is our own fault), a text for people, and how long each phase took.
//!
//! ```no_run
//! use evenkeel_probe::{Definition, HttpCheck, Prober, ProberSettings};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let prober = Prober::new(ProberSettings::default())?;
//! let check = HttpCheck::new("http://192.0.2.7:8080/health")?
//!     .with_header("Host", "shop.example")?
//!     .with_timeout(std::time::Duration::from_secs(2));
//! let report = prober.run(&Definition::from(check)).await;
//! println!("{:?}: {}", report.outcome, report.output);
//! # Ok(()) }
//! ```
//!
//! What a probe means:
//!
//! * HTTP: 2xx is passing, 429 a warning, all else critical. A new connection
//!   for each probe, so that the target's accept path is tested too, unless the
//!   check says otherwise ([`HttpTransport`]). Redirects are followed unless
//!   told not to. No proxy but one that the check names, whatever the
//!   environment says: a proxy's health is not the target's.
//! * TCP: a connection, and a TLS handshake if asked for, is passing; and what
//!   is said then, if the check has a dialogue.
//! * TLS: a handshake and a certificate that is valid for long enough is
//!   passing.
//! * UDP: the reply decides; what silence means is said in the check. A closed
//!   port is critical.
//! * DNS: the expected response code and records are passing.
//! * ICMP (feature `icmp`): the share of lost echoes and the average round trip
//!   decide.
//! * The head of an answer decides. A body that stalls or breaks later does
//!   not change the status; the text and [`Report::failed_phase`] tell it.
//! * A fault of this machine (no descriptors, ports, memory, permission,
//!   route, name server, certificate files; an address that the
//!   [`TargetPolicy`] refuses) is [`Outcome::Unprobed`].
//!
//! A kind of your own implements [`Probe`]: `examples/src/bin/own_probe.rs` in
//! the repository asks a Redis server that way, beside a check of this crate.
//!
//! The crate neither schedules nor counts nor logs, and keeps nothing between
//! probes but TLS configurations, the resolver's setup, and the connection of a
//! check that asks for it.

mod capture;
mod clock;
#[cfg(any(feature = "docker", all(feature = "script", unix)))]
mod command;
mod connect;
mod datagram;
mod definition;
mod dialogue;
mod dns;
pub mod duration;
mod fault;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "h2ping")]
mod h2ping;
mod handshake;
mod http;
#[cfg(any(feature = "grpc", feature = "h2ping", feature = "http2"))]
mod http2;
#[cfg(feature = "icmp")]
mod icmp;
mod kind;
mod off_thread;
mod policy;
mod probe;
mod prober;
mod progress;
mod report;
mod resolve;
mod tcp;
mod tls;
mod transport;
mod udp;

pub use clock::WallClock;
#[cfg(feature = "docker")]
pub use definition::DockerCheck;
#[cfg(feature = "grpc")]
pub use definition::GrpcCheck;
#[cfg(feature = "h2ping")]
pub use definition::H2PingCheck;
#[cfg(all(feature = "script", unix))]
pub use definition::ScriptCheck;
pub use definition::{
    ConnectOptions, DEFAULT_OUTPUT_MAX_SIZE, DEFAULT_TIMEOUT, Definition, DefinitionError,
    DnsCheck, DnsOptions, DnsTransport, Expected, Family, HttpCheck, HttpCredentials, HttpExpect,
    HttpTransport, HttpVersion, MAX_OUTPUT_MAX_SIZE, Pattern, Silence, TcpCheck, TcpStep, TlsCheck,
    TlsOptions, UdpCheck,
};
#[cfg(feature = "icmp")]
pub use definition::{IcmpCheck, IcmpOptions};
#[cfg(feature = "icmp")]
pub use icmp::IcmpSockets;
pub use policy::{Refused, TargetPolicy};
pub use probe::Probe;
pub use prober::{Prober, ProberSettings, RedirectPolicy, SettingsError};
pub use report::{Cause, Certificate, Outcome, Phase, Phases, Report, RoundTrips};
pub use resolve::{HoldingResolver, Resolve, ResolveError, SystemResolver};
pub use tls::TlsDefaults;
