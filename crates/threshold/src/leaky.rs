use core::cmp::Ordering;
use core::fmt;

use crate::key::{keys, write_directive};
use crate::payload::{Fields, Flags};
use crate::{
    Agreeing, FirstResult, Loaded, Observation, Outlook, Record, RestartReason, Status, Strategy,
    StrategyTag, Timestamp, Transition,
};

/// Contrary results add one, agreeing results take one off.
///
/// This is the rule that consul-esm *documents* for its `critical_threshold`
/// and `passing_threshold`. (What consul-esm runs since it vendors Consul's own
/// counter in front needs up to twice as many results.)
///
/// # The rule
///
/// There are two counts, both at least 0:
///
/// * The *failure count* goes up by one with a result worse than the reported
///   status, and down by one with any other.
/// * The *recovery count* goes up by one with a result better than the reported
///   status, and down by one with any other.
///
/// When the failure count reaches `critical_threshold + 1`, or the recovery
/// count `passing_threshold + 1`, the status of the latest result is reported
/// and both counts are 0.
///
/// So isolated failures are forgotten, but a target that fails more often than
/// it works is found out even if it never fails twice in a row; a count of
/// *consecutive* failures never sees that.
///
/// # Warning
///
/// | reported | `passing` result | `warning` result | `critical` result |
/// |---|---|---|---|
/// | passing | agrees | toward failure | toward failure |
/// | warning | toward recovery | agrees | toward failure |
/// | critical | toward recovery | toward recovery | agrees |
///
/// `warning` and `critical` results fill the same count while passing is
/// reported: three warnings and a critical are four failures, and the flip goes
/// to critical because the fourth result is. Both counts can be above 0 only
/// while warning is reported; a result that adds to one of them takes one off
/// the other, so a target that alternates between passing and critical stays at
/// warning.
///
/// # The first result
///
/// [`FirstResult::Counted`] is consul-esm's way and the one to use unless there
/// is a reason not to.
///
/// # Example
///
/// The example of consul-esm's README, three failures *more than* one:
///
/// ```
/// use evenkeel_threshold::{FirstResult, Leaky, Status, Strategy, Timestamp};
///
/// let now = Timestamp::ZERO;
/// let leaky = Leaky::new(3, 0);
/// let mut state = leaky.start(Status::Passing, FirstResult::Counted, now);
/// let flips: Vec<bool> = "PFFPFFPFF"
///     .chars()
///     .map(|c| if c == 'P' { Status::Passing } else { Status::Critical })
///     .map(|result| leaky.observe(&mut state, result.into(), now).is_some())
///     .collect();
/// assert_eq!(flips.iter().position(|&flip| flip), Some(8));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Leaky {
    critical_threshold: u32,
    passing_threshold: u32,
}

keys! { Leaky {
    critical_threshold: u32 = "critical-threshold", "any", "0",
        "Failures beyond the first, less the other results, at which a worse status is reported";
    passing_threshold: u32 = "passing-threshold", "any", "0",
        "Successes beyond the first, less the other results, at which a better status is reported";
} }

/// What [`Leaky`] remembers of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeakyState {
    failures: u32,
    recoveries: u32,
    reported: Status,
    /// The latest result that differed from `reported`; `reported` if there was
    /// none since the last flip.
    contrary: Status,
    /// The next result is the first one, and is to be believed.
    believe_next: bool,
}

impl Leaky {
    /// The tag of this strategy's records.
    pub const TAG: StrategyTag = StrategyTag(1);

    const VERSION: u8 = 1;

    /// The rule with consul-esm's numbers: a threshold of `N` flips at count
    /// `N + 1`, so 0 is no damping. Any number is valid; `u32::MAX` counts to
    /// `u32::MAX`.
    pub const fn new(critical_threshold: u32, passing_threshold: u32) -> Self {
        Self {
            critical_threshold,
            passing_threshold,
        }
    }

    /// One less than the failure count at which a worse status is reported.
    pub const fn critical_threshold(&self) -> u32 {
        self.critical_threshold
    }

    /// One less than the recovery count at which a better status is reported.
    pub const fn passing_threshold(&self) -> u32 {
        self.passing_threshold
    }

    const fn failures_needed(&self) -> u32 {
        self.critical_threshold.saturating_add(1)
    }

    const fn recoveries_needed(&self) -> u32 {
        self.passing_threshold.saturating_add(1)
    }
}

