use core::cmp::Ordering;
use core::fmt;
use core::time::Duration;

use crate::key::{keys, write_directive};
use crate::parameters::{Relation, Rules};
use crate::payload::{Fields, Flags};
use crate::words::Stamp;
use crate::{
    Agreeing, FirstResult, Loaded, Observation, Outlook, ParameterError, Record, Status, Strategy,
    StrategyTag, Timestamp, Transition,
};

/// The parameters of [`Dwell`], as they are written in a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct DwellParameters {
    /// Failures in a row that are wanted for a change; 0 is 1.
    pub failures: u32,
    /// Successes in a row that are wanted for a change; 0 is 1.
    pub successes: u32,
    /// After a change for the better no other for so long.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "after_recovery_ms", with = "crate::duration::millis")
    )]
    pub after_recovery: Duration,
    /// After a change for the worse no other for so long; times the number of
    /// such changes, if it grows.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "after_failure_ms", with = "crate::duration::millis")
    )]
    pub after_failure: Duration,
    /// What the time after a failure grows to at most; at least `after_failure`.
    /// As much as that, and it does not grow.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "after_failure_max_ms", with = "crate::duration::millis")
    )]
    pub after_failure_max: Duration,
    /// For each time so long that passing is reported, one failure is forgotten.
    /// 0: all are forgotten at once, so nothing grows.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "forgive_after_ms", with = "crate::duration::millis")
    )]
    pub forgive_after: Duration,
}

keys! { DwellParameters {
    failures: u32 = "failures" or "down", "any; 0 is 1", "1",
        "Failures in a row that are wanted for a change";
    successes: u32 = "successes" or "up", "any; 0 is 1", "1",
        "Successes in a row that are wanted for a change";
    after_recovery: Duration = "after-recovery", "any", "0s",
        "No other change for so long after one for the better";
    after_failure: Duration = "after-failure", "any", "30s",
        "No other change for so long after one for the worse, times the number of such changes";
    after_failure_max: Duration = "after-failure-max", "at least `after-failure`", "5m",
        "What the time after a failure grows to at most";
    forgive_after: Duration = "forgive-after", "any; 0s: at once", "10s",
        "One failure is forgotten for each time so long that passing is reported";
} }

/// A growing hold with the figures of Envoy's outlier ejection: base 30 s, at
/// most 300 s, one taken off every 10 s.
impl Default for DwellParameters {
    fn default() -> Self {
        Self {
            failures: 1,
            successes: 1,
            after_recovery: Duration::ZERO,
            after_failure: Duration::from_secs(30),
            after_failure_max: Duration::from_secs(300),
            forgive_after: Duration::from_secs(10),
        }
    }
}

/// No change soon after a change, and ever later for one that fails again and
/// again.
///
/// With equal times and no growth this is the minimum dwell of switches; with
/// `after_recovery` 0 and growth it is what Envoy's outlier ejection does.
///
/// # The rule
///
/// Contrary results are counted in a row, as
/// [`Consecutive`](crate::Consecutive) counts them. A count that is reached
/// changes the status, unless the latest change is less than its time ago. The
/// count goes on meanwhile, so the first contrary result after that time settles
/// the difference; a target that is back to what is reported by then has changed
/// nothing.
///
/// The time after a change for the better is `after_recovery`. After a change
/// for the worse it is `after_failure × n`, at most `after_failure_max`, where
/// `n` is the number of changes from passing to something worse. `n` goes down
/// by one for every `forgive_after` that passing is reported.
///
/// An immediate result is reported at once, and its time begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "DwellParameters", into = "DwellParameters")
)]
pub struct Dwell(DwellParameters);

/// What [`Dwell`] remembers of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DwellState {
    /// When the status last changed; 0 if it has not.
    changed: Stamp,
    run: u32,
    /// Changes from passing to something worse that are not forgotten.
    number: u8,
    /// The latest result in `run`; `reported` if there is no run.
    latest: Status,
    reported: Status,
    /// The latest change was for the worse or better; equal if there was none.
    direction: Direction,
    /// The next result is the first one, and is to be believed.
    believe_next: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
enum Direction {
    None = 0,
    Better = 1,
    Worse = 2,
}

impl Dwell {
    /// The tag of this strategy's records.
    pub const TAG: StrategyTag = StrategyTag(8);

