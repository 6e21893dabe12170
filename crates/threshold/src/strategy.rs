use crate::{Loaded, Mark, Observation, Outlook, Record, Status, Timestamp, Transition};

/// What the very first result after [`Strategy::start`] means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum FirstResult {
    /// It is reported at once, whatever the thresholds, as the Consul agent
    /// does.
    Believed,
    /// It counts like any other.
    Counted,
}

/// The rule between observations and transitions.
///
/// `self` holds the parameters: immutable, shared by all checks that have the
/// same ones. What belongs to one check is in a [`Strategy::State`] of a few
/// bytes that the caller keeps. A strategy sees statuses and time and never a
/// probe's output.
///
/// Time may stand still, jump or run backwards without a panic; a caller whose
/// clock was stepped, or whose process was paused, says so by
/// [`Strategy::shift`].
pub trait Strategy {
    /// What is remembered of one check.
    type State: Copy;

    /// The state of a check whose status is known to be `reported`, before its
    /// first result.
    fn start(&self, reported: Status, first: FirstResult, now: Timestamp) -> Self::State;

    /// Takes in one result.
    fn observe(
        &self,
        state: &mut Self::State,
        observation: Observation,
        now: Timestamp,
    ) -> Option<Transition>;

    /// The status reported now.
    fn reported(&self, state: &Self::State) -> Status;

    /// When [`Strategy::elapse`] must be called, for rules in which time alone
    /// can change the status. `None` for rules that only count.
    fn deadline(&self, _state: &Self::State) -> Option<Timestamp> {
        None
    }

    /// Takes in that it is `now` without a new result. Early calls do nothing.
    fn elapse(&self, _state: &mut Self::State, _now: Timestamp) -> Option<Transition> {
        None
    }

    /// What the state waits for.
    fn outlook(&self, state: &Self::State, now: Timestamp) -> Outlook;

    /// A remark on the reported status.
    fn mark(&self, _state: &Self::State) -> Mark {
        Mark::None
    }

    /// Moves all times in the state by `millis`, so that a pause of the process
    /// or a step of the clock does not count as time passed.
    fn shift(&self, _state: &mut Self::State, _millis: i64) {}

    /// The state under these parameters of a check whose state under other
    /// parameters of the same strategy was `old`. Counters are kept; nothing
    /// flips before the next result.
    fn adopt(&self, old: &Self::State, now: Timestamp) -> Self::State;

    /// The state in a form that survives the process.
    fn save(&self, state: &Self::State) -> Record;

    /// The inverse of [`Strategy::save`]. Times in the future are taken as
    /// `now`. A record of another strategy or version restarts from the status
    /// that it reports.
    fn load(&self, record: &Record, now: Timestamp) -> Loaded<Self::State>;
}
