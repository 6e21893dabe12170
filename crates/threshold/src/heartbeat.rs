use core::fmt;
use core::time::Duration;

use crate::key::{keys, write_directive};
use crate::parameters::Rules;
use crate::payload::{Fields, Flags};
use crate::words::Stamp;
use crate::{
    FirstResult, Loaded, Observation, Outlook, ParameterError, Record, Status, Strategy,
    StrategyTag, Timestamp, Transition,
};

/// The parameter of [`Heartbeat`], as it is written in a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct HeartbeatParameters {
    /// After so long without a result the status is critical; at least 1 ms.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "silence_ms", with = "crate::duration::millis")
    )]
    pub silence: Duration,
}

keys! { HeartbeatParameters {
    silence: Duration = "silence", "at least 1ms", "30s",
        "Critical is reported so long after the latest result";
} }

/// Half a minute.
impl Default for HeartbeatParameters {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(30),
        }
    }
}

/// A deadline for the next result, for targets that report by themselves.
///
/// This is the TTL check of Consul: silence is a failure. Nothing is damped; the
/// time to the deadline is what a target may miss.
///
/// # The rule
///
/// Every result is reported as it is. If `silence` has passed since the latest
/// one, or since the start, critical is reported, by time alone
/// ([`Strategy::deadline`]).
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use evenkeel_threshold::{
///     FirstResult, Heartbeat, HeartbeatParameters, Status, Strategy, Timestamp,
/// };
///
/// let rule = Heartbeat::new(HeartbeatParameters { silence: Duration::from_secs(30) })?;
/// let second = |second: u64| Timestamp::from_millis(second * 1000);
/// let mut state = rule.start(Status::Critical, FirstResult::Counted, second(0));
/// rule.observe(&mut state, Status::Passing.into(), second(10));
/// assert_eq!(rule.deadline(&state), Some(second(40)));
/// assert_eq!(rule.elapse(&mut state, second(39)), None);
/// let silence = rule.elapse(&mut state, second(40)).expect("it is late");
/// assert_eq!(silence.to, Status::Critical);
/// # Ok::<(), evenkeel_threshold::ParameterError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "HeartbeatParameters", into = "HeartbeatParameters")
)]
pub struct Heartbeat(HeartbeatParameters);

/// What [`Heartbeat`] remembers of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeartbeatState {
    /// The latest result, or the start.
    latest: Stamp,
    reported: Status,
    /// No result yet, and the first is to be believed. It would be anyway.
    believe_next: bool,
}

impl Heartbeat {
    /// The tag of this strategy's records.
    pub const TAG: StrategyTag = StrategyTag(11);

    const VERSION: u8 = 1;

    /// The rule with this parameter.
    ///
    /// # Errors
    ///
    /// `silence` is less than a millisecond.
    pub fn new(parameters: HeartbeatParameters) -> Result<Self, ParameterError> {
        Rules::new()
            .range::<HeartbeatParameters>("silence", parameters.silence.as_millis() > 0)
            .check()?;
        Ok(Self(parameters))
    }

    /// The parameter in force.
    pub const fn parameters(&self) -> HeartbeatParameters {
        self.0
    }
}

impl HeartbeatState {
    /// The status reported now.
    pub const fn reported(&self) -> Status {
        self.reported
    }

    pub(crate) const fn awaits_first_result(&self) -> bool {
        self.believe_next
    }
}

impl Strategy for Heartbeat {
    type State = HeartbeatState;

    fn start(&self, reported: Status, first: FirstResult, now: Timestamp) -> HeartbeatState {
        HeartbeatState {
            latest: Stamp::new(now),
            reported,
            believe_next: first == FirstResult::Believed,
        }
    }

    fn observe(
        &self,
        state: &mut HeartbeatState,
        observation: Observation,
        now: Timestamp,
    ) -> Option<Transition> {
        let from = state.reported;
        *state = HeartbeatState {
            latest: Stamp::new(now),
            reported: observation.status,
            believe_next: false,
        };
        Transition::between(from, observation.status)
    }

    fn reported(&self, state: &HeartbeatState) -> Status {
        state.reported
    }

    fn deadline(&self, state: &HeartbeatState) -> Option<Timestamp> {
        (state.reported != Status::Critical)
            .then(|| state.latest.get().saturating_add(self.0.silence))
    }

    fn elapse(&self, state: &mut HeartbeatState, now: Timestamp) -> Option<Transition> {
        if self.deadline(state)? > now {
            return None;
        }
        let from = core::mem::replace(&mut state.reported, Status::Critical);
        Transition::between(from, Status::Critical)
    }

    fn outlook(&self, state: &HeartbeatState, _now: Timestamp) -> Outlook {
        match self.deadline(state) {
            _ if state.believe_next => Outlook::FirstResult,
            Some(until) => Outlook::Waiting {
                toward: Status::Critical,
                until,
            },
            None => Outlook::Settled,
        }
    }

    fn shift(&self, state: &mut HeartbeatState, millis: i64) {
        state.latest = state.latest.shifted(millis);
    }

    fn adopt(&self, old: &HeartbeatState, now: Timestamp) -> HeartbeatState {
        HeartbeatState {
            latest: old.latest.min(now),
            ..*old
        }
    }

    fn save(&self, state: &HeartbeatState) -> Record {
        let mut payload = [0; 9];
        payload[0] = Flags::new(state.believe_next).0;
        payload[1..].copy_from_slice(&state.latest.get().as_millis().to_le_bytes());
        Record::with_payload(Self::TAG, Self::VERSION, state.reported, payload)
    }

    fn load(&self, record: &Record, now: Timestamp) -> Loaded<HeartbeatState> {
        Loaded::read(
            record,
            Self::TAG,
            Self::VERSION,
            |fields: &mut Fields<'_>| {
                Some(HeartbeatState {
                    believe_next: fields.flags()?.believe_next(),
                    latest: fields.time()?,
                    reported: record.reported(),
                })
            },
            || self.start(record.reported(), FirstResult::Counted, now),
        )
        .map(|state| self.adopt(&state, now))
    }
}

impl TryFrom<HeartbeatParameters> for Heartbeat {
    type Error = ParameterError;

    fn try_from(parameters: HeartbeatParameters) -> Result<Self, ParameterError> {
        Self::new(parameters)
    }
}

impl From<Heartbeat> for HeartbeatParameters {
    fn from(rule: Heartbeat) -> Self {
        rule.0
    }
}

/// The parameters as a directive has them: `strategy=heartbeat silence=30s`.
impl fmt::Display for Heartbeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_directive("heartbeat", &self.0, f)
    }
}
