use core::fmt;

use crate::damping::WhileSuppressed;
use crate::key::{keys, write_directive};
use crate::parameters::{Relation, Rules};
use crate::payload::{Fields, Flags};
use crate::{
    Agreeing, FirstResult, Loaded, Mark, Observation, Outlook, ParameterError, Record, Status,
    Strategy, StrategyTag, Timestamp, Transition,
};

/// How the latest changes weigh more than earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum FlapWeights {
    /// From 0.75 to 1.25, and flapping starts *at* `high` (base/flapping.c of
    /// Nagios Core; its manual says 0.8 to 1.2).
    Nagios,
    /// From 0.8 to 1.18, and flapping starts *above* `high`
    /// (lib/icinga/checkable-flapping.cpp of Icinga 2).
    #[default]
    Icinga,
}

impl FlapWeights {
    pub(crate) const ALL: [Self; 2] = [Self::Nagios, Self::Icinga];
    pub(crate) const WORDS: [&str; 2] = [Self::Nagios.as_str(), Self::Icinga.as_str()];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Nagios => "nagios",
            Self::Icinga => "icinga",
        }
    }
}

/// The parameters of [`Flap`], as they are written in a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct FlapParameters {
    /// Results other than passing in a row at which they are reported; 0 is 1.
    pub failures: u32,
    /// Passing results in a row at which they are reported; 0 is 1.
    pub successes: u32,
    /// How changes weigh.
    pub weights: FlapWeights,
    /// Flapping ends at this percentage or below: less than `high`.
    pub low: u8,
    /// Flapping starts at this percentage: at most 100.
    pub high: u8,
    /// Every result counts as a state. Otherwise failures do not until there are
    /// enough of them to be reported.
    pub every_result: bool,
    /// What is reported while flapping; without it the status goes on as if
    /// nothing were, and only the mark says so.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub while_flapping: Option<WhileSuppressed>,
}

keys! { FlapParameters {
    failures: u32 = "failures" or "down", "any; 0 is 1", "1",
        "Results other than passing in a row at which they are reported";
    successes: u32 = "successes" or "up", "any; 0 is 1", "1",
        "Passing results in a row at which they are reported";
    weights: FlapWeights = "weights", "one of these", "icinga",
        "How the latest changes weigh more than earlier ones";
    low: u8 = "low", "less than `high`, in per cent", "25",
        "Flapping ends at this share of changes or below";
    high: u8 = "high", "1 to 100, in per cent", "30",
        "Flapping starts at this share of changes";
    every_result: bool = "every-result", "one of these", "true",
        "Whether failures count as changes before there are enough of them to be reported";
    while_flapping: Option<WhileSuppressed> = "while-flapping", "one of these", "",
        "What is reported while flapping; the status as if nothing were, when it is left out";
} }

/// Icinga's weights and thresholds, and a mark alone.
impl Default for FlapParameters {
    fn default() -> Self {
        Self {
            failures: 1,
            successes: 1,
            weights: FlapWeights::Icinga,
            low: 25,
            high: 30,
            every_result: true,
            while_flapping: None,
        }
    }
}

/// The weighted share of changes among the latest results: flap detection as
/// Nagios and Icinga have it.
///
/// Instability is a state of its own: [`Mark::Flapping`] says that the status is
/// of little worth, even where a count never gets to a change (P146). What
/// becomes of the status meanwhile is a choice.
///
/// # The rule
///
/// Counting is that of Nagios: while passing is reported, `failures` other
/// results in a row are wanted, and then the latest of them is the *decided*
/// status; while something else is, every other failing status is decided at
/// once, and `successes` passing results in a row are wanted.
///
/// Of the latest 21 states (results, see
/// [`every_result`](FlapParameters::every_result)) the 20 changes from one to
/// the next are kept. Each weighs by its age, and the sum of weights over 20 is
/// the percentage. Flapping starts at `high` and ends at `low`, so a start and an
/// end always take turns.
///
/// The walk through the states of a check that fails again and again:
///
/// ```
/// use evenkeel_threshold::{Flap, FirstResult, Mark, Status, Strategy, Timestamp};
///
/// let now = Timestamp::ZERO;
/// let flap = Flap::default();
/// let mut state = flap.start(Status::Passing, FirstResult::Counted, now);
/// let mut marks = Vec::new();
/// // Stable, then five failures, each over at once, then quiet.
/// for number in 0..40 {
///     let failed = number < 10 && number % 2 == 0;
///     let result = if failed { Status::Critical } else { Status::Passing };
///     flap.observe(&mut state, result.into(), now);
///     marks.push(flap.mark(&state) == Mark::Flapping);
/// }
/// assert!(!marks[4] && marks[5], "flapping starts with the sixth change");
/// assert!(marks[23] && !marks[24], "and ends after 15 quiet results");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "FlapParameters", into = "FlapParameters")
)]
pub struct Flap(FlapParameters);

