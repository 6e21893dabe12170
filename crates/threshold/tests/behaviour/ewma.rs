//! The moving average.

use evenkeel_threshold::{Ewma, EwmaParameters, FirstResult, Observation, Status, Strategy};
use proptest::prelude::*;

use crate::generators::{any_ewma, any_first, any_status, at_least, observations};
use crate::mean_probes::{P, assert_prints};
use crate::support::{NOW, T1, T3, T4, counting, first, play, play_counted, results, state_after};

pub(crate) fn ewma(alpha: f64, high: f64, low: f64) -> Ewma {
    Ewma::new(EwmaParameters { alpha, high, low }).expect("the parameters are valid")
}

#[test]
fn one_input_through_an_average() {
    let rule = ewma(0.3, 0.7, 0.3);
    assert_eq!(play_counted(&rule, T1), "PPPPPPPPCCCCCCCPPP");
    assert_eq!(play_counted(&rule, T3), "PPPPPPPPPPPPPPPP");
    assert_eq!(play_counted(&rule, T4), "PPPPPPCCCCCCCPPPP");
}

#[test]
fn the_share_goes_through_these_values() {
    let rule = ewma(0.3, 0.7, 0.3);
    let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
    let values = [0.3, 0.51, 0.657, 0.7599, 0.8319, 0.5824, 0.4076, 0.2854];
    let mut reported = String::new();
    for (result, value) in results("FFFFFPPP").zip(values) {
        rule.observe(&mut state, result.into(), NOW);
        assert!((state.share_critical() - value).abs() < 1e-4);
        reported.push_str(&rule.reported(&state).as_str()[..1]);
    }
    assert_eq!(reported, "pppccccp");
}

#[test]
fn recovery_from_a_long_outage_takes_so_many_successes() {
    let reported = play(
        &ewma(0.3, 0.7, 0.3),
        Status::Critical,
        FirstResult::Counted,
        "PPPPPP",
    );
    assert_eq!(first(&reported, 'P'), Some(4));
}

#[test]
fn alternation_tends_to_a_share_below_the_threshold() {
    let rule = ewma(0.3, 0.7, 0.3);
    let state = state_after(&rule, Status::Passing, &"PF".repeat(200));
    assert!((state.share_critical() - 1.0 / 1.7).abs() < 1e-9);
    assert_eq!(state.reported(), Status::Passing);
}

#[test]
fn a_threshold_that_is_met_exactly_counts() {
    // As a user writes it, in few digits; the computed share is off by an ulp
    // for some of these.
    for tenths in 1..=9 {
        for failures in 1..=6 {
            let alpha = f64::from(tenths) / 10.0;
            let share = 1.0 - (1.0 - alpha).powi(failures);
            let written: f64 = format!("{share:.6}").parse().expect("a number");
            if !(0.3..0.999).contains(&written) || (share - written).abs() > 1e-13 {
                continue;
            }
            let reported = play_counted(&ewma(alpha, written, 0.1), "FFFFFF");
            assert_eq!(
                first(&reported, 'C'),
                Some(failures as usize),
                "{alpha} {written}"
            );
            // And the same on the way up.
            let low = 1.0 - written;
            let rule = ewma(alpha, 0.9985, low.max(0.001));
            let reported = play(&rule, Status::Critical, FirstResult::Counted, "PPPPPPP");
            assert_eq!(
                first(&reported, 'P'),
                Some(failures as usize),
                "{alpha} {low}"
            );
        }
    }
}

const TABLE: [(f64, f64, usize, [&str; 5]); 3] = [
    (0.5, 0.8, 3, ["5.08e5", "4.33e3", "589", "88.3", "31.7"]),
    (0.3, 0.7, 4, ["3.31e7", "5.22e4", "3.29e3", "233", "58.8"]),
    (0.2, 0.6, 5, ["6.27e8", "2.08e5", "7.19e3", "317", "68.4"]),
];

#[test]
fn a_hard_failure_takes_so_many_probes() {
    for (alpha, high, needed, _) in TABLE {
        let reported = play_counted(&ewma(alpha, high, 0.1), "FFFFFFFF");
        assert_eq!(first(&reported, 'C'), Some(needed));
        let formula = ((1.0 - high).ln() / (1.0 - alpha).ln()).ceil();
        assert_eq!(formula, needed as f64);
    }
}

