//! The cumulative sum.

use std::collections::HashMap;

use evenkeel_threshold::{
    Cusum, CusumParameters, FirstResult, Leaky, Observation, Status, Strategy,
};
use proptest::prelude::*;

use crate::generators::{any_cusum, any_first, any_status, at_least, observations};
use crate::mean_probes::{P, assert_prints};
use crate::support::{NOW, T1, T3, T4, counting, first, play_counted, results, state_after};

pub(crate) fn cusum(p0: f64, p1: f64, h: f64) -> Cusum {
    Cusum::new(CusumParameters { p0, p1, h }).expect("the parameters are valid")
}

#[test]
fn one_input_through_a_sum() {
    let rule = cusum(0.05, 0.7, 5.0);
    assert_eq!(play_counted(&rule, T1), "PPPPPCCCCCCCCCCCCP");
    assert_eq!(play_counted(&rule, T3), "PPPPCCCCCCCCCPPP");
    assert_eq!(play_counted(&rule, T4), "PPPPCCCCCCCCCCPPP");
}

#[test]
fn the_sums_go_through_these_values() {
    let rule = cusum(0.05, 0.7, 5.0);
    let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
    for (result, sum) in results("FPF").zip([2.6391, 1.4864, 4.1254]) {
        assert_eq!(rule.observe(&mut state, result.into(), NOW), None);
        assert!((state.failure_sum() - sum).abs() < 1e-4);
    }
    rule.observe(&mut state, Status::Critical.into(), NOW);
    assert_eq!(rule.reported(&state), Status::Critical);
    for (result, sum) in results("PPPP").zip([1.1527, 2.3054, 3.4580, 4.6107]) {
        assert_eq!(rule.observe(&mut state, result.into(), NOW), None);
        assert!((state.recovery_sum() - sum).abs() < 1e-4);
    }
    rule.observe(&mut state, Status::Passing.into(), NOW);
    assert_eq!(rule.reported(&state), Status::Passing);
}

