//! What holds for every strategy, those that know about time included.

use evenkeel_threshold::{
    AnyState, AnyStrategy, FirstResult, Loaded, Observation, Outlook, Record, Status, Strategy,
    Timestamp, Transition,
};
use proptest::prelude::*;

use crate::generators::{
    any_first, any_status, at_least, every_strategy, observations, timed_observations,
};
use crate::support::{NOW, elapse_until};

/// Time goes on to `now`, then the result comes: all transitions on the way.
fn step<S: Strategy>(
    rule: &S,
    state: &mut S::State,
    observation: Observation,
    now: Timestamp,
) -> Vec<Transition> {
    let mut transitions = elapse_until(rule, state, now);
    transitions.extend(rule.observe(state, observation, now));
    transitions
}

fn after(
    rule: &AnyStrategy,
    initial: Status,
    first: FirstResult,
    observations: &[(u64, Observation)],
) -> (AnyState, Timestamp) {
    let mut now = NOW;
    let mut state = rule.start(initial, first, now);
    for &(millis, observation) in observations {
        now = now.saturating_shift(millis as i64);
        step(rule, &mut state, observation, now);
    }
    (state, now)
}

#[test]
fn a_state_is_a_few_bytes() {
    assert!(size_of::<AnyState>() <= 24);
}

