use core::fmt;

use crate::key::{keys, write_directive};
use crate::parameters::{Relation, Rules};
use crate::payload::{Fields, Flags};
use crate::words::Word;
use crate::{
    Agreeing, FirstResult, Loaded, Observation, Outlook, ParameterError, Record, Status, Strategy,
    StrategyTag, Timestamp, Transition, trial,
};

/// The parameters of [`Window`], as they are written in a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct WindowParameters {
    /// How many of the latest results are looked at: 1 to 64.
    pub results: u32,
    /// Failures among them at which a worse status is reported: 1 to `results`;
    /// 0 is 1.
    pub failures: u32,
    /// Failures among them at or below which a better status is reported: less
    /// than `failures`. 0 means that a whole window without a failure is wanted.
    pub recovered_at: u32,
}

keys! { WindowParameters {
    results: u32 = "results" or "n", "1 to 64", "5",
        "How many of the latest results are looked at";
    failures: u32 = "failures" or "m", "1 to `results`; 0 is 1", "3",
        "Failures among them at which a worse status is reported";
    recovered_at: u32 = "recovered-at" or "l", "less than `failures`", "1",
        "Failures among them at or below which a better status is reported";
} }

/// Three of five, and back at one.
impl Default for WindowParameters {
    fn default() -> Self {
        Self {
            results: 5,
            failures: 3,
            recovered_at: 1,
        }
    }
}

/// M failures among the latest N results.
///
/// Finds a brown-out, a target that fails a steady part of its probes, which a
/// count of consecutive failures never does. Its price is memory: after an
/// outage the status stays bad until enough of the failures have left the
/// window, `results - recovered_at` probes at the most.
///
/// # The rule
///
/// The latest `results` results are kept; at the start all of them are like the
/// reported status. A *failure* is a result worse than the status in question.
///
/// * The latest result is worse than the reported status, and the window holds
///   at least `failures` results worse than the reported status: the latest
///   result's status is reported.
/// * The latest result is better than the reported status, and the window holds
///   at most `recovered_at` results worse than the latest one: the latest
///   result's status is reported.
///
/// Nothing is forgotten at a change of the status: what the window holds has
/// happened. (A window made larger finds results like the reported status where
/// it had none.) With `failures` equal to `results` the way down is exactly
/// [`Consecutive`](crate::Consecutive).
///
/// # Warning
///
/// Recovery goes to a level that the window bears out: after an outage a
/// `passing` result finds too many worse ones while there are warnings in the
/// window, and the status goes to warning first if the latest result is one.
///
/// # Example
///
/// ```
/// use evenkeel_threshold::{FirstResult, Status, Strategy, Timestamp, Window, WindowParameters};
///
/// let now = Timestamp::ZERO;
/// let window = Window::new(WindowParameters { results: 5, failures: 3, recovered_at: 1 })?;
/// let mut state = window.start(Status::Passing, FirstResult::Counted, now);
/// use Status::{Critical, Passing};
/// for result in [Critical, Passing, Critical, Passing] {
///     assert_eq!(window.observe(&mut state, result.into(), now), None);
/// }
/// // Never twice in a row, but three of five.
/// assert!(window.observe(&mut state, Critical.into(), now).is_some());
/// # Ok::<(), evenkeel_threshold::ParameterError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "WindowParameters", into = "WindowParameters")
)]
pub struct Window(WindowParameters);

/// What [`Window`] remembers of one check: two bits for each result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WindowState {
    /// The latest result is the lowest bit. Bits outside of the window are those
    /// of the reported status, in case the window grows.
    not_passing: Word,
    critical: Word,
    reported: Status,
    /// The next result is the first one, and is to be believed.
    believe_next: bool,
}

impl Window {
    /// The tag of this strategy's records.
    pub const TAG: StrategyTag = StrategyTag(4);

    const VERSION: u8 = 1;

    /// The most results that a window can hold.
    pub const MAX_RESULTS: u32 = 64;

    /// The rule with these parameters.
    ///
    /// # Errors
    ///
    /// With each parameter that is out of its range.
    pub fn new(parameters: WindowParameters) -> Result<Self, ParameterError> {
        let failures = parameters.failures.max(1);
        Rules::new()
            .range::<WindowParameters>(
                "results",
                (1..=Self::MAX_RESULTS).contains(&parameters.results),
            )
            .relation(
                &Relation {
                    parameters: ["failures", "results"],
                    rule: "must not be more than",
                },
                failures <= parameters.results,
            )
            .relation(
                &Relation {
                    parameters: ["recovered_at", "failures"],
                    rule: "must be less than",
                },
                parameters.recovered_at < failures,
            )
            .check()?;
        Ok(Self(WindowParameters {
            failures,
            ..parameters
        }))
    }

    /// The parameters in force.
    pub const fn parameters(&self) -> WindowParameters {
        self.0
    }

    /// The bits of the results that are in the window; `results` is at least 1.
    #[inline]
    const fn mask(&self) -> u64 {
        u64::MAX >> (Self::MAX_RESULTS - self.0.results)
    }

    /// How many results in the window are worse than `status`.
    #[inline]
    const fn worse_than(&self, status: Status, state: &WindowState) -> u32 {
        let bits = match status {
            Status::Passing => state.not_passing.get(),
            Status::Warning => state.critical.get(),
            Status::Critical => 0,
        };
        (bits & self.mask()).count_ones()
    }

