//! The sans-io core of a health monitor: the set of checks, when each is probed,
//! what its results mean, and what has to be written.
//!
//! [`Engine`] takes in what a catalog lists, what probes find and what came of
//! writes, and says what to do next. It does nothing itself.
//!
//! # What it does not do
//!
//! It does not probe, talk to Consul or to anything else, read a clock, spawn
//! tasks, lock, log or store. Time is an argument: milliseconds on the caller's
//! clock, Unix milliseconds if states are to survive the process. It draws no
//! random numbers: the same inputs give the same actions. It knows neither what
//! a check's definition says (`D`, compared for equality) nor how a status is
//! written (`W`, a [`Token`] that it hands back). It does not limit how many
//! probes run at once; a shell that does starts some of them later.
//!
//! # Five verbs
//!
//! | | |
//! |---|---|
//! | [`handle_catalog`](Engine::handle_catalog) and the other `handle_*` | something happened |
//! | [`poll_action`](Engine::poll_action) | what to do now; call it after each input, until it gives `None` |
//! | [`poll_timeout`](Engine::poll_timeout) | when to come back if nothing happens before |
//! | [`handle_timeout`](Engine::handle_timeout) | it is that time |
//! | [`snapshot`](Engine::snapshot), [`restore`](Engine::restore) | what survives the process |
//!
//! Each [`Action`] that wants an answer carries a ticket. An answer that comes
//! too late, twice, or from somewhere else is counted and does no harm; one that
//! never comes is given up after a while.
//!
//! # Example
//!
//! A target that is down, probed each second; the third failure counts.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use evenkeel_engine::{
//!     Action, CatalogCheck, CatalogUpdate, CheckId, Engine, Finding, Outcome, Settings, Token,
//!     Written, output_hash,
//! };
//! use evenkeel_threshold::{FirstResult, Leaky, Status, Timestamp};
//!
//! /// How often the catalog's entry has changed.
//! #[derive(Clone)]
//! struct Revision(u64);
//!
//! impl Token for Revision {
//!     fn is_older_than(&self, other: &Self) -> bool {
//!         self.0 < other.0
//!     }
//! }
//!
//! let mut now = Timestamp::from_millis(1_700_000_000_000);
//! let mut engine = Engine::new(Settings::default());
//! engine.handle_catalog(
//!     now,
//!     CatalogUpdate::all(vec![CatalogCheck {
//!         id: CheckId::new("", "", "db-1", "postgres", "port"),
//!         definition: Arc::new("db-1:5432"),
//!         interval: Duration::from_secs(1),
//!         timeout: Duration::from_secs(1),
//!         status: Status::Passing,
//!         output_hash: output_hash(""),
//!         token: Revision(7),
//!         strategy: Arc::new(Leaky::new(2, 0)),
//!         first_result: FirstResult::Counted,
//!         deregister_after: None,
//!     }]),
//! );
//!
//! let mut written = Vec::new();
//! while written.is_empty() {
//!     while let Some(action) = engine.poll_action(now) {
//!         match action {
//!             Action::Probe { ticket, definition, .. } => {
//!                 // A shell would connect, and answer when that has ended.
//!                 let finding = Finding {
//!                     outcome: Outcome::Observed(Status::Critical.into()),
//!                     output: format!("{definition}: connection refused"),
//!                 };
//!                 engine.handle_observation(now, ticket, finding);
//!             }
//!             Action::Write { writes } => {
//!                 for write in writes {
//!                     let done = Written::Done(Revision(write.token.0 + 1));
//!                     engine.handle_written(now, write.ticket, done);
//!                     written.push((write.id.to_string(), write.status));
//!                 }
//!             }
//!             // Removals and events; there will be other kinds.
//!             _ => {}
//!         }
//!     }
//!     now = engine.poll_timeout().expect("there is a check");
//!     engine.handle_timeout(now);
//! }
//! assert_eq!(written, [("db-1/postgres/port".to_owned(), Status::Critical)]);
//! assert_eq!(engine.counters().observed(Status::Critical), 3);
//! ```
//!
//! # Invariants
//!
//! What can be relied upon, whatever the order of inputs. The simulation in
//! `tests/simulation` checks them at every step.
//!
//! **Identity.** A check is its five parts ([`CheckId`]); all state belongs to
//! that identity. A definition (with its interval and timeout) that is not equal
//! to the one before restarts the check exactly once; an equal one never does,
//! whatever else changed. A changed strategy keeps the counts
//! ([`Strategy::adopt`](evenkeel_threshold::Strategy::adopt)).
//!
//! **Probing.** Of a check at most one probe runs. Probes start at fixed times,
//! one interval apart, however long they take; a tick at which the previous
//! probe still runs, or that was missed, is left out and counted, never made up
//! for. Newcomers that come together are spread; a restored check keeps its
//! phase, so one whose tick fell into the time between two processes waits for
//! the next.
//!
//! **Results.** A probe that could not be run, that overlapped a pause of the
//! process or that probed a former definition never reaches the strategy.
//!
//! **Writing.** A status is written only if it is what the strategy reports, on
//! the word of at least one result since the check started or was restored: a
//! restart by itself writes nothing. Of a check at most one write is on its way.
//! What fails is tried again, with the status as it is then, so the last status
//! is never lost; a status that is back to what the catalog has is not written.
//! A text alone is written at most once per
//! [`output_period`](Settings::output_period), as it is at that time, and only
//! if its result agrees with the status.
//!
//! **The catalog.** It is right about a check's status until the first result
//! after a start, and about what another writer has done since only as far as
//! there is a difference to put right: by the next result, so once per interval
//! at most. What is older than the newest known state of an entry is ignored;
//! what arrives while a write is on its way is judged when that has been
//! answered.
//!
//! **Removing services.** Only by a check of a service that has reported critical
//! for its limit, on the word of a result since the last start and pause, and
//! not while we cannot probe. One request per service at a time. Once it has
//! worked, only a later list that still has the same registration leads to
//! another one.
//!
//! **Cost.** An input for one check costs the logarithm of the number of checks;
//! a catalog update, a pause and a return of the leader cost their number. Of a
//! probe's text only a hash is kept, except in a write that waits.

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
    Action, DeregisterTicket, Deregistered, Finding, Outcome, ProbeTicket, Write, WriteReason,
    WriteTicket, Written,
};
pub use catalog::{CatalogCheck, CatalogDiff, CatalogUpdate, Token, output_hash};
pub use counters::{ByReason, Counters};
pub use engine::Engine;
pub use event::{Event, EventKind, StateRestart};
pub use id::CheckId;
pub use saved::{LastTransition, SavedCheck};
pub use settings::Settings;
pub use view::CheckView;