    const VERSION: u8 = 1;

    /// The rule with these parameters.
    ///
    /// # Errors
    ///
    /// `after_failure_max` is less than `after_failure`.
    pub fn new(parameters: DwellParameters) -> Result<Self, ParameterError> {
        Rules::new()
            .relation(
                &Relation {
                    parameters: ["after_failure_max", "after_failure"],
                    rule: "must not be less than",
                },
                parameters.after_failure_max >= parameters.after_failure,
            )
            .check()?;
        Ok(Self(DwellParameters {
            failures: parameters.failures.max(1),
            successes: parameters.successes.max(1),
            ..parameters
        }))
    }

    /// A minimum dwell: after any change no other for `time`.
    pub fn minimum(failures: u32, successes: u32, time: Duration) -> Self {
        Self(DwellParameters {
            failures: failures.max(1),
            successes: successes.max(1),
            after_recovery: time,
            after_failure: time,
            after_failure_max: time,
            forgive_after: Duration::ZERO,
        })
    }

    /// The parameters in force.
    pub const fn parameters(&self) -> DwellParameters {
        self.0
    }

    /// Until when the status does not change; `None` if it has not changed yet.
    fn held_until(&self, state: &DwellState) -> Option<Timestamp> {
        let time = match state.direction {
            Direction::None => return None,
            Direction::Better => self.0.after_recovery,
            Direction::Worse => self
                .0
                .after_failure
                .saturating_mul(u32::from(state.number.max(1)))
                .min(self.0.after_failure_max),
        };
        Some(state.changed.get().saturating_add(time))
    }

    /// Whether the status may not change yet.
    fn holds(&self, state: &DwellState, now: Timestamp) -> bool {
        const MILLISECOND: Duration = Duration::from_millis(1);
        // Mostly the time is far from over, which takes no multiplication to tell.
        // (The end of the clock is the end of every time.)
        if state.direction == Direction::Worse && now.as_millis() < u64::MAX {
            let since = now.saturating_since(state.changed.get());
            if since.saturating_add(MILLISECOND) < self.0.after_failure {
                return true;
            }
        }
        self.held_until(state).is_some_and(|until| now < until)
    }

    /// The number of failures left at `now`, one more for a new one.
    fn number_at(&self, state: &DwellState, now: Timestamp) -> u8 {
        if state.reported != Status::Passing {
            return state.number;
        }
        // Without a division: this is on the way of every change, and a number is
        // small.
        let clean = now.saturating_since(state.changed.get());
        let mut left = state.number;
        let mut forgiven = self.0.forgive_after;
        while left > 0 && forgiven <= clean {
            left -= 1;
            forgiven = forgiven.saturating_add(self.0.forgive_after);
        }
        left.saturating_add(1)
    }

    fn change(&self, state: &mut DwellState, to: Status, now: Timestamp) -> Option<Transition> {
        let from = state.reported;
        state.run = 0;
        state.latest = to;
        state.direction = match to.cmp(&from) {
            Ordering::Equal => return None,
            Ordering::Less => Direction::Better,
            Ordering::Greater => {
                state.number = self.number_at(state, now);
                Direction::Worse
            }
        };
        state.reported = to;
        state.changed = Stamp::new(now);
        Transition::between(from, to)
    }
}

impl DwellState {
    const fn settled(reported: Status) -> Self {
        Self {
            changed: Stamp::ZERO,
            run: 0,
            number: 0,
            latest: reported,
            reported,
            direction: Direction::None,
            believe_next: false,
        }
    }

    /// The status reported now.
    pub const fn reported(&self) -> Status {
        self.reported
    }

    pub(crate) const fn awaits_first_result(&self) -> bool {
        self.believe_next
    }
}

impl Strategy for Dwell {
    type State = DwellState;

    fn start(&self, reported: Status, first: FirstResult, _now: Timestamp) -> DwellState {
        DwellState {
            believe_next: first == FirstResult::Believed,
            ..DwellState::settled(reported)
        }
    }

