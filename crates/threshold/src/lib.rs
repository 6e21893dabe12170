//! Noisy observations in, rare transitions out.
//!
//! A check that is probed every few seconds produces a stream of results.
//! Published as they are, a loose cable becomes an alarm storm. This crate
//! holds the rules (*strategies*) that decide from which results on a status
//! really has changed: Schmitt triggers with separate thresholds for failure
//! and recovery.
//!
//! It deliberately does not probe, schedule, log or read a clock: time is an
//! argument, in milliseconds on the caller's clock. It is `no_std` and
//! allocates nothing.
#![no_std]

mod observation;
mod outlook;
mod record;
mod status;
mod strategy;
mod timestamp;

pub use observation::{Observation, Transition};
pub use outlook::{Agreeing, Mark, Outlook};
pub use record::{Loaded, Record, RestartReason, StrategyTag};
pub use status::{ParseStatusError, Status};
pub use strategy::{FirstResult, Strategy};
pub use timestamp::Timestamp;
