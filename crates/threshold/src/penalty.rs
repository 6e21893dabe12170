use core::fmt;
use core::time::Duration;

use crate::damping::{Damping, Level, WhileSuppressed};
use crate::key::{keys, write_directive};
use crate::payload::{Fields, Flags};
use crate::{
    Consecutive, Counts, FirstResult, Loaded, Mark, Observation, Outlook, ParameterError, Record,
    RunState, Status, Strategy, StrategyTag, Timestamp, Transition,
};

/// The parameters of [`Penalty`], as they are written in a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct PenaltyParameters {
    /// Failures in a row that make a change at all; 0 is 1.
    pub failures: u32,
    /// Successes in a row that make a change at all; 0 is 1.
    pub successes: u32,
    /// In this time a penalty goes down to a half.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "half_life_ms", with = "crate::duration::millis")
    )]
    pub half_life: Duration,
    /// The penalty from which on changes are suppressed; a flap to critical
    /// costs 1000.
    pub suppress: u32,
    /// The penalty at which they no longer are; less than `suppress`.
    pub reuse: u32,
    /// No suppression takes longer than this from the latest flap on.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "longest_ms", with = "crate::duration::millis")
    )]
    pub longest: Duration,
    /// What is reported meanwhile.
    pub while_suppressed: WhileSuppressed,
}

keys! { PenaltyParameters {
    failures: u32 = "failures" or "down", "any; 0 is 1", "1",
        "Failures in a row that make a change at all";
    successes: u32 = "successes" or "up", "any; 0 is 1", "1",
        "Successes in a row that make a change at all";
    half_life: Duration = "half-life", "at least 1ms", "15m",
        "In this time a penalty goes down to a half";
    suppress: u32 = "suppress", "more than `reuse`", "6000",
        "The penalty from which on changes are suppressed; a flap to critical costs 1000";
    reuse: u32 = "reuse", "at least 1", "750",
        "The penalty at which they no longer are";
    longest: Duration = "longest", "enough half-lives to get from `suppress` to `reuse`", "1h",
        "No suppression takes longer than this from the latest flap on";
    while_suppressed: WhileSuppressed = "while-suppressed", "one of these", "last-stable",
        "What is reported meanwhile";
} }

/// RFC 2439's half-life of 15 min, reuse limit of 750 and 60 min at most, as
/// FRRouting has them; but suppression from 6 flaps on (RFC 7196: 2000 is too
/// sensitive).
impl Default for PenaltyParameters {
    fn default() -> Self {
        Self {
            failures: 1,
            successes: 1,
            half_life: Duration::from_secs(15 * 60),
            suppress: 6000,
            reuse: 750,
            longest: Duration::from_secs(60 * 60),
            while_suppressed: WhileSuppressed::LastStable,
        }
    }
}

/// Route flap damping (RFC 2439) for health checks.
///
/// Each flap costs; a target that flaps too often is not followed any more until
/// it has been quiet for some time. Against targets that come and go over
/// minutes to hours, which a count cannot see. It does not delay the first
/// changes at all, so put a count in front (`failures`, `successes`).
///
/// # The rule
///
/// Results go through [`Consecutive`]; what that reports is the *decided*
/// status. A decided change to critical costs 1000, one to warning from passing
/// 500, one to a better status nothing. The penalty halves every `half_life`.
///
/// When a change makes it reach `suppress`, changes are suppressed:
/// [`WhileSuppressed`] says what is reported. That ends when the penalty has
/// come down to `reuse`, by time alone ([`Strategy::deadline`]), and then the
/// decided status is reported, whether that is better or worse or no change. The
/// penalty is cut off so that this is never later than `longest` after the
/// latest flap; 60 min are four half-lives, so the most is 12000.
///
/// An immediate result costs as any other, but is reported at once, and ends a
/// suppression.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use evenkeel_threshold::{
///     FirstResult, Mark, Penalty, PenaltyParameters, Status, Strategy, Timestamp,
/// };
///
/// let penalty = Penalty::new(PenaltyParameters { suppress: 2000, ..Default::default() })?;
/// let minute = |minute: u64| Timestamp::from_millis(minute * 60_000);
/// let mut state = penalty.start(Status::Passing, FirstResult::Counted, minute(0));
/// for flap in [0, 2, 4] {
///     penalty.observe(&mut state, Status::Critical.into(), minute(flap));
///     penalty.observe(&mut state, Status::Passing.into(), minute(flap + 1));
/// }
/// assert_eq!(penalty.mark(&state), Mark::Suppressed);
/// let end = penalty.deadline(&state).expect("it is suppressed");
/// assert_eq!(end.as_millis() / 1000, 1923); // 32.06 min
/// # Ok::<(), evenkeel_threshold::ParameterError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "PenaltyParameters", into = "PenaltyParameters")
)]
pub struct Penalty {
    counts: Consecutive,
    damping: Damping,
    while_suppressed: WhileSuppressed,
}

