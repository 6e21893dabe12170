//! The evenkeel daemon as a library: configuration, catalogs, wiring, admin
//! server and metrics. The binary is a thin shell around [`cli`].
//!
//! It reads no environment variable by itself, and prints only through the
//! log and the command line's own output.

pub mod admin;
pub mod catalog;
pub mod cli;
pub mod clock;
mod columns;
pub mod config;
pub mod daemon;
pub mod delivery;
pub mod demo;
pub mod document;
pub mod environment;
pub mod events;
pub mod exit;
pub mod logging;
pub mod metrics;
pub mod shutdown;
pub mod simulate;
pub mod state;
pub mod status;
pub mod thresholds;
pub mod zones;
