use core::f64::consts::SQRT_2;
use core::fmt;
use core::time::Duration;

use crate::key::{keys, write_directive};
use crate::parameters::Rules;
use crate::payload::{Fields, Flags};
use crate::words::{Real, Stamp};
use crate::{
    FirstResult, Loaded, Observation, Outlook, ParameterError, Record, Status, Strategy,
    StrategyTag, Timestamp, Transition,
};

/// The parameters of [`Phi`], as they are written in a configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct PhiParameters {
    /// The suspicion at which critical is reported: 0.5 to 100. With gaps that
    /// are normal, a target that lives is suspected so with a probability of
    /// `10^-phi`.
    pub phi: f64,
    /// The standard deviation of the gaps is taken to be at least this; at least
    /// 1 ms.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "least_deviation_ms", with = "crate::duration::millis")
    )]
    pub least_deviation: Duration,
    /// Added to the mean gap: what a target may be late without suspicion.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "acceptable_pause_ms", with = "crate::duration::millis")
    )]
    pub acceptable_pause: Duration,
    /// The gap that is expected before any has been seen; at least 1 ms.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "expected_gap_ms", with = "crate::duration::millis")
    )]
    pub expected_gap: Duration,
    /// How many gaps are remembered: 2 to 10,000.
    pub samples: u32,
}

keys! { PhiParameters {
    phi: f64 = "phi", "0.5 to 100", "8",
        "The suspicion at which critical is reported: the negative power of ten of its error";
    least_deviation: Duration = "least-deviation", "at least 1ms", "100ms",
        "What the standard deviation of the gaps is taken to be at least";
    acceptable_pause: Duration = "acceptable-pause", "any", "0s",
        "What a target may be late without suspicion";
    expected_gap: Duration = "expected-gap", "at least 1ms", "30s",
        "The gap that is expected before any has been seen";
    samples: u32 = "samples", "2 to 10000", "1000",
        "How many gaps are remembered";
} }

/// Akka's threshold, deviation and sample; half a minute as for
/// [`Heartbeat`](crate::Heartbeat).
impl Default for PhiParameters {
    fn default() -> Self {
        Self {
            phi: 8.0,
            least_deviation: Duration::from_millis(100),
            acceptable_pause: Duration::ZERO,
            expected_gap: Duration::from_secs(30),
            samples: 1000,
        }
    }
}

/// A deadline for the next success that follows the gaps seen: the phi accrual
/// failure detector (Hayashibara et al. 2004) in Akka's normal form.
///
/// For targets that report by themselves at a pace of their own. With active
/// probes it comes to a count of failures in a row that rises with the loss rate:
/// 2 at a loss of 1 %, 4 at 10 %, 6 at 30 % for a phi of 8. (So 8 does not stand
/// for 10^-8 there: such gaps are not normal.)
///
/// # The rule
///
/// `passing` and `warning` results are *beats*, reported as they are. The
/// suspicion `t` after the latest beat is `-log10(P(gap > t))`, with gaps taken to
/// be normal with the mean and the deviation seen, and is exact, not Akka's
/// approximation. From `phi` on critical is reported, by time alone
/// ([`Strategy::deadline`]). A `critical` result is no beat, and changes nothing
/// by itself; an immediate one is reported at once.
///
/// The gap that ends a silence which was reported is not counted. The first
/// `samples` gaps weigh the same; from then on each takes one part in `samples`
/// of the weight, so that old ones fade. In front of them stand two of
/// `expected_gap`, one by a quarter longer and one by a quarter shorter, as in
/// Akka.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use evenkeel_threshold::{FirstResult, Phi, PhiParameters, Status, Strategy, Timestamp};
///
/// let rule = Phi::new(PhiParameters {
///     expected_gap: Duration::from_secs(10),
///     ..PhiParameters::default()
/// })?;
/// let second = |second: u64| Timestamp::from_millis(second * 1000);
/// let mut state = rule.start(Status::Passing, FirstResult::Counted, second(0));
/// // Nothing is known of the target yet: 10 s, and 5.6 times 2.5 s.
/// assert_eq!(rule.deadline(&state), Some(Timestamp::from_millis(24_031)));
/// for beat in 1..=100 {
///     rule.observe(&mut state, Status::Passing.into(), second(beat * 10));
/// }
/// // It is punctual, so it is missed sooner.
/// let patience = rule.deadline(&state).expect("it lives").saturating_since(second(1000));
/// assert!(patience < Duration::from_secs(13), "{patience:?}");
/// # Ok::<(), evenkeel_threshold::ParameterError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "PhiParameters", into = "PhiParameters")
)]
pub struct Phi {
    phi: Real,
    /// How many deviations above the mean the suspicion is `phi`.
    deviations: Real,
    least_deviation: Duration,
    acceptable_pause: Duration,
    expected_gap: Duration,
    samples: u16,
}

