//! Endpoint assignments for Envoy, over xDS.
//!
//! A [`Server`] speaks the state-of-the-world variants of EDS and ADS. It is
//! given whole lists of [`Assignments`] and sends each proxy what is new of
//! what that proxy asked for:
//!
//! * A change is encoded once; all proxies share the same bytes.
//! * A proxy has one response under way. What is published before it answers is
//!   not queued, so a slow proxy costs nothing and gets the newest.
//! * Acknowledgements and refusals are visible: [`Server::subscribers`] has per
//!   proxy the version that it has accepted and the text of its last refusal.
//!   One refused assignment does not keep a proxy from the others.
//! * Weights may differ by [`Audience`]: the calling service and its locality.
//! * Before the first publication nothing is sent at all, so that proxies keep
//!   what they have while the server finds its bearings after a restart.
//!
//! [`file()`] makes the same for Envoy's file-based EDS.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use evenkeel_xds::{Assignment, Assignments, Endpoint, Health, Locality, Server, Settings};
//!
//! let mut web = Assignment::default();
//! let endpoint = Endpoint { address: "10.0.1.7".into(), port: 80, health: Health::Healthy, weight: None };
//! web.insert(0, &Locality::new("eu", "eu-a", ""), endpoint);
//! let mut assignments = Assignments::new();
//! assignments.insert("web", web);
//!
//! let server = Server::new(Settings::default(), 1);
//! server.publish(&assignments)?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:18000").await?;
//! server.serve(listener, None, std::future::pending()).await;
//! # Ok(())
//! # }
//! ```

mod assignment;
mod file;
mod listener;
mod message;
mod server;
mod snapshot;
mod status;
mod stream;
mod subscription;
mod tls;

pub use assignment::{
    Assignment, AssignmentError, Assignments, Audience, Endpoint, Fault, Group, Health, Locality,
};
pub use file::file;
pub use listener::Listener;
pub use server::{Server, Settings};
pub use snapshot::Published;
pub use status::{Counters, Nack, Node, Peer, Protocol, Subscriber};
pub use tls::{Tls, TlsError};
