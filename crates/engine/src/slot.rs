use core::time::Duration;
use std::sync::Arc;

use evenkeel_threshold::{FirstResult, Mark, Status, Strategy, Timestamp};

use crate::{CheckId, LastTransition, WriteReason};

/// All that is kept of one check.
pub(crate) struct Slot<D, W, S: Strategy> {
    pub(crate) id: CheckId,

    // What the catalog says.
    pub(crate) definition: Arc<D>,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    pub(crate) deregister_after: Option<Duration>,
    pub(crate) strategy: Arc<S>,
    pub(crate) first_result: FirstResult,
    /// The newest that is known of the entry.
    pub(crate) known: Entry<W>,
    /// The update that named it last.
    pub(crate) seen: u32,
    /// Dropped by the catalog, and kept only until what is on its way for it has
    /// been answered.
    pub(crate) departed: bool,

    // What the probes say.
    pub(crate) state: S::State,
    /// A result has come in since the state was started or restored. Before
    /// that nothing may be written.
    pub(crate) probed: bool,
    /// A result has come in since the last pause, too.
    pub(crate) verified: bool,
    /// The strategy's remark as it was told last.
    pub(crate) mark: Mark,
    pub(crate) last: Option<(Status, Timestamp)>,
    pub(crate) last_transition: Option<LastTransition>,
    pub(crate) critical_since: Option<Timestamp>,
    pub(crate) unprobed_run: u32,
    pub(crate) raw_changes: u32,
    pub(crate) transitions: u32,

    // Probing.
    pub(crate) next_due: Timestamp,
    pub(crate) probe: ProbeState,

    // Writing.
    /// The catalog's status was changed by another writer.
    pub(crate) drifted: bool,
    /// When a differing text may be written.
    pub(crate) output_due: Option<Timestamp>,
    pub(crate) pending: Option<Box<Pending>>,
    /// Is in the outbox's queue.
    pub(crate) queued: bool,
    /// The write on its way.
    pub(crate) flight: Option<u64>,
}

/// One state of a catalog's entry.
#[derive(Debug, Clone)]
pub(crate) struct Entry<W> {
    pub(crate) token: W,
    pub(crate) status: Status,
    pub(crate) output_hash: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProbeState {
    Idle,
    /// Due, and not handed out yet.
    Queued,
    Running {
        generation: u32,
        /// When it is taken for lost.
        lost_at: Timestamp,
        verdict: Verdict,
    },
}

/// What the finding of a running probe will be worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Counts,
    /// The check was restarted meanwhile.
    Outdated,
    /// The process was paused meanwhile.
    OverlapsPause,
}

/// A write that waits to be sent. Its status is the released one at that time.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) reason: WriteReason,
    pub(crate) output: Arc<str>,
    pub(crate) output_hash: u64,
    /// Failed tries so far.
    pub(crate) attempts: u32,
    /// Not sent earlier.
    pub(crate) not_before: Timestamp,
    /// The latest try was refused, or its entry was not there. That a leader
    /// comes back changes nothing about it.
    pub(crate) refused: bool,
}

impl<D, W, S: Strategy> Slot<D, W, S> {
    /// The status that we stand for: the decided one, after the guards.
    pub(crate) fn released(&self) -> Status {
        self.strategy.reported(&self.state)
    }

    /// Forgets all results and starts from the status in the catalog.
    pub(crate) fn start_anew(&mut self, now: Timestamp) {
        let status = self.known.status;
        self.state = self.strategy.start(status, self.first_result, now);
        self.probed = false;
        self.verified = false;
        self.last = None;
        self.critical_since = (status == Status::Critical).then_some(now);
        self.unprobed_run = 0;
        self.drifted = false;
        self.output_due = None;
        self.pending = None;
    }

    /// What a running probe finds is not about the check any more.
    pub(crate) fn outdate_probe(&mut self) {
        if let ProbeState::Running { verdict, .. } = &mut self.probe {
            *verdict = Verdict::Outdated;
        }
    }

    /// Nothing is on its way for it.
    pub(crate) fn is_quiet(&self) -> bool {
        self.flight.is_none() && !matches!(self.probe, ProbeState::Running { .. })
    }
}