/// What [`Phi`] remembers of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PhiState {
    /// The latest beat, or the start.
    latest: Stamp,
    /// Of the gaps in milliseconds, as bits of an f32: seven digits are plenty.
    mean: u32,
    variance: u32,
    /// Gaps counted, with the two expected ones, up to `samples`.
    count: u16,
    reported: Status,
    /// No result yet, and the first is to be believed.
    believe_next: bool,
}

impl Phi {
    /// The tag of this strategy's records.
    pub const TAG: StrategyTag = StrategyTag(12);

    const VERSION: u8 = 1;

    /// The rule with these parameters.
    ///
    /// # Errors
    ///
    /// With each parameter that is out of its range.
    pub fn new(parameters: PhiParameters) -> Result<Self, ParameterError> {
        let PhiParameters {
            phi,
            least_deviation,
            acceptable_pause,
            expected_gap,
            samples,
        } = parameters;
        Rules::new()
            .range::<PhiParameters>("phi", (0.5..=100.0).contains(&phi))
            .range::<PhiParameters>("least_deviation", least_deviation.as_millis() > 0)
            .range::<PhiParameters>("expected_gap", expected_gap.as_millis() > 0)
            .range::<PhiParameters>("samples", (2..=10_000).contains(&samples))
            .check()?;
        Ok(Self {
            phi: Real::new(phi),
            deviations: Real::new(deviations(phi)),
            least_deviation,
            acceptable_pause,
            expected_gap,
            samples: samples as u16,
        })
    }

    /// The parameters in force.
    pub fn parameters(&self) -> PhiParameters {
        PhiParameters {
            phi: self.phi.get(),
            least_deviation: self.least_deviation,
            acceptable_pause: self.acceptable_pause,
            expected_gap: self.expected_gap,
            samples: u32::from(self.samples),
        }
    }

    /// The suspicion at `now`: 0.3 when a beat is due, more with each moment.
    pub fn suspicion(&self, state: &PhiState, now: Timestamp) -> f64 {
        let silent = now.saturating_since(state.latest.get()).as_millis() as f64;
        suspicion((silent - self.due(state)) / self.deviation(state))
    }

    /// Milliseconds after a beat at which the next is due.
    fn due(&self, state: &PhiState) -> f64 {
        f64::from(f32::from_bits(state.mean)) + self.acceptable_pause.as_millis() as f64
    }

    fn deviation(&self, state: &PhiState) -> f64 {
        let seen = libm::sqrt(f64::from(f32::from_bits(state.variance)));
        seen.max(self.least_deviation.as_millis() as f64)
    }

    /// Whether the suspicion has got to `phi`.
    fn is_suspected(&self, state: &PhiState, now: Timestamp) -> bool {
        // A beat that is not even due needs no logarithm and no root.
        let silent = now.saturating_since(state.latest.get()).as_millis() as f64;
        silent > self.due(state) && now >= self.suspected_at(state)
    }

    /// When the suspicion after the latest beat gets to `phi`.
    fn suspected_at(&self, state: &PhiState) -> Timestamp {
        let patience = self.due(state) + self.deviations.get() * self.deviation(state);
        // A cast to an integer saturates.
        let millis = libm::ceil(patience) as u64;
        let latest = state.latest.get();
        latest.saturating_add(Duration::from_millis(millis))
    }

    /// Mean and variance with one gap more (West 1979).
    fn learn(&self, state: &mut PhiState, gap: Duration) {
        state.count = state.count.saturating_add(1).min(self.samples);
        let weight = 1.0 / f64::from(state.count);
        let mean = f64::from(f32::from_bits(state.mean));
        let variance = f64::from(f32::from_bits(state.variance));
        let off = gap.as_millis() as f64 - mean;
        let variance = (1.0 - weight) * (variance + weight * off * off);
        state.mean = ((mean + weight * off) as f32).to_bits();
        state.variance = (variance as f32).min(f32::MAX).to_bits();
    }

    fn fresh(&self, reported: Status, now: Timestamp) -> PhiState {
        let mean = self.expected_gap.as_millis() as f32;
        PhiState {
            latest: Stamp::new(now),
            mean: mean.to_bits(),
            variance: ((mean / 4.0) * (mean / 4.0)).min(f32::MAX).to_bits(),
            count: 2,
            reported,
            believe_next: false,
        }
    }
}

/// `-log10(P(gap > t))` for a `t` of so many deviations above the mean.
fn suspicion(deviations: f64) -> f64 {
    -libm::log10(libm::erfc(deviations / SQRT_2) / 2.0)
}

