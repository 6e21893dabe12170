//! What people are told is what happens.

use evenkeel_threshold::{Agreeing, AnyStrategy, FirstResult, Leaky, Outlook, Status, Strategy};
use proptest::prelude::*;

use crate::generators::{
    any_first, any_status, any_strategy, at_least, observations, own_strategy,
};
use crate::support::{NOW, consecutive_with_warning, results};

/// The outlook after `trace`, from passing.
fn outlook_after<S: Strategy>(rule: &S, initial: Status, trace: &str) -> Outlook {
    let mut state = rule.start(initial, FirstResult::Counted, NOW);
    for result in results(trace) {
        rule.observe(&mut state, result.into(), NOW);
    }
    rule.outlook(&state, NOW)
}

fn counting(toward: Status, seen: u32, needed: u32, agreeing: Agreeing) -> Outlook {
    Outlook::Counting {
        toward,
        seen,
        needed,
        agreeing,
    }
}

#[test]
fn leaky_tells_the_level_of_the_latest_contrary_result() {
    let rule = Leaky::new(3, 2);
    let off = Agreeing::TakesOneOff;
    let after = |trace| outlook_after(&rule, Status::Passing, trace);
    assert_eq!(after("FF"), counting(Status::Critical, 2, 4, off));
    assert_eq!(after("FFW"), counting(Status::Warning, 3, 4, off));
    assert_eq!(after("FFP"), counting(Status::Critical, 1, 4, off));
    assert_eq!(after("FFPP"), Outlook::Settled);
}

#[test]
fn leaky_tells_one_side_of_a_warning_at_a_time() {
    let rule = Leaky::new(3, 2);
    let off = Agreeing::TakesOneOff;
    let after = |trace| outlook_after(&rule, Status::Warning, trace);
    assert_eq!(after("CCC"), counting(Status::Critical, 3, 4, off));
    assert_eq!(after("CCCP"), counting(Status::Passing, 1, 3, off));
    // The recovery is forgotten, some of the failures are not.
    assert_eq!(after("CCCPW"), counting(Status::Critical, 1, 4, off));
    assert_eq!(after("PPC"), counting(Status::Critical, 1, 4, off));
    assert_eq!(after("PPCW"), Outlook::Settled);
    // And the other way round.
    let rule = Leaky::new(3, 4);
    assert_eq!(
        outlook_after(&rule, Status::Warning, "PPPCW"),
        counting(Status::Passing, 1, 5, off)
    );
    assert_eq!(after("PPCPCW"), Outlook::Settled);
}

#[test]
fn consecutive_tells_the_degraded_level_first() {
    let rule = consecutive_with_warning(2, 4, 1);
    let after = |trace| outlook_after(&rule, Status::Passing, trace);
    let anew = Agreeing::Resets;
    assert_eq!(after("F"), counting(Status::Warning, 1, 2, anew));
    assert_eq!(after("FF"), counting(Status::Critical, 2, 4, anew));
    assert_eq!(after("FFF"), counting(Status::Critical, 3, 4, anew));
    assert_eq!(after("FFFF"), Outlook::Settled);
    assert_eq!(after("WW"), Outlook::Settled);
}

proptest! {
    #![proptest_config(at_least(1024))]

    #[test]
    fn an_outlook_counts_down_to_exactly_the_flip(
        rule in any_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
    ) {
        let mut state = rule.start(initial, first, NOW);
        for observation in observations {
            rule.observe(&mut state, observation, NOW);
            let reported = rule.reported(&state);
            match rule.outlook(&state, NOW) {
                Outlook::Counting { toward, seen, needed, .. } => {
                    prop_assert!(0 < seen && seen < needed);
                    prop_assert_ne!(toward, reported);
                    // Where an agreeing result starts the count anew, the latest
                    // result is in it.
                    let like = match rule {
                        AnyStrategy::Leaky(_) => toward,
                        _ => observation.status,
                    };
                    let mut then = state;
                    for _ in seen + 1..needed {
                        prop_assert_eq!(rule.observe(&mut then, like.into(), NOW), None);
                    }
                    let flip = rule.observe(&mut then, like.into(), NOW);
                    prop_assert_eq!(flip.map(|flip| flip.to), Some(toward));
                }
                Outlook::Settled => {
                    let mut then = state;
                    for _ in 0..20 {
                        prop_assert_eq!(
                            rule.observe(&mut then, observation.status.into(), NOW),
                            None
                        );
                    }
                }
                other => prop_assert!(false, "{other:?} after a result"),
            }
        }
    }

    /// Not so for Consul, whose rule looks further back than to the last flip.
    #[test]
    fn settled_is_as_good_as_new(
        rule in own_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
        more in observations(),
    ) {
        let mut state = rule.start(initial, first, NOW);
        let mut settled = state;
        for observation in observations {
            rule.observe(&mut state, observation, NOW);
            if rule.outlook(&state, NOW) == Outlook::Settled {
                settled = state;
            }
        }
        if rule.outlook(&settled, NOW) != Outlook::Settled {
            return Ok(());
        }
        let mut new = rule.start(rule.reported(&settled), FirstResult::Counted, NOW);
        for observation in more {
            prop_assert_eq!(
                rule.observe(&mut settled, observation, NOW),
                rule.observe(&mut new, observation, NOW)
            );
            prop_assert_eq!(rule.outlook(&settled, NOW), rule.outlook(&new, NOW));
        }
    }
}
