use core::fmt;

use crate::key::{keys, write_directive};
use crate::payload::{Fields, Flags};
use crate::{
    Agreeing, FirstResult, Loaded, Observation, Outlook, Record, Status, Strategy, StrategyTag,
    Timestamp, Transition,
};

/// What consul-esm really does, which is not what it documents.
///
/// Since it vendors the Consul agent's counter and puts it in front of its own,
/// a threshold of `N` takes up to `2N` results. For comparing with a consul-esm
/// that is there; [`Leaky`](crate::Leaky) is the documented rule.
///
/// # The rule
///
/// Two counters stand in a row (main of June 2026, `check.go`). In front is
/// [`Consul`](crate::Consul) with `critical_threshold` failures and
/// `passing_threshold` successes: it hands results of one kind on from that
/// number in a row on, and none before. What it hands on is compared with the
/// reported status:
///
/// * It agrees: the failure count and the success count go down by one.
/// * It is `critical`: if the failure count is less than `critical_threshold` it
///   goes up by one; else it is 0 and critical is reported.
/// * It is `passing` or `warning`: the same with the success count and
///   `passing_threshold`.
///
/// This is the behaviour for a check whose output stays the same; with output
/// that changes an agreeing result takes nothing off there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct ConsulEsm {
    /// consul-esm's `critical_threshold`.
    pub critical_threshold: u32,
    /// consul-esm's `passing_threshold`.
    pub passing_threshold: u32,
}

keys! { ConsulEsm {
    critical_threshold: u32 = "critical-threshold", "any", "0",
        "consul-esm's setting of that name";
    passing_threshold: u32 = "passing-threshold", "any", "0",
        "consul-esm's setting of that name";
} }

/// What [`ConsulEsm`] remembers of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConsulEsmState {
    /// Results in a row of the kind of `latest`.
    run: u32,
    failures: u32,
    successes: u32,
    latest: Status,
    reported: Status,
    /// No result has come; the counter in front hands on the first one.
    fresh: bool,
    /// The next result is the first one, and is to be believed.
    believe_next: bool,
}

const fn is_success(result: Status) -> bool {
    !matches!(result, Status::Critical)
}

impl ConsulEsm {
    /// The tag of this strategy's records.
    pub const TAG: StrategyTag = StrategyTag(13);

    const VERSION: u8 = 1;

    const fn threshold(&self, result: Status) -> u32 {
        if is_success(result) {
            self.passing_threshold
        } else {
            self.critical_threshold
        }
    }
}

impl ConsulEsmState {
    const fn steady(reported: Status) -> Self {
        Self {
            run: 0,
            failures: 0,
            successes: 0,
            latest: reported,
            reported,
            fresh: true,
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
}

impl Strategy for ConsulEsm {
    type State = ConsulEsmState;

    fn start(&self, reported: Status, first: FirstResult, _now: Timestamp) -> ConsulEsmState {
        ConsulEsmState {
            believe_next: first == FirstResult::Believed,
            ..ConsulEsmState::steady(reported)
        }
    }

    fn observe(
        &self,
        state: &mut ConsulEsmState,
        observation: Observation,
        _now: Timestamp,
    ) -> Option<Transition> {
        let result = observation.status;
        let from = state.reported;
        let threshold = self.threshold(result);
        // The counter in front: at the start it is as if there had been enough
        // results of either kind.
        let enough = threshold.max(1);
        state.run = if core::mem::replace(&mut state.fresh, false) {
            enough
        } else if is_success(result) == is_success(state.latest) {
            state.run.saturating_add(1).min(enough)
        } else {
            1
        };
        state.latest = result;
        if observation.immediate || state.believe_next {
            *state = ConsulEsmState {
                run: enough,
                fresh: false,
                ..ConsulEsmState::steady(result)
            };
            return Transition::between(from, result);
        }
        if state.run < enough {
            return None;
        }
        if result == from {
            state.failures = state.failures.saturating_sub(1);
            state.successes = state.successes.saturating_sub(1);
            return None;
        }
        let count = if is_success(result) {
            &mut state.successes
        } else {
            &mut state.failures
        };
        if *count < threshold {
            *count += 1;
            return None;
        }
        *count = 0;
        state.reported = result;
        Transition::between(from, result)
    }

    fn reported(&self, state: &ConsulEsmState) -> Status {
        state.reported
    }

    fn outlook(&self, state: &ConsulEsmState, _now: Timestamp) -> Outlook {
        if state.believe_next {
            return Outlook::FirstResult;
        }
        let toward = state.latest;
        if toward == state.reported || state.fresh {
            return Outlook::Settled;
        }
        let threshold = self.threshold(toward);
        let count = if is_success(toward) {
            state.successes
        } else {
            state.failures
        };
        // Still to come: those that the counter in front holds back, then those
        // of its own count, and the one that is reported.
        let held = threshold.max(1).saturating_sub(state.run.saturating_add(1));
        let left = held
            .saturating_add(threshold.saturating_sub(count))
            .saturating_add(1);
        let seen = state.run.saturating_add(count).min(u32::MAX - 1);
        Outlook::Counting {
            toward,
            seen,
            needed: seen.saturating_add(left),
            agreeing: Agreeing::Resets,
        }
    }

    fn adopt(&self, old: &ConsulEsmState, _now: Timestamp) -> ConsulEsmState {
        ConsulEsmState {
            run: old.run.min(self.threshold(old.latest).max(1)),
            failures: old.failures.min(self.critical_threshold),
            successes: old.successes.min(self.passing_threshold),
            ..*old
        }
    }

    fn save(&self, state: &ConsulEsmState) -> Record {
        let mut payload = [0; 15];
        payload[0] = Flags::new(state.believe_next).0;
        payload[1] = u8::from(state.fresh);
        payload[2] = state.latest as u8;
        payload[3..7].copy_from_slice(&state.run.to_le_bytes());
        payload[7..11].copy_from_slice(&state.failures.to_le_bytes());
        payload[11..].copy_from_slice(&state.successes.to_le_bytes());
        Record::with_payload(Self::TAG, Self::VERSION, state.reported, payload)
    }

    fn load(&self, record: &Record, now: Timestamp) -> Loaded<ConsulEsmState> {
        Loaded::read(
            record,
            Self::TAG,
            Self::VERSION,
            |fields| read(fields, record.reported()),
            || ConsulEsmState::steady(record.reported()),
        )
        .map(|state| self.adopt(&state, now))
    }
}

/// The state in a payload, if it is one that the rule can get into.
fn read(fields: &mut Fields<'_>, reported: Status) -> Option<ConsulEsmState> {
    let believe_next = fields.flags()?.believe_next();
    let fresh = match fields.u8()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let state = ConsulEsmState {
        latest: fields.status()?,
        run: fields.u32()?,
        failures: fields.u32()?,
        successes: fields.u32()?,
        reported,
        fresh,
        believe_next,
    };
    let new = ConsulEsmState {
        believe_next,
        ..ConsulEsmState::steady(reported)
    };
    (if fresh || believe_next {
        state == new
    } else {
        state.run > 0
    })
    .then_some(state)
}

/// The parameters as a directive has them:
/// `strategy=consul-esm critical-threshold=3 passing-threshold=0`.
impl fmt::Display for ConsulEsm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_directive("consul-esm", self, f)
    }
}
