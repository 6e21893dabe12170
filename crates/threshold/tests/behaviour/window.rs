//! M of N.

use evenkeel_threshold::{
    FirstResult, Observation, Outlook, Status, Strategy, Window, WindowParameters,
};
use proptest::prelude::*;

use crate::generators::{any_first, any_status, any_window, at_least, observations};
use crate::mean_probes::{P, assert_prints, to_critical};
use crate::support::{NOW, T1, T3, T4, consecutive, first, play, play_counted, results};

pub(crate) fn window(failures: u32, results: u32, recovered_at: u32) -> Window {
    Window::new(WindowParameters {
        results,
        failures,
        recovered_at,
    })
    .expect("the parameters are valid")
}

#[test]
fn one_input_through_a_window() {
    let rule = window(3, 5, 1);
    assert_eq!(play_counted(&rule, T1), "PPPPPCCCCCCCCCCPPP");
    assert_eq!(play_counted(&rule, T3), "PPPPCCCCCCCPPPPP");
    assert_eq!(play_counted(&rule, T4), "PPPPPCCCCCCCCPPPP");
}

#[test]
fn a_window_takes_so_many_probes_to_a_false_flip() {
    let table = [
        ((2, 3), ["5125", "225", "62.6", "18.9", "9.87"]),
        ((3, 5), ["1.73e5", "1608", "243", "44.0", "18.4"]),
        ((4, 5), ["2.56e7", "4.49e4", "3172", "258", "67.3"]),
        ((5, 10), ["8.5e7", "3.65e4", "1674", "118", "34.6"]),
        ((7, 10), ["1.2e12", "1.91e7", "1.9e5", "2539", "272"]),
        ((8, 10), ["2.9e14", "8.4e8", "3.9e6", "2.26e4", "1379"]),
    ];
    for ((failures, results), row) in table {
        for (p, printed) in P.into_iter().zip(row) {
            let what = format!("{failures} of {results}, p {p}");
            assert_prints(
                to_critical(&window(failures, results, 0), p),
                printed,
                &what,
            );
        }
    }
}

