//! What the target really was at each result, as hindsight shows it.

use std::collections::VecDeque;

use evenkeel_threshold::Status;

/// A result of one check that waits for the results after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Point {
    /// On the check's own clock, from which gaps are cut out, in milliseconds.
    pub(crate) at: u64,
    /// In Unix milliseconds.
    pub(crate) wall: u64,
    pub(crate) status: Status,
}

/// How many results show what the truth is: a result and those that follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruthWindow(usize);

impl TruthWindow {
    /// The widest window.
    pub const WIDEST: usize = 100;

    /// A window of so many results.
    ///
    /// # Errors
    ///
    /// The number is 0 or above [`TruthWindow::WIDEST`].
    pub fn new(results: usize) -> Result<Self, WindowError> {
        match (1..=Self::WIDEST).contains(&results) {
            true => Ok(Self(results)),
            false => Err(WindowError(results)),
        }
    }

    /// The number of results.
    pub const fn results(self) -> usize {
        self.0
    }

    /// How many of them have to agree on a change: four fifths, rounded up.
    pub const fn needed(self) -> usize {
        (4 * self.0).div_ceil(5)
    }
}

/// Five results, four of which have to agree: four in a row are always the truth,
/// and what goes to and fro is not.
impl Default for TruthWindow {
    fn default() -> Self {
        Self(5)
    }
}

/// No such window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a window of {0} results: it must be from 1 to {widest}", widest = TruthWindow::WIDEST)]
pub struct WindowError(usize);

/// The truth about one check, as far as it is known.
///
/// It gets worse at a result that is worse than it, if four fifths of the window
/// that begins with this result are worse than it: to the status that so many of
/// them have or exceed, but no further than the result itself. It gets better
/// likewise. At the beginning it is the median of the first window. Where the
/// history ends before the window does, it changes only if enough results are
/// there.
#[derive(Debug, Clone)]
pub(crate) struct Truth {
    /// Results about which the truth is not known yet; at most a window.
    pending: VecDeque<Point>,
    /// How many of them there are of each status.
    counts: [usize; 3],
    latest: Option<Status>,
}

impl Truth {
    pub(crate) fn new() -> Self {
        Self {
            pending: VecDeque::new(),
            counts: [0; 3],
            latest: None,
        }
    }

    /// Takes in a result; gives back the one about which the truth is known by
    /// now, if there is one, with the truth.
    pub(crate) fn push(&mut self, point: Point, window: TruthWindow) -> Option<(Point, Status)> {
        self.pending.push_back(point);
        self.counts[point.status as usize] += 1;
        match self.pending.len() == window.results() {
            true => self.drain(window),
            false => None,
        }
    }

    /// The next one, when no more results come.
    pub(crate) fn drain(&mut self, window: TruthWindow) -> Option<(Point, Status)> {
        let point = *self.pending.front()?;
        let needed = window.needed();
        let before = self
            .latest
            .unwrap_or_else(|| self.best(self.pending.len() / 2 + 1));
        let truth = if point.status > before {
            before.max(point.status.min(self.worst(needed)))
        } else {
            before.min(point.status.max(self.best(needed)))
        };
        self.latest = Some(truth);
        self.counts[point.status as usize] -= 1;
        self.pending.pop_front();
        Some((point, truth))
    }

    /// The status that `needed` of the results have or exceed; passing if there
    /// are not so many.
    fn worst(&self, needed: usize) -> Status {
        let [_, warning, critical] = self.counts;
        if critical >= needed {
            Status::Critical
        } else if critical + warning >= needed {
            Status::Warning
        } else {
            Status::Passing
        }
    }

