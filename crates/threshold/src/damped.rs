use crate::damping::{Damping, Level};
use crate::payload::Fields;
use crate::{
    FirstResult, Loaded, Mark, Observation, Outlook, ParameterError, Penalty, PenaltyParameters,
    Record, RestartReason, Status, Strategy, StrategyTag, Timestamp, Transition, WhileSuppressed,
};

/// Any strategy under a flap penalty.
///
/// The results go through the strategy; what that reports is the *decided*
/// status, whose changes cost and may be suppressed as [`Penalty`] says. When a
/// suppression ends, the net difference is reported, in whichever direction.
/// ([`Penalty`] itself is the same over [`Consecutive`](crate::Consecutive), with
/// a smaller state.)
///
/// ```
/// use core::time::Duration;
/// use evenkeel_threshold::{
///     Damped, FirstResult, Mark, PenaltyParameters, Status, Strategy, Timestamp, Window,
/// };
///
/// let rule = Damped::new(
///     Window::default(), // 3 of 5
///     PenaltyParameters { suppress: 2000, ..PenaltyParameters::default() },
/// )?;
/// let minute = |minute: u64| Timestamp::from_millis(minute * 60_000);
/// let mut state = rule.start(Status::Passing, FirstResult::Counted, minute(0));
/// for now in 0..30 {
///     let result = if now / 5 % 2 == 0 { Status::Critical } else { Status::Passing };
///     rule.observe(&mut state, result.into(), minute(now));
/// }
/// assert_eq!(rule.mark(&state), Mark::Suppressed);
/// # Ok::<(), evenkeel_threshold::ParameterError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Damped<S> {
    strategy: S,
    damping: Damping,
    while_suppressed: WhileSuppressed,
}

/// What [`Damped`] remembers of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DampedState<T> {
    inner: T,
    level: Level,
    /// While changes are suppressed: what is reported.
    suppressed: Option<Status>,
    /// No result has come, and the first is to be believed.
    believe_next: bool,
}

impl<S: Strategy> Damped<S> {
    /// The tag of this strategy's records.
    pub const TAG: StrategyTag = StrategyTag(15);

    const VERSION: u8 = 1;

    /// `strategy` under a penalty; the counts in `parameters` have no part.
    ///
    /// # Errors
    ///
    /// As [`Penalty::new`].
    pub fn new(strategy: S, parameters: PenaltyParameters) -> Result<Self, ParameterError> {
        Ok(Self {
            strategy,
            damping: Damping::of(&parameters)?,
            while_suppressed: parameters.while_suppressed,
        })
    }

    /// The strategy inside.
    pub const fn strategy(&self) -> &S {
        &self.strategy
    }

    /// The penalty of a check at `now`.
    pub fn penalty(&self, state: &DampedState<S::State>, now: Timestamp) -> f64 {
        self.damping.penalty(state.level, now)
    }

    /// The status that would be reported if nothing were suppressed.
    pub fn decided(&self, state: &DampedState<S::State>) -> Status {
        self.strategy.reported(&state.inner)
    }

    /// A suppression whose time is over ends, whoever comes by.
    fn release(&self, state: &mut DampedState<S::State>, now: Timestamp) {
        if state.suppressed.is_some() && self.damping.is_reusable(state.level, now) {
            state.suppressed = None;
        }
    }

    fn charge(
        &self,
        state: &mut DampedState<S::State>,
        change: Option<Transition>,
        immediate: bool,
        now: Timestamp,
    ) {
        let Some(change) = change else { return };
        let cost = Penalty::cost(change);
        if cost == 0.0 {
            return;
        }
        state.level = self.damping.add(state.level, cost, now);
        if !immediate && state.suppressed.is_none() && self.damping.suppresses(state.level) {
            state.suppressed = Some(self.while_suppressed.status(change.from));
        }
    }

    /// The penalty, then the record of the strategy inside.
    fn read(
        &self,
        record: &Record,
        now: Timestamp,
    ) -> Result<DampedState<S::State>, RestartReason> {
        let payload = record.expect_version(Self::TAG, Self::VERSION)?;
        let damaged = RestartReason::Damaged;
        let mut fields = Fields(payload);
        let believe_next = fields.flags().ok_or(damaged)?.believe_next();
        let suppressed = match fields.u8().ok_or(damaged)? {
            0 => None,
            1 => Some(record.reported()),
            _ => return Err(damaged),
        };
        let penalty = fields.f32().ok_or(damaged)?;
        let at = fields.time().ok_or(damaged)?;
        let level = Level::new(penalty, at).ok_or(damaged)?;
        let inner = Record::read(fields.0).ok_or(damaged)?;
        let told = suppressed.unwrap_or(inner.reported()) == record.reported();
        let charged = suppressed.is_none() || level != Level::ZERO;
        if !told || !charged {
            return Err(damaged);
        }
        match self.strategy.load(&inner, now) {
            Loaded::Resumed(inner) => Ok(DampedState {
                inner,
                level: level.not_after(now),
                suppressed,
                believe_next,
            }),
            Loaded::Restarted(_, reason) => Err(reason),
        }
    }
}

