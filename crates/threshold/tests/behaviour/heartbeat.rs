//! Silence is a failure.

use std::time::Duration;

use evenkeel_threshold::{
    FirstResult, Heartbeat, HeartbeatParameters, Loaded, Outlook, Status, Strategy, Transition,
};
use proptest::prelude::*;

use crate::generators::{any_first, any_heartbeat, any_status, timed_observations};
use crate::support::{NOW, elapse_until};

fn at(second: i64) -> evenkeel_threshold::Timestamp {
    NOW.saturating_shift(second * 1000)
}

fn half_a_minute() -> Heartbeat {
    Heartbeat::new(HeartbeatParameters {
        silence: Duration::from_secs(30),
    })
    .expect("valid")
}

#[test]
fn a_target_that_falls_silent_is_critical_at_the_deadline() {
    let rule = half_a_minute();
    let mut state = rule.start(Status::Passing, FirstResult::Counted, at(0));
    rule.observe(&mut state, Status::Warning.into(), at(20));
    assert_eq!(
        rule.outlook(&state, at(21)),
        Outlook::Waiting {
            toward: Status::Critical,
            until: at(50)
        }
    );
    assert_eq!(rule.elapse(&mut state, at(50).saturating_shift(-1)), None);
    assert_eq!(
        rule.elapse(&mut state, at(50)),
        Some(Transition {
            from: Status::Warning,
            to: Status::Critical
        })
    );
    assert_eq!(rule.deadline(&state), None);
    rule.observe(&mut state, Status::Passing.into(), at(500));
    assert_eq!(rule.reported(&state), Status::Passing);
    assert_eq!(rule.deadline(&state), Some(at(530)));
}

#[test]
fn a_target_that_never_speaks_is_critical_after_the_start() {
    let rule = half_a_minute();
    let mut state = rule.start(Status::Passing, FirstResult::Believed, at(0));
    assert!(rule.elapse(&mut state, at(30)).is_some());
}

#[test]
fn a_pause_of_the_process_is_no_silence() {
    let rule = half_a_minute();
    let mut state = rule.start(Status::Passing, FirstResult::Counted, at(0));
    rule.shift(&mut state, 60_000);
    assert_eq!(rule.elapse(&mut state, at(89)), None);
    assert!(rule.elapse(&mut state, at(90)).is_some());
}

#[test]
fn a_result_from_the_future_does_not_make_a_saved_deadline_late() {
    let rule = half_a_minute();
    let mut state = rule.start(Status::Passing, FirstResult::Counted, at(0));
    rule.observe(&mut state, Status::Passing.into(), at(10_000));
    let Loaded::Resumed(loaded) = rule.load(&rule.save(&state), at(5)) else {
        panic!("the same rule wrote it");
    };
    assert_eq!(rule.deadline(&loaded), Some(at(35)));
}

#[test]
fn no_time_at_all_is_refused_by_name() {
    let error = Heartbeat::new(HeartbeatParameters {
        silence: Duration::from_micros(900),
    })
    .expect_err("less than the clock can tell");
    assert!(error.parameters().eq(["silence"]));
}

proptest! {
    /// By the latest result alone, and how long ago it was.
    #[test]
    fn a_heartbeat_reports_what_its_prose_says(
        rule in any_heartbeat(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
    ) {
        let mut now = NOW;
        let mut latest = (now, initial);
        let mut state = rule.start(initial, first, now);
        for (millis, observation) in observations {
            now = now.saturating_shift(millis as i64);
            elapse_until(&rule, &mut state, now);
            let silent = now.saturating_since(latest.0) >= rule.parameters().silence;
            let expected = if silent { Status::Critical } else { latest.1 };
            prop_assert_eq!(rule.reported(&state), expected);
            rule.observe(&mut state, observation, now);
            latest = (now, observation.status);
            prop_assert_eq!(rule.reported(&state), observation.status);
        }
    }
}
