//! Outlooks of rules whose count is not a number in the state: the rule itself
//! is tried on a copy.

use crate::{Agreeing, Outlook, Status, Strategy, Timestamp};

/// How many results like `toward` it takes from `state` until that is reported.
fn distance<S: Strategy>(strategy: &S, mut state: S::State, toward: Status) -> u32 {
    // Time has no part in the rules that are tried here.
    let mut results = 1;
    while strategy
        .observe(&mut state, toward.into(), Timestamp::ZERO)
        .is_none()
    {
        results += 1;
    }
    results
}

/// The outlook of `state`: the first of `candidates` for which the results so
/// far have saved at least one, compared with `settled`.
///
/// Every candidate must differ from what is reported, and be reported after
/// enough results like it.
pub(crate) fn outlook<S: Strategy>(
    strategy: &S,
    state: &S::State,
    settled: &S::State,
    candidates: impl Iterator<Item = Status>,
    agreeing: Agreeing,
) -> Outlook {
    for toward in candidates {
        let needed = distance(strategy, *settled, toward);
        let seen = needed.saturating_sub(distance(strategy, *state, toward));
        if seen > 0 {
            return Outlook::Counting {
                toward,
                seen,
                needed,
                agreeing,
            };
        }
    }
    Outlook::Settled
}

/// `first`, then the others, without `reported`.
pub(crate) fn others(reported: Status, first: Status) -> impl Iterator<Item = Status> {
    [first]
        .into_iter()
        .chain(
            Status::ALL
                .into_iter()
                .filter(move |&status| status != first),
        )
        .filter(move |&status| status != reported)
}
