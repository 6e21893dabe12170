use evenkeel_threshold::Status;

use crate::WriteReason;

/// What has happened since the engine was made. All only ever go up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Probes started.
    pub probes: u64,
    /// Results, by status: passing, warning, critical.
    pub observations: [u64; 3],
    /// Probes that could not be run, or overlapped a pause of the process.
    pub unprobed: u64,
    /// Of these, those that overlapped a pause.
    pub overlapped_pause: u64,
    /// Results of probes of a definition that is no longer in force.
    pub outdated_findings: u64,
    /// Answers with a ticket that is not valid (any more), of whatever kind.
    pub late_tickets: u64,
    /// Probes that never answered.
    pub lost_probes: u64,
    /// Ticks left out since the previous probe still ran.
    pub ticks_busy: u64,
    /// Ticks left out since the engine was called too late.
    pub ticks_late: u64,
    /// Results that differed from the one before: what would have been reported
    /// without a strategy.
    pub raw_changes: u64,
    /// Changes that would have been reported without a strategy, and never
    /// will be: a result that differed from the reported status counts when the
    /// results change again before it was reported, and so does the return to
    /// the reported status. What may still be reported does not count yet.
    pub suppressed_changes: u64,
    /// Changes of a reported status.
    pub transitions: u64,
    /// Remarks that strategies have begun to make: a check that flaps, or whose
    /// changes are suppressed.
    pub marks: u64,
    /// Catalog entries ignored since something newer was known.
    pub stale_entries: u64,
    /// Catalog entries ignored since the list named the check before.
    pub duplicate_entries: u64,
    /// Statuses that another writer had changed.
    pub drifts: u64,
    /// Writes that are in the catalog, by reason.
    pub written: ByReason,
    /// Batches of writes handed out.
    pub batches: u64,
    /// Writes that came too late: the entry had changed.
    pub lost_races: u64,
    /// Writes undone since another one of their batch came too late.
    pub rolled_back: u64,
    /// Writes that failed.
    pub failed_writes: u64,
    /// Writes that were refused.
    pub refused_writes: u64,
    /// Writes to an entry that does not exist.
    pub gone_writes: u64,
    /// Writes that never were answered.
    pub lost_writes: u64,
    /// Services removed.
    pub deregistrations: u64,
    /// Removals of what was not there any more.
    pub gone_deregistrations: u64,
    /// Removals that failed or never were answered.
    pub failed_deregistrations: u64,
}

impl Counters {
    /// Results with `status`.
    pub fn observed(&self, status: Status) -> u64 {
        self.observations[status as usize]
    }
}

/// A count for each reason to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ByReason {
    /// The status changed.
    pub status: u64,
    /// Only the text changed.
    pub output: u64,
    /// Another writer changed the status.
    pub drift: u64,
}

impl ByReason {
    /// All together.
    pub fn total(&self) -> u64 {
        self.status + self.output + self.drift
    }

    pub(crate) fn add(&mut self, reason: WriteReason) {
        match reason {
            WriteReason::Status => self.status += 1,
            WriteReason::Output => self.output += 1,
            WriteReason::Drift => self.drift += 1,
        }
    }
}
