//! Checks from a file: TOML or JSON, read again when it changes.
//!
//! A version with a fault is refused as a whole, with every fault named, and the
//! last good one stays in force; docs/file-catalog.md says so to users.

mod endpoint;
mod entry;
mod kind;
mod parse;
mod settle;
#[cfg(test)]
mod tests;
mod view;
mod watch;

pub use endpoint::EndpointEntry;
use endpoint::services;
pub use entry::{Entry, File, InitialStatus};
pub use kind::KEYS as KINDS;
pub use kind::{
    Alias, Connect, Dns, Docker, Expect, Family, Grpc, H2Ping, Handshake, HeaderValues, Http, Icmp,
    Kinds, Script, Tcp, TextOr, Tls, Udp,
};
pub use parse::{FileFault, Parsed, parse, shape};
pub use view::view;
pub use watch::FileCatalog;
