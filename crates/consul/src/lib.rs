//! Consul's HTTP API, typed, for programs that watch the catalog and write
//! statuses back.
//!
//! placeholder
pub mod answer;
pub mod blocking;
#[cfg(feature = "client")]
pub mod client;
pub mod config;
pub mod decode;
pub mod duration;
mod error;
pub mod request;
pub mod types;
pub mod write;

pub use answer::{Answer, Meta};
#[cfg(feature = "client")]
pub use client::{Client, ConfigError};
pub use config::Config;
pub use error::{EXCERPT, Error, ErrorKind, Excerpt};
pub use request::{Consistency, Query};
