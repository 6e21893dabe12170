//! States that outlive the process, and parameters that change under them.

use evenkeel_threshold::{
    Agreeing, AnyStrategy, Consecutive, Consul, ConsulEsm, Counts, Cusum, Dwell, Ewma, FirstResult,
    Flap, Heartbeat, Hold, Leaky, Loaded, Observation, Outlook, Penalty, Record, RestartReason,
    Status, Strategy, StrategyTag, Window,
};
use proptest::prelude::*;

use crate::generators::{any_first, any_status, any_strategy, observations, own_strategy};
use crate::support::{NOW, consecutive, consecutive_with_warning, results};

fn after<S: Strategy>(rule: &S, initial: Status, trace: &str) -> S::State {
    let mut state = rule.start(initial, FirstResult::Counted, NOW);
    for result in results(trace) {
        rule.observe(&mut state, result.into(), NOW);
    }
    state
}

#[test]
fn a_record_has_the_documented_bytes() {
    let bytes = |record: Record| {
        let (bytes, len) = record.write();
        bytes[..len].to_vec()
    };
    let leaky = Leaky::new(9, 9);
    let state = after(&leaky, Status::Passing, "FFFW");
    assert_eq!(
        bytes(leaky.save(&state)),
        [1, 1, 0, 0, 1, 4, 0, 0, 0, 0, 0, 0, 0]
    );
    let rule = consecutive(9, 9);
    let state = after(&rule, Status::Critical, "PPP");
    assert_eq!(bytes(rule.save(&state)), [2, 1, 2, 0, 0, 3, 0, 0, 0]);
    let fresh = rule.start(Status::Warning, FirstResult::Believed, NOW);
    assert_eq!(bytes(rule.save(&fresh)), [2, 1, 1, 1, 1, 0, 0, 0, 0]);
}

#[test]
fn a_record_of_another_strategy_restarts_from_its_status() {
    let leaky = Leaky::new(3, 1);
    let state = after(&leaky, Status::Critical, "P");
    let rule = consecutive(3, 2);
    assert_eq!(
        rule.load(&leaky.save(&state), NOW),
        Loaded::Restarted(
            rule.start(Status::Critical, FirstResult::Counted, NOW),
            RestartReason::OtherStrategy
        )
    );
}

#[test]
fn a_record_of_another_version_restarts_from_its_status() {
    let leaky = Leaky::new(3, 1);
    let record = leaky.save(&after(&leaky, Status::Critical, "P"));
    let newer = Record::new(Leaky::TAG, 2, Status::Critical, record.payload()).unwrap();
    assert_eq!(
        leaky.load(&newer, NOW),
        Loaded::Restarted(
            leaky.start(Status::Critical, FirstResult::Counted, NOW),
            RestartReason::OtherVersion
        )
    );
}

#[test]
fn a_record_that_makes_no_sense_restarts_from_its_status() {
    let leaky = Leaky::new(3, 1);
    let damaged: [&[u8]; 9] = [
        &[],
        &[0, 2, 1, 0, 0, 0, 0, 0, 0],       // cut
        &[0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0], // too long
        &[2, 2, 1, 0, 0, 0, 0, 0, 0, 0],    // an unknown flag
        &[0, 3, 1, 0, 0, 0, 0, 0, 0, 0],    // no status
        &[0, 2, 0, 0, 0, 0, 1, 0, 0, 0],    // better than passing
        &[0, 0, 1, 0, 0, 0, 0, 0, 0, 0],    // a failure that passed
        &[1, 2, 1, 0, 0, 0, 0, 0, 0, 0],    // counted before the first result
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    ];
    for payload in damaged {
        let record = Record::new(Leaky::TAG, 1, Status::Passing, payload).expect("it is short");
        assert_eq!(
            leaky.load(&record, NOW),
            Loaded::Restarted(
                leaky.start(Status::Passing, FirstResult::Counted, NOW),
                RestartReason::Damaged
            ),
            "{payload:?}"
        );
    }
}

#[test]
fn a_run_that_makes_no_sense_restarts_from_its_status() {
    let rule = consecutive(9, 9);
    let damaged: [&[u8]; 5] = [
        &[],
        &[0, 2, 1, 0, 0],       // cut
        &[0, 2, 1, 0, 0, 0, 0], // too long
        &[0, 0, 1, 0, 0, 0],    // a failure that passed
        &[1, 2, 1, 0, 0, 0],    // counted before the first result
    ];
    for payload in damaged {
        let record = Record::new(Consecutive::TAG, 1, Status::Passing, payload);
        assert_eq!(
            rule.load(&record.expect("it is short"), NOW),
            Loaded::Restarted(
                rule.start(Status::Passing, FirstResult::Counted, NOW),
                RestartReason::Damaged
            ),
            "{payload:?}"
        );
    }
}