/// What [`Penalty`] remembers of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PenaltyState {
    level: Level,
    // The parts of a `RunState`, whose padding there is no room for.
    run: u32,
    latest: Status,
    decided: Status,
    believe_next: bool,
    /// While changes are suppressed: what is reported.
    suppressed: Option<Status>,
}

impl Penalty {
    /// The tag of this strategy's records.
    pub const TAG: StrategyTag = StrategyTag(9);

    const VERSION: u8 = 1;

    /// FRRouting's `DEFAULT_PENALTY` (bgpd/bgp_damp.h), and half of it for an
    /// attribute change.
    const TO_CRITICAL: f64 = 1000.0;
    const TO_WARNING: f64 = 500.0;

    /// The rule with these parameters.
    ///
    /// # Errors
    ///
    /// `half_life` or `reuse` is 0, `reuse` is not less than `suppress`, or
    /// `longest` is so short that the penalty could never get to `suppress`.
    pub fn new(parameters: PenaltyParameters) -> Result<Self, ParameterError> {
        Ok(Self {
            counts: Consecutive::new(Counts {
                failures_before_critical: parameters.failures,
                failures_before_warning: None,
                success_before_passing: parameters.successes,
            })?,
            damping: Damping::of(&parameters)?,
            while_suppressed: parameters.while_suppressed,
        })
    }

    /// The parameters in force.
    pub fn parameters(&self) -> PenaltyParameters {
        let counts = self.counts.counts();
        PenaltyParameters {
            failures: counts.failures_before_critical,
            successes: counts.success_before_passing,
            half_life: self.damping.half_life,
            suppress: self.damping.suppress,
            reuse: self.damping.reuse,
            longest: self.damping.longest,
            while_suppressed: self.while_suppressed,
        }
    }

    /// The penalty of a check at `now`.
    pub fn penalty(&self, state: &PenaltyState, now: Timestamp) -> f64 {
        self.damping.penalty(state.level, now)
    }

    /// What a decided change costs.
    pub(crate) fn cost(change: Transition) -> f64 {
        match change.to {
            _ if change.to < change.from => 0.0,
            Status::Critical => Self::TO_CRITICAL,
            _ => Self::TO_WARNING,
        }
    }

    /// Charges for a decided change, and says what is to be reported.
    #[cold]
    fn charge(
        &self,
        state: &mut PenaltyState,
        change: Transition,
        immediate: bool,
        now: Timestamp,
    ) {
        let cost = Self::cost(change);
        if cost == 0.0 {
            return;
        }
        state.level = self.damping.add(state.level, cost, now);
        if !immediate && state.suppressed.is_none() && self.damping.suppresses(state.level) {
            state.suppressed = Some(self.while_suppressed.status(change.from));
        }
    }
}

impl PenaltyState {
    const fn new(run: RunState) -> Self {
        Self {
            level: Level::ZERO,
            run: run.run,
            latest: run.latest,
            decided: run.reported,
            believe_next: run.believe_next,
            suppressed: None,
        }
    }

    const fn counted(&self) -> RunState {
        RunState {
            run: self.run,
            latest: self.latest,
            reported: self.decided,
            believe_next: self.believe_next,
        }
    }

    /// The status reported now.
    pub const fn reported(&self) -> Status {
        match self.suppressed {
            Some(status) => status,
            None => self.decided,
        }
    }

    /// The status that would be reported if nothing were suppressed.
    pub const fn decided(&self) -> Status {
        self.decided
    }

    pub(crate) const fn awaits_first_result(&self) -> bool {
        self.believe_next
    }
}

impl Strategy for Penalty {
    type State = PenaltyState;

    fn start(&self, reported: Status, first: FirstResult, now: Timestamp) -> PenaltyState {
        PenaltyState::new(self.counts.start(reported, first, now))
    }

    fn observe(
        &self,
        state: &mut PenaltyState,
        observation: Observation,
        now: Timestamp,
    ) -> Option<Transition> {
        let from = state.reported();
        let believed = state.believe_next;
        // A deadline that nobody kept.
        if state.suppressed.is_some() && self.damping.is_reusable(state.level, now) {
            state.suppressed = None;
        }
        let mut counted = state.counted();
        let change = self.counts.observe(&mut counted, observation, now);
        *state = PenaltyState {
            level: state.level,
            suppressed: state.suppressed,
            ..PenaltyState::new(counted)
        };
        if observation.immediate {
            state.suppressed = None;
        }
        // A first result that is believed tells what has been all the time.
        if let Some(change) = change.filter(|_| !believed) {
            self.charge(state, change, observation.immediate, now);
        }
        Transition::between(from, state.reported())
    }

