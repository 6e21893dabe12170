use core::time::Duration;

use evenkeel_threshold::{self as threshold, Mark, Status, Timestamp};

use crate::CheckId;

/// Something that happened to one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// To which check.
    pub id: CheckId,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// The catalog has a new check.
    Added,
    /// The catalog has the check no more.
    Removed,
    /// The definition changed, and the check started anew.
    Restarted,
    /// The strategy changed; the counts were kept.
    Rethresholded,
    /// The counts were lost.
    StateRestarted {
        /// Why.
        reason: StateRestart,
    },
    /// The reported status changed.
    Transition {
        /// The status until now.
        from: Status,
        /// The result that brought it about; `None` if time alone did.
        observed: Option<Status>,
        /// The status from now on.
        to: Status,
        /// Results counted toward the change, with the last one.
        seen: u32,
        /// Results that the strategy asked for.
        needed: u32,
    },
    /// The strategy remarks on the status: the check flaps, or its changes are
    /// suppressed. Each start is followed by an end before the next start, unless
    /// the counts are lost with the process.
    MarkStarted {
        /// The remark; never [`Mark::None`].
        mark: Mark,
    },
    /// The remark no longer holds. Before the event that says why, e.g. that the
    /// check was removed.
    MarkEnded {
        /// The remark.
        mark: Mark,
    },
    /// The check could not be probed, for a fault of our own. Said once for a
    /// run of such probes.
    UnprobedStarted,
    /// The check could be probed again.
    UnprobedEnded {
        /// Probes in a row that could not be run.
        run: u32,
    },
    /// A probe never answered.
    ProbeLost,
    /// Another writer changed the status in the catalog.
    Drift {
        /// The status in the catalog.
        catalog: Status,
        /// The status that we report, and that will be written back.
        ours: Status,
    },
    /// Someone else changed the entry between our reading and our writing.
    WriteLost {
        /// The status in the catalog.
        catalog: Status,
        /// The status that was to be written.
        ours: Status,
    },
    /// A write failed, for the first time in a run of failures.
    WriteFailed {
        /// It was refused, rather than lost or broken off.
        refused: bool,
    },
    /// The entry to write to does not exist.
    WriteGone,
    /// The service is to be removed from the catalog. Said once, however often
    /// it has to be tried.
    Deregistering {
        /// How long the check has been critical.
        critical_for: Duration,
    },
    /// The service was removed from the catalog.
    Deregistered,
    /// The service could not be removed, for the first time in a run of failures;
    /// tried again.
    DeregistrationFailed,
}

/// Why counts were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateRestart {
    /// The catalog has another status than the saved state, or than a state that
    /// no probe has confirmed since the start.
    CatalogDiffers {
        /// The status in the catalog, which holds.
        catalog: Status,
        /// The status that was given up.
        ours: Status,
    },
    /// The strategy could not use the saved state.
    Record(threshold::RestartReason),
    /// The service was registered again after it had been removed.
    Reregistered,
}
