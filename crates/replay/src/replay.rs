use std::collections::HashMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::time::Duration;

use evenkeel_threshold::{AnyStrategy, FirstResult, Status, Strategy, Timestamp};

use crate::candidate::Candidate;
use crate::history::{Entry, History};
use crate::row::{BadRow, Fault, Row};
use crate::source::ReadError;
use crate::tally::{Change, NoiseCounts, Tally};
use crate::timeline::Timeline;
use crate::truth::{Point, Truth, TruthWindow};

/// When a silence is a gap, in which nobody watched.
///
/// A gap is cut down to the check's usual interval: neither the strategies nor
/// any figure see that it was longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gaps {
    /// More than ten times the check's usual interval, which is the mean of about
    /// its last eight.
    #[default]
    TenIntervals,
    /// More than this.
    LongerThan(Duration),
    /// Never: silence is what a strategy has to deal with.
    Never,
}

/// How a history is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplaySettings {
    /// What the truth is taken to be.
    pub truth: TruthWindow,
    /// Which silences count.
    pub gaps: Gaps,
    /// Rows of further checks are bad rows.
    pub most_checks: usize,
    /// Timelines are kept for so many checks, those that come first; each takes
    /// up to 1.6 KB for every strategy.
    pub timelines: usize,
}

/// Five results for the truth, ten intervals for a gap, a million checks, no
/// timelines.
impl Default for ReplaySettings {
    fn default() -> Self {
        Self {
            truth: TruthWindow::default(),
            gaps: Gaps::default(),
            most_checks: 1_000_000,
            timelines: 0,
        }
    }
}

/// Runs strategies over a history, side by side, in one pass.
///
/// Memory grows with the number of checks, not with that of rows.
///
/// ```
/// use evenkeel_replay::{Candidate, Replay, ReplaySettings, Row};
/// use evenkeel_threshold::{AnyStrategy, Consecutive, Counts, Status, Timestamp};
///
/// let three = Counts { failures_before_critical: 3, ..Counts::default() };
/// let mut replay = Replay::new(ReplaySettings::default(), vec![
///     Candidate::new("raw", AnyStrategy::default()),
///     Candidate::new("three", Consecutive::new(three)?.into()),
/// ]);
/// // A blip, and an outage of ten results.
/// for (minute, letter) in "PPFPPPPPPFFFFFFFFFFPPPPPP".chars().enumerate() {
///     let status = if letter == 'P' { Status::Passing } else { Status::Critical };
///     let time = Timestamp::from_millis(minute as u64 * 60_000);
///     let row = Row { line: minute as u64 + 1, time, check: "web", status: Some(status) };
///     replay.observe(&row).expect("the rows are in order");
/// }
/// let outcome = replay.finish();
/// let [raw, three] = &outcome.strategies[..] else { panic!("there are two") };
/// assert_eq!((raw.tally.writes, raw.tally.false_flips), (4, 1));
/// assert_eq!((three.tally.writes, three.tally.false_flips), (2, 0));
/// // The third failure comes two minutes after the first.
/// assert_eq!(three.tally.failures.mean().unwrap().as_secs(), 120);
/// # Ok::<(), evenkeel_threshold::ParameterError>(())
/// ```
#[derive(Debug)]
pub struct Replay<S: Strategy = AnyStrategy> {
    settings: ReplaySettings,
    candidates: Vec<Candidate<S>>,
    index: HashMap<Box<str>, usize>,
    checks: Vec<Check<S::State>>,
    totals: Totals,
}

#[derive(Debug, Default)]
struct Totals {
    results: u64,
    unprobed: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

/// One check, with what each strategy made of it.
#[derive(Debug)]
struct Check<State> {
    name: Box<str>,
    latest: Point,
    /// The usual time between two results, in milliseconds.
    usual: Option<f64>,
    truth: Truth,
    /// The result about which the truth was told last, and the truth.
    settled: Option<(Point, Status)>,
    lanes: Box<[Lane<State>]>,
    timeline: Option<Box<Timeline>>,
    noise: NoiseCounts,
    results: u64,
    changes: u64,
    worse: u64,
    better: u64,
    gaps: u64,
    gap_ms: u64,
}

/// One strategy on one check.
#[derive(Debug, Clone)]
struct Lane<State> {
    state: State,
    reported: Status,
    /// How the reported status came about, as long as it is not known to have
    /// been the truth.
    unconfirmed: Option<Change>,
    /// A change of the truth that is not yet reported, and when it was.
    undetected: Option<(Change, u64)>,
    tally: Tally,
}

/// The series of a timeline before those of the strategies.
const RESULTS: usize = 0;
const TRUTH: usize = 1;
const STRATEGIES: usize = 2;

impl<S: Strategy> Replay<S> {
    /// Starts with these strategies.
    pub fn new(settings: ReplaySettings, candidates: Vec<Candidate<S>>) -> Self {
        Self {
            settings,
            candidates,
            index: HashMap::new(),
            checks: Vec::new(),
            totals: Totals::default(),
        }
    }

