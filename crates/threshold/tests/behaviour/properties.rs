//! What holds for every strategy.

use evenkeel_threshold::{
    ConsulEsmState, CusumState, DwellState, EwmaState, FlapState, HeartbeatState, HoldState,
    LeakyState, PenaltyState, RunState, Status, Strategy, WindowState,
};
use proptest::prelude::*;

use crate::generators::{any_first, any_status, any_strategy, observations};
use crate::support::NOW;

#[test]
fn a_state_is_a_few_bytes() {
    assert!(size_of::<LeakyState>() <= 12);
    assert!(size_of::<RunState>() <= 8);
    assert!(size_of::<WindowState>() <= 20);
    assert!(size_of::<EwmaState>() <= 20);
    assert!(size_of::<CusumState>() <= 20);
    assert!(size_of::<HoldState>() <= 16);
    assert!(size_of::<DwellState>() <= 20);
    assert!(size_of::<HeartbeatState>() <= 12);
    assert!(size_of::<ConsulEsmState>() <= 16);
    assert!(size_of::<FlapState>() <= 16);
    assert!(size_of::<PenaltyState>() <= 20);
}

proptest! {
    #[test]
    fn transitions_are_changes_and_join_up(
        rule in any_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
    ) {
        let mut state = rule.start(initial, first, NOW);
        prop_assert_eq!(rule.reported(&state), initial);
        let mut reported = initial;
        for observation in observations {
            if let Some(transition) = rule.observe(&mut state, observation, NOW) {
                prop_assert_ne!(transition.from, transition.to);
                prop_assert_eq!(transition.from, reported);
                reported = transition.to;
            }
            prop_assert_eq!(rule.reported(&state), reported);
        }
    }

    #[test]
    fn results_that_agree_never_change_the_status(
        rule in any_strategy(),
        status in any_status(),
        first in any_first(),
        results in 0..50_usize,
    ) {
        let mut state = rule.start(status, first, NOW);
        for _ in 0..results {
            prop_assert_eq!(rule.observe(&mut state, status.into(), NOW), None);
        }
    }

    #[test]
    fn a_lasting_change_is_reported(
        rule in any_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
        last in any_status(),
    ) {
        let mut state = rule.start(initial, first, NOW);
        for observation in observations {
            rule.observe(&mut state, observation, NOW);
        }
        // More than any threshold that is tried here; twice, since a failing
        // target may be reported degraded first.
        for _ in 0..14 {
            rule.observe(&mut state, last.into(), NOW);
        }
        prop_assert_eq!(rule.reported(&state), last);
    }

    #[test]
    fn counting_strategies_have_no_use_for_time(
        rule in any_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
    ) {
        let mut state = rule.start(initial, first, NOW);
        for observation in observations {
            rule.observe(&mut state, observation, NOW);
            let before = state;
            prop_assert_eq!(rule.deadline(&state), None);
            prop_assert_eq!(rule.elapse(&mut state, NOW), None);
            rule.shift(&mut state, 1_000_000);
            prop_assert_eq!(state, before);
        }
    }

    #[test]
    fn a_state_of_another_strategy_goes_on_from_its_status(
        one in any_strategy(),
        other in any_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
        more in observations(),
    ) {
        let mut state = one.start(initial, first, NOW);
        for &observation in &observations {
            one.observe(&mut state, observation, NOW);
        }
        let mut adopted = other.adopt(&state, NOW);
        prop_assert_eq!(other.reported(&adopted), one.reported(&state));
        if one.name() != other.name() {
            prop_assert_eq!(other.outlook(&state, NOW), other.outlook(&adopted, NOW));
            prop_assert_eq!(other.save(&state), other.save(&adopted));
        }
        let mut foreign = state;
        for observation in more {
            let transition = other.observe(&mut foreign, observation, NOW);
            if one.name() != other.name() {
                prop_assert_eq!(transition, other.observe(&mut adopted, observation, NOW));
                prop_assert_eq!(foreign, adopted);
            }
        }
    }
}

#[test]
fn statuses_are_ordered_by_severity() {
    assert!(Status::Passing < Status::Warning);
    assert!(Status::Warning < Status::Critical);
}

#[test]
fn statuses_have_the_spelling_of_consul() {
    for status in Status::ALL {
        assert_eq!(status.to_string().parse(), Ok(status));
    }
    assert_eq!(format!("{:>9}", Status::Warning), "  warning");
    for wrong in ["", "Passing", "unknown", "critical "] {
        let error = wrong.parse::<Status>().expect_err(wrong);
        assert!(error.to_string().contains("`critical`"));
    }
}
