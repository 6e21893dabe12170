//! Proposals, against exact computation.

use std::time::Duration;

use evenkeel_threshold::advice::{Delay, Noise, Wish, propose};
use evenkeel_threshold::{FirstResult, Status, Strategy};

use crate::mean_probes::assert_prints;
use crate::support::{NOW, consecutive};

/// The mean number of results until the strategy itself flips, where a result
/// fails with probability `a` after a success and `b` after a failure: the
/// probability of having come so far, added up over all results.
fn exact(failures: u32, a: f64, b: f64) -> f64 {
    let rule = consecutive(failures, 1);
    let start = rule.start(Status::Passing, FirstResult::Counted, NOW);
    // The states after a success, then after 1, 2, … failures.
    let mut after_failures = vec![start];
    let mut state = start;
    while rule
        .observe(&mut state, Status::Critical.into(), NOW)
        .is_none()
    {
        after_failures.push(state);
    }
    let levels = after_failures.len();
    // Solved from the last level down: time(i) = 1 + p time(i + 1) + (1 - p) time(0),
    // as a multiple of time(0) plus a rest.
    let (mut multiple, mut rest) = (0.0, 0.0);
    for level in (0..levels).rev() {
        let p = if level == 0 { a } else { b };
        (multiple, rest) = ((1.0 - p) + p * multiple, 1.0 + p * rest);
    }
    rest / (1.0 - multiple)
}

#[test]
fn bursts_make_each_further_failure_worth_less() {
    let table = [
        (
            (0.01, 0.01),
            "0.010",
            ["100", "10100", "1.01e6", "1.01e8", "1.01e10", "1.01e12"],
        ),
        (
            (0.01, 0.3),
            "0.014",
            ["100", "336.7", "1125.6", "3755", "12521", "41739"],
        ),
        (
            (0.01, 0.5),
            "0.020",
            ["100", "202", "406", "814", "1630", "3262"],
        ),
        (
            (0.01, 0.7),
            "0.032",
            ["100", "144.3", "207.6", "297.9", "427", "611.5"],
        ),
        (
            (0.01, 0.9),
            "0.091",
            ["100", "112.2", "125.8", "140.9", "157.7", "176.3"],
        ),
    ];
    for ((a, b), rate, row) in table {
        let noise = Noise::new(a, b).expect("valid");
        assert_prints(noise.rate(), rate, "the rate");
        for (k, printed) in (1..).zip(row) {
            let what = format!("a {a}, b {b}, k {k}");
            assert_prints(noise.mean_results(k), printed, &what);
            // Forming differences, good for fewer digits where means are long.
            let exact = exact(k, a, b);
            if exact < 1e9 {
                let error = (noise.mean_results(k) / exact - 1.0).abs();
                assert!(error < 1e-6, "{what}: {exact}");
            }
        }
    }
}

#[test]
fn the_smallest_count_that_is_enough_is_proposed() {
    let rates = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3];
    let year = Duration::from_secs(365 * 24 * 3600);
    let table = [
        (10, 1, [4, 4, 5, 7, 10, 13]),
        (10, 1000, [5, 6, 8, 10, 14, 18]),
        (300, 1, [3, 3, 4, 5, 8, 10]),
        (300, 1000, [5, 5, 7, 8, 12, 16]),
    ];
    for (interval, checks, row) in table {
        let wish = Wish {
            between_false_alarms: year * checks,
            interval: Duration::from_secs(interval),
            timeout: Duration::from_secs(5),
        };
        for (p, failures) in rates.into_iter().zip(row) {
            let noise = Noise::independent(p).expect("valid");
            let proposal = propose(noise, wish).expect("that is enough");
            assert_eq!(proposal.failures, failures, "{interval} s, {checks}, {p}");
        }
    }
}

#[test]
fn a_burst_that_no_count_outlasts_gets_no_proposal() {
    let noise = Noise::new(0.01, 0.99).expect("valid");
    let wish = Wish {
        between_false_alarms: Duration::from_secs(365 * 24 * 3600),
        interval: Duration::from_secs(10),
        timeout: Duration::from_secs(5),
    };
    assert_eq!(propose(noise, wish), None);
}

#[test]
fn a_count_costs_so_much_time() {
    let seconds = Duration::from_secs;
    assert_eq!(
        Delay::of(3, seconds(10), seconds(5)),
        Delay {
            best: seconds(25),
            mean: seconds(30),
            worst: seconds(35),
        }
    );
    assert_eq!(Delay::of(0, seconds(10), seconds(5)).worst, seconds(15));
}

#[test]
fn noise_is_counted_in_a_history() {
    let noise = Noise::measured((10, 1000), (5, 10)).expect("valid");
    assert_eq!(noise, Noise::new(0.01, 0.5).expect("valid"));
    let single = Noise::measured((1, 100), (0, 0)).expect("valid");
    assert_eq!(single, Noise::independent(0.01).expect("valid"));
    // A failure is never followed by another: two in a row never come.
    let isolated = Noise::measured((10, 1000), (0, 10)).expect("valid");
    assert_eq!(isolated.mean_results(2), f64::INFINITY);
    for (after_success, after_failure, fault) in [
        ((0, 100), (0, 0), "a"),
        ((0, 0), (0, 0), "a"),
        ((1, 1), (0, 0), "a"),
        ((1, 10), (3, 3), "b"),
    ] {
        let error = Noise::measured(after_success, after_failure).expect_err(fault);
        assert_eq!(error.parameters().next(), Some(fault));
    }
}
