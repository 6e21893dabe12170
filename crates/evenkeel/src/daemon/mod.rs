//! The daemon: one task that owns the engine, and what it talks to.
//!
//! ```text
//!  catalog ──lists──►┌────────┐──probes──► probe tasks ──findings──┐
//!  admin ─questions─►│  loop  │◄───────────────────────────────────┘
//!  signals ─────────►│ engine │──writes──► write tasks ──outcomes──┐
//!                    └────────┘◄───────────────────────────────────┘
//!                        └──► event log, metrics, state file
//! ```
//!
//! The loop is the only place where check state changes. It never waits for the
//! network or a disk: whatever can take long is a task of its own that sends
//! its outcome back.

mod aliases;
mod consul_client;
mod conversions;
mod driver;
mod heartbeats;
mod leader;
mod lookups;
mod probing;
mod readiness;
mod reporting;
mod saving;
mod start;
mod statuses;
mod writing;

pub(crate) use start::prober;
pub use start::{Daemon, Reload, run};
pub(crate) use writing::from_consul;

/// The engine as the daemon uses it.
type Engine = evenkeel_engine::Engine<
    crate::catalog::Definition,
    crate::catalog::Token,
    evenkeel_threshold::AnyStrategy,
>;