/// What [`Flap`] remembers of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlapState {
    /// A bit for each change; the latest is the lowest.
    changes: u32,
    /// Results in a row that the decided status does not agree with.
    run: u32,
    /// The latest state that counts.
    last: Status,
    /// The latest result.
    latest: Status,
    decided: Status,
    flapping: bool,
    /// What is reported instead of the decided status.
    held: Option<Status>,
    /// The next result is the first one, and is to be believed.
    believe_next: bool,
}

impl Flap {
    /// The tag of this strategy's records.
    pub const TAG: StrategyTag = StrategyTag(10);

    const VERSION: u8 = 1;

    /// Changes kept.
    const CHANGES: u32 = 20;
    const ALL: u32 = (1 << Self::CHANGES) - 1;

    /// The rule with these parameters.
    ///
    /// # Errors
    ///
    /// `high` is 0 or more than 100, or `low` is not less than `high`.
    pub fn new(parameters: FlapParameters) -> Result<Self, ParameterError> {
        Rules::new()
            .range::<FlapParameters>("high", (1..=100).contains(&parameters.high))
            .relation(
                &Relation {
                    parameters: ["low", "high"],
                    rule: "must be less than",
                },
                parameters.low < parameters.high,
            )
            .check()?;
        Ok(Self(FlapParameters {
            failures: parameters.failures.max(1),
            successes: parameters.successes.max(1),
            ..parameters
        }))
    }

    /// Nagios Core: hard and passing states count, and the status is left alone.
    /// Built in are 20 and 30; the sample configuration has 5 and 20.
    ///
    /// # Errors
    ///
    /// As [`Flap::new`].
    pub fn nagios(max_check_attempts: u32, low: u8, high: u8) -> Result<Self, ParameterError> {
        Self::new(FlapParameters {
            failures: max_check_attempts,
            successes: 1,
            weights: FlapWeights::Nagios,
            low,
            high,
            every_result: false,
            while_flapping: None,
        })
    }

    /// Icinga 2: every result counts, soft states too. Its defaults are 25 and
    /// 30.
    ///
    /// # Errors
    ///
    /// As [`Flap::new`].
    pub fn icinga(max_check_attempts: u32, low: u8, high: u8) -> Result<Self, ParameterError> {
        Self::new(FlapParameters {
            failures: max_check_attempts,
            low,
            high,
            ..FlapParameters::default()
        })
    }

    /// The parameters in force.
    pub const fn parameters(&self) -> FlapParameters {
        self.0
    }

    /// The weighted share of changes, in per cent.
    pub fn percentage(&self, state: &FlapState) -> f64 {
        let (sum, whole) = self.share(state.changes);
        f64::from(sum) * 100.0 / f64::from(whole)
    }

    /// The percentage as a fraction of integers, of which `.1` is a hundred.
    #[inline]
    fn share(&self, changes: u32) -> (u32, u32) {
        let count = changes.count_ones();
        // The sum of the ages, 0 to 19: each bit of an age by itself.
        let ages = (changes & 0xA_AAAA).count_ones()
            + 2 * (changes & 0xC_CCCC).count_ones()
            + 4 * (changes & 0x0_F0F0).count_ones()
            + 8 * (changes & 0x0_FF00).count_ones()
            + 16 * (changes & 0xF_0000).count_ones();
        let recent = 19 * count - ages;
        match self.0.weights {
            // (0.75 + x * 0.5 / 19) * 76
            FlapWeights::Nagios => (57 * count + 2 * recent, 76 * Self::CHANGES),
            // (0.8 + 0.02 * x) * 50
            FlapWeights::Icinga => (40 * count + recent, 50 * Self::CHANGES),
        }
    }

    /// Takes in that a state is, or is not, the same as the one before.
    #[inline]
    fn detect(&self, state: &mut FlapState, changed: bool, reported: Status) {
        state.changes = (state.changes << 1 | u32::from(changed)) & Self::ALL;
        if state.changes == 0 && !state.flapping {
            return;
        }
        let (sum, whole) = self.share(state.changes);
        let (sum, high, low) = (
            sum * 100,
            u32::from(self.0.high) * whole,
            u32::from(self.0.low) * whole,
        );
        let starts = match self.0.weights {
            FlapWeights::Nagios => sum >= high,
            FlapWeights::Icinga => sum > high,
        };
        if !state.flapping && starts {
            state.flapping = true;
            state.held = self.0.while_flapping.map(|hold| hold.status(reported));
        } else if state.flapping && sum <= low {
            state.flapping = false;
            state.held = None;
        }
    }
}

impl FlapState {
    const fn steady(reported: Status) -> Self {
        Self {
            changes: 0,
            run: 0,
            last: reported,
            latest: reported,
            decided: reported,
            flapping: false,
            held: None,
            believe_next: false,
        }
    }

    /// The status reported now.
    pub const fn reported(&self) -> Status {
        match self.held {
            Some(status) => status,
            None => self.decided,
        }
    }

    /// The status that would be reported if nothing were flapping.
    pub const fn decided(&self) -> Status {
        self.decided
    }

    pub(crate) const fn awaits_first_result(&self) -> bool {
        self.believe_next
    }
}

