use core::cmp::Ordering;
use core::fmt;

use crate::key::{keys, write_directive};
use crate::parameters::{Relation, Rules};
use crate::payload::{Fields, Flags};
use crate::words::Real;
use crate::{
    Agreeing, FirstResult, Loaded, Observation, Outlook, ParameterError, Record, Status, Strategy,
    StrategyTag, Timestamp, Transition,
};

/// The parameters of [`Cusum`], as they are written in a configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct CusumParameters {
    /// The share of failed probes that is tolerated: 0.0001 to 0.9999.
    pub p0: f64,
    /// The share of failed probes that counts as broken: more than `p0`, at most
    /// 0.9999, and at least 0.0001 above `p0`.
    pub p1: f64,
    /// The evidence wanted: 0.01 to 1000. The mean time between false alarms
    /// grows about as `e^h`, the delay only with `h`.
    pub h: f64,
}

keys! { CusumParameters {
    p0: f64 = "p0", "0.0001 to 0.9999", "0.05",
        "The share of failed probes that is tolerated";
    p1: f64 = "p1", "0.0001 to 0.9999, and more than `p0`", "0.7",
        "The share of failed probes that counts as broken";
    h: f64 = "h", "0.01 to 1000", "5",
        "The evidence wanted, as a logarithm";
} }

/// A twentieth of failures is tolerated, seven tenths are broken; a hard failure
/// is reported at the second result.
impl Default for CusumParameters {
    fn default() -> Self {
        Self {
            p0: 0.05,
            p1: 0.7,
            h: 5.0,
        }
    }
}

/// A cumulative sum of evidence (Page 1954), for failures and successes.
///
/// Of all rules with the same mean time between false alarms this one reports a
/// change from a failure rate of `p0` to `p1` with the least delay. With
/// `p0 = 1 - p1` both kinds of result weigh the same, and it is
/// [`Leaky`](crate::Leaky).
///
/// # The rule
///
/// A failure has the weight `a = ln(p1 / p0)`, a success
/// `b = ln((1 - p0) / (1 - p1))`. There are two sums, both at least 0:
///
/// * The *failure sum* goes up by `a` with a result worse than the reported
///   status, and down by `b` with any other.
/// * The *recovery sum* goes up by `b` with a result better than the reported
///   status, and down by `a` with any other.
///
/// When either reaches `h` (within 1e-9 of rounding), the status of the latest
/// result is reported and both sums are 0. Levels count as they do in
/// [`Leaky`](crate::Leaky). From the start a lasting failure is reported after
/// `h / a` results, rounded up; a lasting recovery after `h / b`.
///
/// # Example
///
/// ```
/// use evenkeel_threshold::{Cusum, CusumParameters, FirstResult, Status, Strategy, Timestamp};
///
/// let now = Timestamp::ZERO;
/// let cusum = Cusum::new(CusumParameters { p0: 0.05, p1: 0.7, h: 5.0 })?;
/// let mut state = cusum.start(Status::Passing, FirstResult::Counted, now);
/// use Status::{Critical, Passing};
/// for result in [Critical, Passing, Critical] {
///     assert_eq!(cusum.observe(&mut state, result.into(), now), None);
/// }
/// assert!((state.failure_sum() - 4.1254).abs() < 1e-4);
/// assert!(cusum.observe(&mut state, Critical.into(), now).is_some());
/// # Ok::<(), evenkeel_threshold::ParameterError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "CusumParameters", into = "CusumParameters")
)]
pub struct Cusum {
    p0: Real,
    p1: Real,
    h: Real,
    /// `a` and `b` of the documentation, both above 0.
    failure: Real,
    success: Real,
}

/// What [`Cusum`] remembers of one check: two sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CusumState {
    failures: Real,
    recoveries: Real,
    reported: Status,
    /// The latest result that differed from `reported`; `reported` if there was
    /// none since the last flip.
    contrary: Status,
    /// The next result is the first one, and is to be believed.
    believe_next: bool,
}

impl Cusum {
    /// The tag of this strategy's records.
    pub const TAG: StrategyTag = StrategyTag(6);

    const VERSION: u8 = 1;

    /// What rounding may amount to, and a sum that is as good as none.
    const TOLERANCE: f64 = 1e-9;