proptest! {
    #![proptest_config(at_least(512))]

    #[test]
    fn transitions_are_changes_and_join_up(
        rule in every_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
    ) {
        let mut now = NOW;
        let mut state = rule.start(initial, first, now);
        prop_assert_eq!(rule.reported(&state), initial);
        let mut reported = initial;
        for (millis, observation) in observations {
            now = now.saturating_shift(millis as i64);
            for transition in step(&rule, &mut state, observation, now) {
                prop_assert_ne!(transition.from, transition.to);
                prop_assert_eq!(transition.from, reported);
                reported = transition.to;
            }
            prop_assert_eq!(rule.reported(&state), reported);
        }
    }

    #[test]
    fn time_does_nothing_before_the_deadline(
        rule in every_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
    ) {
        let mut now = NOW;
        let mut state = rule.start(initial, first, now);
        for (millis, observation) in observations {
            let later = now.saturating_shift(millis as i64);
            let early = match rule.deadline(&state) {
                Some(deadline) => later.min(deadline.saturating_shift(-1)),
                None => Timestamp::from_millis(u64::MAX),
            };
            let before = state;
            prop_assert_eq!(rule.elapse(&mut state, early), None);
            prop_assert_eq!(state, before);
            now = later;
            step(&rule, &mut state, observation, now);
        }
    }

    #[test]
    fn a_deadline_that_was_kept_is_over(
        rule in every_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
    ) {
        let (mut state, _) = after(&rule, initial, first, &observations);
        for _ in 0..10 {
            let Some(deadline) = rule.deadline(&state) else { return Ok(()) };
            rule.elapse(&mut state, deadline);
            prop_assert!(rule.deadline(&state).is_none_or(|next| next > deadline));
        }
        prop_assert!(false, "time alone goes on for ever");
    }

    #[test]
    fn a_restart_makes_no_difference(
        rule in every_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
        restarts in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let mut now = NOW;
        let mut state = rule.start(initial, first, now);
        let mut restarted = state;
        for ((millis, observation), restart) in
            observations.into_iter().zip(restarts.into_iter().cycle())
        {
            if restart {
                let (bytes, len) = rule.save(&restarted).write();
                let record = Record::read(&bytes[..len]).expect("it was just written");
                prop_assert_eq!(record.reported(), rule.reported(&restarted));
                prop_assert_eq!(rule.load(&record, now), Loaded::Resumed(restarted));
                restarted = rule.load(&record, now).into_state();
            }
            now = now.saturating_shift(millis as i64);
            prop_assert_eq!(
                step(&rule, &mut restarted, observation, now),
                step(&rule, &mut state, observation, now)
            );
            prop_assert_eq!(restarted, state);
        }
    }

    #[test]
    fn the_same_parameters_adopt_the_same_state(
        rule in every_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
    ) {
        let mut now = NOW;
        let mut state = rule.start(initial, first, now);
        for (millis, observation) in observations {
            prop_assert_eq!(rule.adopt(&state, now), state);
            now = now.saturating_shift(millis as i64);
            step(&rule, &mut state, observation, now);
        }
    }

    #[test]
    fn a_change_of_parameters_changes_no_status(
        before in every_strategy(),
        other in every_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
        more in timed_observations(),
    ) {
        let (state, mut now) = after(&before, initial, first, &observations);
        let mut adopted = other.adopt(&state, now);
        prop_assert_eq!(other.reported(&adopted), before.reported(&state));
        let mut reported = other.reported(&adopted);
        for (millis, observation) in more {
            now = now.saturating_shift(millis as i64);
            for transition in step(&other, &mut adopted, observation, now) {
                prop_assert_eq!(transition.from, reported);
                reported = transition.to;
            }
            if let Outlook::Counting { seen, needed, .. } = other.outlook(&adopted, now) {
                prop_assert!(0 < seen && seen < needed);
            }
        }
    }

    #[test]
    fn a_step_of_the_clock_makes_no_difference_if_it_is_told(
        rule in every_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
        steps in prop::collection::vec(prop_oneof![3 => Just(0), 1 => -100_000..100_000_i64], 1..20),
    ) {
        let mut now = NOW;
        let mut offset = 0;
        let mut state = rule.start(initial, first, now);
        let mut shifted = state;
        for ((millis, observation), jump) in
            observations.into_iter().zip(steps.into_iter().cycle())
        {
            rule.shift(&mut shifted, jump);
            offset += jump;
            now = now.saturating_shift(millis as i64);
            prop_assert_eq!(
                step(&rule, &mut shifted, observation, now.saturating_shift(offset)),
                step(&rule, &mut state, observation, now)
            );
            prop_assert_eq!(
                rule.deadline(&shifted),
                rule.deadline(&state).map(|deadline| deadline.saturating_shift(offset))
            );
        }
    }

    #[test]
    fn an_outlook_counts_down_to_exactly_the_flip(
        rule in every_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
    ) {
        let mut now = NOW;
        let mut state = rule.start(initial, first, now);
        for (millis, observation) in observations {
            now = now.saturating_shift(millis as i64);
            step(&rule, &mut state, observation, now);
            let reported = rule.reported(&state);
            let Outlook::Counting { toward, seen, needed, .. } = rule.outlook(&state, now) else {
                continue;
            };
            prop_assert!(0 < seen && seen < needed);
            prop_assert_ne!(toward, reported);
            // Where failures are counted toward warning first, the results are
            // worse than what comes of them.
            let like = match rule {
                AnyStrategy::Consecutive(_) | AnyStrategy::Consul(_) => observation.status,
                _ => toward,
            };
            let mut then = state;
            for _ in seen + 1..needed {
                prop_assert_eq!(rule.observe(&mut then, like.into(), now), None);
            }
            let flip = rule.observe(&mut then, like.into(), now);
            prop_assert_eq!(flip.map(|flip| flip.to), Some(toward));
        }
    }

    #[test]
    fn an_immediate_result_is_reported(
        rule in every_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
        status in any_status(),
    ) {
        let (mut state, now) = after(&rule, initial, first, &observations);
        rule.observe(&mut state, Observation::immediate(status), now);
        prop_assert_eq!(rule.reported(&state), status);
        let outlook = rule.outlook(&state, now);
        prop_assert!(
            matches!(outlook, Outlook::Settled | Outlook::Waiting { .. }),
            "{outlook:?}"
        );
    }

    #[test]
    fn a_first_result_to_be_believed_is_reported(
        rule in every_strategy(),
        initial in any_status(),
        status in any_status(),
    ) {
        let mut state = rule.start(initial, FirstResult::Believed, NOW);
        prop_assert_eq!(rule.outlook(&state, NOW), Outlook::FirstResult);
        rule.observe(&mut state, status.into(), NOW);
        prop_assert_eq!(rule.reported(&state), status);
        prop_assert_ne!(rule.outlook(&state, NOW), Outlook::FirstResult);
    }

    #[test]
    fn no_bytes_and_no_times_do_harm(
        rule in every_strategy(),
        tag in 0..20_u8,
        version in 0..3_u8,
        reported in 0..4_u8,
        payload in prop::collection::vec(prop_oneof![3 => 0..4_u8, 1 => any::<u8>()], 0..24),
        observations in observations(),
        times in prop::collection::vec(
            prop_oneof![any::<u64>(), 0..100_000_u64, Just(u64::MAX), Just(0)],
            1..20,
        ),
        shifts in prop::collection::vec(
            prop_oneof![any::<i64>(), Just(0), Just(i64::MIN), Just(i64::MAX)],
            1..20,
        ),
    ) {
        let mut bytes = vec![tag, version, reported];
        bytes.extend(payload);
        let Some(record) = Record::read(&bytes) else { return Ok(()) };
        let mut state = rule.load(&record, NOW).into_state();
        prop_assert_eq!(rule.reported(&state), record.reported());
        let times = times.into_iter().cycle();
        let shifts = shifts.into_iter().cycle();
        for ((observation, time), shift) in observations.into_iter().zip(times).zip(shifts) {
            let now = Timestamp::from_millis(time);
            let _ = rule.outlook(&state, now);
            rule.elapse(&mut state, now);
            rule.observe(&mut state, observation, now);
            rule.shift(&mut state, shift);
            state = rule.adopt(&state, now);
            state = rule.load(&rule.save(&state), now).into_state();
            let _ = (rule.deadline(&state), rule.mark(&state));
        }
        rule.observe(&mut state, Observation::immediate(Status::Warning), NOW);
        prop_assert_eq!(rule.reported(&state), Status::Warning);
    }

    /// The record of a strategy has bytes that make sense more often than made-up
    /// ones: one of them is changed.
    #[test]
    fn a_damaged_record_does_no_harm(
        rule in every_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
        at in 3..40_usize,
        byte: u8,
        more in timed_observations(),
    ) {
        let (state, mut now) = after(&rule, initial, first, &observations);
        let (mut bytes, len) = rule.save(&state).write();
        if at < len {
            bytes[at] = byte;
        }
        let record = Record::read(&bytes[..len]).expect("the first three bytes are whole");
        let mut state = rule.load(&record, now).into_state();
        prop_assert_eq!(rule.reported(&state), record.reported());
        for (millis, observation) in more {
            now = now.saturating_shift(millis as i64);
            step(&rule, &mut state, observation, now);
            if let Outlook::Counting { seen, needed, .. } = rule.outlook(&state, now) {
                prop_assert!(0 < seen && seen < needed);
            }
            prop_assert!(matches!(
                rule.load(&rule.save(&state), now),
                Loaded::Resumed(_)
            ));
        }
    }

    #[test]
    fn results_that_agree_never_change_the_status(
        rule in every_strategy(),
        status in any_status(),
        first in any_first(),
        millis in prop::collection::vec(0..30_000_u64, 0..50),
    ) {
        let mut now = NOW;
        let mut state = rule.start(status, first, now);
        for millis in millis {
            now = now.saturating_shift(millis as i64);
            if rule.deadline(&state).is_some_and(|deadline| deadline <= now) {
                // Results that come too late do not agree.
                return Ok(());
            }
            prop_assert_eq!(rule.observe(&mut state, status.into(), now), None);
        }
    }
}
