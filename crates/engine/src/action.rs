use core::time::Duration;
use std::sync::Arc;

use evenkeel_threshold::{Observation, Status};

use crate::{CheckId, Event};

/// What the shell is to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Action<D, W> {
    /// Run a probe and hand its finding to
    /// [`Engine::handle_observation`](crate::Engine::handle_observation).
    Probe {
        /// Goes with the answer.
        ticket: ProbeTicket,
        /// The check.
        id: CheckId,
        /// What to probe.
        definition: Arc<D>,
    },
    /// Write statuses, and hand the outcome of each, in any order, to
    /// [`Engine::handle_written`](crate::Engine::handle_written).
    Write {
        /// At least one and at most
        /// [`Settings::batch_size`](crate::Settings::batch_size), each of
        /// another check.
        writes: Vec<Write<W>>,
    },
    /// Remove a service, and hand the outcome to
    /// [`Engine::handle_deregistered`](crate::Engine::handle_deregistered).
    Deregister {
        /// Goes with the answer.
        ticket: DeregisterTicket,
        /// The check that decided it. The service to remove is the one of its
        /// partition, namespace, node and service id.
        id: CheckId,
        /// How long the check has been critical.
        critical_for: Duration,
        /// The check's token.
        token: W,
    },
    /// Something to log, count or show.
    Event(Event),
}

/// One status to write.
#[derive(Debug, Clone)]
pub struct Write<W> {
    /// Goes with the answer.
    pub ticket: WriteTicket,
    /// The check.
    pub id: CheckId,
    /// The status to write.
    pub status: Status,
    /// The text to write.
    pub output: Arc<str>,
    /// The state of the entry that the write is based on.
    pub token: W,
    /// Why.
    pub reason: WriteReason,
}

/// Why a status is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WriteReason {
    /// The status changed.
    Status,
    /// Only the text changed.
    Output,
    /// Another writer changed the status.
    Drift,
}

/// What came of a write.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Written<W> {
    /// It is in the catalog, whose entry now has this token.
    Done(W),
    /// The entry had changed before, or another one of the same batch had and
    /// all were rolled back. This is what it is now, by a fresh and consistent
    /// read; the engine decides again.
    Stale {
        /// Its token.
        token: W,
        /// Its status.
        status: Status,
        /// [`output_hash`](crate::output_hash) of its text.
        output_hash: u64,
    },
    /// The entry does not exist. The next catalog update says what to do.
    Gone,
    /// It may or may not have been written; tried again soon.
    Failed,
    /// It was refused for a reason that will not go away by itself, such as a
    /// missing permission; tried again, slowly.
    Refused,
}

/// What came of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deregistered {
    /// The service is removed.
    Done,
    /// It may or may not have been removed; tried again soon.
    Failed,
    /// It was refused for a reason that will not go away by itself, such as a
    /// missing permission; tried again, slowly.
    Refused,
    /// There is nothing to remove (any more). The next catalog update says what
    /// to do.
    Gone,
}

/// The result of one probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was found.
    pub outcome: Outcome,
    /// The text for the catalog.
    pub output: String,
}

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The target's state.
    Observed(Observation),
    /// Nothing: the probe could not be run, for a fault of our own.
    Unprobed,
}

/// Names one probe. Answers with a ticket that is not valid any more are
/// counted and otherwise ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProbeTicket {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// Names one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WriteTicket(pub(crate) u64);

/// Names one deregistration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeregisterTicket(pub(crate) u64);