/// All ways in which the results of a full window can fall.
#[test]
fn without_hysteresis_a_full_window_is_critical_as_often_as_the_binomial_tail_says() {
    let choose = |n: u32, k: u32| (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
    for (failures, size) in [(2, 3), (3, 5), (4, 5), (5, 10), (7, 10), (8, 10)] {
        let rule = window(failures, size, failures - 1);
        for p in P {
            let tail: f64 = (failures..=size)
                .map(|i| choose(size, i) * p.powi(i as i32) * (1.0 - p).powi((size - i) as i32))
                .sum();
            let mut critical = 0.0;
            for way in 0..1_u32 << size {
                let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
                let mut probability = 1.0;
                for result in 0..size {
                    let failed = way >> result & 1 == 1;
                    probability *= if failed { p } else { 1.0 - p };
                    let status = if failed {
                        Status::Critical
                    } else {
                        Status::Passing
                    };
                    rule.observe(&mut state, status.into(), NOW);
                }
                if rule.reported(&state) == Status::Critical {
                    critical += probability;
                }
            }
            assert!(
                (critical - tail).abs() <= 1e-12 * tail.max(1e-12),
                "{failures} of {size}, p {p}: {critical} is not {tail}"
            );
        }
    }
}

#[test]
fn a_hard_failure_takes_as_many_probes_as_failures_are_wanted() {
    for failures in 1..=6 {
        let reported = play_counted(&window(failures, 6, 0), "FFFFFFFFFF");
        assert_eq!(first(&reported, 'C'), Some(failures as usize));
    }
}

#[test]
fn recovery_after_a_long_outage_takes_the_rest_of_the_window() {
    for recovered_at in 0..3 {
        let trace = "PPPPPPPPPPPP";
        let rule = window(3, 5, recovered_at);
        let reported = play(&rule, Status::Critical, FirstResult::Counted, trace);
        assert_eq!(first(&reported, 'P'), Some(5 - recovered_at as usize));
    }
}

#[test]
fn recovery_goes_to_the_level_that_the_window_bears_out() {
    let rule = window(3, 5, 1);
    let from_critical = |trace| play(&rule, Status::Critical, FirstResult::Counted, trace);
    assert_eq!(from_critical("WWWWWPPPP"), "CCCWWWWWP");
    // The fifth result finds two warnings still.
    assert_eq!(from_critical("WPWPPPPP"), "CCCCCPPP");
    assert_eq!(play_counted(&rule, "WWCCC"), "PPCCC");
    assert_eq!(play_counted(&rule, "CCW"), "PPW");
}

#[test]
fn an_outlook_knows_which_failures_will_still_be_in_the_window() {
    let after = |trace: &str| {
        let rule = window(4, 5, 1);
        let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
        for result in results(trace) {
            rule.observe(&mut state, result.into(), NOW);
        }
        match rule.outlook(&state, NOW) {
            Outlook::Counting {
                toward,
                seen,
                needed,
                ..
            } => Some((toward, seen, needed)),
            _ => None,
        }
    };
    let critical = |seen| Some((Status::Critical, seen, 4));
    assert_eq!(after("F"), critical(1));
    assert_eq!(after("FF"), critical(2));
    assert_eq!(after("FPF"), critical(2));
    // Two failures are there, but one leaves before two more can come.
    assert_eq!(after("FPPF"), critical(1));
    assert_eq!(after("FPP"), None);
    assert_eq!(after("FFFF"), None);
    assert_eq!(after("FFFFFP"), Some((Status::Passing, 1, 4)));
}

#[test]
fn parameters_that_make_no_window_are_refused_by_name() {
    let fault = |failures, results, recovered_at| {
        Window::new(WindowParameters {
            results,
            failures,
            recovered_at,
        })
        .expect_err("it makes no window")
    };
    assert!(fault(1, 0, 0).parameters().eq(["results"]));
    assert!(fault(1, 65, 0).parameters().eq(["results"]));
    assert!(fault(6, 5, 0).parameters().eq(["failures", "results"]));
    assert!(fault(3, 5, 3).parameters().eq(["recovered_at", "failures"]));
    assert_eq!(
        fault(3, 5, 3).to_string(),
        "recovered_at must be less than failures"
    );
    assert_eq!(fault(3, 65, 0).to_string(), "results must be 1 to 64");
    assert_eq!(
        fault(66, 65, 70).to_string(),
        "results must be 1 to 64; recovered_at must be less than failures"
    );
    assert_eq!(window(0, 5, 0), window(1, 5, 0));
}

#[test]
fn the_largest_window_counts() {
    let rule = window(64, 64, 63);
    let reported = play_counted(&rule, &"F".repeat(70));
    assert_eq!(first(&reported, 'C'), Some(64));
}

proptest! {
    #![proptest_config(at_least(1024))]

    /// The prose, with every result kept.
    #[test]
    fn a_window_reports_what_its_prose_says(
        rule in any_window(),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
    ) {
        let WindowParameters { results, failures, recovered_at } = rule.parameters();
        let mut kept = vec![initial; results as usize];
        let mut reported = initial;
        let mut believe_next = first == FirstResult::Believed;
        let mut state = rule.start(initial, first, NOW);
        for Observation { status, immediate } in observations {
            if immediate || believe_next {
                kept = vec![status; results as usize];
                reported = status;
                believe_next = false;
            } else {
                kept.push(status);
                let latest = &kept[kept.len() - results as usize..];
                let worse_than =
                    |than| latest.iter().filter(|&&result| result > than).count() as u32;
                if (status > reported && worse_than(reported) >= failures)
                    || (status < reported && worse_than(status) <= recovered_at)
                {
                    reported = status;
                }
            }
            rule.observe(&mut state, Observation { status, immediate }, NOW);
            prop_assert_eq!(rule.reported(&state), reported);
        }
    }

    #[test]
    fn a_window_of_failures_only_is_consecutive_on_the_way_down(
        failures in 1..=64_u32,
        observations in observations(),
        recovered_at in 0..64_u32,
    ) {
        let rule = window(failures, failures, recovered_at.min(failures - 1));
        let counts = consecutive(failures, 1);
        let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
        let mut run = counts.start(Status::Passing, FirstResult::Counted, NOW);
        for observation in observations {
            let flip = rule.observe(&mut state, observation, NOW);
            prop_assert_eq!(flip, counts.observe(&mut run, observation, NOW));
            if flip.is_some() || observation.immediate {
                break;
            }
        }
    }
}
