use core::cmp::Ordering;
use core::fmt;
use core::time::Duration;

use crate::key::{keys, write_directive};
use crate::payload::{Fields, Flags};
use crate::words::Stamp;
use crate::{
    Agreeing, FirstResult, Loaded, Observation, Outlook, Record, Status, Strategy, StrategyTag,
    Timestamp, Transition,
};

/// So many contrary results in a row, over so much time.
///
/// A rule in time, not in probes: a faster retry does not shorten it, and a
/// burst of failures within one bad second is one event.
///
/// # The rule
///
/// A result worse than the reported status adds to a run of failures, a better
/// one to a run of successes; either ends the other's run, and a result that
/// agrees with the reported status ends both.
///
/// A run changes the status, to that of its latest result, when it has at least
/// `failures` results and the first of them is at least `failing_for` ago; for
/// recovery `successes` and `passing_for`. It is a result that changes the
/// status, never time alone: with a probe every 10 s and `failing_for` of 30 s
/// it is the fourth failure.
///
/// With both times 0 it is [`Consecutive`](crate::Consecutive), with both counts
/// 1 a rule in time alone.
///
/// # Time
///
/// A pause of the process does not count if [`Strategy::shift`] is called. A
/// clock that runs backwards lets the time of a run start anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Hold {
    /// Failures in a row that are wanted at least; 0 is 1.
    pub failures: u32,
    /// How long they have to last: from the first of them to the one that
    /// changes the status.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "failing_for_ms", with = "crate::duration::millis")
    )]
    pub failing_for: Duration,
    /// Successes in a row that are wanted at least; 0 is 1.
    pub successes: u32,
    /// How long they have to last.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "passing_for_ms", with = "crate::duration::millis")
    )]
    pub passing_for: Duration,
}

keys! { Hold {
    failures: u32 = "failures" or "down", "any; 0 is 1", "1",
        "Failures in a row that are wanted at least";
    failing_for: Duration = "failing-for", "any", "0s",
        "How long they have to last";
    successes: u32 = "successes" or "up", "any; 0 is 1", "1",
        "Successes in a row that are wanted at least";
    passing_for: Duration = "passing-for", "any", "0s",
        "How long they have to last";
} }

/// What [`Hold`] remembers of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HoldState {
    /// When the run started; without a run, 0.
    since: Stamp,
    run: u32,
    /// The latest result of the run; `reported` without one.
    latest: Status,
    reported: Status,
    /// The next result is the first one, and is to be believed.
    believe_next: bool,
}

impl Hold {
    /// The tag of this strategy's records.
    pub const TAG: StrategyTag = StrategyTag(7);

    const VERSION: u8 = 1;

    fn wanted(&self, side: Ordering) -> (u32, Duration) {
        match side {
            Ordering::Less => (self.successes.max(1), self.passing_for),
            _ => (self.failures.max(1), self.failing_for),
        }
    }
}

impl HoldState {
    const fn settled(reported: Status) -> Self {
        Self {
            since: Stamp::ZERO,
            run: 0,
            latest: reported,
            reported,
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

    fn settle(&mut self, to: Status) -> Option<Transition> {
        let from = self.reported;
        *self = Self::settled(to);
        Transition::between(from, to)
    }
}

impl Strategy for Hold {
    type State = HoldState;

    fn start(&self, reported: Status, first: FirstResult, _now: Timestamp) -> HoldState {
        HoldState {
            believe_next: first == FirstResult::Believed,
            ..HoldState::settled(reported)
        }
    }

    fn observe(
        &self,
        state: &mut HoldState,
        observation: Observation,
        now: Timestamp,
    ) -> Option<Transition> {
        let result = observation.status;
        let side = result.cmp(&state.reported);
        if observation.immediate || state.believe_next || side == Ordering::Equal {
            return state.settle(result);
        }
        if state.latest.cmp(&state.reported) == side {
            state.run = state.run.saturating_add(1);
            state.since = state.since.min(now);
        } else {
            state.run = 1;
            state.since = Stamp::new(now);
        }
        state.latest = result;
        let (count, time) = self.wanted(side);
        if state.run >= count && now.saturating_since(state.since.get()) >= time {
            state.settle(result)
        } else {
            None
        }
    }

    fn reported(&self, state: &HoldState) -> Status {
        state.reported
    }

    fn outlook(&self, state: &HoldState, now: Timestamp) -> Outlook {
        if state.believe_next {
            return Outlook::FirstResult;
        }
        if state.run == 0 {
            return Outlook::Settled;
        }
        let (count, time) = self.wanted(state.latest.cmp(&state.reported));
        let until = state.since.min(now).get().saturating_add(time);
        let needed = count.max(state.run.saturating_add(1));
        if until > now || state.run == u32::MAX {
            return Outlook::Waiting {
                toward: state.latest,
                until,
            };
        }
        Outlook::Counting {
            toward: state.latest,
            seen: state.run,
            needed,
            agreeing: Agreeing::Resets,
        }
    }

    fn shift(&self, state: &mut HoldState, millis: i64) {
        if state.run > 0 {
            state.since = state.since.shifted(millis);
        }
    }

    fn adopt(&self, old: &HoldState, now: Timestamp) -> HoldState {
        if old.run == 0 {
            return *old;
        }
        HoldState {
            since: old.since.min(now),
            ..*old
        }
    }

    fn save(&self, state: &HoldState) -> Record {
        let mut payload = [0; 14];
        payload[0] = Flags::new(state.believe_next).0;
        payload[1] = state.latest as u8;
        payload[2..6].copy_from_slice(&state.run.to_le_bytes());
        payload[6..].copy_from_slice(&state.since.get().as_millis().to_le_bytes());
        Record::with_payload(Self::TAG, Self::VERSION, state.reported, payload)
    }

    fn load(&self, record: &Record, now: Timestamp) -> Loaded<HoldState> {
        Loaded::read(
            record,
            Self::TAG,
            Self::VERSION,
            |fields| read(fields, record.reported()),
            || HoldState::settled(record.reported()),
        )
        .map(|state| self.adopt(&state, now))
    }
}

/// The state in a payload, if it is one that the rule can get into.
fn read(fields: &mut Fields<'_>, reported: Status) -> Option<HoldState> {
    let believe_next = fields.flags()?.believe_next();
    let latest = fields.status()?;
    let run = fields.u32()?;
    let since = fields.time()?;
    let state = HoldState {
        since,
        run,
        latest,
        reported,
        believe_next,
    };
    let fresh = HoldState {
        believe_next,
        ..HoldState::settled(reported)
    };
    let running = run > 0 && latest != reported && !believe_next;
    (running || state == fresh).then_some(state)
}

/// No damping.
impl Default for Hold {
    fn default() -> Self {
        Self {
            failures: 1,
            failing_for: Duration::ZERO,
            successes: 1,
            passing_for: Duration::ZERO,
        }
    }
}

/// The parameters as a directive has them:
/// `strategy=hold failures=1 failing-for=30s successes=1 passing-for=0s`.
impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_directive("hold", self, f)
    }
}
