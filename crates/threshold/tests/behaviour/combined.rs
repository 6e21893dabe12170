//! Two strategies on the same results.

use std::time::Duration;

use evenkeel_threshold::{
    Combined, FirstResult, Heartbeat, HeartbeatParameters, Leaky, Loaded, Outlook, Pick, Record,
    RestartReason, Status, Strategy,
};
use proptest::prelude::*;

use crate::generators::{any_first, any_status, at_least, every_strategy, timed_observations};
use crate::support::{NOW, consecutive, elapse_until, play_counted};

#[test]
fn the_worse_or_the_better_of_both_is_reported() {
    let pair = |pick| Combined {
        one: Leaky::new(3, 0),
        other: consecutive(2, 2),
        pick,
    };
    let trace = "FFFFPPP";
    assert_eq!(play_counted(&Leaky::new(3, 0), trace), "PPPCPPP");
    assert_eq!(play_counted(&consecutive(2, 2), trace), "PCCCCPP");
    assert_eq!(play_counted(&pair(Pick::Worst), trace), "PCCCCPP");
    assert_eq!(play_counted(&pair(Pick::Best), trace), "PPPCPPP");
}

#[test]
fn a_nest_that_no_record_has_room_for_restarts_from_its_status() {
    let pair = Combined {
        one: Leaky::new(3, 0),
        other: Leaky::new(3, 0),
        pick: Pick::Worst,
    };
    let nest = Combined {
        one: pair,
        other: pair,
        pick: Pick::Worst,
    };
    let state = nest.start(Status::Warning, FirstResult::Counted, NOW);
    assert_eq!(
        nest.load(&nest.save(&state), NOW),
        Loaded::Restarted(state, RestartReason::Damaged)
    );
}

proptest! {
    #![proptest_config(at_least(512))]

    #[test]
    fn a_pair_is_two_that_run_apart(
        one in every_strategy(),
        other in every_strategy(),
        worst: bool,
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
        restarts in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let pick = if worst { Pick::Worst } else { Pick::Best };
        let pair = Combined { one, other, pick };
        let mut now = NOW;
        let mut state = pair.start(initial, first, now);
        let mut apart = (one.start(initial, first, now), other.start(initial, first, now));
        let mut reported = initial;
        for ((millis, observation), restart) in
            observations.into_iter().zip(restarts.into_iter().cycle())
        {
            if restart {
                let (bytes, len) = pair.save(&state).write();
                let record = Record::read(&bytes[..len]).expect("it was just written");
                prop_assert_eq!(record.reported(), reported);
                prop_assert_eq!(pair.load(&record, now), Loaded::Resumed(state));
            }
            now = now.saturating_shift(millis as i64);
            let mut transitions = elapse_until(&pair, &mut state, now);
            transitions.extend(pair.observe(&mut state, observation, now));
            elapse_until(&one, &mut apart.0, now);
            one.observe(&mut apart.0, observation, now);
            elapse_until(&other, &mut apart.1, now);
            other.observe(&mut apart.1, observation, now);
            for transition in transitions {
                prop_assert_eq!(transition.from, reported);
                prop_assert_ne!(transition.from, transition.to);
                reported = transition.to;
            }
            let both = [one.reported(&apart.0), other.reported(&apart.1)];
            let expected = if worst { both.into_iter().max() } else { both.into_iter().min() };
            prop_assert_eq!(Some(reported), expected);
            prop_assert_eq!(pair.reported(&state), reported);
            if let Outlook::Counting { toward, seen, needed, .. } = pair.outlook(&state, now) {
                let mut then = state;
                for _ in seen + 1..needed {
                    prop_assert_eq!(pair.observe(&mut then, toward.into(), now), None);
                }
                let flip = pair.observe(&mut then, toward.into(), now);
                prop_assert_eq!(flip.map(|flip| flip.to), Some(toward));
            }
        }
    }
}

#[test]
fn a_pair_has_the_earlier_deadline_of_both() {
    let silence = |seconds| {
        Heartbeat::new(HeartbeatParameters {
            silence: Duration::from_secs(seconds),
        })
        .expect("valid")
    };
    for (one, other) in [(10, 20), (20, 10)] {
        let pair = Combined {
            one: silence(one),
            other: silence(other),
            pick: Pick::Worst,
        };
        let mut state = pair.start(Status::Passing, FirstResult::Counted, NOW);
        let first = NOW.saturating_add(Duration::from_secs(10));
        assert_eq!(pair.deadline(&state), Some(first));
        assert!(pair.elapse(&mut state, first).is_some());
        let second = NOW.saturating_add(Duration::from_secs(20));
        assert_eq!(pair.deadline(&state), Some(second));
        assert_eq!(
            pair.elapse(&mut state, second),
            None,
            "it is critical already"
        );
    }
}