    /// Takes in a row. A check's first result is the status that it starts with
    /// under every strategy.
    ///
    /// # Errors
    ///
    /// The row is not later than the one before it of the same check, or it is of
    /// one check too many. It was left out, and the replay goes on.
    pub fn observe(&mut self, row: &Row<'_>) -> Result<(), Fault> {
        let Some(status) = row.status else {
            self.totals.unprobed += 1;
            return Ok(());
        };
        let wall = row.time.as_millis();
        let at = match self.index.get(row.check) {
            Some(&at) => {
                let check = &mut self.checks[at];
                check.in_order(wall, status)?;
                check.proceed(wall, status, self.settings.gaps);
                at
            }
            None => {
                let at = self.checks.len();
                if at >= self.settings.most_checks {
                    return Err(Fault::ManyChecks(self.settings.most_checks));
                }
                let timeline = at < self.settings.timelines;
                self.index.insert(row.check.into(), at);
                let check = Check::new(row.check, wall, status, &self.candidates, timeline);
                self.checks.push(check);
                at
            }
        };
        self.totals.results += 1;
        self.totals.first = Some(self.totals.first.map_or(row.time, |at| at.min(row.time)));
        self.totals.last = Some(self.totals.last.map_or(row.time, |at| at.max(row.time)));
        let check = &mut self.checks[at];
        check.results += 1;
        if let Some((point, truth)) = check.truth.push(check.latest, self.settings.truth) {
            check.settle(point, truth, &self.candidates);
        }
        Ok(())
    }