impl Strategy for Flap {
    type State = FlapState;

    fn start(&self, reported: Status, first: FirstResult, _now: Timestamp) -> FlapState {
        FlapState {
            believe_next: first == FirstResult::Believed,
            ..FlapState::steady(reported)
        }
    }

    fn observe(
        &self,
        state: &mut FlapState,
        observation: Observation,
        _now: Timestamp,
    ) -> Option<Transition> {
        let result = observation.status;
        let from = state.reported();
        if state.believe_next {
            *state = FlapState::steady(result);
            return Transition::between(from, result);
        }
        state.latest = result;
        let against = (result == Status::Passing) != (state.decided == Status::Passing);
        state.run = if against {
            state.run.saturating_add(1)
        } else {
            0
        };
        let needed = if result == Status::Passing {
            self.0.successes
        } else {
            self.0.failures
        };
        if observation.immediate || !against || state.run >= needed {
            state.decided = result;
            state.run = 0;
        }
        if self.0.every_result || result == Status::Passing || result == state.decided {
            let changed = core::mem::replace(&mut state.last, result) != result;
            self.detect(state, changed, from);
        }
        if observation.immediate {
            state.held = None;
        }
        Transition::between(from, state.reported())
    }

    fn reported(&self, state: &FlapState) -> Status {
        state.reported()
    }

    fn outlook(&self, state: &FlapState, now: Timestamp) -> Outlook {
        if state.believe_next {
            return Outlook::FirstResult;
        }
        // Flapping may start on the way, so the rule is tried.
        let needed = if state.latest == Status::Passing {
            self.0.successes
        } else {
            self.0.failures
        };
        let seen = state.run.min(u32::MAX - 1);
        let needed = needed.max(seen + 1);
        let mut then = *state;
        let flip = (0..(needed - seen).min(64))
            .map(|_| self.observe(&mut then, state.latest.into(), now))
            .enumerate()
            .find_map(|(number, flip)| flip.map(|flip| (number as u32 + 1, flip.to)));
        match flip {
            _ if seen == 0 => Outlook::Settled,
            Some((results, to)) if results == needed - seen && to == state.latest => {
                Outlook::Counting {
                    toward: to,
                    seen,
                    needed,
                    agreeing: Agreeing::Resets,
                }
            }
            _ => Outlook::Settled,
        }
    }

    fn mark(&self, state: &FlapState) -> Mark {
        if state.flapping {
            Mark::Flapping
        } else {
            Mark::None
        }
    }

    fn adopt(&self, old: &FlapState, _now: Timestamp) -> FlapState {
        *old
    }

    fn save(&self, state: &FlapState) -> Record {
        let mut payload = [0; 14];
        payload[0] = Flags::new(state.believe_next).0;
        payload[1] = state.last as u8;
        payload[2] = state.latest as u8;
        payload[3] = state.decided as u8;
        payload[4] = u8::from(state.flapping);
        payload[5] = u8::from(state.held.is_some());
        payload[6..10].copy_from_slice(&state.run.to_le_bytes());
        payload[10..].copy_from_slice(&state.changes.to_le_bytes());
        Record::with_payload(Self::TAG, Self::VERSION, state.reported(), payload)
    }

    fn load(&self, record: &Record, _now: Timestamp) -> Loaded<FlapState> {
        Loaded::read(
            record,
            Self::TAG,
            Self::VERSION,
            |fields| read(fields, record.reported()),
            || FlapState::steady(record.reported()),
        )
    }
}

/// The state in a payload, if it is one that the rule can get into.
fn read(fields: &mut Fields<'_>, reported: Status) -> Option<FlapState> {
    let believe_next = fields.flags()?.believe_next();
    let (last, latest, decided) = (fields.status()?, fields.status()?, fields.status()?);
    let mut yes = || fields.u8().filter(|&byte| byte < 2).map(|byte| byte == 1);
    let (flapping, held) = (yes()?, yes()?);
    let (run, changes) = (fields.u32()?, fields.u32()?);
    let state = FlapState {
        changes,
        run,
        last,
        latest,
        decided,
        flapping,
        held: held.then_some(reported),
        believe_next,
    };
    let against = (latest == Status::Passing) != (decided == Status::Passing);
    let fresh = FlapState {
        believe_next,
        ..FlapState::steady(reported)
    };
    let possible = changes <= Flap::ALL
        && (run > 0) == against
        && (flapping || !held)
        && state.reported() == reported
        && (!believe_next || state == fresh);
    possible.then_some(state)
}

impl TryFrom<FlapParameters> for Flap {
    type Error = ParameterError;

    fn try_from(parameters: FlapParameters) -> Result<Self, ParameterError> {
        Self::new(parameters)
    }
}

impl From<Flap> for FlapParameters {
    fn from(rule: Flap) -> Self {
        rule.0
    }
}

/// The parameters as a directive has them: `strategy=flap failures=1
/// successes=1 weights=icinga low=25 high=30 every-result=true`.
impl fmt::Display for Flap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_directive("flap", &self.0, f)
    }
}
