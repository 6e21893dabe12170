//! The server with a gRPC client as the proxy, and with the real Envoy.

#![expect(
    clippy::unwrap_used,
    reason = "allow-unwrap-in-tests does not know the helpers of an integration test"
)]

mod client;
mod envoy;
mod hostile;
mod support;
mod tls;
