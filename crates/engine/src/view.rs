use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use evenkeel_threshold::{Mark, Outlook, Status, Strategy, Timestamp};

use crate::slot::{ProbeState, Slot};
use crate::{CheckId, LastTransition};

/// One check, as it is now.
pub struct CheckView<'a, D, W, S: Strategy> {
    slot: &'a Slot<D, W, S>,
}

impl<D, W, S: Strategy> Clone for CheckView<'_, D, W, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D, W, S: Strategy> fmt::Debug for CheckView<'_, D, W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckView")
            .field("id", self.id())
            .field("reported", &self.reported())
            .field("written", &self.written())
            .finish_non_exhaustive()
    }
}

impl<D, W, S: Strategy> Copy for CheckView<'_, D, W, S> {}

impl<'a, D, W, S: Strategy> CheckView<'a, D, W, S> {
    pub(crate) fn new(slot: &'a Slot<D, W, S>) -> Self {
        Self { slot }
    }

    /// Who it is.
    pub fn id(self) -> &'a CheckId {
        &self.slot.id
    }

    /// What is probed.
    pub fn definition(self) -> &'a Arc<D> {
        &self.slot.definition
    }

    /// The rule in force.
    pub fn strategy(self) -> &'a Arc<S> {
        &self.slot.strategy
    }

    /// Time between the starts of two probes, default and floor applied.
    pub fn interval(self) -> Duration {
        self.slot.interval
    }

    /// The status that we stand for.
    pub fn reported(self) -> Status {
        self.slot.released()
    }

    /// The status in the catalog, as far as we know.
    pub fn written(self) -> Status {
        self.slot.known.status
    }

    /// The token of the catalog's entry, as far as we know.
    pub fn token(self) -> &'a W {
        &self.slot.known.token
    }

    /// The last result since the start, and when it came.
    pub fn last_observation(self) -> Option<(Status, Timestamp)> {
        self.slot.last
    }

    /// What the strategy waits for.
    pub fn outlook(self, now: Timestamp) -> Outlook {
        self.slot.strategy.outlook(&self.slot.state, now)
    }

    /// The strategy's remark on the status.
    pub fn mark(self) -> Mark {
        self.slot.strategy.mark(&self.slot.state)
    }

    /// The last change of the reported status that we saw, also before a
    /// restart.
    pub fn last_transition(self) -> Option<LastTransition> {
        self.slot.last_transition
    }

    /// Since when the reported status has been critical.
    pub fn critical_since(self) -> Option<Timestamp> {
        self.slot.critical_since
    }

    /// After which time of being critical the service is removed.
    pub fn deregister_after(self) -> Option<Duration> {
        self.slot.deregister_after
    }

    /// Probes in a row, up to now, that could not be run.
    pub fn unprobed_run(self) -> u32 {
        self.slot.unprobed_run
    }

    /// No result for more than three intervals, or none at all yet. The reported
    /// status is then only what was known before.
    // P081
    pub fn is_stale(self, now: Timestamp) -> bool {
        self.slot
            .last
            .is_none_or(|(_, at)| now.saturating_since(at) > self.slot.interval.saturating_mul(3))
    }

    /// When the next probe is due.
    pub fn next_due(self) -> Timestamp {
        self.slot.next_due
    }

    /// Whether a probe is running.
    pub fn is_probing(self) -> bool {
        matches!(self.slot.probe, ProbeState::Running { .. })
    }

    /// Whether a write waits or is on its way.
    pub fn is_writing(self) -> bool {
        self.slot.pending.is_some() || self.slot.flight.is_some()
    }

    /// Failed tries of the write that waits.
    pub fn failed_writes(self) -> u32 {
        self.slot
            .pending
            .as_ref()
            .map_or(0, |pending| pending.attempts)
    }

    /// Another writer changed the status in the catalog, and it has not been
    /// put right yet.
    pub fn is_drifted(self) -> bool {
        self.slot.drifted
    }

    /// Results since the start that differed from the one before.
    pub fn raw_changes(self) -> u32 {
        self.slot.raw_changes
    }

    /// Changes of the reported status since the start.
    pub fn transitions(self) -> u32 {
        self.slot.transitions
    }
}