    /// Reads a history to its end; hands each bad row to `bad`, which may end the
    /// reading.
    ///
    /// # Errors
    ///
    /// Reading failed. What was read before it has been taken in.
    pub fn read<R: Read>(
        &mut self,
        history: &mut History<R>,
        mut bad: impl FnMut(BadRow) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ReadError> {
        while let Some(entry) = history.next()? {
            let row = match entry {
                Entry::Row(row) => match self.observe(&row) {
                    Ok(()) => continue,
                    Err(fault) => BadRow {
                        line: row.line,
                        fault,
                    },
                },
                Entry::Bad(row) => row,
            };
            if bad(row).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Results that were taken in so far.
    pub fn results(&self) -> u64 {
        self.totals.results
    }

    /// Ends the history, and adds up.
    pub fn finish(mut self) -> Outcome {
        let mut strategies: Vec<StrategyOutcome> = self
            .candidates
            .iter()
            .map(|candidate| StrategyOutcome {
                name: candidate.name.clone(),
                tally: Tally::default(),
            })
            .collect();
        let mut checks = Vec::with_capacity(self.checks.len());
        for mut check in self.checks.drain(..) {
            while let Some((point, truth)) = check.truth.drain(self.settings.truth) {
                check.settle(point, truth, &self.candidates);
            }
            let check = check.finish();
            for (total, tally) in strategies.iter_mut().zip(&check.tallies) {
                total.tally.add(tally);
            }
            checks.push(check);
        }
        Outcome {
            results: self.totals.results,
            unprobed: self.totals.unprobed,
            first: self.totals.first,
            last: self.totals.last,
            strategies,
            checks,
        }
    }
}

impl<State: Copy> Check<State> {
    fn new<S: Strategy<State = State>>(
        name: &str,
        wall: u64,
        status: Status,
        candidates: &[Candidate<S>],
        timeline: bool,
    ) -> Self {
        let now = Timestamp::from_millis(wall);
        let lane = |candidate: &Candidate<S>| {
            // The first result agrees with the status, so it makes no difference
            // whether it is believed or counted.
            let first = FirstResult::Counted;
            let state = candidate.strategy.start(status, first, now);
            Lane {
                state,
                reported: candidate.strategy.reported(&state),
                unconfirmed: None,
                undetected: None,
                tally: Tally::default(),
            }
        };
        Self {
            name: name.into(),
            latest: Point {
                at: wall,
                wall,
                status,
            },
            usual: None,
            truth: Truth::new(),
            settled: None,
            lanes: candidates.iter().map(lane).collect(),
            timeline: timeline
                .then(|| Box::new(Timeline::new(wall, STRATEGIES + candidates.len()))),
            noise: NoiseCounts::default(),
            results: 0,
            changes: 0,
            worse: 0,
            better: 0,
            gaps: 0,
            gap_ms: 0,
        }
    }

    fn in_order(&self, wall: u64, status: Status) -> Result<(), Fault> {
        if wall > self.latest.wall {
            return Ok(());
        }
        Err(match wall == self.latest.wall {
            false => Fault::Backwards,
            true if status == self.latest.status => Fault::Duplicate,
            true => Fault::Contradiction,
        })
    }

    /// Moves on to a later result, and cuts a gap out of the check's own clock.
    fn proceed(&mut self, wall: u64, status: Status, gaps: Gaps) {
        let passed = wall - self.latest.wall;
        let usual = self.usual.unwrap_or(passed as f64);
        let gap = match gaps {
            Gaps::TenIntervals => passed as f64 > 10.0 * usual,
            Gaps::LongerThan(limit) => u128::from(passed) > limit.as_millis(),
            Gaps::Never => false,
        };
        let mut counted = passed;
        if gap {
            counted = (usual as u64).clamp(1, passed);
            self.gaps += 1;
            self.gap_ms += passed - counted;
        }
        // A check that is probed more rarely from now on gets there in steps.
        let step = (passed as f64).min(10.0 * usual) - usual;
        self.usual = Some(usual + step / 8.0);
        self.changes += u64::from(status != self.latest.status);
        self.latest = Point {
            at: self.latest.at + counted,
            wall,
            status,
        };
    }

    /// Takes the strategies to a result about which the truth is known.
    fn settle<S: Strategy<State = State>>(
        &mut self,
        point: Point,
        truth: Status,
        candidates: &[Candidate<S>],
    ) {
        let before = self.settled.replace((point, truth));
        let change = before
            .map(|(_, was)| was)
            .filter(|was| *was != truth)
            .map(|was| Change::between(was, truth));
        match change {
            Some(Change::Worse) => self.worse += 1,
            Some(Change::Better) => self.better += 1,
            None => {}
        }
        if let Some((last, was)) = before {
            if let Some(timeline) = &mut self.timeline {
                let until = last.wall + (point.at - last.at);
                timeline.mark(RESULTS, last.wall, until, last.status);
                timeline.mark(TRUTH, last.wall, until, was);
            }
            if was == Status::Passing && truth == Status::Passing {
                self.noise.count(last.status, point.status);
            }
        }
        for (index, (lane, candidate)) in self.lanes.iter_mut().zip(candidates).enumerate() {
            let strategy = &candidate.strategy;
            if let Some((last, was)) = before {
                let mut drawing = self
                    .timeline
                    .as_deref_mut()
                    .map(|timeline| (timeline, STRATEGIES + index));
                lane.pass(strategy, last, point.at, was, &mut drawing);
            }
            let now = Timestamp::from_millis(point.at);
            if let Some(flip) = strategy.observe(&mut lane.state, point.status.into(), now) {
                lane.flip(flip.to);
            }
            if let Some(change) = change {
                lane.follow(change, truth, point.at);
            }
            lane.compare(truth, point.at);
        }
    }

    fn finish(mut self) -> CheckOutcome {
        if let (Some(timeline), Some((last, truth))) = (&mut self.timeline, self.settled) {
            // The last result has to be seen, and nothing says how long it held.
            timeline.mark(RESULTS, last.wall, last.wall, last.status);
            timeline.mark(TRUTH, last.wall, last.wall, truth);
            for (index, lane) in self.lanes.iter().enumerate() {
                timeline.mark(STRATEGIES + index, last.wall, last.wall, lane.reported);
            }
        }
        let tallies = self.lanes.iter_mut().map(Lane::finish).collect();
        CheckOutcome {
            name: self.name.into(),
            results: self.results,
            changes: self.changes,
            worse: self.worse,
            better: self.better,
            interval: self.usual.map(|usual| Duration::from_millis(usual as u64)),
            gaps: self.gaps,
            gap_ms: self.gap_ms,
            noise: self.noise,
            tallies,
            timeline: self.timeline,
        }
    }
}

impl<State: Copy> Lane<State> {
    /// Lets time pass from one result to the next, in which the truth was `truth`.
    /// What is due at the very time of the next result comes after it.
    fn pass<S: Strategy<State = State>>(
        &mut self,
        strategy: &S,
        last: Point,
        until: u64,
        truth: Status,
        drawing: &mut Option<(&mut Timeline, usize)>,
    ) {
        let mut at = last.at;
        let wall = |at: u64| last.wall + (at - last.at);
        let mut hold = |lane: &mut Self, from: u64, to: u64| {
            lane.tally.watched_ms += to - from;
            if lane.reported != truth {
                lane.tally.wrong_ms += to - from;
            }
            if let Some((timeline, series)) = drawing
                && from < to
            {
                timeline.mark(*series, wall(from), wall(to), lane.reported);
            }
        };
        while let Some(due) = strategy.deadline(&self.state) {
            let due = due.as_millis().max(at);
            if due >= until {
                break;
            }
            let flip = strategy.elapse(&mut self.state, Timestamp::from_millis(due));
            if let Some(flip) = flip {
                hold(self, at, due);
                at = due;
                self.flip(flip.to);
                self.compare(truth, due);
            }
            let again = strategy.deadline(&self.state);
            if again.is_some_and(|again| again.as_millis() <= due) {
                // A strategy that is never content would hold up all others.
                break;
            }
        }
        hold(self, at, until);
    }

    fn flip(&mut self, to: Status) {
        self.judge();
        self.tally.writes += 1;
        self.unconfirmed = Some(Change::between(self.reported, to));
        self.reported = to;
    }

    /// The truth changes to `truth` at `at`.
    fn follow(&mut self, change: Change, truth: Status, at: u64) {
        if let Some((undetected, _)) = self.undetected.take() {
            self.tally.delays_mut(undetected).missed += 1;
            if self.reported == truth {
                // It never left what the truth comes back to: that is no merit.
                return;
            }
        }
        self.undetected = Some((change, at));
    }

    /// What is reported beside what is true from `at` on.
    fn compare(&mut self, truth: Status, at: u64) {
        if self.reported != truth {
            return;
        }
        self.unconfirmed = None;
        if let Some((change, since)) = self.undetected.take() {
            self.tally.delays_mut(change).detect(at - since);
        }
    }

    /// The status reported until now is reported no longer: was it ever true?
    fn judge(&mut self) {
        if let Some(change) = self.unconfirmed.take() {
            self.tally.false_flips += 1;
            self.tally.false_alarms += u64::from(change == Change::Worse);
        }
    }

    fn finish(&mut self) -> Tally {
        self.judge();
        if let Some((change, _)) = self.undetected.take() {
            self.tally.delays_mut(change).missed += 1;
        }
        self.tally
    }
}

/// What came out of a replay.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// Results that were replayed.
    pub results: u64,
    /// Rows of probes that could not be run. They count neither for nor against
    /// a status.
    pub unprobed: u64,
    /// The earliest time.
    pub first: Option<Timestamp>,
    /// The latest time.
    pub last: Option<Timestamp>,
    /// Each strategy, over all checks, in the order in which they were given.
    pub strategies: Vec<StrategyOutcome>,
    /// Each check, in the order in which they came.
    pub checks: Vec<CheckOutcome>,
}

impl Outcome {
    /// Changes of the results, of all checks.
    pub fn changes(&self) -> u64 {
        self.checks.iter().map(|check| check.changes).sum()
    }

    /// How often the truth got worse, and better, over all checks.
    pub fn truth_changes(&self) -> (u64, u64) {
        let add =
            |(worse, better), check: &CheckOutcome| (worse + check.worse, better + check.better);
        self.checks.iter().fold((0, 0), add)
    }

    /// Gaps, and the time that was cut out of all checks, in milliseconds.
    pub fn gaps(&self) -> (u64, u64) {
        let add = |(count, ms): (u64, u64), check: &CheckOutcome| {
            (count + check.gaps, ms.saturating_add(check.gap_ms))
        };
        self.checks.iter().fold((0, 0), add)
    }

    /// How results fail, over all checks.
    pub fn noise(&self) -> NoiseCounts {
        let mut noise = NoiseCounts::default();
        for check in &self.checks {
            noise.add(&check.noise);
        }
        noise
    }

    /// The mean of the checks' usual intervals; `None` if no check has two
    /// results.
    pub fn interval(&self) -> Option<Duration> {
        let known = self.checks.iter().filter_map(|check| check.interval);
        let (count, total) = known.fold((0_u32, Duration::ZERO), |(count, total), interval| {
            (count + 1, total + interval)
        });
        (count > 0).then(|| total / count)
    }
}

/// What a strategy did, over all checks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StrategyOutcome {
    /// As the [`Candidate`] was named.
    pub name: String,
    /// What it did.
    pub tally: Tally,
}

/// One check of a history.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CheckOutcome {
    /// Its name.
    pub name: String,
    /// Results that were replayed.
    pub results: u64,
    /// How often a result differed from the one before it.
    pub changes: u64,
    /// How often the truth got worse.
    pub worse: u64,
    /// How often it got better.
    pub better: u64,
    /// The usual time between two results.
    pub interval: Option<Duration>,
    /// Gaps in the history.
    pub gaps: u64,
    /// How long they were, beyond the usual interval, in milliseconds.
    pub gap_ms: u64,
    /// How its results fail while it works.
    pub noise: NoiseCounts,
    /// What each strategy did.
    pub tallies: Vec<Tally>,
    /// Its timeline, if one was kept: results, truth, and each strategy's status.
    pub timeline: Option<Box<Timeline>>,
}
