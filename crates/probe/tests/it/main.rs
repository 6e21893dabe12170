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
mod dns;
mod expect;
mod hostile;
mod http;
#[cfg(all(feature = "icmp", target_os = "linux"))]
mod icmp;
mod names;
mod redirects;
#[cfg(target_os = "linux")]
mod resolver;
#[cfg(feature = "serde")]
mod serialised;
mod support;
mod tcp;
mod tls;
mod udp;
#[cfg(target_os = "linux")]
mod unprobed;
