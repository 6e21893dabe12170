//! Any strategy under a flap penalty.

use std::time::Duration;

use evenkeel_threshold::{
    Damped, FirstResult, Leaky, Loaded, Mark, Observation, Penalty, PenaltyParameters, Status,
    Strategy, Timestamp, WhileSuppressed, Window,
};
use proptest::prelude::*;

use crate::generators::{
    any_first, any_penalty, any_status, at_least, counting_strategy, every_strategy,
    timed_observations,
};
use crate::support::{NOW, consecutive, elapse_until};

fn minute(minute: i64) -> Timestamp {
    NOW.saturating_shift(minute * 60_000)
}

fn damped<S: Strategy>(strategy: S, while_suppressed: WhileSuppressed) -> Damped<S> {
    let parameters = PenaltyParameters {
        suppress: 2000,
        while_suppressed,
        ..PenaltyParameters::default()
    };
    Damped::new(strategy, parameters).expect("valid")
}

/// Down and up again until changes are suppressed, with `last` from then on: the
/// reported statuses before and after the suppression ends.
fn suppressed_until_the_end<S: Strategy>(rule: &Damped<S>, last: Status) -> (Status, Status) {
    let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
    let mut now = 0;
    while rule.mark(&state) != Mark::Suppressed {
        for result in [[Status::Critical; 6], [Status::Passing; 6]].concat() {
            rule.observe(
                &mut state,
                result.into(),
                minute(0).saturating_shift(now * 1000),
            );
            now += 1;
        }
        assert!(now < 1000, "never suppressed");
    }
    for _ in 0..8 {
        rule.observe(
            &mut state,
            last.into(),
            minute(0).saturating_shift(now * 1000),
        );
        now += 1;
    }
    let before = rule.reported(&state);
    let end = rule.deadline(&state).expect("it is suppressed");
    let transitions = elapse_until(rule, &mut state, end);
    assert_eq!(rule.mark(&state), Mark::None);
    assert_eq!(
        transitions.len(),
        usize::from(before != rule.reported(&state))
    );
    (before, rule.reported(&state))
}

#[test]
fn the_net_difference_is_reported_in_both_directions_over_any_count() {
    use Status::{Critical, Passing};
    use WhileSuppressed::LastStable;
    let held = [LastStable, WhileSuppressed::Critical];
    for while_suppressed in held {
        let meanwhile = match while_suppressed {
            LastStable => Passing,
            _ => Critical,
        };
        for last in [Passing, Critical] {
            let expected = (meanwhile, last);
            let leaky = damped(Leaky::new(2, 1), while_suppressed);
            assert_eq!(suppressed_until_the_end(&leaky, last), expected);
            let window = damped(Window::default(), while_suppressed);
            assert_eq!(suppressed_until_the_end(&window, last), expected);
            let counts = damped(consecutive(3, 2), while_suppressed);
            assert_eq!(suppressed_until_the_end(&counts, last), expected);
        }
    }
}