    /// The rule with these parameters.
    ///
    /// # Errors
    ///
    /// With each parameter that is out of its range.
    pub fn new(parameters: CusumParameters) -> Result<Self, ParameterError> {
        let CusumParameters { p0, p1, h } = parameters;
        let shares = 0.0001..=0.9999;
        Rules::new()
            .range::<CusumParameters>("p0", shares.contains(&p0))
            .range::<CusumParameters>("p1", shares.contains(&p1))
            .range::<CusumParameters>("h", (0.01..=1000.0).contains(&h))
            .relation(
                &Relation {
                    parameters: ["p0", "p1"],
                    rule: "must be at least 0.0001 less than",
                },
                p1 - p0 >= 0.0001,
            )
            .check()?;
        Ok(Self {
            p0: Real::new(p0),
            p1: Real::new(p1),
            h: Real::new(h),
            failure: Real::new(libm::log(p1 / p0)),
            success: Real::new(libm::log((1.0 - p0) / (1.0 - p1))),
        })
    }

    /// The parameters in force.
    pub const fn parameters(&self) -> CusumParameters {
        CusumParameters {
            p0: self.p0.get(),
            p1: self.p1.get(),
            h: self.h.get(),
        }
    }

    /// The evidence in one failure that a target is broken.
    pub const fn failure_weight(&self) -> f64 {
        self.failure.get()
    }

    /// The evidence in one success that it is not.
    pub const fn success_weight(&self) -> f64 {
        self.success.get()
    }

    /// How many steps of `weight` it takes from `sum` to `h`.
    fn steps(&self, sum: f64, weight: f64) -> u32 {
        // At most 1000 / 0.0001.
        libm::ceil((self.h.get() - sum - Self::TOLERANCE) / weight) as u32
    }

    fn more(sum: Real, weight: Real) -> Real {
        Real::new(sum.get() + weight.get())
    }

    fn less(sum: Real, weight: Real) -> Real {
        let sum = sum.get() - weight.get();
        Real::new(if sum < Self::TOLERANCE { 0.0 } else { sum })
    }

    fn reached(&self, sum: Real) -> bool {
        sum.get() >= self.h.get() - Self::TOLERANCE
    }
}

impl CusumState {
    const fn settled(reported: Status) -> Self {
        Self {
            failures: Real::ZERO,
            recoveries: Real::ZERO,
            reported,
            contrary: reported,
            believe_next: false,
        }
    }

    /// The status reported now.
    pub const fn reported(&self) -> Status {
        self.reported
    }

    /// The evidence for a worse status.
    pub const fn failure_sum(&self) -> f64 {
        self.failures.get()
    }

    /// The evidence for a better status.
    pub const fn recovery_sum(&self) -> f64 {
        self.recoveries.get()
    }

    pub(crate) const fn awaits_first_result(&self) -> bool {
        self.believe_next
    }

    fn settle(&mut self, to: Status) -> Option<Transition> {
        let from = self.reported;
        *self = Self::settled(to);
        Transition::between(from, to)
    }
}

impl Strategy for Cusum {
    type State = CusumState;

    fn start(&self, reported: Status, first: FirstResult, _now: Timestamp) -> CusumState {
        CusumState {
            believe_next: first == FirstResult::Believed,
            ..CusumState::settled(reported)
        }
    }

    fn observe(
        &self,
        state: &mut CusumState,
        observation: Observation,
        _now: Timestamp,
    ) -> Option<Transition> {
        let result = observation.status;
        if observation.immediate || state.believe_next {
            return state.settle(result);
        }
        let side = result.cmp(&state.reported);
        state.failures = match side {
            Ordering::Greater => Self::more(state.failures, self.failure),
            _ => Self::less(state.failures, self.success),
        };
        state.recoveries = match side {
            Ordering::Less => Self::more(state.recoveries, self.success),
            _ => Self::less(state.recoveries, self.failure),
        };
        let reached = match side {
            Ordering::Equal => return None,
            Ordering::Greater => self.reached(state.failures),
            Ordering::Less => self.reached(state.recoveries),
        };
        state.contrary = result;
        if reached { state.settle(result) } else { None }
    }

    fn reported(&self, state: &CusumState) -> Status {
        state.reported
    }