#[test]
fn bytes_that_are_no_record_are_refused() {
    assert_eq!(Record::read(&[]), None);
    assert_eq!(Record::read(&[1, 1]), None);
    assert_eq!(Record::read(&[1, 1, 3]), None, "there is no status 3");
    assert_eq!(Record::read(&[0; Record::MAX_PAYLOAD + 4]), None);
    assert!(Record::read(&[0; Record::MAX_PAYLOAD + 3]).is_some());
    let long = [0; Record::MAX_PAYLOAD + 1];
    assert_eq!(
        Record::new(StrategyTag(200), 1, Status::Passing, &long),
        None
    );
}

#[test]
fn tags_are_all_different_and_below_those_of_embedders() {
    let tags = [
        Leaky::TAG,
        Consecutive::TAG,
        Consul::TAG,
        Window::TAG,
        Ewma::TAG,
        Cusum::TAG,
        Hold::TAG,
        Dwell::TAG,
        Penalty::TAG,
        Flap::TAG,
        Heartbeat::TAG,
        ConsulEsm::TAG,
    ];
    for (index, tag) in tags.iter().enumerate() {
        assert!(tag.0 < 128);
        assert!(!tags[..index].contains(tag));
    }
}

#[test]
fn fewer_failures_asked_for_keep_the_ones_counted() {
    let mut state = after(&Leaky::new(4, 0), Status::Passing, "FFF");
    let less = Leaky::new(1, 0);
    state = less.adopt(&state, NOW);
    assert_eq!(less.reported(&state), Status::Passing);
    less.observe(&mut state, Status::Critical.into(), NOW);
    assert_eq!(less.reported(&state), Status::Critical);

    let mut state = after(&consecutive(5, 1), Status::Passing, "FFFF");
    let less = consecutive(2, 1);
    state = less.adopt(&state, NOW);
    assert_eq!(less.reported(&state), Status::Passing);
    less.observe(&mut state, Status::Critical.into(), NOW);
    assert_eq!(less.reported(&state), Status::Critical);
}

#[test]
fn fewer_failures_asked_for_leave_one_to_go() {
    let counts = |critical| Counts {
        failures_before_critical: critical,
        ..Counts::default()
    };
    let more = Consul::new(counts(5)).expect("valid");
    let less = Consul::new(counts(2)).expect("valid");
    let state = after(&more, Status::Passing, "FFFF");
    assert_eq!(
        less.outlook(&less.adopt(&state, NOW), NOW),
        Outlook::Counting {
            toward: Status::Critical,
            seen: 1,
            needed: 2,
            agreeing: Agreeing::Resets,
        }
    );
}

#[test]
fn more_failures_asked_for_keep_the_ones_counted() {
    let state = after(&Leaky::new(2, 0), Status::Passing, "FF");
    let more = Leaky::new(4, 0);
    assert_eq!(
        more.outlook(&more.adopt(&state, NOW), NOW),
        Outlook::Counting {
            toward: Status::Critical,
            seen: 2,
            needed: 5,
            agreeing: Agreeing::TakesOneOff,
        }
    );
}

#[test]
fn a_run_beyond_a_new_warning_threshold_goes_on() {
    let mut state = after(&consecutive(5, 1), Status::Passing, "FFF");
    let rule = consecutive_with_warning(2, 5, 1);
    state = rule.adopt(&state, NOW);
    assert_eq!(
        rule.outlook(&state, NOW),
        Outlook::Counting {
            toward: Status::Warning,
            seen: 3,
            needed: 4,
            agreeing: Agreeing::Resets,
        }
    );
    rule.observe(&mut state, Status::Critical.into(), NOW);
    assert_eq!(rule.reported(&state), Status::Warning);
    rule.observe(&mut state, Status::Critical.into(), NOW);
    assert_eq!(rule.reported(&state), Status::Critical);
}

#[test]
fn a_first_result_still_to_come_stays_so_under_another_strategy() {
    let leaky = AnyStrategy::from(Leaky::new(3, 0));
    let rule = AnyStrategy::from(consecutive(3, 1));
    let fresh = leaky.start(Status::Passing, FirstResult::Believed, NOW);
    assert_eq!(
        rule.outlook(&rule.adopt(&fresh, NOW), NOW),
        Outlook::FirstResult
    );
}