    fn observe(
        &self,
        state: &mut DwellState,
        observation: Observation,
        now: Timestamp,
    ) -> Option<Transition> {
        let result = observation.status;
        if state.believe_next {
            // It tells what has been all the time; nothing has changed.
            let from = state.reported;
            *state = DwellState::settled(result);
            return Transition::between(from, result);
        }
        let side = result.cmp(&state.reported);
        if observation.immediate || side == Ordering::Equal {
            return self.change(state, result, now);
        }
        // A clock that ran backwards must not hold the status for longer.
        if state.direction != Direction::None {
            state.changed = state.changed.min(now);
        }
        state.run = if state.latest.cmp(&state.reported) == side {
            state.run.saturating_add(1)
        } else {
            1
        };
        state.latest = result;
        let needed = match side {
            Ordering::Less => self.0.successes,
            _ => self.0.failures,
        };
        if state.run >= needed && !self.holds(state, now) {
            self.change(state, result, now)
        } else {
            None
        }
    }

    fn reported(&self, state: &DwellState) -> Status {
        state.reported
    }

    fn outlook(&self, state: &DwellState, now: Timestamp) -> Outlook {
        if state.believe_next {
            return Outlook::FirstResult;
        }
        if state.run == 0 {
            return Outlook::Settled;
        }
        let toward = state.latest;
        if let Some(until) = self.held_until(state).filter(|&until| until > now) {
            return Outlook::Waiting { toward, until };
        }
        let needed = if toward < state.reported {
            self.0.successes
        } else {
            self.0.failures
        };
        let seen = state.run.min(u32::MAX - 1);
        Outlook::Counting {
            toward,
            seen,
            needed: needed.max(seen + 1),
            agreeing: Agreeing::Resets,
        }
    }

    fn shift(&self, state: &mut DwellState, millis: i64) {
        if state.direction != Direction::None {
            state.changed = state.changed.shifted(millis);
        }
    }

    fn adopt(&self, old: &DwellState, now: Timestamp) -> DwellState {
        DwellState {
            changed: old.changed.min(now),
            ..*old
        }
    }

    fn save(&self, state: &DwellState) -> Record {
        let mut payload = [0; 16];
        payload[0] = Flags::new(state.believe_next).0;
        payload[1] = state.latest as u8;
        payload[2] = state.direction as u8;
        payload[3] = state.number;
        payload[4..8].copy_from_slice(&state.run.to_le_bytes());
        payload[8..].copy_from_slice(&state.changed.get().as_millis().to_le_bytes());
        Record::with_payload(Self::TAG, Self::VERSION, state.reported, payload)
    }

    fn load(&self, record: &Record, now: Timestamp) -> Loaded<DwellState> {
        Loaded::read(
            record,
            Self::TAG,
            Self::VERSION,
            |fields| read(fields, record.reported()),
            || DwellState::settled(record.reported()),
        )
        .map(|state| self.adopt(&state, now))
    }
}

/// The state in a payload, if it is one that the rule can get into.
fn read(fields: &mut Fields<'_>, reported: Status) -> Option<DwellState> {
    let believe_next = fields.flags()?.believe_next();
    let latest = fields.status()?;
    let direction = match fields.u8()? {
        0 => Direction::None,
        1 => Direction::Better,
        2 => Direction::Worse,
        _ => return None,
    };
    let number = fields.u8()?;
    let run = fields.u32()?;
    let changed = fields.time()?;
    let state = DwellState {
        changed,
        run,
        number,
        latest,
        reported,
        direction,
        believe_next,
    };
    let fresh = DwellState {
        believe_next,
        ..DwellState::settled(reported)
    };
    let counted = (run > 0) == (latest != reported);
    let dated = direction != Direction::None || (changed == Stamp::ZERO && number == 0);
    (if believe_next {
        state == fresh
    } else {
        counted && dated
    })
    .then_some(state)
}

impl TryFrom<DwellParameters> for Dwell {
    type Error = ParameterError;

    fn try_from(parameters: DwellParameters) -> Result<Self, ParameterError> {
        Self::new(parameters)
    }
}

impl From<Dwell> for DwellParameters {
    fn from(rule: Dwell) -> Self {
        rule.0
    }
}

/// The parameters as a directive has them: `strategy=dwell failures=1
/// successes=1 after-recovery=0s after-failure=30s after-failure-max=5m
/// forgive-after=10s`.
impl fmt::Display for Dwell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_directive("dwell", &self.0, f)
    }
}
