//! Parameters cannot be wrong once they are in a strategy.

use std::time::Duration;

use evenkeel_threshold::{
    AnyStrategy, Consecutive, Consul, ConsulEsm, Counts, Cusum, Dwell, Ewma, FirstResult, Flap,
    Heartbeat, Hold, Leaky, Penalty, Window,
};
use proptest::prelude::*;

use crate::support::{consecutive, consecutive_with_warning, play_counted};
#[cfg(feature = "serde")]
use crate::window::window;

const ZERO: Counts = Counts {
    failures_before_critical: 0,
    failures_before_warning: None,
    success_before_passing: 0,
};

#[test]
fn zero_is_one() {
    let rule = Consecutive::new(ZERO).expect("0 is 1");
    assert_eq!(rule, consecutive(1, 1));
    assert_eq!(rule.counts(), Counts::default());
    assert_eq!(Consul::new(ZERO), Ok(Consul::default()));
    let at_once = Consecutive::new(Counts {
        failures_before_critical: 3,
        failures_before_warning: Some(0),
        success_before_passing: 1,
    });
    assert_eq!(at_once, Ok(consecutive_with_warning(1, 3, 1)));
}

#[test]
fn a_warning_threshold_like_the_critical_one_is_none() {
    assert_eq!(consecutive_with_warning(3, 3, 1), consecutive(3, 1));
}

#[test]
fn the_largest_numbers_count() {
    let trace = "F".repeat(1000);
    let most = u32::MAX;
    assert_eq!(
        play_counted(&Leaky::new(most, most), &trace),
        "P".repeat(1000)
    );
    assert_eq!(
        play_counted(&consecutive(most, most), &trace),
        "P".repeat(1000)
    );
}

#[test]
fn the_default_is_no_damping() {
    assert_eq!(AnyStrategy::default(), Leaky::new(0, 0).into());
    assert_eq!(play_counted(&AnyStrategy::default(), "PFWPF"), "PCWPC");
}

#[test]
fn each_strategy_has_the_first_result_of_its_model() {
    let first = |rule: AnyStrategy| rule.default_first_result();
    assert_eq!(first(Leaky::default().into()), FirstResult::Counted);
    assert_eq!(first(Consecutive::default().into()), FirstResult::Believed);
    assert_eq!(first(Consul::default().into()), FirstResult::Believed);
    assert_eq!(first(Window::default().into()), FirstResult::Counted);
    assert_eq!(first(Ewma::default().into()), FirstResult::Counted);
    assert_eq!(first(Cusum::default().into()), FirstResult::Counted);
}

fn half_a_second() -> Hold {
    Hold {
        failing_for: Duration::from_millis(1500),
        ..Hold::default()
    }
}

#[test]
fn a_strategy_prints_as_a_directive() {
    let text = |rule: AnyStrategy| rule.to_string();
    assert_eq!(
        text(Leaky::new(3, 1).into()),
        "strategy=leaky critical-threshold=3 passing-threshold=1"
    );
    assert_eq!(
        text(consecutive(3, 1).into()),
        "strategy=consecutive failures-before-critical=3 success-before-passing=1"
    );
    assert_eq!(
        text(consecutive_with_warning(2, 4, 0).into()),
        "strategy=consecutive failures-before-critical=4 failures-before-warning=2 \
         success-before-passing=1"
    );
    assert_eq!(
        text(Consul::default().into()),
        "strategy=consul failures-before-critical=1 success-before-passing=1"
    );
    assert_eq!(
        text(Window::default().into()),
        "strategy=window results=5 failures=3 recovered-at=1"
    );
    assert_eq!(
        text(Ewma::default().into()),
        "strategy=ewma alpha=0.3 high=0.7 low=0.3"
    );
    assert_eq!(
        text(Cusum::default().into()),
        "strategy=cusum p0=0.05 p1=0.7 h=5"
    );
    assert_eq!(
        text(half_a_second().into()),
        "strategy=hold failures=1 failing-for=1500ms successes=1 passing-for=0s"
    );
    assert_eq!(
        text(Dwell::default().into()),
        "strategy=dwell failures=1 successes=1 after-recovery=0s after-failure=30s \
         after-failure-max=5m forgive-after=10s"
    );
    assert_eq!(
        text(Penalty::default().into()),
        "strategy=penalty failures=1 successes=1 half-life=15m suppress=6000 reuse=750 \
         longest=1h while-suppressed=last-stable"
    );
    assert_eq!(
        text(Heartbeat::default().into()),
        "strategy=heartbeat silence=30s"
    );
    assert_eq!(
        text(ConsulEsm::default().into()),
        "strategy=consul-esm critical-threshold=0 passing-threshold=0"
    );
    assert_eq!(
        text(Flap::default().into()),
        "strategy=flap failures=1 successes=1 weights=icinga low=25 high=30 every-result=true"
    );
}

