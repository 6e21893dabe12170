//! What the tests of several crates need.
//!
//! * [`Consul`]: a real Consul server on free ports with a data directory of
//!   its own, killed and started again as a test wants, gone when the test is.
//! * [`Envoy`]: a real Envoy with a bootstrap of the test's, [`Origin`]s for it
//!   to call and a [`Caller`] to call it.
//! * [`Nginx`]: a real nginx with servers that the test describes.
//! * `Docker`: a real Docker Engine of its own, with one image (Unix).
//! * `GrpcHealth`: a gRPC server with the health service (feature `grpc`).
//! * [`Stub`]: an HTTP server that does what a real one cannot be made to do:
//!   cut answers, garbage, endless bodies, silence.
//! * [`Wire`]: a relay between two of them that a test cuts and mends.
//! * `Targets` (feature `targets`): what probes are aimed at, good and failing in
//!   a chosen way: silent, slow, reset, in the wrong protocol.
//! * [`eventually`]: waits for a condition under a generous deadline.
//!
//! Everything here blocks and uses threads, so that it works in tests with and
//! without a runtime. It panics where a test would have to.
//!
//! ```no_run
//! let Some(consul) = evenkeel_testkit::Consul::start("my_test") else { return };
//! consul.put("/v1/kv/a", "b");
//! assert!(consul.get("/v1/kv/a?raw").1.contains('b'));
//! ```

mod consul;
#[cfg(unix)]
mod docker;
mod envoy;
#[cfg(feature = "grpc")]
mod grpc;
mod http;
mod nginx;
mod origin;
mod process;
mod stub;
#[cfg(feature = "targets")]
pub mod targets;
mod wait;
mod wire;

pub use consul::{Builder, Consul, consul_binary};
#[cfg(unix)]
pub use docker::Docker;
pub use envoy::{Envoy, envoy_binary, filled};
#[cfg(feature = "grpc")]
pub use grpc::GrpcHealth;
pub use http::request;
pub use nginx::Nginx;
pub use origin::{Caller, Origin};
pub use stub::{Reply, Request, Stub};
pub use wait::{eventually, wait_for};
pub use wire::Wire;
