//! Rules in which time has a part: `hold` and `dwell`.

use std::time::Duration;

use evenkeel_threshold::{
    Dwell, DwellParameters, FirstResult, Hold, Observation, Outlook, Status, Strategy, Timestamp,
};
use proptest::prelude::*;

use crate::generators::{any_dwell, any_first, any_hold, any_status, at_least, timed_observations};
use crate::support::{NOW, letter, status};

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(second: u64) -> Timestamp {
    NOW.saturating_add(seconds(second))
}

/// What is reported after each of these results, from passing.
fn play_at<S: Strategy>(rule: &S, results: &[(u64, char)]) -> String {
    let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
    results
        .iter()
        .map(|&(second, result)| {
            rule.observe(&mut state, status(result).into(), at(second));
            letter(rule.reported(&state))
        })
        .collect()
}

/// One result every 10 s.
fn play_every_ten<S: Strategy>(rule: &S, trace: &str) -> String {
    let timed: Vec<_> = (0..).step_by(10).zip(trace.chars()).collect();
    play_at(rule, &timed)
}

fn hold_for(time: u64) -> Hold {
    Hold {
        failing_for: seconds(time),
        ..Hold::default()
    }
}

#[test]
fn a_hold_flips_at_the_first_failure_after_its_time() {
    assert_eq!(play_every_ten(&hold_for(30), "FFFFF"), "PPPCC");
    assert_eq!(play_every_ten(&hold_for(29), "FFFFF"), "PPPCC");
    assert_eq!(play_every_ten(&hold_for(31), "FFFFF"), "PPPPC");
    assert_eq!(play_every_ten(&hold_for(0), "FP"), "CP");
    // One good result starts it anew.
    assert_eq!(play_every_ten(&hold_for(30), "FFFPFFFF"), "PPPPPPPC");
}

#[test]
fn faster_retries_do_not_shorten_a_hold() {
    let retries: Vec<_> = (0..40).map(|second| (second, 'F')).collect();
    assert_eq!(play_at(&hold_for(30), &retries).find('C'), Some(30));
}

#[test]
fn count_and_time_are_both_wanted() {
    let rule = Hold {
        failures: 3,
        ..hold_for(30)
    };
    let burst = [(0, 'F'), (1, 'F'), (2, 'F'), (29, 'F'), (30, 'F')];
    assert_eq!(play_at(&rule, &burst), "PPPPC");
    let slow = [(0, 'F'), (40, 'F'), (80, 'F')];
    assert_eq!(play_at(&rule, &slow), "PPC");
}

#[test]
fn recovery_has_a_time_of_its_own() {
    let rule = Hold {
        passing_for: seconds(20),
        ..Hold::default()
    };
    assert_eq!(play_every_ten(&rule, "FPPPP"), "CCCPP");
}

// P104
#[test]
fn a_pause_of_the_process_is_no_time() {
    let rule = hold_for(30);
    let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
    rule.observe(&mut state, Status::Critical.into(), at(0));
    rule.shift(&mut state, 100_000);
    rule.observe(&mut state, Status::Critical.into(), at(110));
    assert_eq!(rule.reported(&state), Status::Passing);
    assert_eq!(
        rule.outlook(&state, at(110)),
        Outlook::Waiting {
            toward: Status::Critical,
            until: at(130)
        }
    );
    rule.observe(&mut state, Status::Critical.into(), at(130));
    assert_eq!(rule.reported(&state), Status::Critical);
}

#[test]
fn a_clock_that_ran_backwards_does_not_hold_for_longer() {
    let rule = hold_for(30);
    let results = [(1000, 'F'), (10, 'F'), (30, 'F'), (40, 'F')];
    assert_eq!(play_at(&rule, &results), "PPPC");
    let dwell = Dwell::minimum(1, 1, seconds(60));
    let results = [(1000, 'F'), (10, 'P'), (69, 'P'), (70, 'P')];
    assert_eq!(play_at(&dwell, &results), "CCCP");
}

#[test]
fn a_minimum_dwell_settles_the_difference_at_its_end() {
    let rule = Dwell::minimum(1, 1, seconds(60));
    let mut trace = vec![(0, 'F')];
    trace.extend((5..=65).step_by(5).map(|second| (second, 'P')));
    let reported = play_at(&rule, &trace);
    assert_eq!(reported.find('P'), Some(12), "at 60 s");
    // There is no difference left.
    let back = [(0, 'F'), (5, 'P'), (55, 'F'), (60, 'F'), (65, 'P')];
    assert_eq!(play_at(&rule, &back), "CCCCP");
}

#[test]
fn a_hold_grows_with_every_failure() {
    let rule = Dwell::new(DwellParameters::default()).expect("valid");
    let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
    let mut now = NOW;
    for held in [30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 300, 300] {
        rule.observe(&mut state, Status::Critical.into(), now);
        rule.observe(&mut state, Status::Passing.into(), now);
        let until = now.saturating_add(seconds(held));
        assert_eq!(
            rule.outlook(&state, now),
            Outlook::Waiting {
                toward: Status::Passing,
                until
            }
        );
        let early = until.saturating_shift(-1);
        assert_eq!(
            rule.observe(&mut state, Status::Passing.into(), early),
            None
        );
        assert!(
            rule.observe(&mut state, Status::Passing.into(), until)
                .is_some()
        );
        // It fails again before anything is forgotten.
        now = until.saturating_add(seconds(9));
    }
}