/// The inverse of [`suspicion`], by halving.
fn deviations(phi: f64) -> f64 {
    // Suspicion is 0.17 at the one end, and above 100 at the other.
    let (mut low, mut high) = (-0.5, 22.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if suspicion(middle) < phi {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

impl PhiState {
    /// The status reported now.
    pub const fn reported(&self) -> Status {
        self.reported
    }

    pub(crate) const fn awaits_first_result(&self) -> bool {
        self.believe_next
    }

    /// The mean gap between two beats.
    pub fn mean_gap(&self) -> Duration {
        // A cast to an integer saturates.
        Duration::from_millis(f32::from_bits(self.mean) as u64)
    }
}

impl Strategy for Phi {
    type State = PhiState;

    fn start(&self, reported: Status, first: FirstResult, now: Timestamp) -> PhiState {
        PhiState {
            believe_next: first == FirstResult::Believed,
            ..self.fresh(reported, now)
        }
    }

    fn observe(
        &self,
        state: &mut PhiState,
        observation: Observation,
        now: Timestamp,
    ) -> Option<Transition> {
        let from = state.reported;
        let first = core::mem::replace(&mut state.believe_next, false);
        if observation.status != Status::Critical {
            // Silence that was, or should have been, reported is no gap.
            if !first && from != Status::Critical && !self.is_suspected(state, now) {
                self.learn(state, now.saturating_since(state.latest.get()));
            }
            state.latest = Stamp::new(now);
            state.reported = observation.status;
        } else if first || observation.immediate || self.is_suspected(state, now) {
            state.reported = Status::Critical;
        }
        Transition::between(from, state.reported)
    }

    fn reported(&self, state: &PhiState) -> Status {
        state.reported
    }

    fn deadline(&self, state: &PhiState) -> Option<Timestamp> {
        (state.reported != Status::Critical).then(|| self.suspected_at(state))
    }

    fn elapse(&self, state: &mut PhiState, now: Timestamp) -> Option<Transition> {
        if self.deadline(state)? > now {
            return None;
        }
        let from = core::mem::replace(&mut state.reported, Status::Critical);
        Transition::between(from, Status::Critical)
    }

    fn outlook(&self, state: &PhiState, _now: Timestamp) -> Outlook {
        match self.deadline(state) {
            _ if state.believe_next => Outlook::FirstResult,
            Some(until) => Outlook::Waiting {
                toward: Status::Critical,
                until,
            },
            None => Outlook::Settled,
        }
    }

    fn shift(&self, state: &mut PhiState, millis: i64) {
        state.latest = state.latest.shifted(millis);
    }

    fn adopt(&self, old: &PhiState, now: Timestamp) -> PhiState {
        PhiState {
            latest: old.latest.min(now),
            count: old.count.min(self.samples),
            ..*old
        }
    }

    fn save(&self, state: &PhiState) -> Record {
        let mut payload = [0; 19];
        payload[0] = Flags::new(state.believe_next).0;
        payload[1..3].copy_from_slice(&state.count.to_le_bytes());
        payload[3..7].copy_from_slice(&state.mean.to_le_bytes());
        payload[7..11].copy_from_slice(&state.variance.to_le_bytes());
        payload[11..].copy_from_slice(&state.latest.get().as_millis().to_le_bytes());
        Record::with_payload(Self::TAG, Self::VERSION, state.reported, payload)
    }

    fn load(&self, record: &Record, now: Timestamp) -> Loaded<PhiState> {
        Loaded::read(
            record,
            Self::TAG,
            Self::VERSION,
            |fields| read(fields, record.reported()),
            || self.fresh(record.reported(), now),
        )
        .map(|state| self.adopt(&state, now))
    }
}

/// The state in a payload, if it is one that the rule can get into.
fn read(fields: &mut Fields<'_>, reported: Status) -> Option<PhiState> {
    let believe_next = fields.flags()?.believe_next();
    let count = u16::from_le_bytes([fields.u8()?, fields.u8()?]);
    let (mean, variance) = (fields.f32()?, fields.f32()?);
    let possible = |number: f32| number.is_finite() && number.is_sign_positive();
    (count >= 2 && possible(mean) && possible(variance)).then_some(PhiState {
        latest: fields.time()?,
        mean: mean.to_bits(),
        variance: variance.to_bits(),
        count,
        reported,
        believe_next,
    })
}

impl Default for Phi {
    fn default() -> Self {
        Self::new(PhiParameters::default()).expect("Akka's figures are in range")
    }
}

impl TryFrom<PhiParameters> for Phi {
    type Error = ParameterError;

    fn try_from(parameters: PhiParameters) -> Result<Self, ParameterError> {
        Self::new(parameters)
    }
}

impl From<Phi> for PhiParameters {
    fn from(rule: Phi) -> Self {
        rule.parameters()
    }
}

/// The parameters as a directive has them: `strategy=phi phi=8
/// least-deviation=100ms acceptable-pause=0s expected-gap=30s samples=1000`.
impl fmt::Display for Phi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_directive("phi", &self.parameters(), f)
    }
}
