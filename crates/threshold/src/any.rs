use core::fmt;

use crate::{
    Consecutive, Consul, FirstResult, Leaky, LeakyState, Loaded, Mark, Observation, Outlook,
    Record, RunState, Status, Strategy, Timestamp, Transition,
};

/// A strategy chosen at run time, without a box.
///
/// With the feature `serde` it reads and writes as the strategy's name over its
/// parameters: `{"leaky": {"critical_threshold": 3, "passing_threshold": 0}}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum AnyStrategy {
    /// consul-esm's documented rule.
    Leaky(Leaky),
    /// So many in a row.
    Consecutive(Consecutive),
    /// The Consul agent's rule to the letter.
    Consul(Consul),
}

/// What [`AnyStrategy`] remembers of one check.
///
/// A state handed to a strategy of another kind is no error: it goes on as
/// after [`Strategy::adopt`], from the reported status and without counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AnyState {
    /// Of [`Leaky`].
    Leaky(LeakyState),
    /// Of [`Consecutive`].
    Consecutive(RunState),
    /// Of [`Consul`].
    Consul(RunState),
}

/// Runs `$body` with the strategy and the state that belong together; if they
/// do not, `$otherwise`.
macro_rules! pair {
    ($any:expr, $state:expr, |$strategy:ident, $own:ident| $body:expr, $otherwise:expr) => {
        match ($any, $state) {
            (AnyStrategy::Leaky($strategy), AnyState::Leaky($own)) => $body,
            (AnyStrategy::Consecutive($strategy), AnyState::Consecutive($own)) => $body,
            (AnyStrategy::Consul($strategy), AnyState::Consul($own)) => $body,
            _ => $otherwise,
        }
    };
}

/// Runs `$body` with the strategy inside, and wraps what it gives.
macro_rules! wrap {
    ($any:expr, |$strategy:ident, $wrap:ident| $body:expr) => {
        match $any {
            AnyStrategy::Leaky($strategy) => {
                let $wrap = AnyState::Leaky;
                $body
            }
            AnyStrategy::Consecutive($strategy) => {
                let $wrap = AnyState::Consecutive;
                $body
            }
            AnyStrategy::Consul($strategy) => {
                let $wrap = AnyState::Consul;
                $body
            }
        }
    };
}

impl AnyStrategy {
    /// The name that a configuration uses: `leaky`, `consecutive` or `consul`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Leaky(_) => "leaky",
            Self::Consecutive(_) => "consecutive",
            Self::Consul(_) => "consul",
        }
    }

    /// What the first result of a check means unless someone says otherwise:
    /// `leaky` counts it, as consul-esm does, the others believe it, as the
    /// Consul agent does.
    pub const fn default_first_result(&self) -> FirstResult {
        match self {
            Self::Leaky(_) => FirstResult::Counted,
            Self::Consecutive(_) | Self::Consul(_) => FirstResult::Believed,
        }
    }

    /// Kept apart, so that the way of a state in its place is short.
    #[cold]
    fn observe_foreign(
        &self,
        state: &mut AnyState,
        observation: Observation,
        now: Timestamp,
    ) -> Option<Transition> {
        *state = self.adopt(state, now);
        self.observe(state, observation, now)
    }
}

impl AnyState {
    /// The status reported now.
    pub const fn reported(&self) -> Status {
        match self {
            Self::Leaky(state) => state.reported(),
            Self::Consecutive(state) | Self::Consul(state) => state.reported(),
        }
    }

    const fn awaits_first_result(&self) -> bool {
        match self {
            Self::Leaky(state) => state.awaits_first_result(),
            Self::Consecutive(state) | Self::Consul(state) => state.awaits_first_result(),
        }
    }
}

impl Strategy for AnyStrategy {
    type State = AnyState;

    fn start(&self, reported: Status, first: FirstResult, now: Timestamp) -> AnyState {
        wrap!(self, |strategy, wrap| wrap(
            strategy.start(reported, first, now)
        ))
    }

    #[inline]
    fn observe(
        &self,
        state: &mut AnyState,
        observation: Observation,
        now: Timestamp,
    ) -> Option<Transition> {
        pair!(
            self,
            &mut *state,
            |strategy, own| strategy.observe(own, observation, now),
            self.observe_foreign(state, observation, now)
        )
    }

    fn reported(&self, state: &AnyState) -> Status {
        state.reported()
    }

    fn deadline(&self, state: &AnyState) -> Option<Timestamp> {
        pair!(self, state, |strategy, own| strategy.deadline(own), None)
    }

    fn elapse(&self, state: &mut AnyState, now: Timestamp) -> Option<Transition> {
        pair!(self, state, |strategy, own| strategy.elapse(own, now), None)
    }

    fn outlook(&self, state: &AnyState, now: Timestamp) -> Outlook {
        pair!(
            self,
            state,
            |strategy, own| strategy.outlook(own, now),
            self.outlook(&self.adopt(state, now), now)
        )
    }

    fn mark(&self, state: &AnyState) -> Mark {
        pair!(self, state, |strategy, own| strategy.mark(own), Mark::None)
    }

    fn shift(&self, state: &mut AnyState, millis: i64) {
        pair!(self, state, |strategy, own| strategy.shift(own, millis), ());
    }

    /// Counters are kept if the state is of the same kind of strategy;
    /// otherwise the state starts anew from the reported status.
    fn adopt(&self, old: &AnyState, now: Timestamp) -> AnyState {
        let first = if old.awaits_first_result() {
            FirstResult::Believed
        } else {
            FirstResult::Counted
        };
        match (self, old) {
            (Self::Leaky(strategy), AnyState::Leaky(own)) => {
                AnyState::Leaky(strategy.adopt(own, now))
            }
            (Self::Consecutive(strategy), AnyState::Consecutive(own)) => {
                AnyState::Consecutive(strategy.adopt(own, now))
            }
            (Self::Consul(strategy), AnyState::Consul(own)) => {
                AnyState::Consul(strategy.adopt(own, now))
            }
            _ => self.start(old.reported(), first, now),
        }
    }

    fn save(&self, state: &AnyState) -> Record {
        // The parameters have no part in a record, so a state can be saved by
        // whichever strategy it belongs to.
        pair!(
            self,
            state,
            |strategy, own| strategy.save(own),
            self.save(&self.adopt(state, Timestamp::ZERO))
        )
    }

    fn load(&self, record: &Record, now: Timestamp) -> Loaded<AnyState> {
        wrap!(self, |strategy, wrap| strategy.load(record, now).map(wrap))
    }
}

/// `leaky` with both thresholds 0: no damping, as a consul-esm without
/// configuration.
impl Default for AnyStrategy {
    fn default() -> Self {
        Self::Leaky(Leaky::default())
    }
}

impl From<Leaky> for AnyStrategy {
    fn from(strategy: Leaky) -> Self {
        Self::Leaky(strategy)
    }
}

impl From<Consecutive> for AnyStrategy {
    fn from(strategy: Consecutive) -> Self {
        Self::Consecutive(strategy)
    }
}

impl From<Consul> for AnyStrategy {
    fn from(strategy: Consul) -> Self {
        Self::Consul(strategy)
    }
}

/// As the strategy inside.
impl fmt::Display for AnyStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        wrap!(self, |strategy, _wrap| strategy.fmt(f))
    }
}
