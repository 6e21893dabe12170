use core::fmt;

use crate::key::Parameters;
use crate::{
    Consecutive, Consul, ConsulEsm, ConsulEsmState, Counts, Cusum, CusumParameters, CusumState,
    Dwell, DwellParameters, DwellState, Ewma, EwmaParameters, EwmaState, FirstResult, Flap,
    FlapParameters, FlapState, Heartbeat, HeartbeatParameters, HeartbeatState, Hold, HoldState,
    Key, Leaky, LeakyState, Loaded, Mark, Observation, Outlook, Penalty, PenaltyParameters,
    PenaltyState, Phi, PhiParameters, PhiState, Record, RunState, SpecError, Status, Strategy,
    Timestamp, Transition, Window, WindowParameters, WindowState, spec,
};

/// Everything that has to know all strategies, from one list: the strategy,
/// its state, its name, and what the first result of a check means by default.
macro_rules! strategies {
    ($( $(#[doc = $doc:literal])+ $name:ident($state:ty, $parameters:ty) = $text:literal, $first:ident; )+) => {
        /// A strategy chosen at run time, without a box.
        ///
        /// With the feature `serde` it reads and writes as the strategy's name
        /// over its parameters:
        /// `{"leaky": {"critical_threshold": 3, "passing_threshold": 0}}`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[non_exhaustive]
        pub enum AnyStrategy {
            $(
                $(#[doc = $doc])+
                #[cfg_attr(feature = "serde", serde(rename = $text))]
                $name($name),
            )+
        }

        /// What [`AnyStrategy`] remembers of one check.
        ///
        /// A state handed to a strategy of another kind is no error: it goes on
        /// as after [`Strategy::adopt`], from the reported status and without
        /// counts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum AnyState {
            $(
                #[doc = concat!("Of [`", stringify!($name), "`].")]
                $name($state),
            )+
        }

        impl AnyStrategy {
            /// The names of all strategies, as [`AnyStrategy::name`] gives them.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// The name that a configuration uses, e.g. `leaky`.
            pub const fn name(&self) -> &'static str {
                match self {
                    $( Self::$name(_) => $text, )+
                }
            }

            /// What the first result of a check means unless someone says
            /// otherwise: rules that copy another program follow it, as far as it
            /// starts all checks alike.
            pub const fn default_first_result(&self) -> FirstResult {
                match self {
                    $( Self::$name(_) => FirstResult::$first, )+
                }
            }

            /// What the strategy `name` does, in a sentence; `None` if there is none of
            /// that name.
            pub fn about(name: &str) -> Option<&'static str> {
                match Self::known_name(name)? {
                    $( $text => Some(concat!($($doc),+).trim_ascii()), )+
                    _ => None,
                }
            }

            /// The parameters of the strategy `name`; `None` if there is none of that
            /// name.
            pub fn keys_of(name: &str) -> Option<&'static [Key]> {
                match Self::known_name(name)? {
                    $( $text => Some(<$parameters>::KEYS), )+
                    _ => None,
                }
            }

            /// The parameters of this strategy.
            pub const fn keys(&self) -> &'static [Key] {
                match self {
                    $( Self::$name(_) => <$parameters>::KEYS, )+
                }
            }

            #[expect(
                clippy::result_large_err,
                reason = "all faults at once, and nowhere to put them without an allocation"
            )]
            pub(crate) fn make<'a>(
                name: &'a str,
                pairs: impl Iterator<Item = (&'a str, Option<&'a str>)>,
            ) -> Result<Self, SpecError<'a>> {
                match Self::known_name(name) {
                    $( Some($text) => spec::make::<$parameters, $name>($text, pairs).map(Self::$name), )+
                    _ => Err(SpecError::unknown_strategy(name)),
                }
            }
        }

        impl AnyState {
            /// The status reported now.
            pub const fn reported(&self) -> Status {
                match self {
                    $( Self::$name(state) => state.reported(), )+
                }
            }

            const fn awaits_first_result(&self) -> bool {
                match self {
                    $( Self::$name(state) => state.awaits_first_result(), )+
                }
            }
        }

        /// Runs `$body` with the strategy and the state that belong together; if
        /// they do not, `$otherwise`.
        macro_rules! pair {
            ($any:expr, $own_state:expr, |$strategy:ident, $own:ident| $body:expr, $otherwise:expr) => {
                match ($any, $own_state) {
                    $( (AnyStrategy::$name($strategy), AnyState::$name($own)) => $body, )+
                    _ => $otherwise,
                }
            };
        }

        /// Runs `$body` with the strategy inside, and the way to wrap its state.
        macro_rules! wrap {
            ($any:expr, |$strategy:ident, $wrap:ident| $body:expr) => {
                match $any {
                    $(
                        AnyStrategy::$name($strategy) => {
                            let $wrap = AnyState::$name;
                            $body
                        }
                    )+
                }
            };
        }

        impl AnyStrategy {
            /// The state after a change of parameters, if it is of this kind.
            fn adopt_own(&self, old: &AnyState, now: Timestamp) -> Option<AnyState> {
                match (self, old) {
                    $(
                        (Self::$name(strategy), AnyState::$name(own)) => {
                            Some(AnyState::$name(strategy.adopt(own, now)))
                        }
                    )+
                    _ => None,
                }
            }
        }

        $(
            impl From<$name> for AnyStrategy {
                fn from(strategy: $name) -> Self {
                    Self::$name(strategy)
                }
            }
        )+
    };
}

strategies! {
    /// A result against the status counts one up, one that agrees counts one down.
    Leaky(LeakyState, Leaky) = "leaky", Counted;
    /// So many results in a row; one that agrees sets the count to zero.
    Consecutive(RunState, Counts) = "consecutive", Believed;
    /// The Consul agent's rule to the letter, for which a warning is a success.
    Consul(RunState, Counts) = "consul", Believed;
    /// So many failures among the latest results.
    Window(WindowState, WindowParameters) = "window", Counted;
    /// A moving average of failures, with two thresholds.
    Ewma(EwmaState, EwmaParameters) = "ewma", Counted;
    /// A cumulative sum of evidence for one failure rate against another.
    Cusum(CusumState, CusumParameters) = "cusum", Counted;
    /// So many in a row, over so much time.
    Hold(HoldState, Hold) = "hold", Counted;
    /// So many in a row, but no change soon after a change.
    Dwell(DwellState, DwellParameters) = "dwell", Counted;
    /// So many in a row; a target that changes too often is not followed for a while.
    Penalty(PenaltyState, PenaltyParameters) = "penalty", Counted;
    /// The weighted share of changes, as Nagios and Icinga have it, marks a target as flapping.
    Flap(FlapState, FlapParameters) = "flap", Counted;
    /// What consul-esm really does, not what it documents.
    ConsulEsm(ConsulEsmState, ConsulEsm) = "consul-esm", Counted;
    /// Every result counts, and so does silence for too long.
    Heartbeat(HeartbeatState, HeartbeatParameters) = "heartbeat", Believed;
    /// A deadline for the next success that adapts to the gaps seen (phi accrual).
    Phi(PhiState, PhiParameters) = "phi", Believed;
}

impl AnyStrategy {
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
        self.adopt_own(old, now)
            .unwrap_or_else(|| self.start(old.reported(), first, now))
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

/// As the strategy inside.
impl fmt::Display for AnyStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        wrap!(self, |strategy, _wrap| strategy.fmt(f))
    }
}
