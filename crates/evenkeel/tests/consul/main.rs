//! The daemon against a real Consul.
//!
//! Each test has a Consul of its own. Without one they say that they were
//! skipped; with `CI=true` that is a failure.

#![expect(
    clippy::unwrap_used,
    reason = "allow-unwrap-in-tests does not know the helpers of an integration test"
)]

mod alias;
mod catalog;
mod changes;
mod daemon;
mod definitions;
mod envoy;
mod faults;
mod newer;
mod outage;
mod reported;
mod restart;
mod storm;
mod targets;
mod thresholds;
mod tls;
mod zones;
