use core::fmt;

use crate::key::{keys, write_directive};
use crate::parameters::{Relation, Rules};
use crate::payload::{Fields, Flags};
use crate::words::Real;
use crate::{
    Agreeing, FirstResult, Loaded, Observation, Outlook, ParameterError, Record, Status, Strategy,
    StrategyTag, Timestamp, Transition, trial,
};

/// The parameters of [`Ewma`], as they are written in a configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct EwmaParameters {
    /// The weight of the latest result: 0.001 to 1.
    pub alpha: f64,
    /// The mean share of failures at which a worse status is reported: at most
    /// 0.999.
    pub high: f64,
    /// The mean share of failures at which a better status is reported: at least
    /// 0.001, and less than `high`.
    pub low: f64,
}

keys! { EwmaParameters {
    alpha: f64 = "alpha", "0.001 to 1", "0.3",
        "The weight of the latest result";
    high: f64 = "high", "0.001 to 0.999", "0.7",
        "The mean share of failures at which a worse status is reported";
    low: f64 = "low", "0.001 to 0.999, and less than `high`", "0.3",
        "The mean share of failures at which a better status is reported";
} }

/// Four failures down, and four successes up after a long outage.
impl Default for EwmaParameters {
    fn default() -> Self {
        Self {
            alpha: 0.3,
            high: 0.7,
            low: 0.3,
        }
    }
}

/// A moving average of failures, with two thresholds.
///
/// Like [`Window`](crate::Window), with a memory that fades instead of ending.
/// A target that fails a steady share of its probes is reported for certain if
/// that share is above `high`.
///
/// # The rule
///
/// With each result the mean share of failures becomes
/// `alpha × failure + (1 - alpha) × share`, where `failure` is 1 or 0. At the
/// start it is that of a target which always had the reported status. A
/// *failure* is a result worse than the status in question: one share is kept
/// of results worse than passing, one of results worse than warning.
///
/// * The latest result is worse than the reported status, and the share of
///   results worse than the reported status is at least `high`: the latest
///   result's status is reported.
/// * The latest result is better than the reported status, and the share of
///   results worse than the latest one is at most `low`: the latest result's
///   status is reported.
///
/// The comparisons allow for 1e-12 of rounding. From the start a lasting failure
/// is reported after `ln(1 - high) / ln(1 - alpha)` results, rounded up.
///
/// # Example
///
/// ```
/// use evenkeel_threshold::{Ewma, EwmaParameters, FirstResult, Status, Strategy, Timestamp};
///
/// let now = Timestamp::ZERO;
/// let ewma = Ewma::new(EwmaParameters { alpha: 0.3, high: 0.7, low: 0.3 })?;
/// let mut state = ewma.start(Status::Passing, FirstResult::Counted, now);
/// let shares = [(); 4].map(|()| {
///     ewma.observe(&mut state, Status::Critical.into(), now);
///     (state.share_not_passing() * 1e4).round() / 1e4
/// });
/// assert_eq!(shares, [0.3, 0.51, 0.657, 0.7599]);
/// assert_eq!(ewma.reported(&state), Status::Critical);
/// # Ok::<(), evenkeel_threshold::ParameterError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "EwmaParameters", into = "EwmaParameters")
)]
pub struct Ewma {
    alpha: Real,
    high: Real,
    low: Real,
}

/// What [`Ewma`] remembers of one check: two shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EwmaState {
    not_passing: Real,
    critical: Real,
    reported: Status,
    /// The latest result that differed from what was reported.
    contrary: Status,
    /// The next result is the first one, and is to be believed.
    believe_next: bool,
}

impl Ewma {
    /// The tag of this strategy's records.
    pub const TAG: StrategyTag = StrategyTag(5);

    const VERSION: u8 = 1;

    /// What rounding may amount to, and a share that is as good as none.
    const TOLERANCE: f64 = 1e-12;

    /// The rule with these parameters.
    ///
    /// # Errors
    ///
    /// With each parameter that is out of its range.
    pub fn new(parameters: EwmaParameters) -> Result<Self, ParameterError> {
        let EwmaParameters { alpha, high, low } = parameters;
        let shares = 0.001..=0.999;
        Rules::new()
            .range::<EwmaParameters>("alpha", (0.001..=1.0).contains(&alpha))
            .range::<EwmaParameters>("high", shares.contains(&high))
            .range::<EwmaParameters>("low", shares.contains(&low))
            // A comparison with what is no number does not hold either.
            .relation(
                &Relation {
                    parameters: ["low", "high"],
                    rule: "must be less than",
                },
                low < high,
            )
            .check()?;
        Ok(Self {
            alpha: Real::new(alpha),
            high: Real::new(high),
            low: Real::new(low),
        })
    }

    /// The parameters in force.
    pub const fn parameters(&self) -> EwmaParameters {
        EwmaParameters {
            alpha: self.alpha.get(),
            high: self.high.get(),
            low: self.low.get(),
        }
    }

    #[inline]
    fn next(&self, share: Real, failure: bool) -> Real {
        let alpha = self.alpha.get();
        let share = (1.0 - alpha) * share.get() + if failure { alpha } else { 0.0 };
        Real::new(if share < Self::TOLERANCE { 0.0 } else { share })
    }
}