#[test]
fn a_clean_interval_takes_one_failure_off() {
    let rule = Dwell::new(DwellParameters::default()).expect("valid");
    let held_after = |clean: u64| {
        let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
        let mut now = NOW;
        for held in [30, 60, 90] {
            rule.observe(&mut state, Status::Critical.into(), now);
            now = now.saturating_add(seconds(held));
            rule.observe(&mut state, Status::Passing.into(), now);
        }
        now = now.saturating_add(seconds(clean));
        rule.observe(&mut state, Status::Critical.into(), now);
        rule.observe(&mut state, Status::Passing.into(), now);
        let Outlook::Waiting { until, .. } = rule.outlook(&state, now) else {
            panic!("it is held");
        };
        until.saturating_since(now).as_secs()
    };
    assert_eq!(held_after(0), 120);
    assert_eq!(held_after(9), 120);
    assert_eq!(held_after(10), 90);
    assert_eq!(held_after(29), 60);
    assert_eq!(held_after(1000), 30);
}

#[test]
fn times_that_contradict_each_other_are_refused_by_name() {
    let error = Dwell::new(DwellParameters {
        after_failure: seconds(31),
        after_failure_max: seconds(30),
        ..DwellParameters::default()
    })
    .expect_err("it cannot grow to less");
    assert!(
        error
            .parameters()
            .eq(["after_failure_max", "after_failure"])
    );
}

proptest! {
    #![proptest_config(at_least(1024))]

    /// The run is looked up in the whole history.
    #[test]
    fn a_hold_reports_what_its_prose_says(
        rule in any_hold(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
    ) {
        let mut history: Vec<(Timestamp, Status)> = Vec::new();
        let mut reported = initial;
        let mut believe_next = first == FirstResult::Believed;
        let mut now = NOW;
        let mut state = rule.start(initial, first, now);
        for (millis, Observation { status, immediate }) in observations {
            now = now.saturating_shift(millis as i64);
            history.push((now, status));
            let side = status.cmp(&reported);
            let run: Vec<_> = history
                .iter()
                .rev()
                .take_while(|(_, result)| result.cmp(&reported) == side)
                .collect();
            let (count, time) = if status < reported {
                (rule.successes, rule.passing_for)
            } else {
                (rule.failures, rule.failing_for)
            };
            let lasted = now.saturating_since(run[run.len() - 1].0);
            if immediate || believe_next || (run.len() as u32 >= count && lasted >= time) {
                if status != reported || immediate || believe_next {
                    history.clear();
                }
                (reported, believe_next) = (status, false);
            }
            rule.observe(&mut state, Observation { status, immediate }, now);
            prop_assert_eq!(rule.reported(&state), reported);
        }
    }

    /// Every change so far is kept, and the failures are counted anew.
    #[test]
    fn a_dwell_reports_what_its_prose_says(
        rule in any_dwell(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
    ) {
        let parameters = rule.parameters();
        let mut run: Vec<Status> = Vec::new();
        let mut changes: Vec<(Timestamp, Status, Status)> = Vec::new();
        let mut reported = initial;
        let mut believe_next = first == FirstResult::Believed;
        let mut now = NOW;
        let mut state = rule.start(initial, first, now);
        for (millis, Observation { status, immediate }) in observations {
            now = now.saturating_shift(millis as i64);
            let number = |until: usize| {
                let mut number: u64 = 0;
                let mut clean_since = None;
                for &(time, from, to) in &changes[..until] {
                    if from == Status::Passing && to > from {
                        if let Some(since) = clean_since {
                            let clean = time.saturating_since(since).as_millis() as u64;
                            let forgiven = clean
                                .checked_div(parameters.forgive_after.as_millis() as u64)
                                .unwrap_or(u64::MAX);
                            number = number.saturating_sub(forgiven);
                        }
                        number += 1;
                    }
                    if to == Status::Passing {
                        clean_since = Some(time);
                    }
                }
                number
            };
            let free = changes.last().is_none_or(|&(time, from, to)| {
                let held = if to < from {
                    parameters.after_recovery
                } else {
                    let times = number(changes.len()).clamp(1, 255) as u32;
                    (parameters.after_failure * times).min(parameters.after_failure_max)
                };
                now >= time.saturating_add(held)
            });
            if status == reported {
                run.clear();
            } else if run.first().is_some_and(|one| one.cmp(&reported) != status.cmp(&reported)) {
                run = vec![status];
            } else {
                run.push(status);
            }
            let needed = if status < reported { parameters.successes } else { parameters.failures };
            if believe_next {
                (reported, believe_next) = (status, false);
                run.clear();
            } else if immediate || (status != reported && free && run.len() as u32 >= needed) {
                run.clear();
                if status != reported {
                    changes.push((now, reported, status));
                }
                reported = status;
            }
            rule.observe(&mut state, Observation { status, immediate }, now);
            prop_assert_eq!(rule.reported(&state), reported);
        }
    }
}
