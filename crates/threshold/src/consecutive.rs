use core::cmp::Ordering;
use core::fmt;

use crate::key::write_directive;
use crate::parameters::Resolved;
use crate::{
    Agreeing, Counts, FirstResult, Loaded, Observation, Outlook, ParameterError, Record,
    RestartReason, RunState, Status, Strategy, StrategyTag, Timestamp, Transition,
};

/// So many contrary results in a row.
///
/// The Schmitt trigger of load balancers, with Consul's parameter names and
/// three levels. For Consul's own treatment of `warning` see
/// [`Consul`](crate::Consul).
///
/// # The rule
///
/// A result worse than the reported status adds to a run of failures, a better
/// one to a run of successes; either ends the other's run, and a result that
/// agrees with the reported status ends both.
///
/// * `failures_before_critical` failures in a row, or `success_before_passing`
///   successes: the status of the latest result is reported, and the runs are
///   over.
/// * `failures_before_warning` failures in a row while passing is reported:
///   warning is reported. If the latest result is critical, it is still worse
///   than what is reported and the run goes on, so that the critical status
///   comes at failure number `failures_before_critical` of the same run. If it
///   is warning, it agrees with what is reported now and the run is over.
///
/// The two thresholds count from the same failure on. While warning or critical
/// is reported `failures_before_warning` has no part.
///
/// # The first result
///
/// [`FirstResult::Believed`] is Consul's way: a newcomer shows its true status
/// after one probe, whatever the thresholds.
///
/// # Example
///
/// Degraded at two failures, critical at four:
///
/// ```
/// use evenkeel_threshold::{Consecutive, Counts, FirstResult, Status, Strategy, Timestamp};
///
/// let now = Timestamp::ZERO;
/// let rule = Consecutive::new(Counts {
///     failures_before_critical: 4,
///     failures_before_warning: Some(2),
///     success_before_passing: 1,
/// })?;
/// let mut state = rule.start(Status::Passing, FirstResult::Counted, now);
/// let reported = [(); 4].map(|()| {
///     rule.observe(&mut state, Status::Critical.into(), now);
///     rule.reported(&state)
/// });
/// use Status::{Critical, Passing, Warning};
/// assert_eq!(reported, [Passing, Warning, Warning, Critical]);
/// # Ok::<(), evenkeel_threshold::ParameterError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Counts", into = "Counts"))]
pub struct Consecutive(Resolved);

impl Consecutive {
    /// The tag of this strategy's records.
    pub const TAG: StrategyTag = StrategyTag(2);

    const VERSION: u8 = 1;

    /// The rule with these counts, where 0 is 1.
    ///
    /// # Errors
    ///
    /// `failures_before_warning` is more than `failures_before_critical`.
    pub fn new(counts: Counts) -> Result<Self, ParameterError> {
        Resolved::new(counts).map(Self)
    }

    /// The counts in force: 0 has become 1, and a warning threshold that equals
    /// the critical one `None`.
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }

    /// How many failures in a row change `reported` next, given that there were
    /// `run`.
    fn failures_needed(self, reported: Status, run: u32) -> u32 {
        let threshold = if reported == Status::Passing {
            self.0.warning
        } else {
            self.0.critical
        };
        // A run that was adopted from other parameters may be beyond.
        threshold.max(run.saturating_add(1))
    }
}

impl Strategy for Consecutive {
    type State = RunState;

    fn start(&self, reported: Status, first: FirstResult, _now: Timestamp) -> RunState {
        RunState::start(reported, first)
    }

    #[inline]
    fn observe(
        &self,
        state: &mut RunState,
        observation: Observation,
        _now: Timestamp,
    ) -> Option<Transition> {
        let result = observation.status;
        if observation.immediate || state.believe_next {
            let transition = state.report(result);
            *state = RunState::settled(result);
            return transition;
        }
        let side = result.cmp(&state.reported);
        if side == Ordering::Equal {
            state.run = 0;
            return None;
        }
        let goes_on = state.latest.cmp(&state.reported) == side;
        state.run = if goes_on {
            state.run.saturating_add(1)
        } else {
            1
        };
        state.latest = result;
        let to = if side == Ordering::Less {
            (state.run >= self.0.passing).then_some(result)
        } else if state.run >= self.0.critical {
            Some(result)
        } else {
            (state.run >= self.0.warning).then_some(Status::Warning)
        }?;
        if to == result {
            state.run = 0;
        }
        state.report(to)
    }

    fn reported(&self, state: &RunState) -> Status {
        state.reported
    }

    fn outlook(&self, state: &RunState, _now: Timestamp) -> Outlook {
        if state.believe_next {
            return Outlook::FirstResult;
        }
        let (seen, side) = (state.run, state.latest.cmp(&state.reported));
        if seen == 0 || side == Ordering::Equal {
            return Outlook::Settled;
        }
        let (toward, needed) = if side == Ordering::Less {
            (state.latest, self.0.passing)
        } else {
            let needed = self.failures_needed(state.reported, seen);
            let toward = if needed < self.0.critical {
                Status::Warning
            } else {
                state.latest
            };
            (toward, needed)
        };
        Outlook::Counting {
            toward,
            seen,
            needed,
            agreeing: Agreeing::Resets,
        }
    }

    fn adopt(&self, old: &RunState, _now: Timestamp) -> RunState {
        let most = if old.latest < old.reported {
            self.0.passing - 1
        } else {
            self.0.critical - 1
        };
        RunState {
            run: old.run.min(most),
            ..*old
        }
    }

    fn save(&self, state: &RunState) -> Record {
        state.save(Self::TAG, Self::VERSION)
    }

    fn load(&self, record: &Record, now: Timestamp) -> Loaded<RunState> {
        let loaded = RunState::load(record, Self::TAG, Self::VERSION).and_then(|state| {
            let possible = state.run == 0 || state.latest != state.reported;
            possible.then_some(state).ok_or(RestartReason::Damaged)
        });
        match loaded {
            Ok(state) => Loaded::Resumed(self.adopt(&state, now)),
            Err(reason) => Loaded::Restarted(RunState::settled(record.reported()), reason),
        }
    }
}

impl TryFrom<Counts> for Consecutive {
    type Error = ParameterError;

    fn try_from(counts: Counts) -> Result<Self, ParameterError> {
        Self::new(counts)
    }
}

impl From<Consecutive> for Counts {
    fn from(rule: Consecutive) -> Self {
        rule.counts()
    }
}

/// No damping.
impl Default for Consecutive {
    fn default() -> Self {
        Self(Resolved {
            critical: 1,
            warning: 1,
            passing: 1,
        })
    }
}

/// The parameters as a directive has them:
/// `strategy=consecutive failures-before-critical=3 success-before-passing=1`.
impl fmt::Display for Consecutive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_directive("consecutive", &self.counts(), f)
    }
}