impl EwmaState {
    const fn steady(reported: Status) -> Self {
        Self {
            not_passing: match reported {
                Status::Passing => Real::ZERO,
                Status::Warning | Status::Critical => Real::ONE,
            },
            critical: match reported {
                Status::Passing | Status::Warning => Real::ZERO,
                Status::Critical => Real::ONE,
            },
            reported,
            contrary: reported,
            believe_next: false,
        }
    }

    /// The mean share of results worse than `status`.
    #[inline]
    const fn worse_than(&self, status: Status) -> f64 {
        match status {
            Status::Passing => self.not_passing.get(),
            Status::Warning => self.critical.get(),
            Status::Critical => 0.0,
        }
    }

    /// The status reported now.
    pub const fn reported(&self) -> Status {
        self.reported
    }

    /// The mean share of results that were not `passing`: 0 to 1.
    pub const fn share_not_passing(&self) -> f64 {
        self.not_passing.get()
    }

    /// The mean share of results that were `critical`: 0 to 1.
    pub const fn share_critical(&self) -> f64 {
        self.critical.get()
    }

    pub(crate) const fn awaits_first_result(&self) -> bool {
        self.believe_next
    }
}

impl Strategy for Ewma {
    type State = EwmaState;

    fn start(&self, reported: Status, first: FirstResult, _now: Timestamp) -> EwmaState {
        EwmaState {
            believe_next: first == FirstResult::Believed,
            ..EwmaState::steady(reported)
        }
    }

    fn observe(
        &self,
        state: &mut EwmaState,
        observation: Observation,
        _now: Timestamp,
    ) -> Option<Transition> {
        let result = observation.status;
        let from = state.reported;
        if observation.immediate || state.believe_next {
            *state = EwmaState::steady(result);
            return Transition::between(from, result);
        }
        state.not_passing = self.next(state.not_passing, result > Status::Passing);
        state.critical = self.next(state.critical, result > Status::Warning);
        if result == from {
            return None;
        }
        let flips = if result > from {
            state.worse_than(from) >= self.high.get() - Self::TOLERANCE
        } else {
            state.worse_than(result) <= self.low.get() + Self::TOLERANCE
        };
        state.contrary = result;
        if flips {
            state.reported = result;
        }
        Transition::between(from, state.reported)
    }

    fn reported(&self, state: &EwmaState) -> Status {
        state.reported
    }

    fn outlook(&self, state: &EwmaState, _now: Timestamp) -> Outlook {
        if state.believe_next {
            return Outlook::FirstResult;
        }
        trial::outlook(
            self,
            state,
            &EwmaState::steady(state.reported),
            trial::others(state.reported, state.contrary),
            Agreeing::LessensAll,
        )
    }

    fn adopt(&self, old: &EwmaState, _now: Timestamp) -> EwmaState {
        *old
    }

    fn save(&self, state: &EwmaState) -> Record {
        let mut payload = [0; 18];
        payload[0] = Flags::new(state.believe_next).0;
        payload[1] = state.contrary as u8;
        payload[2..10].copy_from_slice(&state.not_passing.get().to_le_bytes());
        payload[10..].copy_from_slice(&state.critical.get().to_le_bytes());
        Record::with_payload(Self::TAG, Self::VERSION, state.reported, payload)
    }

    fn load(&self, record: &Record, _now: Timestamp) -> Loaded<EwmaState> {
        Loaded::read(
            record,
            Self::TAG,
            Self::VERSION,
            |fields| read(fields, record.reported()),
            || EwmaState::steady(record.reported()),
        )
    }
}

/// The state in a payload, if it is one that the rule can get into.
fn read(fields: &mut Fields<'_>, reported: Status) -> Option<EwmaState> {
    let believe_next = fields.flags()?.believe_next();
    let contrary = fields.status()?;
    let (not_passing, critical) = (fields.f64()?, fields.f64()?);
    // Two roundings of the same sums differ in the last digits at most.
    let shares = 0.0..=1.0 + Ewma::TOLERANCE;
    let possible = shares.contains(&not_passing)
        && shares.contains(&critical)
        && critical <= not_passing + Ewma::TOLERANCE;
    let state = EwmaState {
        not_passing: possible.then(|| Real::new(not_passing))?,
        critical: Real::new(critical),
        reported,
        contrary,
        believe_next,
    };
    let fresh = EwmaState {
        believe_next,
        ..EwmaState::steady(reported)
    };
    (!believe_next || state == fresh).then_some(state)
}

impl Default for Ewma {
    fn default() -> Self {
        let EwmaParameters { alpha, high, low } = EwmaParameters::default();
        Self {
            alpha: Real::new(alpha),
            high: Real::new(high),
            low: Real::new(low),
        }
    }
}

impl TryFrom<EwmaParameters> for Ewma {
    type Error = ParameterError;

    fn try_from(parameters: EwmaParameters) -> Result<Self, ParameterError> {
        Self::new(parameters)
    }
}

impl From<Ewma> for EwmaParameters {
    fn from(rule: Ewma) -> Self {
        rule.parameters()
    }
}

/// The parameters as a directive has them:
/// `strategy=ewma alpha=0.3 high=0.7 low=0.3`.
impl fmt::Display for Ewma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_directive("ewma", &self.parameters(), f)
    }
}
