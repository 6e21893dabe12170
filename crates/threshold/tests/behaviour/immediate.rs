//! Results that bypass the counts.

use evenkeel_threshold::{FirstResult, Leaky, Observation, Outlook, Status, Strategy, Transition};
use proptest::prelude::*;

use crate::generators::{any_first, any_status, any_strategy, observations};
use crate::support::{NOW, consecutive, play_counted};

#[test]
fn an_immediate_result_is_reported_at_once_and_forgets_the_counts() {
    let leaky = Leaky::new(3, 3);
    let mut state = leaky.start(Status::Passing, FirstResult::Counted, NOW);
    for _ in 0..3 {
        leaky.observe(&mut state, Status::Critical.into(), NOW);
    }
    let drain = Observation::immediate(Status::Warning);
    assert_eq!(
        leaky.observe(&mut state, drain, NOW),
        Some(Transition {
            from: Status::Passing,
            to: Status::Warning,
        })
    );
    assert_eq!(leaky.outlook(&state, NOW), Outlook::Settled);
}

#[test]
fn an_immediate_result_that_agrees_forgets_the_counts_too() {
    let rule = consecutive(3, 1);
    let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
    rule.observe(&mut state, Status::Critical.into(), NOW);
    rule.observe(&mut state, Status::Critical.into(), NOW);
    let healthy = Observation::immediate(Status::Passing);
    assert_eq!(rule.observe(&mut state, healthy, NOW), None);
    rule.observe(&mut state, Status::Critical.into(), NOW);
    assert_eq!(rule.reported(&state), Status::Passing);
}

proptest! {
    #[test]
    fn every_strategy_reports_an_immediate_result(
        rule in any_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
        status in any_status(),
    ) {
        let mut state = rule.start(initial, first, NOW);
        for observation in observations {
            rule.observe(&mut state, observation, NOW);
        }
        rule.observe(&mut state, Observation::immediate(status), NOW);
        prop_assert_eq!(rule.reported(&state), status);
        prop_assert_eq!(rule.outlook(&state, NOW), Outlook::Settled);
    }

    #[test]
    fn every_strategy_believes_a_first_result_that_is_to_be_believed(
        rule in any_strategy(),
        initial in any_status(),
        status in any_status(),
    ) {
        let mut state = rule.start(initial, FirstResult::Believed, NOW);
        prop_assert_eq!(rule.outlook(&state, NOW), Outlook::FirstResult);
        rule.observe(&mut state, status.into(), NOW);
        prop_assert_eq!(rule.reported(&state), status);
        prop_assert_eq!(rule.outlook(&state, NOW), Outlook::Settled);
    }
}

#[test]
fn a_first_result_is_counted_where_that_is_asked_for() {
    assert_eq!(play_counted(&Leaky::new(1, 0), "FF"), "PC");
    assert_eq!(play_counted(&consecutive(2, 1), "FF"), "PC");
}
