use crate::{
    FirstResult, Loaded, Mark, Observation, Outlook, Record, RestartReason, Status, Strategy,
    StrategyTag, Timestamp, Transition,
};

/// Which status two strategies report together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pick {
    /// The worse of both: either can raise an alarm, and both have to end it.
    Worst,
    /// The better of both: both have to raise an alarm, and either ends it.
    Best,
}

impl Pick {
    fn of(self, one: Status, other: Status) -> Status {
        match self {
            Self::Worst => one.max(other),
            Self::Best => one.min(other),
        }
    }
}

/// Two strategies on the same results.
///
/// E.g. a quick count for outages beside a long window for brown-outs, of which
/// either reports. A strategy under a flap penalty is [`Damped`](crate::Damped).
///
/// Nested combinations work, but only a pair of this crate's plain strategies
/// has a record that is small enough to be resumed; others restart from the
/// reported status.
///
/// ```
/// use evenkeel_threshold::{
///     Combined, FirstResult, Leaky, Pick, Status, Strategy, Timestamp, Window,
/// };
///
/// let now = Timestamp::ZERO;
/// let either = Combined { one: Leaky::new(4, 0), other: Window::default(), pick: Pick::Worst };
/// let mut state = either.start(Status::Passing, FirstResult::Counted, now);
/// use Status::{Critical, Passing};
/// let reported = [Critical, Passing, Critical, Passing, Critical].map(|result| {
///     either.observe(&mut state, result.into(), now);
///     either.reported(&state)
/// });
/// // The leaky count has never seen more than one; three of five are enough.
/// assert_eq!(reported, [Passing, Passing, Passing, Passing, Critical]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Combined<A, B> {
    /// The one.
    pub one: A,
    /// The other.
    pub other: B,
    /// Whose status is reported.
    pub pick: Pick,
}

/// What [`Combined`] remembers of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CombinedState<S, T> {
    one: S,
    other: T,
}

impl<A: Strategy, B: Strategy> Combined<A, B> {
    /// The tag of this strategy's records.
    pub const TAG: StrategyTag = StrategyTag(14);

    const VERSION: u8 = 1;

    /// Both records after the length of the first.
    fn read(
        &self,
        record: &Record,
        now: Timestamp,
    ) -> Result<CombinedState<A::State, B::State>, RestartReason> {
        let payload = record.expect_version(Self::TAG, Self::VERSION)?;
        let (&len, rest) = payload.split_first().ok_or(RestartReason::Damaged)?;
        let (one, other) = rest
            .split_at_checked(usize::from(len))
            .ok_or(RestartReason::Damaged)?;
        let one = Record::read(one).ok_or(RestartReason::Damaged)?;
        let other = Record::read(other).ok_or(RestartReason::Damaged)?;
        if self.pick.of(one.reported(), other.reported()) != record.reported() {
            return Err(RestartReason::Damaged);
        }
        let one = match self.one.load(&one, now) {
            Loaded::Resumed(state) => state,
            Loaded::Restarted(_, reason) => return Err(reason),
        };
        match self.other.load(&other, now) {
            Loaded::Resumed(other) => Ok(CombinedState { one, other }),
            Loaded::Restarted(_, reason) => Err(reason),
        }
    }

    /// `outlook` of one of both, as far as it is one of the pair.
    fn checked(
        &self,
        state: &CombinedState<A::State, B::State>,
        outlook: Outlook,
        other: Status,
        now: Timestamp,
    ) -> Option<Outlook> {
        let reported = self.reported(state);
        match outlook {
            Outlook::FirstResult => Some(outlook),
            Outlook::Counting {
                toward,
                seen,
                needed,
                agreeing: _,
            } => {
                // A long way has more than the outlook's own results in it.
                if needed - seen > 1000 {
                    return None;
                }
                let mut then = *state;
                for _ in seen + 1..needed {
                    if self.observe(&mut then, toward.into(), now).is_some() {
                        return None;
                    }
                }
                let flip = self.observe(&mut then, toward.into(), now)?;
                (flip.to == toward).then_some(outlook)
            }
            Outlook::Waiting { toward, until } => {
                let toward = self.pick.of(toward, other);
                (toward != reported).then_some(Outlook::Waiting { toward, until })
            }
            Outlook::Settled => None,
        }
    }
}

impl<A: Strategy, B: Strategy> Strategy for Combined<A, B> {
    type State = CombinedState<A::State, B::State>;

    fn start(&self, reported: Status, first: FirstResult, now: Timestamp) -> Self::State {
        CombinedState {
            one: self.one.start(reported, first, now),
            other: self.other.start(reported, first, now),
        }
    }

    fn observe(
        &self,
        state: &mut Self::State,
        observation: Observation,
        now: Timestamp,
    ) -> Option<Transition> {
        let from = self.reported(state);
        self.one.observe(&mut state.one, observation, now);
        self.other.observe(&mut state.other, observation, now);
        Transition::between(from, self.reported(state))
    }

    fn reported(&self, state: &Self::State) -> Status {
        self.pick.of(
            self.one.reported(&state.one),
            self.other.reported(&state.other),
        )
    }

    fn deadline(&self, state: &Self::State) -> Option<Timestamp> {
        let one = self.one.deadline(&state.one);
        let other = self.other.deadline(&state.other);
        one.into_iter().chain(other).min()
    }

    fn elapse(&self, state: &mut Self::State, now: Timestamp) -> Option<Transition> {
        let from = self.reported(state);
        self.one.elapse(&mut state.one, now);
        self.other.elapse(&mut state.other, now);
        Transition::between(from, self.reported(state))
    }

    /// The first of both outlooks that is one of the pair, too.
    fn outlook(&self, state: &Self::State, now: Timestamp) -> Outlook {
        let one = self.one.outlook(&state.one, now);
        let other = self.other.outlook(&state.other, now);
        self.checked(state, one, self.other.reported(&state.other), now)
            .or_else(|| self.checked(state, other, self.one.reported(&state.one), now))
            .unwrap_or(Outlook::Settled)
    }

    fn mark(&self, state: &Self::State) -> Mark {
        match self.one.mark(&state.one) {
            Mark::None => self.other.mark(&state.other),
            mark => mark,
        }
    }

    fn shift(&self, state: &mut Self::State, millis: i64) {
        self.one.shift(&mut state.one, millis);
        self.other.shift(&mut state.other, millis);
    }

    fn adopt(&self, old: &Self::State, now: Timestamp) -> Self::State {
        CombinedState {
            one: self.one.adopt(&old.one, now),
            other: self.other.adopt(&old.other, now),
        }
    }

    fn save(&self, state: &Self::State) -> Record {
        let (one, one_len) = self.one.save(&state.one).write();
        let (other, other_len) = self.other.save(&state.other).write();
        let mut payload = [0; Record::MAX_PAYLOAD];
        let len = 1 + one_len + other_len;
        let payload = match payload.get_mut(..len) {
            Some(payload) => {
                payload[0] = one_len as u8;
                payload[1..=one_len].copy_from_slice(&one[..one_len]);
                payload[1 + one_len..].copy_from_slice(&other[..other_len]);
                &*payload
            }
            None => &[],
        };
        let reported = self.reported(state);
        Record::new(Self::TAG, Self::VERSION, reported, payload)
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
