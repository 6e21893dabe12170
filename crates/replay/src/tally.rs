use std::time::Duration;

use evenkeel_threshold::Status;

/// What a strategy did with one check, or with all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Changes of the reported status; each is a write to the catalog.
    pub writes: u64,
    /// Changes to a status that was not the truth for a moment while it was
    /// reported.
    pub false_flips: u64,
    /// Those of them to a worse status.
    pub false_alarms: u64,
    /// How the truth's changes for the worse were reported.
    pub failures: Delays,
    /// How its changes for the better were.
    pub recoveries: Delays,
    /// For how long something else than the truth was reported, in milliseconds.
    pub wrong_ms: u64,
    /// For how long the checks were watched, in milliseconds.
    pub watched_ms: u64,
}

impl Tally {
    /// The share of time in which something else than the truth was reported.
    pub fn wrong_share(&self) -> f64 {
        match self.watched_ms {
            0 => 0.0,
            watched => self.wrong_ms as f64 / watched as f64,
        }
    }

    pub(crate) fn delays_mut(&mut self, change: Change) -> &mut Delays {
        match change {
            Change::Worse => &mut self.failures,
            Change::Better => &mut self.recoveries,
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.writes += other.writes;
        self.false_flips += other.false_flips;
        self.false_alarms += other.false_alarms;
        self.failures.add(&other.failures);
        self.recoveries.add(&other.recoveries);
        self.wrong_ms = self.wrong_ms.saturating_add(other.wrong_ms);
        self.watched_ms = self.watched_ms.saturating_add(other.watched_ms);
    }
}

/// From the truth's changes to the reports of them. A change back to a status that
/// was reported all the while, since the change before it was missed, is not
/// among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delays {
    /// Changes that were reported before the truth changed again.
    pub detected: u64,
    /// Changes that were not.
    pub missed: u64,
    /// All delays together, in milliseconds.
    pub total_ms: u64,
    /// The longest, in milliseconds.
    pub longest_ms: u64,
}

impl Delays {
    /// The mean delay; `None` if nothing was detected.
    pub fn mean(&self) -> Option<Duration> {
        (self.detected > 0).then(|| Duration::from_millis(self.total_ms / self.detected))
    }

    /// The longest delay; `None` if nothing was detected.
    pub fn longest(&self) -> Option<Duration> {
        (self.detected > 0).then(|| Duration::from_millis(self.longest_ms))
    }

    pub(crate) fn detect(&mut self, after_ms: u64) {
        self.detected += 1;
        self.total_ms = self.total_ms.saturating_add(after_ms);
        self.longest_ms = self.longest_ms.max(after_ms);
    }

    fn add(&mut self, other: &Self) {
        self.detected += other.detected;
        self.missed += other.missed;
        self.total_ms = self.total_ms.saturating_add(other.total_ms);
        self.longest_ms = self.longest_ms.max(other.longest_ms);
    }
}

/// The direction of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Worse,
    Better,
}

impl Change {
    pub(crate) fn between(from: Status, to: Status) -> Self {
        match to > from {
            true => Self::Worse,
            false => Self::Better,
        }
    }
}

/// How the results of targets that work fail: counts for
/// [`Noise`](evenkeel_threshold::advice::Noise). A failure is any result but
/// passing; only results at which the truth was passing, and before which it was,
/// are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoiseCounts {
    /// Results after a success.
    pub after_success: u64,
    /// Failures among them.
    pub failed_after_success: u64,
    /// Results after a failure.
    pub after_failure: u64,
    /// Failures among them.
    pub failed_after_failure: u64,
}

impl NoiseCounts {
    pub(crate) fn count(&mut self, before: Status, now: Status) {
        let failed = u64::from(now != Status::Passing);
        if before == Status::Passing {
            self.after_success += 1;
            self.failed_after_success += failed;
        } else {
            self.after_failure += 1;
            self.failed_after_failure += failed;
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.after_success += other.after_success;
        self.failed_after_success += other.failed_after_success;
        self.after_failure += other.after_failure;
        self.failed_after_failure += other.failed_after_failure;
    }

    /// Results that were counted.
    pub fn results(&self) -> u64 {
        self.after_success + self.after_failure
    }

    /// Failures among them.
    pub fn failures(&self) -> u64 {
        self.failed_after_success + self.failed_after_failure
    }

    /// The share of results that fail.
    pub fn rate(&self) -> f64 {
        share(self.failures(), self.results())
    }

    /// The share of results after a success that fail.
    pub fn a(&self) -> f64 {
        share(self.failed_after_success, self.after_success)
    }

    /// The share of results after a failure that fail, too.
    pub fn b(&self) -> f64 {
        share(self.failed_after_failure, self.after_failure)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 / whole as f64,
    }
}