type Row = ((f64, f64, f64), (f64, f64), usize, [&'static str; 5]);

const TABLE: [Row; 4] = [
    (
        (0.05, 0.7, 5.0),
        (2.6391, 1.1527),
        2,
        ["1.0e4", "403", "102", "27.1", "13.0"],
    ),
    (
        (0.05, 0.7, 7.0),
        (2.6391, 1.1527),
        3,
        ["9.0e5", "5.4e3", "576", "71", "25"],
    ),
    (
        (0.1, 0.9, 6.0),
        (2.1972, 2.1972),
        3,
        ["1.0e6", "8040", "1020", "135", "43.7"],
    ),
    (
        (0.02, 0.5, 6.0),
        (3.2189, 0.6729),
        2,
        ["9.22e3", "306", "72", "19.8", "10.4"],
    ),
];

#[test]
fn weights_and_delay_follow_from_the_rates() {
    for ((p0, p1, h), (failure, success), needed, _) in TABLE {
        let rule = cusum(p0, p1, h);
        assert!((rule.failure_weight() - failure).abs() < 1e-4);
        assert!((rule.success_weight() - success).abs() < 1e-4);
        assert_eq!(first(&play_counted(&rule, "FFFFF"), 'C'), Some(needed));
    }
}

/// The mean number of probes to a false flip. Between two visits to a sum of 0 a
/// sum is one of few numbers: so many failures up, so many successes down.
fn mean_probes(rule: &Cusum, p: f64) -> f64 {
    let (up, down) = (rule.failure_weight(), rule.success_weight());
    let h = rule.parameters().h;
    let (mut cycle, mut flips) = (0.0, 0.0);
    let mut mass = HashMap::from([((0, 0), 1.0)]);
    loop {
        let mut then = HashMap::new();
        for ((failures, successes), mass) in mass {
            cycle += mass;
            let sum = |failures: i32, successes: i32| {
                f64::from(failures) * up - f64::from(successes) * down
            };
            if sum(failures + 1, successes) >= h - 1e-9 {
                flips += mass * p;
            } else {
                *then.entry((failures + 1, successes)).or_insert(0.0) += mass * p;
            }
            if sum(failures, successes + 1) > 1e-9 {
                *then.entry((failures, successes + 1)).or_insert(0.0) += mass * (1.0 - p);
            }
        }
        mass = then;
        if mass.values().sum::<f64>() <= 1e-12 * flips {
            return cycle / flips;
        }
    }
}

#[test]
fn a_sum_takes_so_many_probes_to_a_false_flip() {
    for ((p0, p1, h), _, _, row) in TABLE {
        let rule = cusum(p0, p1, h);
        for (p, printed) in P.into_iter().zip(row) {
            assert_prints(mean_probes(&rule, p), printed, &format!("{rule}, p {p}"));
        }
    }
}

#[test]
fn parameters_that_make_no_sum_are_refused_by_name() {
    let fault = |p0, p1, h| {
        let error = Cusum::new(CusumParameters { p0, p1, h }).expect_err("no sum");
        error.parameters().collect::<Vec<_>>()
    };
    assert_eq!(fault(0.0, 0.7, 5.0), ["p0"]);
    assert_eq!(fault(f64::NAN, 0.7, 5.0), ["p0"]);
    assert_eq!(fault(0.05, 1.0, 5.0), ["p1"]);
    assert_eq!(fault(0.05, 0.7, 0.0), ["h"]);
    assert_eq!(fault(0.05, 0.7, f64::INFINITY), ["h"]);
    assert_eq!(fault(0.7, 0.7, 5.0), ["p0", "p1"]);
}

#[test]
fn the_outlook_tells_how_many_failures_are_as_good_as_seen() {
    let rule = cusum(0.05, 0.7, 7.0);
    let after = |trace| counting(&rule, &state_after(&rule, Status::Passing, trace));
    assert_eq!(after("F"), Some((Status::Critical, 1, 3)));
    assert_eq!(after("FF"), Some((Status::Critical, 2, 3)));
    // 1.49 of 7: three more, as at the start.
    assert_eq!(after("FP"), None);
    assert_eq!(after("FFF"), None);
    assert_eq!(after("FFFPP"), Some((Status::Passing, 2, 7)));
}

proptest! {
    #![proptest_config(at_least(1024))]

    /// The sum as the largest of all sums that end with the latest result.
    #[test]
    fn a_sum_reports_what_its_prose_says(
        rule in any_cusum(),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
    ) {
        let h = rule.parameters().h;
        let (up, down) = (rule.failure_weight(), rule.success_weight());
        let mut history = Vec::new();
        let mut reported = initial;
        let mut believe_next = first == FirstResult::Believed;
        let mut state = rule.start(initial, first, NOW);
        for Observation { status, immediate } in observations {
            let largest = |weight: &dyn Fn(Status) -> f64| {
                let latest = std::iter::once(status).chain(history.iter().rev().copied());
                let mut sum = 0.0;
                latest.map(|result| { sum += weight(result); sum }).fold(0.0, f64::max)
            };
            let failures = largest(&|result| if result > reported { up } else { -down });
            let recoveries = largest(&|result| if result < reported { down } else { -up });
            if immediate
                || believe_next
                || (status > reported && failures >= h - 1e-8)
                || (status < reported && recoveries >= h - 1e-8)
            {
                (reported, believe_next) = (status, false);
                history.clear();
            } else {
                history.push(status);
            }
            rule.observe(&mut state, Observation { status, immediate }, NOW);
            prop_assert_eq!(rule.reported(&state), reported);
        }
    }

    #[test]
    fn a_sum_with_equal_weights_is_leaky(
        p0 in 0.01..0.49_f64,
        n in 1..8_u32,
        part in 0.01..0.99_f64,
        initial in any_status(),
        first in any_first(),
        observations in observations(),
    ) {
        let weight = ((1.0 - p0) / p0).ln();
        // More than n - 1 failures, at most n.
        let h = weight * (f64::from(n) - part);
        prop_assume!(h >= 0.01);
        let rule = cusum(p0, 1.0 - p0, h);
        let leaky = Leaky::new(n - 1, n - 1);
        let mut state = rule.start(initial, first, NOW);
        let mut counts = leaky.start(initial, first, NOW);
        for observation in observations {
            prop_assert_eq!(
                rule.observe(&mut state, observation, NOW),
                leaky.observe(&mut counts, observation, NOW)
            );
            prop_assert_eq!(rule.outlook(&state, NOW) , with_cusums_word(leaky.outlook(&counts, NOW)));
        }
    }
}

fn with_cusums_word(outlook: evenkeel_threshold::Outlook) -> evenkeel_threshold::Outlook {
    use evenkeel_threshold::{Agreeing, Outlook};
    match outlook {
        Outlook::Counting {
            toward,
            seen,
            needed,
            ..
        } => Outlook::Counting {
            toward,
            seen,
            needed,
            agreeing: Agreeing::LessensAll,
        },
        other => other,
    }
}

/// The weights of a failure and of a success, as the sums show them.
fn weights(rule: &Cusum) -> (f64, f64) {
    let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
    rule.observe(&mut state, Status::Critical.into(), NOW);
    let failure = state.failure_sum();
    rule.observe(&mut state, Status::Passing.into(), NOW);
    (failure, failure - state.failure_sum())
}

/// The mean number of results until the sum of the weights leaves (b, a), where
/// each fails with probability `p` by itself: exactly, over how many failed and
/// how many did not.
fn results_to_a_decision((failure, success): (f64, f64), a: f64, b: f64, p: f64) -> f64 {
    let mut open = HashMap::from([((0_u32, 0_u32), 1.0)]);
    let (mut mean, mut number) = (0.0, 0.0);
    while open.values().sum::<f64>() > 1e-12 {
        number += 1.0;
        let mut next = HashMap::new();
        for ((failed, passed), mass) in open {
            for (place, probability) in [((failed + 1, passed), p), ((failed, passed + 1), 1.0 - p)]
            {
                let sum = f64::from(place.0) * failure - f64::from(place.1) * success;
                if sum >= a || sum <= b {
                    mean += number * mass * probability;
                } else {
                    *next.entry(place).or_default() += mass * probability;
                }
            }
        }
        open = next;
    }
    mean
}

/// Wald's test decides once, between two bounds; a cumulative sum is the form of it
/// that runs for ever. Both have the same weights.
#[test]
fn the_weights_are_those_of_walds_test() {
    type Row = ((f64, f64), [&'static str; 4], u32, u32);
    let table: [Row; 2] = [
        ((1e-4, 1e-3), ["9.209", "-6.908", "6.12", "7.17"], 4, 6),
        ((1e-3, 1e-2), ["6.898", "-4.604", "4.52", "4.77"], 3, 4),
    ];
    for ((alpha, beta), [a_printed, b_printed, broken, fine], hard, clean) in table {
        let a = ((1.0 - beta) / alpha).ln();
        let b = (beta / (1.0 - alpha)).ln();
        // The table cuts the lower bounds.
        assert!((a - a_printed.parse::<f64>().unwrap()).abs() < 1e-3, "{a}");
        assert!((b - b_printed.parse::<f64>().unwrap()).abs() < 2e-3, "{b}");
        let rule = cusum(0.05, 0.7, a);
        let weights = weights(&rule);
        // The table has Wald's approximation: as if a decision fell on its bound.
        let drift = |p| p * weights.0 - (1.0 - p) * weights.1;
        let if_broken = ((1.0 - beta) * a + beta * b) / drift(0.7);
        let if_fine = ((1.0 - alpha) * b + alpha * a) / drift(0.05);
        assert_prints(if_broken, broken, "mean probes if broken");
        assert_prints(if_fine, fine, "mean probes if fine");
        // Exactly it takes longer, by no more than one result beyond the bound.
        for (p, approximate, beyond) in [(0.7, if_broken, weights.0), (0.05, if_fine, weights.1)] {
            let exact = results_to_a_decision(weights, a, b, p);
            let most = approximate + beyond / drift(p).abs();
            assert!((approximate..most).contains(&exact), "p {p}: {exact}");
        }
        // A hard failure only adds up, so the running form takes as many.
        assert_eq!(
            first(&play_counted(&rule, "FFFFFFFF"), 'C'),
            Some(hard as usize)
        );
        assert_eq!((-b / weights.1).ceil(), f64::from(clean));
    }
}