    /// The status that `needed` of the results have or keep below; critical if
    /// there are not so many.
    fn best(&self, needed: usize) -> Status {
        let [passing, warning, _] = self.counts;
        if passing >= needed {
            Status::Passing
        } else if passing + warning >= needed {
            Status::Warning
        } else {
            Status::Critical
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn statuses(letters: &str) -> Vec<Status> {
        let status = |letter| match letter {
            'P' => Status::Passing,
            'W' => Status::Warning,
            _ => Status::Critical,
        };
        letters.chars().map(status).collect()
    }

    fn truth(results: &[Status], window: usize) -> Vec<Status> {
        let window = TruthWindow::new(window).unwrap();
        let mut truth = Truth::new();
        let mut found = Vec::new();
        for (index, status) in results.iter().enumerate() {
            let at = index as u64;
            let point = Point {
                at,
                wall: at,
                status: *status,
            };
            found.extend(truth.push(point, window));
        }
        while let Some(settled) = truth.drain(window) {
            found.push(settled);
        }
        let order: Vec<u64> = found.iter().map(|(point, _)| point.at).collect();
        assert!(order.into_iter().eq(0..results.len() as u64));
        found.into_iter().map(|(_, truth)| truth).collect()
    }

    fn letters(statuses: &[Status]) -> String {
        let letter = |status: &Status| match status {
            Status::Passing => 'P',
            Status::Warning => 'W',
            Status::Critical => 'F',
        };
        statuses.iter().map(letter).collect()
    }

    #[test]
    fn short_runs_are_noise_and_long_ones_keep_their_edges() {
        for (results, expected) in [
            ("PPPPPFFFPPPPP", "PPPPPPPPPPPPP"),
            ("PPPPPFFFFPPPP", "PPPPPFFFFPPPP"),
            // A dip in an outage, and a blip before it.
            ("PPPFPPFFFFPFFFPPPP", "PPPPPPFFFFFFFFPPPP"),
            // A dip near the beginning.
            ("PPPPFPFFFFPPPP", "PPPPFFFFFFPPPP"),
            // To and fro is neither.
            ("PPPPFPFPFPFPFPPPP", "PPPPPPPPPPPPPPPPP"),
            ("FFFFPFPFPFPFPFFFF", "FFFFFFFFFFFFFFFFF"),
            // Levels in between.
            ("PPPPWWWWPPPP", "PPPPWWWWPPPP"),
            ("PPPPWFFFFPPPP", "PPPPWFFFFPPPP"),
            ("PPPPFWFWFPPPP", "PPPPWWWWWPPPP"),
            // What begins at the end is not known, nor what was before the beginning.
            ("PPPPPPPPFFF", "PPPPPPPPPPP"),
            ("PPPPPPPPFFFF", "PPPPPPPPFFFF"),
            ("FPPPPPPP", "PPPPPPPP"),
            ("F", "F"),
        ] {
            let found = truth(&statuses(results), 5);
            assert_eq!(letters(&found), expected, "{results}");
        }
    }

    #[test]
    fn a_window_of_one_believes_every_result() {
        let results = statuses("PFWPFFPW");
        assert_eq!(truth(&results, 1), results);
    }

    #[test]
    fn empty_and_endless_windows_are_refused() {
        for wrong in [0, 101] {
            assert!(TruthWindow::new(wrong).is_err(), "{wrong}");
        }
        let needed = |results| TruthWindow::new(results).unwrap().needed();
        assert_eq!(
            [1, 2, 3, 4, 5, 6, 10, 100].map(needed),
            [1, 2, 3, 4, 4, 5, 8, 80]
        );
    }

    proptest! {
        #[test]
        fn the_truth_is_no_further_off_than_the_results_say(
            results in "[PWF]{1,60}",
            window in 1_usize..9,
        ) {
            let results = statuses(&results);
            let found = truth(&results, window);
            for (index, pair) in found.windows(2).enumerate() {
                let (before, now, result) = (pair[0], pair[1], results[index + 1]);
                if now == before {
                    continue;
                }
                // It moved toward the result, and enough results follow.
                let around = &results[index + 1..results.len().min(index + 1 + window)];
                let agreeing = around
                    .iter()
                    .filter(|status| if now > before { **status >= now } else { **status <= now })
                    .count();
                prop_assert!(agreeing * 5 >= window * 4);
                let toward = if now > before { result >= now } else { result <= now };
                prop_assert!(toward);
            }
        }
    }
}
