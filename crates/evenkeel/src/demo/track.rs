use std::collections::VecDeque;
use std::time::Duration;

use evenkeel_threshold::Status;

use crate::status::{Pending, StatusReport};

/// Results that are remembered of each target.
pub(super) const HISTORY: usize = 24;

/// What was seen of all targets.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) targets: Vec<Target>,
    /// From the first report to the latest.
    pub(super) elapsed: Duration,
    first: Option<u64>,
}

/// What was seen of one target.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// The latest raw results, oldest first.
    pub(super) results: VecDeque<Status>,
    pub(super) reported: Status,
    pub(super) pending: Option<Pending>,
    pub(super) raw_changes: u32,
    pub(super) changes: u32,
    seen: Option<u64>,
}

/// A change of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct News {
    pub(super) after: Duration,
    pub(super) target: &'static str,
    pub(super) what: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The raw result is another one than before; the reported status is what it
    /// is.
    Raw {
        to: Status,
        reported: Status,
        pending: Option<Pending>,
    },
    /// The reported status changed.
    Reported { from: Status, to: Status },
}

impl Track {
    pub(super) fn new(targets: impl Iterator<Item = (&'static str, &'static str)>) -> Self {
        Self {
            targets: targets
                .map(|(name, what)| Target {
                    name,
                    what,
                    results: VecDeque::with_capacity(HISTORY),
                    reported: Status::Passing,
                    pending: None,
                    raw_changes: 0,
                    changes: 0,
                    seen: None,
                })
                .collect(),
            elapsed: Duration::ZERO,
            first: None,
        }
    }

    /// Takes in a report; gives what has changed since the last one.
    pub(super) fn take(&mut self, report: &StatusReport) -> Vec<News> {
        let first = *self.first.get_or_insert(report.at);
        self.elapsed = Duration::from_millis(report.at.saturating_sub(first));
        let mut news = Vec::new();
        for target in &mut self.targets {
            let Some(check) = report
                .checks
                .iter()
                .find(|check| check.check.check_id == target.name)
            else {
                continue;
            };
            let before = target.reported;
            target.reported = check.reported;
            target.pending = check.pending;
            target.raw_changes = check.raw_changes;
            target.changes = check.changes;
            if let Some(observed) = check.observed
                && target.seen != Some(observed.at)
            {
                target.seen = Some(observed.at);
                let last = target.results.back().copied();
                if last.is_some_and(|last| last != observed.status) {
                    news.push(News {
                        after: self.elapsed,
                        target: target.name,
                        what: Change::Raw {
                            to: observed.status,
                            reported: check.reported,
                            pending: check.pending,
                        },
                    });
                }
                if target.results.len() == HISTORY {
                    target.results.pop_front();
                }
                target.results.push_back(observed.status);
            }
            if before != check.reported {
                news.push(News {
                    after: self.elapsed,
                    target: target.name,
                    what: Change::Reported {
                        from: before,
                        to: check.reported,
                    },
                });
            }
        }
        news
    }

    /// Changes of the raw results, and of the reported statuses.
    pub(super) fn totals(&self) -> (u32, u32) {
        self.targets.iter().fold((0, 0), |(raw, reported), target| {
            (raw + target.raw_changes, reported + target.changes)
        })
    }
}

/// "2 of 4 failures".
pub(super) fn words(pending: Pending) -> String {
    let noun = match pending.toward {
        Status::Passing => "successes",
        Status::Warning => "warnings",
        Status::Critical => "failures",
    };
    match (pending.seen, pending.needed) {
        (Some(seen), Some(needed)) => format!("{seen} of {needed} {noun}"),
        _ => String::new(),
    }
}
