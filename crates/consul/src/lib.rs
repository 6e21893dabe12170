//! Consul's HTTP API, typed, for programs that watch a catalog and write
//! statuses back.
//!
//! It is made for long watches of large catalogs, and for writes that change
//! nothing but what they are meant to change:
//!
//! * Lists are decoded while they come in ([`Client::each_check`]); an answer
//!   that was cut is an error and never a short list.
//! * Blocking queries follow the rules of Consul's documentation
//!   ([`blocking::Watch`]).
//! * A status is written without losing a field of the check's definition,
//!   although `/v1/txn` loses some ([`mod@write`], [`Client::write_statuses`]).
//! * Older and newer servers: missing and unknown fields are tolerated, what
//!   is not known goes back as it came.
//! * Nothing that a server sends can use more memory than the
//!   [limits](config::Limits) say, or end the process.
//!
//! ```no_run
//! use evenkeel_consul::blocking::{Rules, Step, Watch};
//! use evenkeel_consul::types::Status;
//! use evenkeel_consul::write::{StatusWrite, WriteForm};
//! use evenkeel_consul::{Client, Config, Query};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::from_variables(|name| std::env::var(name).ok())
//!     .map_err(|faults| faults[0].clone())?;
//! let client = Client::new(&config)?;
//!
//! // One read of all checks of external nodes.
//! let query = Query::external_nodes("external-node", "true");
//! let checks = client.list_checks(&query).await?.value;
//!
//! // The first of them is passing from now on.
//! let write = StatusWrite {
//!     check: checks[0].reference(),
//!     status: Status::Passing,
//!     output: "said so by hand".into(),
//!     index: checks[0].modify_index,
//!     form: WriteForm::of(&checks[0]),
//! };
//! let outcomes = client.write_statuses(&[write]).await;
//! assert!(outcomes[0].is_written());
//!
//! // Changes, as they come.
//! let start = tokio::time::Instant::now();
//! let mut watch = Watch::new(Rules::default(), 42);
//! loop {
//!     let now = start.elapsed().as_millis() as u64;
//!     match watch.step(now) {
//!         Step::Wait(until) => {
//!             tokio::time::sleep(std::time::Duration::from_millis(until - now)).await;
//!         }
//!         Step::Ask(ask) => {
//!             let answer = client.list_checks(&ask.applied_to(&query)).await;
//!             let now = start.elapsed().as_millis() as u64;
//!             match answer {
//!                 Ok(list) if watch.answered(now, &list.meta).changed => {
//!                     println!("{} checks", list.value.len());
//!                 }
//!                 Ok(_) => {}
//!                 // The last list stays good.
//!                 Err(error) => drop(watch.failed(now, &error)),
//!             }
//!         }
//!     }
//! }
//! # }
//! ```
//!
//! # What it deliberately does not do
//!
//! It does not try a write again, does not cache, does not log, reads neither
//! the environment nor a clock of its own in the pure part, and knows nothing
//! of thresholds or probes. It covers the calls that a monitor of external
//! nodes needs, not all of Consul's API.
//!
//! # Features
//!
//! `client` (default): [`Client`], the shell over hyper, tokio and rustls.
//! Without it there are the types, the requests as `http::Request` values, the
//! decoding and the state machines, for another HTTP client or none.
//!
//! # Consul Enterprise and newer servers
//!
//! Namespaces, partitions and fields that came after Consul 1.8.7 are tested
//! on a stub, not on a real server.

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
