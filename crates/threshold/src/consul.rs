use core::fmt;

use crate::key::write_directive;
use crate::parameters::Resolved;
use crate::{
    Agreeing, Counts, FirstResult, Loaded, Observation, Outlook, ParameterError, Record, RunState,
    Status, Strategy, StrategyTag, Timestamp, Transition,
};

/// The Consul agent's own rule, `StatusHandler` of its `agent/checks`, peculiar
/// cases included.
///
/// For comparing with an agent, and for those who want the same from a monitor
/// outside. [`Consecutive`](crate::Consecutive) is the rule to choose
/// otherwise.
///
/// # The rule
///
/// * `passing` and `warning` results are both successes. From success number
///   `success_before_passing` in a row on, each is reported as it is.
/// * A `critical` result is a failure. From failure number
///   `failures_before_warning` in a row on, warning is reported; from
///   `failures_before_critical` on, critical.
///
/// In a row means without one of the other kind in between, whatever is
/// reported. Two things follow that [`Consecutive`](crate::Consecutive) does
/// not do: after enough successes a single `warning` result is reported at
/// once, and with `failures_before_warning < failures_before_critical` a failure
/// can change the reported status from critical to warning (if successes too
/// few to be reported came before it).
///
/// An immediate result is not Consul's; it is treated like a first one.
///
/// # The first result
///
/// The agent believes it ([`FirstResult::Believed`]). With
/// [`FirstResult::Counted`], or a saved state that cannot be resumed, the check
/// goes on as if many results like the reported status had come before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Counts", into = "Counts"))]
pub struct Consul(Resolved);

impl Consul {
    /// The tag of this strategy's records.
    pub const TAG: StrategyTag = StrategyTag(3);

    const VERSION: u8 = 1;

    /// The rule with these counts, where 0 is 1, except that 0 for
    /// `failures_before_warning` is the same as `None`: the agent takes it for
    /// "not set".
    ///
    /// # Errors
    ///
    /// `failures_before_warning` is more than `failures_before_critical`.
    pub fn new(counts: Counts) -> Result<Self, ParameterError> {
        Resolved::new(Counts {
            failures_before_warning: counts.failures_before_warning.filter(|&count| count > 0),
            ..counts
        })
        .map(Self)
    }

    /// The counts in force: 0 has become 1, and a warning threshold that equals
    /// the critical one `None`.
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }

    /// The status that is reported when a run of results like `latest` gets to
    /// `run`; `None` if what is reported stays.
    #[inline]
    fn at(self, run: u32, latest: Status) -> Option<Status> {
        if is_success(latest) {
            (run >= self.0.passing).then_some(latest)
        } else if run >= self.0.critical {
            Some(Status::Critical)
        } else {
            (run >= self.0.warning).then_some(Status::Warning)
        }
    }

    /// After many results like `reported`.
    const fn steady(self, reported: Status) -> RunState {
        RunState {
            run: self.enough(reported),
            ..RunState::settled(reported)
        }
    }

    /// The longest run of results like `latest` that it makes sense to count.
    const fn enough(self, latest: Status) -> u32 {
        if is_success(latest) {
            self.0.passing
        } else {
            self.0.critical
        }
    }
}

const fn is_success(result: Status) -> bool {
    !matches!(result, Status::Critical)
}

impl Strategy for Consul {
    type State = RunState;

    fn start(&self, reported: Status, first: FirstResult, _now: Timestamp) -> RunState {
        match first {
            FirstResult::Believed => RunState::start(reported, first),
            FirstResult::Counted => self.steady(reported),
        }
    }

    #[inline]
    fn observe(
        &self,
        state: &mut RunState,
        observation: Observation,
        _now: Timestamp,
    ) -> Option<Transition> {
        let result = observation.status;
        let enough = self.enough(result);
        state.run = if observation.immediate || state.believe_next {
            enough
        } else if is_success(result) == is_success(state.latest) {
            state.run.saturating_add(1).min(enough)
        } else {
            1
        };
        state.latest = result;
        state.believe_next = false;
        let to = self.at(state.run, result)?;
        state.report(to)
    }

    fn reported(&self, state: &RunState) -> Status {
        state.reported
    }

    fn outlook(&self, state: &RunState, _now: Timestamp) -> Outlook {
        if state.believe_next {
            return Outlook::FirstResult;
        }
        if state.run == 0 {
            return Outlook::Settled;
        }
        let next = state.run.saturating_add(1);
        let thresholds = if is_success(state.latest) {
            [self.0.passing, self.0.passing]
        } else {
            [self.0.warning, self.0.critical]
        };
        thresholds
            .into_iter()
            .map(|threshold| threshold.max(next))
            .find_map(|needed| {
                let toward = self.at(needed, state.latest)?;
                (toward != state.reported).then_some(Outlook::Counting {
                    toward,
                    seen: state.run,
                    needed,
                    agreeing: Agreeing::Resets,
                })
            })
            .unwrap_or(Outlook::Settled)
    }

    fn adopt(&self, old: &RunState, _now: Timestamp) -> RunState {
        let enough = self.enough(old.latest);
        let done = self.at(enough, old.latest) == Some(old.reported);
        RunState {
            run: old.run.min(if done { enough } else { enough - 1 }),
            ..*old
        }
    }

    fn save(&self, state: &RunState) -> Record {
        state.save(Self::TAG, Self::VERSION)
    }

    fn load(&self, record: &Record, now: Timestamp) -> Loaded<RunState> {
        match RunState::load(record, Self::TAG, Self::VERSION) {
            Ok(state) => Loaded::Resumed(self.adopt(&state, now)),
            Err(reason) => Loaded::Restarted(self.steady(record.reported()), reason),
        }
    }
}

impl TryFrom<Counts> for Consul {
    type Error = ParameterError;

    fn try_from(counts: Counts) -> Result<Self, ParameterError> {
        Self::new(counts)
    }
}

impl From<Consul> for Counts {
    fn from(rule: Consul) -> Self {
        rule.counts()
    }
}

/// No damping.
impl Default for Consul {
    fn default() -> Self {
        Self(Resolved {
            critical: 1,
            warning: 1,
            passing: 1,
        })
    }
}

/// The parameters as a directive has them:
/// `strategy=consul failures-before-critical=3 success-before-passing=1`.
impl fmt::Display for Consul {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_directive("consul", &self.counts(), f)
    }
}