    fn reported(&self, state: &PenaltyState) -> Status {
        state.reported()
    }

    fn deadline(&self, state: &PenaltyState) -> Option<Timestamp> {
        state
            .suppressed
            .map(|_| self.damping.reusable_at(state.level))
    }

    fn elapse(&self, state: &mut PenaltyState, now: Timestamp) -> Option<Transition> {
        state.suppressed?;
        if !self.damping.is_reusable(state.level, now) {
            return None;
        }
        let from = state.reported();
        state.suppressed = None;
        Transition::between(from, state.reported())
    }

    fn outlook(&self, state: &PenaltyState, now: Timestamp) -> Outlook {
        match self.deadline(state) {
            Some(until) => Outlook::Waiting {
                toward: state.decided,
                until,
            },
            None => match self.counts.outlook(&state.counted(), now) {
                Outlook::Counting {
                    toward,
                    seen,
                    needed,
                    agreeing,
                } => {
                    let mut then = *state;
                    for _ in seen..needed {
                        self.observe(&mut then, toward.into(), now);
                    }
                    // The change may be the one too many.
                    if then.reported() == state.reported() {
                        return Outlook::Settled;
                    }
                    Outlook::Counting {
                        toward: then.reported(),
                        seen,
                        needed,
                        agreeing,
                    }
                }
                outlook => outlook,
            },
        }
    }

    fn mark(&self, state: &PenaltyState) -> Mark {
        match state.suppressed {
            Some(_) => Mark::Suppressed,
            None => Mark::None,
        }
    }

    fn shift(&self, state: &mut PenaltyState, millis: i64) {
        state.level = state.level.shifted(millis);
    }

    fn adopt(&self, old: &PenaltyState, now: Timestamp) -> PenaltyState {
        PenaltyState {
            level: old.level.not_after(now),
            suppressed: old.suppressed,
            ..PenaltyState::new(self.counts.adopt(&old.counted(), now))
        }
    }

    fn save(&self, state: &PenaltyState) -> Record {
        let (penalty, at) = state.level.parts();
        let mut payload = [0; 20];
        payload[0] = Flags::new(state.believe_next).0;
        payload[1] = state.latest as u8;
        payload[2] = state.decided as u8;
        payload[3] = u8::from(state.suppressed.is_some());
        payload[4..8].copy_from_slice(&state.run.to_le_bytes());
        payload[8..12].copy_from_slice(&penalty.to_le_bytes());
        payload[12..].copy_from_slice(&at.get().as_millis().to_le_bytes());
        Record::with_payload(Self::TAG, Self::VERSION, state.reported(), payload)
    }

    fn load(&self, record: &Record, now: Timestamp) -> Loaded<PenaltyState> {
        Loaded::read(
            record,
            Self::TAG,
            Self::VERSION,
            |fields| read(fields, record.reported()),
            || self.start(record.reported(), FirstResult::Counted, now),
        )
        .map(|state| self.adopt(&state, now))
    }
}

/// The state in a payload, if it is one that the rule can get into.
fn read(fields: &mut Fields<'_>, reported: Status) -> Option<PenaltyState> {
    let believe_next = fields.flags()?.believe_next();
    let latest = fields.status()?;
    let decided = fields.status()?;
    let suppressed = match fields.u8()? {
        0 => (reported == decided).then_some(None)?,
        1 => Some(reported),
        _ => return None,
    };
    let run = fields.u32()?;
    let penalty = fields.f32()?;
    let level = Level::new(penalty, fields.time()?)?;
    let counted = run == 0 || (latest != decided && !believe_next);
    let damped = suppressed.is_none() || (level != Level::ZERO && !believe_next);
    (counted && damped).then_some(PenaltyState {
        level,
        run,
        latest,
        decided,
        believe_next,
        suppressed,
    })
}

impl Default for Penalty {
    fn default() -> Self {
        Self::new(PenaltyParameters::default()).expect("750 × 2^4 is more than 6000")
    }
}

impl TryFrom<PenaltyParameters> for Penalty {
    type Error = ParameterError;

    fn try_from(parameters: PenaltyParameters) -> Result<Self, ParameterError> {
        Self::new(parameters)
    }
}

impl From<Penalty> for PenaltyParameters {
    fn from(rule: Penalty) -> Self {
        rule.parameters()
    }
}

/// The parameters as a directive has them: `strategy=penalty failures=1
/// successes=1 half-life=15m suppress=6000 reuse=750 longest=1h
/// while-suppressed=last-stable`.
impl fmt::Display for Penalty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_directive("penalty", &self.parameters(), f)
    }
}