    fn outlook(&self, state: &CusumState, _now: Timestamp) -> Outlook {
        if state.believe_next {
            return Outlook::FirstResult;
        }
        let side = |sum: Real, weight: Real, toward| {
            let needed = self.steps(0.0, weight.get());
            let seen = needed.saturating_sub(self.steps(sum.get(), weight.get()).max(1));
            (seen > 0).then_some(Outlook::Counting {
                toward,
                seen,
                needed,
                agreeing: Agreeing::LessensAll,
            })
        };
        // A side that the latest contrary result was not on has a sum only while
        // warning is reported, which leaves one status there.
        let worse = || {
            let toward = state.contrary.max(Status::Warning);
            let toward = if toward > state.reported {
                toward
            } else {
                Status::Critical
            };
            side(state.failures, self.failure, toward)
        };
        let better = || {
            let toward = state.contrary.min(Status::Warning);
            let toward = if toward < state.reported {
                toward
            } else {
                Status::Passing
            };
            side(state.recoveries, self.success, toward)
        };
        let outlook = if state.contrary > state.reported {
            worse().or_else(better)
        } else {
            better().or_else(worse)
        };
        outlook.unwrap_or(Outlook::Settled)
    }

    fn adopt(&self, old: &CusumState, _now: Timestamp) -> CusumState {
        // Short of a flip, which only a result brings.
        let most = self.h.get() - 2.0 * Self::TOLERANCE;
        let cut = |sum: Real| {
            if sum.get() > most {
                Real::new(most)
            } else {
                sum
            }
        };
        CusumState {
            failures: cut(old.failures),
            recoveries: cut(old.recoveries),
            ..*old
        }
    }

    fn save(&self, state: &CusumState) -> Record {
        let mut payload = [0; 18];
        payload[0] = Flags::new(state.believe_next).0;
        payload[1] = state.contrary as u8;
        payload[2..10].copy_from_slice(&state.failures.get().to_le_bytes());
        payload[10..].copy_from_slice(&state.recoveries.get().to_le_bytes());
        Record::with_payload(Self::TAG, Self::VERSION, state.reported, payload)
    }

    fn load(&self, record: &Record, now: Timestamp) -> Loaded<CusumState> {
        Loaded::read(
            record,
            Self::TAG,
            Self::VERSION,
            |fields| read(fields, record.reported()),
            || CusumState::settled(record.reported()),
        )
        .map(|state| self.adopt(&state, now))
    }
}

/// The state in a payload, if it is one that the rule can get into.
fn read(fields: &mut Fields<'_>, reported: Status) -> Option<CusumState> {
    let believe_next = fields.flags()?.believe_next();
    let contrary = fields.status()?;
    let (failures, recoveries) = (fields.f64()?, fields.f64()?);
    let sums = 0.0..=1000.0;
    if !sums.contains(&failures) || !sums.contains(&recoveries) {
        return None;
    }
    let none = failures == 0.0 && recoveries == 0.0;
    let possible = match reported {
        Status::Passing => recoveries == 0.0,
        Status::Warning => true,
        Status::Critical => failures == 0.0,
    };
    let explained = none || contrary != reported;
    (possible && explained && (!believe_next || none)).then(|| CusumState {
        failures: Real::new(failures),
        recoveries: Real::new(recoveries),
        reported,
        contrary,
        believe_next,
    })
}

impl Default for Cusum {
    fn default() -> Self {
        let CusumParameters { p0, p1, h } = CusumParameters::default();
        Self {
            p0: Real::new(p0),
            p1: Real::new(p1),
            h: Real::new(h),
            failure: Real::new(libm::log(p1 / p0)),
            success: Real::new(libm::log((1.0 - p0) / (1.0 - p1))),
        }
    }
}

impl TryFrom<CusumParameters> for Cusum {
    type Error = ParameterError;

    fn try_from(parameters: CusumParameters) -> Result<Self, ParameterError> {
        Self::new(parameters)
    }
}

impl From<Cusum> for CusumParameters {
    fn from(rule: Cusum) -> Self {
        rule.parameters()
    }
}

/// The parameters as a directive has them: `strategy=cusum p0=0.05 p1=0.7 h=5`.
impl fmt::Display for Cusum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_directive("cusum", &self.parameters(), f)
    }
}
