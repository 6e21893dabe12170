//! The sans-io core of a health monitor.

mod action;
mod agenda;
mod catalog;
mod counters;
mod engine;
mod event;
mod id;
mod outbox;
mod removals;
mod restored;
mod saved;
mod schedule;
mod settings;
mod slab;
mod slot;
mod view;

pub use action::{
    Action, DeregisterTicket, Finding, Outcome, ProbeTicket, Write, WriteReason, WriteTicket,
    Written,
};
pub use catalog::{CatalogCheck, CatalogDiff, CatalogUpdate, Token, output_hash};
pub use counters::{ByReason, Counters};
pub use engine::Engine;
pub use event::{Event, EventKind, StateRestart};
pub use id::CheckId;
pub use saved::{LastTransition, SavedCheck};
pub use settings::Settings;
pub use view::CheckView;