impl<S: Strategy> Strategy for Damped<S> {
    type State = DampedState<S::State>;

    fn start(&self, reported: Status, first: FirstResult, now: Timestamp) -> Self::State {
        DampedState {
            inner: self.strategy.start(reported, first, now),
            level: Level::ZERO,
            suppressed: None,
            believe_next: first == FirstResult::Believed,
        }
    }

    fn observe(
        &self,
        state: &mut Self::State,
        observation: Observation,
        now: Timestamp,
    ) -> Option<Transition> {
        let from = self.reported(state);
        self.release(state, now);
        let change = self.strategy.observe(&mut state.inner, observation, now);
        if observation.immediate {
            state.suppressed = None;
        }
        // A first result that is believed tells what has been all the time.
        if !core::mem::replace(&mut state.believe_next, false) {
            self.charge(state, change, observation.immediate, now);
        }
        Transition::between(from, self.reported(state))
    }

    fn reported(&self, state: &Self::State) -> Status {
        state.suppressed.unwrap_or_else(|| self.decided(state))
    }

    fn deadline(&self, state: &Self::State) -> Option<Timestamp> {
        let inner = self.strategy.deadline(&state.inner);
        let reuse = state
            .suppressed
            .map(|_| self.damping.reusable_at(state.level));
        inner.into_iter().chain(reuse).min()
    }

    fn elapse(&self, state: &mut Self::State, now: Timestamp) -> Option<Transition> {
        let from = self.reported(state);
        self.release(state, now);
        let change = self.strategy.elapse(&mut state.inner, now);
        self.charge(state, change, false, now);
        Transition::between(from, self.reported(state))
    }

    fn outlook(&self, state: &Self::State, now: Timestamp) -> Outlook {
        if state.suppressed.is_some() {
            return Outlook::Waiting {
                toward: self.decided(state),
                until: self.damping.reusable_at(state.level),
            };
        }
        let outlook = self.strategy.outlook(&state.inner, now);
        let (toward, wait) = match outlook {
            Outlook::Counting { toward, .. } => (toward, now),
            Outlook::Waiting { toward, until } => (toward, until),
            _ => return outlook,
        };
        // The change may be the one too many.
        let from = self.decided(state);
        let mut then = *state;
        self.charge(&mut then, Transition::between(from, toward), false, wait);
        match (then.suppressed, outlook) {
            (None, _) => outlook,
            (Some(status), _) if status == from => Outlook::Settled,
            (
                Some(toward),
                Outlook::Counting {
                    seen,
                    needed,
                    agreeing,
                    ..
                },
            ) => Outlook::Counting {
                toward,
                seen,
                needed,
                agreeing,
            },
            (Some(toward), _) => Outlook::Waiting {
                toward,
                until: wait,
            },
        }
    }

    fn mark(&self, state: &Self::State) -> Mark {
        match state.suppressed {
            Some(_) => Mark::Suppressed,
            None => self.strategy.mark(&state.inner),
        }
    }

    fn shift(&self, state: &mut Self::State, millis: i64) {
        self.strategy.shift(&mut state.inner, millis);
        state.level = state.level.shifted(millis);
    }

    fn adopt(&self, old: &Self::State, now: Timestamp) -> Self::State {
        DampedState {
            inner: self.strategy.adopt(&old.inner, now),
            level: old.level.not_after(now),
            ..*old
        }
    }

    fn save(&self, state: &Self::State) -> Record {
        let (inner, len) = self.strategy.save(&state.inner).write();
        let (penalty, at) = state.level.parts();
        let mut payload = [0; Record::MAX_PAYLOAD];
        payload[0] = u8::from(state.believe_next);
        payload[1] = u8::from(state.suppressed.is_some());
        payload[2..6].copy_from_slice(&penalty.to_le_bytes());
        payload[6..14].copy_from_slice(&at.get().as_millis().to_le_bytes());
        // A record too long for this one is restarted from what is reported.
        let end = match payload.get_mut(14..14 + len) {
            Some(place) => {
                place.copy_from_slice(&inner[..len]);
                14 + len
            }
            None => 0,
        };
        let reported = self.reported(state);
        Record::new(Self::TAG, Self::VERSION, reported, &payload[..end])
            .unwrap_or_else(|| Record::with_payload(Self::TAG, Self::VERSION, reported, []))
    }

    fn load(&self, record: &Record, now: Timestamp) -> Loaded<Self::State> {
        match self.read(record, now) {
            Ok(state) => Loaded::Resumed(state),
            Err(reason) => Loaded::Restarted(
                self.start(record.reported(), FirstResult::Counted, now),
                reason,
            ),
        }
    }
}