impl LeakyState {
    const fn settled(reported: Status) -> Self {
        Self {
            failures: 0,
            recoveries: 0,
            reported,
            contrary: reported,
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

    /// Reports `to` and forgets the counts.
    fn settle(&mut self, to: Status) -> Option<Transition> {
        let from = self.reported;
        *self = Self::settled(to);
        Transition::between(from, to)
    }
}

impl Strategy for Leaky {
    type State = LeakyState;

    fn start(&self, reported: Status, first: FirstResult, _now: Timestamp) -> LeakyState {
        LeakyState {
            believe_next: first == FirstResult::Believed,
            ..LeakyState::settled(reported)
        }
    }

    #[inline]
    fn observe(
        &self,
        state: &mut LeakyState,
        observation: Observation,
        _now: Timestamp,
    ) -> Option<Transition> {
        let result = observation.status;
        if observation.immediate || state.believe_next {
            return state.settle(result);
        }
        let reached = match result.cmp(&state.reported) {
            Ordering::Equal => {
                state.failures = state.failures.saturating_sub(1);
                state.recoveries = state.recoveries.saturating_sub(1);
                return None;
            }
            Ordering::Greater => {
                state.failures = state.failures.saturating_add(1);
                state.recoveries = state.recoveries.saturating_sub(1);
                state.failures >= self.failures_needed()
            }
            Ordering::Less => {
                state.failures = state.failures.saturating_sub(1);
                state.recoveries = state.recoveries.saturating_add(1);
                state.recoveries >= self.recoveries_needed()
            }
        };
        state.contrary = result;
        if reached { state.settle(result) } else { None }
    }

    fn reported(&self, state: &LeakyState) -> Status {
        state.reported
    }

    fn outlook(&self, state: &LeakyState, _now: Timestamp) -> Outlook {
        if state.believe_next {
            return Outlook::FirstResult;
        }
        let failing = state.contrary > state.reported;
        let (toward, seen, needed) = match (state.failures, state.recoveries) {
            (0, 0) => return Outlook::Settled,
            // Both sides have a count only while warning is reported, which
            // leaves one status on either side.
            (0, seen) if failing => (Status::Passing, seen, self.recoveries_needed()),
            (seen, 0) if !failing => (Status::Critical, seen, self.failures_needed()),
            (seen, _) if failing => (state.contrary, seen, self.failures_needed()),
            (_, seen) => (state.contrary, seen, self.recoveries_needed()),
        };
        Outlook::Counting {
            toward,
            seen,
            needed,
            agreeing: Agreeing::TakesOneOff,
        }
    }

    fn adopt(&self, old: &LeakyState, _now: Timestamp) -> LeakyState {
        LeakyState {
            failures: old.failures.min(self.critical_threshold),
            recoveries: old.recoveries.min(self.passing_threshold),
            ..*old
        }
    }

    fn save(&self, state: &LeakyState) -> Record {
        let mut payload = [0; 10];
        payload[0] = Flags::new(state.believe_next).0;
        payload[1] = state.contrary as u8;
        payload[2..6].copy_from_slice(&state.failures.to_le_bytes());
        payload[6..].copy_from_slice(&state.recoveries.to_le_bytes());
        Record::with_payload(Self::TAG, Self::VERSION, state.reported, payload)
    }

    fn load(&self, record: &Record, now: Timestamp) -> Loaded<LeakyState> {
        match record.expect_version(Self::TAG, Self::VERSION) {
            Ok(payload) => match read(payload, record.reported()) {
                Some(state) => Loaded::Resumed(self.adopt(&state, now)),
                None => Loaded::Restarted(
                    LeakyState::settled(record.reported()),
                    RestartReason::Damaged,
                ),
            },
            Err(reason) => Loaded::Restarted(LeakyState::settled(record.reported()), reason),
        }
    }
}

/// The state in `payload`, if it is one that the rule can get into.
fn read(payload: &[u8], reported: Status) -> Option<LeakyState> {
    let mut fields = Fields(payload);
    let believe_next = fields.flags()?.believe_next();
    let contrary = fields.status()?;
    let failures = fields.u32()?;
    let recoveries = fields.u32()?;
    fields.end()?;
    let possible = match reported {
        Status::Passing => recoveries == 0,
        Status::Warning => true,
        Status::Critical => failures == 0,
    };
    let explained = (failures == 0 && recoveries == 0) || contrary != reported;
    let fresh = !believe_next || (failures == 0 && recoveries == 0);
    (possible && explained && fresh).then_some(LeakyState {
        failures,
        recoveries,
        reported,
        contrary,
        believe_next,
    })
}

/// The parameters as a directive has them:
/// `strategy=leaky critical-threshold=3 passing-threshold=0`.
impl fmt::Display for Leaky {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_directive("leaky", self, f)
    }
}