proptest! {
    #[test]
    fn counts_are_refused_if_and_only_if_the_warning_comes_too_late(
        critical: u32,
        warning: Option<u32>,
        passing: u32,
    ) {
        let counts = Counts {
            failures_before_critical: critical,
            failures_before_warning: warning,
            success_before_passing: passing,
        };
        let late = warning.is_some_and(|warning| warning.max(1) > critical.max(1));
        prop_assert_eq!(Consecutive::new(counts).is_err(), late);
        prop_assert_eq!(Consul::new(counts).is_err(), late);
        if let Ok(rule) = Consecutive::new(counts) {
            prop_assert_eq!(Consecutive::new(rule.counts()), Ok(rule));
        }
    }
}

#[cfg(feature = "serde")]
mod serialised {
    use evenkeel_threshold::Status;

    use super::*;

    #[test]
    fn strategies_read_what_they_write() {
        let texts = [
            (
                AnyStrategy::from(Leaky::new(3, 1)),
                r#"{"leaky":{"critical_threshold":3,"passing_threshold":1}}"#,
            ),
            (
                consecutive_with_warning(2, 4, 1).into(),
                r#"{"consecutive":{"failures_before_critical":4,"failures_before_warning":2,"success_before_passing":1}}"#,
            ),
            (
                Consul::default().into(),
                r#"{"consul":{"failures_before_critical":1,"success_before_passing":1}}"#,
            ),
            (
                window(4, 6, 2).into(),
                r#"{"window":{"results":6,"failures":4,"recovered_at":2}}"#,
            ),
            (
                Ewma::default().into(),
                r#"{"ewma":{"alpha":0.3,"high":0.7,"low":0.3}}"#,
            ),
            (
                Cusum::default().into(),
                r#"{"cusum":{"p0":0.05,"p1":0.7,"h":5.0}}"#,
            ),
            (
                half_a_second().into(),
                r#"{"hold":{"failures":1,"failing_for_ms":1500,"successes":1,"passing_for_ms":0}}"#,
            ),
            (
                Dwell::default().into(),
                r#"{"dwell":{"failures":1,"successes":1,"after_recovery_ms":0,"after_failure_ms":30000,"after_failure_max_ms":300000,"forgive_after_ms":10000}}"#,
            ),
            (
                Penalty::default().into(),
                r#"{"penalty":{"failures":1,"successes":1,"half_life_ms":900000,"suppress":6000,"reuse":750,"longest_ms":3600000,"while_suppressed":"last-stable"}}"#,
            ),
            (
                Heartbeat::default().into(),
                r#"{"heartbeat":{"silence_ms":30000}}"#,
            ),
            (
                ConsulEsm::default().into(),
                r#"{"consul-esm":{"critical_threshold":0,"passing_threshold":0}}"#,
            ),
            (
                Flap::default().into(),
                r#"{"flap":{"failures":1,"successes":1,"weights":"icinga","low":25,"high":30,"every_result":true}}"#,
            ),
        ];
        for (rule, text) in texts {
            assert_eq!(serde_json::to_string(&rule).unwrap(), text);
            assert_eq!(serde_json::from_str::<AnyStrategy>(text).unwrap(), rule);
        }
    }

    #[test]
    fn what_is_left_out_is_no_damping() {
        let rule: AnyStrategy = serde_json::from_str(r#"{"leaky": {}}"#).unwrap();
        assert_eq!(rule, AnyStrategy::default());
        let rule: Consecutive = serde_json::from_str(r#"{"failures_before_critical": 3}"#).unwrap();
        assert_eq!(rule, consecutive(3, 1));
    }

    #[test]
    fn faults_are_refused_by_name() {
        let faults = [
            (
                r#"{"consecutive": {"failures_before_critical": 3, "failures_before_warning": 5}}"#,
                "failures_before_warning must not be more than failures_before_critical",
            ),
            (r#"{"leaky": {"critical": 3}}"#, "unknown field `critical`"),
            (r#"{"leaky": {"critical_threshold": -1}}"#, "-1"),
            (r#"{"leeky": {}}"#, "leeky"),
            (r#"{"window": {"results": 65}}"#, "results must be 1 to 64"),
            (r#"{"ewma": {"alpha": 2}}"#, "alpha must be 0.001 to 1"),
            (
                r#"{"cusum": {"p0": 0.8}}"#,
                "p0 must be at least 0.0001 less than p1",
            ),
            (
                r#"{"dwell": {"after_failure_max_ms": 1}}"#,
                "after_failure_max must not be less than",
            ),
        ];
        for (text, named) in faults {
            let error = serde_json::from_str::<AnyStrategy>(text)
                .unwrap_err()
                .to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn statuses_are_words() {
        assert_eq!(
            serde_json::to_string(&Status::Warning).unwrap(),
            r#""warning""#
        );
        assert_eq!(
            serde_json::from_str::<Status>(r#""critical""#).unwrap(),
            Status::Critical
        );
    }
}
