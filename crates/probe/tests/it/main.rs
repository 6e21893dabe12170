//! Probes against scripted servers on real sockets.
//!
//! No test waits for a time to pass, except for a probe's own timeout; every
//! probe runs under a generous deadline of the test's own.
#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    reason = "a test may panic and print, and its helpers are the shorter by it"
)]

mod body;
mod certificates;
mod connect;
mod dns;
#[cfg(feature = "docker")]
mod docker;
#[cfg(all(
    target_os = "linux",
    feature = "docker",
    feature = "grpc",
    feature = "h2ping",
    feature = "icmp",
    feature = "script"
))]
mod exhausted;
mod expect;
mod expiry;
#[cfg(all(
    target_os = "linux",
    feature = "docker",
    feature = "grpc",
    feature = "h2ping",
    feature = "http2",
    feature = "icmp",
    feature = "script"
))]
mod failures;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "h2ping")]
mod h2ping;
mod handshake;
mod hostile;
mod http;
#[cfg(all(feature = "grpc", feature = "h2ping"))]
mod http2;
#[cfg(feature = "http2")]
mod http_2;
mod hyper_peer;
#[cfg(all(feature = "icmp", target_os = "linux"))]
mod icmp;
mod names;
#[cfg(unix)]
mod nginx;
mod redirects;
#[cfg(target_os = "linux")]
mod resolver;
mod resumption;
#[cfg(all(feature = "script", target_os = "linux"))]
mod script;
#[cfg(feature = "serde")]
mod serialised;
mod support;
mod tcp;
mod tls;
#[cfg(unix)]
mod transport;
mod udp;
#[cfg(target_os = "linux")]
mod unprobed;