/// The same kind of strategy, asking for so much more that no count comes to a
/// flip, and without a level in between.
fn more_patient(rule: AnyStrategy) -> AnyStrategy {
    let more = |counts: Counts| Counts {
        failures_before_critical: counts.failures_before_critical + 9,
        failures_before_warning: None,
        success_before_passing: counts.success_before_passing + 9,
    };
    match rule {
        AnyStrategy::Leaky(rule) => {
            Leaky::new(rule.critical_threshold() + 9, rule.passing_threshold() + 9).into()
        }
        AnyStrategy::Consecutive(rule) => {
            Consecutive::new(more(rule.counts())).expect("valid").into()
        }
        _ => unreachable!("no other strategy is made up"),
    }
}

proptest! {
    #[test]
    fn a_restart_makes_no_difference(
        rule in any_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
        restarts in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let mut state = rule.start(initial, first, NOW);
        let mut restarted = state;
        for (observation, restart) in observations.into_iter().zip(restarts.into_iter().cycle()) {
            if restart {
                let (bytes, len) = rule.save(&restarted).write();
                let record = Record::read(&bytes[..len]).expect("it was just written");
                prop_assert_eq!(record.reported(), rule.reported(&restarted));
                prop_assert_eq!(rule.load(&record, NOW), Loaded::Resumed(restarted));
                restarted = rule.load(&record, NOW).into_state();
            }
            prop_assert_eq!(
                rule.observe(&mut restarted, observation, NOW),
                rule.observe(&mut state, observation, NOW)
            );
            prop_assert_eq!(restarted, state);
        }
    }

    #[test]
    fn the_same_parameters_adopt_the_same_state(
        rule in any_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
    ) {
        let mut state = rule.start(initial, first, NOW);
        for observation in observations {
            prop_assert_eq!(rule.adopt(&state, NOW), state);
            rule.observe(&mut state, observation, NOW);
        }
    }

    #[test]
    fn a_change_of_parameters_changes_no_status(
        before in any_strategy(),
        after in any_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
    ) {
        let mut state = before.start(initial, first, NOW);
        for observation in observations {
            before.observe(&mut state, observation, NOW);
            let adopted = after.adopt(&state, NOW);
            prop_assert_eq!(after.reported(&adopted), before.reported(&state));
            if let Outlook::Counting { seen, needed, .. } = after.outlook(&adopted, NOW) {
                prop_assert!(0 < seen && seen < needed);
            }
        }
    }

    /// Not so for Consul: without its warning threshold that rule may count toward
    /// another status.
    #[test]
    fn more_patience_keeps_every_count(
        rule in own_strategy(),
        initial in any_status(),
        observations in observations(),
    ) {
        let patient = more_patient(rule);
        let mut state = rule.start(initial, FirstResult::Counted, NOW);
        for observation in observations {
            rule.observe(&mut state, observation, NOW);
            let Outlook::Counting { seen: before, .. } = rule.outlook(&state, NOW) else {
                continue;
            };
            let adopted = patient.adopt(&state, NOW);
            let Outlook::Counting { seen: after, .. } = patient.outlook(&adopted, NOW) else {
                return Err(TestCaseError::fail("a count was lost"));
            };
            prop_assert_eq!(before, after);
        }
    }

    #[test]
    fn no_bytes_do_harm(
        rule in any_strategy(),
        tag in 0..5_u8,
        version in 0..3_u8,
        reported in 0..4_u8,
        payload in prop::collection::vec(prop_oneof![0..4_u8, any::<u8>()], 0..40),
        observations in observations(),
    ) {
        let mut bytes = vec![tag, version, reported];
        bytes.extend(payload);
        let Some(record) = Record::read(&bytes) else { return Ok(()) };
        let (written, len) = record.write();
        prop_assert_eq!(&written[..len], &bytes[..]);
        let mut state = rule.load(&record, NOW).into_state();
        prop_assert_eq!(rule.reported(&state), record.reported());
        for observation in observations {
            if let Outlook::Counting { seen, needed, .. } = rule.outlook(&state, NOW) {
                prop_assert!(0 < seen && seen < needed);
            }
            rule.observe(&mut state, observation, NOW);
        }
        rule.observe(&mut state, Observation::immediate(Status::Warning), NOW);
        prop_assert_eq!(rule.reported(&state), Status::Warning);
    }
}
