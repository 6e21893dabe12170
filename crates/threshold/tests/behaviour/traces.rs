//! Traces of other programs, and one input through several rules.

use evenkeel_threshold::{Consul, Counts, FirstResult, Leaky, Status};

use crate::support::{T1, T3, T4, consecutive, first, play, play_counted};

fn consul(passing: u32, warning: u32, critical: u32) -> Consul {
    Consul::new(Counts {
        failures_before_critical: critical,
        failures_before_warning: Some(warning),
        success_before_passing: passing,
    })
    .expect("the counts are valid")
}

fn as_agent(rule: &Consul, trace: &str) -> String {
    // A check is registered critical unless its registration says otherwise.
    play(rule, Status::Critical, FirstResult::Believed, trace)
}

// Consul's StatusHandler (agent/checks/check.go), traced by hand.
#[test]
fn consul_degrades_before_it_turns_critical() {
    assert_eq!(
        as_agent(&consul(2, 2, 3), "FPPFFFPPFPFPFF"),
        "CCPPWCCPPPPPPW"
    );
}

#[test]
fn consul_believes_the_first_result_only() {
    assert_eq!(as_agent(&consul(1, 3, 3), "PFFPFFFP"), "PPPPPPCP");
}

#[test]
fn consul_takes_a_warning_for_a_success() {
    let rule = consul(1, 3, 3);
    // Never three failures in a row: the warning is one success.
    assert_eq!(as_agent(&rule, "PFFWFFPFF"), "PPPWWWPPP");
    // Held until there are enough successes, of either kind.
    let rule = consul(3, 3, 3);
    assert_eq!(as_agent(&rule, "FPWW"), "CCCW");
    assert_eq!(as_agent(&rule, "FWWP"), "CCCP");
    // From there on each is reported as it is.
    assert_eq!(as_agent(&rule, "PWPW"), "PWPW");
}

#[test]
fn consul_can_go_from_critical_to_warning_by_failures() {
    assert_eq!(as_agent(&consul(2, 2, 4), "FPFFFF"), "CCCWWC");
}

#[test]
fn consul_reads_no_warning_threshold_as_the_critical_one() {
    for unset in [None, Some(0)] {
        let rule = Consul::new(Counts {
            failures_before_critical: 3,
            failures_before_warning: unset,
            success_before_passing: 1,
        })
        .expect("the counts are valid");
        assert_eq!(as_agent(&rule, "PFFF"), "PPPC");
    }
}

// consul-esm, documented: the flip comes at count N + 1.
#[test]
fn leaky_flips_one_failure_after_the_critical_threshold() {
    for threshold in 0..=6 {
        let leaky = Leaky::new(threshold, 0);
        let needed = threshold as usize + 1;
        let after_success = play_counted(&leaky, &format!("P{}", "F".repeat(20)));
        assert_eq!(first(&after_success[1..], 'C'), Some(needed));
        let cold = play_counted(&leaky, &"F".repeat(20));
        assert_eq!(first(&cold, 'C'), Some(needed));
    }
}

#[test]
fn leaky_flips_one_success_after_the_passing_threshold() {
    for threshold in 0..=4 {
        let leaky = Leaky::new(0, threshold);
        let reported = play_counted(&leaky, &format!("F{}", "P".repeat(20)));
        assert_eq!(first(&reported, 'C'), Some(1));
        assert_eq!(first(&reported[1..], 'P'), Some(threshold as usize + 1));
    }
}

#[test]
fn one_input_through_consecutive() {
    let slow_up = consecutive(3, 2);
    assert_eq!(play_counted(&slow_up, T1), "PPPPPPPPPCCCCCPPPP");
    assert_eq!(play_counted(&slow_up, T3), "PPPPPPPPPPPPPPPP");
    assert_eq!(play_counted(&slow_up, T4), "PPPPPCCCCCCPPPPPP");
    let fast_up = consecutive(3, 1);
    assert_eq!(play_counted(&fast_up, T1), "PPPPPPPPPCCPPPPPPP");
    assert_eq!(play_counted(&fast_up, T3), "PPPPPPPPPPPPPPPP");
    assert_eq!(play_counted(&fast_up, T4), "PPPPPCCCCCPPPPPPP");
}

// HAProxy with rise 2 and fall 3, started as by default, falls at a failure that
// is its first check: the same as a first result that is believed.
#[test]
fn one_input_through_consecutive_as_haproxy_starts_it() {
    let play = |trace| {
        play(
            &consecutive(3, 2),
            Status::Passing,
            FirstResult::Believed,
            trace,
        )
    };
    assert_eq!(play(T1), "PPPPPPPPPCCCCCPPPP");
    assert_eq!(play(T3), "CCCCCCCCCCPPPPPP");
    assert_eq!(play(T4), "PPPPPCCCCCCPPPPPP");
}

#[test]
fn haproxy_fully_up_is_consecutive() {
    assert_eq!(play_counted(&consecutive(3, 2), "FFPFFFPFPP"), "PPPPPCCCCP");
}

#[test]
fn one_input_through_leaky() {
    let esm = Leaky::new(3, 0);
    assert_eq!(play_counted(&esm, T1), "PPPPPPPPPCCPPPPPPP");
    assert_eq!(play_counted(&esm, T3), "PPPPPPPPPPPPPPPP");
    assert_eq!(play_counted(&esm, T4), "PPPPPPCCCCPPPPPPP");
    let slow_up = Leaky::new(2, 1);
    assert_eq!(play_counted(&slow_up, T1), "PPPPPPPPCCCCCCPPPP");
    assert_eq!(play_counted(&slow_up, T3), "PPPPPPPPPPPPPPPP");
    assert_eq!(play_counted(&slow_up, T4), "PPPPPCCCCCCPPPPPP");
}

// The levels, by the rule's own prose.
#[test]
fn the_flip_goes_to_the_level_of_the_latest_result() {
    assert_eq!(play_counted(&Leaky::new(3, 0), "WWWC"), "PPPC");
    assert_eq!(play_counted(&Leaky::new(3, 0), "CCCW"), "PPPW");
    assert_eq!(play_counted(&consecutive(4, 1), "WWWC"), "PPPC");
    assert_eq!(play_counted(&consecutive(4, 1), "CCCW"), "PPPW");
    let rule = consecutive(1, 3);
    let from_critical = |trace| play(&rule, Status::Critical, FirstResult::Counted, trace);
    assert_eq!(from_critical("PPW"), "CCW");
    assert_eq!(from_critical("WWP"), "CCP");
}

#[test]
fn warning_stays_while_a_target_alternates_around_it() {
    let from_warning = |trace| {
        (
            play(
                &Leaky::new(1, 1),
                Status::Warning,
                FirstResult::Counted,
                trace,
            ),
            play(
                &consecutive(2, 2),
                Status::Warning,
                FirstResult::Counted,
                trace,
            ),
        )
    };
    assert_eq!(
        from_warning("CPCPCPCP"),
        ("WWWWWWWW".into(), "WWWWWWWW".into())
    );
    assert_eq!(from_warning("CWC"), ("WWW".into(), "WWW".into()));
    assert_eq!(from_warning("CC"), ("WC".into(), "WC".into()));
    assert_eq!(from_warning("PP"), ("WP".into(), "WP".into()));
}