    #[inline]
    const fn flips(&self, state: &WindowState, result: Status) -> bool {
        if result as u8 > state.reported as u8 {
            self.worse_than(state.reported, state) >= self.0.failures
        } else {
            self.worse_than(result, state) <= self.0.recovered_at
        }
    }
}

impl WindowState {
    /// A window full of results like `reported`.
    const fn filled(reported: Status) -> Self {
        Self {
            not_passing: match reported {
                Status::Passing => Word::new(0),
                Status::Warning | Status::Critical => Word::new(u64::MAX),
            },
            critical: match reported {
                Status::Passing | Status::Warning => Word::new(0),
                Status::Critical => Word::new(u64::MAX),
            },
            reported,
            believe_next: false,
        }
    }

    /// Reports `to`, and takes everything outside of `mask` to have been like it.
    #[inline]
    fn report(&mut self, to: Status, mask: u64) {
        let outside = Self::filled(to);
        let join =
            |inside: Word, outside: Word| Word::new(inside.get() & mask | outside.get() & !mask);
        self.not_passing = join(self.not_passing, outside.not_passing);
        self.critical = join(self.critical, outside.critical);
        self.reported = to;
    }

    /// The status reported now.
    pub const fn reported(&self) -> Status {
        self.reported
    }

    pub(crate) const fn awaits_first_result(&self) -> bool {
        self.believe_next
    }

    /// The result `back` results before the latest.
    const fn result(&self, back: u32) -> Status {
        match (
            self.not_passing.get() >> back & 1,
            self.critical.get() >> back & 1,
        ) {
            (_, 1) => Status::Critical,
            (1, _) => Status::Warning,
            _ => Status::Passing,
        }
    }
}

impl Strategy for Window {
    type State = WindowState;

    fn start(&self, reported: Status, first: FirstResult, _now: Timestamp) -> WindowState {
        WindowState {
            believe_next: first == FirstResult::Believed,
            ..WindowState::filled(reported)
        }
    }

    #[inline]
    fn observe(
        &self,
        state: &mut WindowState,
        observation: Observation,
        _now: Timestamp,
    ) -> Option<Transition> {
        let result = observation.status;
        let from = state.reported;
        if observation.immediate || state.believe_next {
            *state = WindowState::filled(result);
            return Transition::between(from, result);
        }
        let push = |bits: Word, bit: bool| Word::new(bits.get() << 1 | u64::from(bit));
        state.not_passing = push(state.not_passing, result > Status::Passing);
        state.critical = push(state.critical, result > Status::Warning);
        let flips = result != from && self.flips(state, result);
        state.report(if flips { result } else { from }, self.mask());
        Transition::between(from, state.reported)
    }

    fn reported(&self, state: &WindowState) -> Status {
        state.reported
    }

    fn outlook(&self, state: &WindowState, _now: Timestamp) -> Outlook {
        if state.believe_next {
            return Outlook::FirstResult;
        }
        let latest_contrary = (0..self.0.results)
            .map(|back| state.result(back))
            .find(|&result| result != state.reported)
            .unwrap_or(state.reported);
        trial::outlook(
            self,
            state,
            &WindowState::filled(state.reported),
            trial::others(state.reported, latest_contrary),
            Agreeing::TakesOldestsPlace,
        )
    }

    fn adopt(&self, old: &WindowState, _now: Timestamp) -> WindowState {
        let mut state = *old;
        state.report(old.reported, self.mask());
        state
    }

    fn save(&self, state: &WindowState) -> Record {
        let mut payload = [0; 17];
        payload[0] = Flags::new(state.believe_next).0;
        payload[1..9].copy_from_slice(&state.not_passing.get().to_le_bytes());
        payload[9..].copy_from_slice(&state.critical.get().to_le_bytes());
        Record::with_payload(Self::TAG, Self::VERSION, state.reported, payload)
    }

    fn load(&self, record: &Record, now: Timestamp) -> Loaded<WindowState> {
        Loaded::read(
            record,
            Self::TAG,
            Self::VERSION,
            |fields| read(fields, record.reported()),
            || WindowState::filled(record.reported()),
        )
        .map(|state| self.adopt(&state, now))
    }
}

/// The state in a payload, if it is one that the rule can get into.
fn read(fields: &mut Fields<'_>, reported: Status) -> Option<WindowState> {
    let believe_next = fields.flags()?.believe_next();
    let state = WindowState {
        not_passing: Word::new(fields.u64()?),
        critical: Word::new(fields.u64()?),
        reported,
        believe_next,
    };
    let nested = state.critical.get() & !state.not_passing.get() == 0;
    let fresh = WindowState {
        believe_next,
        ..WindowState::filled(reported)
    };
    (nested && (!believe_next || state == fresh)).then_some(state)
}

impl TryFrom<WindowParameters> for Window {
    type Error = ParameterError;

    fn try_from(parameters: WindowParameters) -> Result<Self, ParameterError> {
        Self::new(parameters)
    }
}

impl From<Window> for WindowParameters {
    fn from(rule: Window) -> Self {
        rule.0
    }
}

/// The parameters as a directive has them:
/// `strategy=window results=5 failures=3 recovered-at=1`.
impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_directive("window", &self.0, f)
    }
}