/// The mean number of probes to a share of `high`, with every share rounded to a
/// multiple of `1 / cells` in one direction: a bound.
fn mean_probes(alpha: f64, high: f64, p: f64, cells: usize, up: bool) -> f64 {
    let round = |share: f64| {
        let cell = share * cells as f64;
        if up {
            (cell - 1e-9).ceil() as usize
        } else {
            (cell + 1e-9).floor() as usize
        }
    };
    let end = (high - 1e-12) * cells as f64;
    let next = |cell: usize, failure: bool| {
        let share = (1.0 - alpha) * cell as f64 / cells as f64;
        round(share + if failure { alpha } else { 0.0 })
    };
    // Where nothing but successes lead to.
    let mut rest = 0;
    while next(rest, false) != rest || (up && next(rest + 1, false) == rest + 1) {
        rest += 1;
    }
    let (mut cycle, mut flips) = (0.0, 0.0);
    let mut mass = vec![0.0; cells + 2];
    mass[rest] = 1.0;
    loop {
        let mut then = vec![0.0; cells + 2];
        for (cell, &mass) in mass.iter().enumerate().filter(|(_, mass)| **mass > 1e-30) {
            cycle += mass;
            let failed = next(cell, true);
            if failed as f64 >= end {
                flips += mass * p;
            } else {
                then[failed] += mass * p;
            }
            let passed = next(cell, false);
            if passed != rest {
                then[passed] += mass * (1.0 - p);
            }
        }
        mass = then;
        if mass.iter().sum::<f64>() <= 1e-9 * flips {
            return cycle / flips;
        }
    }
}

#[test]
fn an_average_takes_so_many_probes_to_a_false_flip() {
    for (alpha, high, _, row) in TABLE {
        for (p, printed) in P.into_iter().zip(row) {
            let most = mean_probes(alpha, high, p, 4000, false);
            let least = mean_probes(alpha, high, p, 4000, true);
            let what = format!("alpha {alpha}, high {high}, p {p}: {least} to {most}");
            assert!(least <= most * (1.0 + 1e-6), "{what}");
            let expected: f64 = printed.parse().expect("a number");
            assert!(
                least <= expected * 1.006 && expected <= most * 1.006,
                "{what}"
            );
            if most / least < 1.0005 {
                assert_prints(most, printed, &what);
            } else {
                // The bounds are as near to each other as the grid allows.
                assert!(most / least < 1.05, "{what}");
            }
        }
    }
}

#[test]
fn parameters_that_make_no_average_are_refused_by_name() {
    let fault = |alpha, high, low| {
        let error = Ewma::new(EwmaParameters { alpha, high, low }).expect_err("no average");
        error.parameters().collect::<Vec<_>>()
    };
    assert_eq!(fault(0.0, 0.7, 0.3), ["alpha"]);
    assert_eq!(fault(f64::NAN, 0.7, 0.3), ["alpha"]);
    assert_eq!(fault(1.1, 0.7, 0.3), ["alpha"]);
    assert_eq!(fault(0.3, 1.0, 0.3), ["high"]);
    assert_eq!(fault(0.3, 0.7, 0.0), ["low"]);
    assert_eq!(fault(0.3, 0.7, f64::NAN), ["low"]);
    assert_eq!(fault(0.3, 0.5, 0.5), ["low", "high"]);
}

#[test]
fn the_outlook_tells_how_many_failures_are_as_good_as_seen() {
    let rule = ewma(0.3, 0.7, 0.3);
    let after = |trace| counting(&rule, &state_after(&rule, Status::Passing, trace));
    assert_eq!(after("F"), Some((Status::Critical, 1, 4)));
    assert_eq!(after("FF"), Some((Status::Critical, 2, 4)));
    assert_eq!(after("FFP"), Some((Status::Critical, 1, 4)));
    // 0.147 of 0.7 left is worth a failure, 0.1029 is not.
    assert_eq!(after("FPP"), Some((Status::Critical, 1, 4)));
    assert_eq!(after("FPPP"), None);
    assert_eq!(after("FFFFFP"), Some((Status::Passing, 2, 4)));
}

proptest! {
    #![proptest_config(at_least(1024))]

    /// The share as the weighted sum of every result so far.
    #[test]
    fn an_average_reports_what_its_prose_says(
        rule in any_ewma(),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
    ) {
        let EwmaParameters { alpha, high, low } = rule.parameters();
        let mut before = initial;
        let mut history = Vec::new();
        let mut reported = initial;
        let mut believe_next = first == FirstResult::Believed;
        let mut state = rule.start(initial, first, NOW);
        for Observation { status, immediate } in observations {
            if immediate || believe_next {
                (before, reported, believe_next) = (status, status, false);
                history.clear();
            } else {
                history.push(status);
                let worse_than = |than: Status| {
                    let failure = |result: Status| if result > than { 1.0 } else { 0.0 };
                    let mut weight = 1.0;
                    let mut share = 0.0;
                    for &result in history.iter().rev() {
                        share += weight * alpha * failure(result);
                        weight *= 1.0 - alpha;
                    }
                    share + weight * failure(before)
                };
                if (status > reported && worse_than(reported) >= high - 1e-9)
                    || (status < reported && worse_than(status) <= low + 1e-9)
                {
                    reported = status;
                }
            }
            rule.observe(&mut state, Observation { status, immediate }, NOW);
            prop_assert_eq!(rule.reported(&state), reported);
        }
    }
}