proptest! {
    #![proptest_config(at_least(512))]

    #[test]
    fn over_a_count_in_a_row_it_is_the_penalty(
        penalty in any_penalty(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
    ) {
        let parameters = penalty.parameters();
        let rule = Damped::new(consecutive(parameters.failures, parameters.successes), parameters)
            .expect("the penalty is valid");
        let mut now = NOW;
        let mut one = penalty.start(initial, first, now);
        let mut other = rule.start(initial, first, now);
        for (millis, observation) in observations {
            now = now.saturating_shift(millis as i64);
            prop_assert_eq!(elapse_until(&penalty, &mut one, now), elapse_until(&rule, &mut other, now));
            prop_assert_eq!(penalty.observe(&mut one, observation, now), rule.observe(&mut other, observation, now));
            prop_assert_eq!(penalty.deadline(&one), rule.deadline(&other));
            prop_assert_eq!(penalty.outlook(&one, now), rule.outlook(&other, now));
            prop_assert_eq!(penalty.mark(&one), rule.mark(&other));
        }
    }

    #[test]
    fn without_flaps_enough_it_is_the_strategy_inside(
        strategy in every_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
        restarts in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        // So many flaps do not fit into the history.
        let parameters = PenaltyParameters {
            suppress: 1_000_000,
            longest: Duration::from_secs(15 * 60 * 20),
            ..PenaltyParameters::default()
        };
        let rule = Damped::new(strategy, parameters).expect("valid");
        let mut now = NOW;
        let mut one = strategy.start(initial, first, now);
        let mut other = rule.start(initial, first, now);
        let restarts = restarts.into_iter().cycle();
        for ((millis, observation), restart) in observations.into_iter().zip(restarts) {
            now = now.saturating_shift(millis as i64);
            prop_assert_eq!(elapse_until(&strategy, &mut one, now), elapse_until(&rule, &mut other, now));
            prop_assert_eq!(strategy.observe(&mut one, observation, now), rule.observe(&mut other, observation, now));
            prop_assert_eq!(strategy.deadline(&one), rule.deadline(&other));
            if restart {
                prop_assert_eq!(rule.load(&rule.save(&other), now), Loaded::Resumed(other));
            }
        }
    }

    // What is reported depends on the changes that the strategy inside decides, and on
    // nothing else: as a penalty that takes each of them for a result.
    #[test]
    fn it_is_a_penalty_over_what_the_strategy_inside_decides(
        strategy in counting_strategy(),
        penalty in any_penalty(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
        restarts in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let parameters = PenaltyParameters { failures: 1, successes: 1, ..penalty.parameters() };
        let rule = Damped::new(strategy, parameters).expect("the penalty is valid");
        let outer = Penalty::new(parameters).expect("the penalty is valid");
        let mut now = NOW;
        let mut damped = rule.start(initial, first, now);
        let mut inside = strategy.start(initial, first, now);
        let mut model = outer.start(initial, first, now);
        let restarts = restarts.into_iter().cycle();
        for ((millis, observation), restart) in observations.into_iter().zip(restarts) {
            now = now.saturating_shift(millis as i64);
            prop_assert_eq!(elapse_until(&rule, &mut damped, now), elapse_until(&outer, &mut model, now));
            strategy.observe(&mut inside, observation, now);
            let decided = Observation { status: strategy.reported(&inside), ..observation };
            prop_assert_eq!(rule.observe(&mut damped, observation, now), outer.observe(&mut model, decided, now));
            prop_assert_eq!(rule.decided(&damped), decided.status);
            prop_assert_eq!(rule.mark(&damped), outer.mark(&model));
            prop_assert_eq!(rule.deadline(&damped), outer.deadline(&model));
            if restart {
                prop_assert_eq!(rule.load(&rule.save(&damped), now), Loaded::Resumed(damped));
            }
        }
    }

    #[test]
    fn no_times_do_harm(
        strategy in every_strategy(),
        penalty in any_penalty(),
        initial in any_status(),
        steps in prop::collection::vec((any::<u64>(), any_status(), any::<bool>(), any::<i64>()), 0..40),
    ) {
        let rule = Damped::new(strategy, penalty.parameters()).expect("the penalty is valid");
        let mut state = rule.start(initial, FirstResult::Counted, NOW);
        for (millis, status, immediate, shift) in steps {
            let now = Timestamp::from_millis(millis);
            let before = rule.reported(&state);
            rule.outlook(&state, now);
            let changes = [rule.elapse(&mut state, now), rule.observe(&mut state, Observation { status, immediate }, now)];
            let mut reported = before;
            for change in changes.into_iter().flatten() {
                prop_assert_eq!(change.from, reported);
                prop_assert_ne!(change.from, change.to);
                reported = change.to;
            }
            prop_assert_eq!(rule.reported(&state), reported);
            rule.shift(&mut state, shift);
            let record = rule.save(&state);
            rule.load(&record, now);
        }
    }
}
