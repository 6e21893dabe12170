//! How long a healthy target stays unreported: the mean number of probes to the
//! first false flip, exactly, from the states that the strategies themselves go
//! through. The numbers come from the closed formulas, printed to the digits
//! given.

use std::collections::HashMap;
use std::hash::Hash;

use evenkeel_threshold::{FirstResult, Leaky, Status, Strategy};

use crate::support::{NOW, consecutive};

/// The mean number of results until `strategy`, settled on passing, reports
/// critical, where each result fails with probability `p` by itself.
pub(crate) fn to_critical<S>(strategy: &S, p: f64) -> f64
where
    S: Strategy<State: Eq + Hash>,
{
    to_flip(strategy, Status::Passing, Status::Critical, p)
}

/// The other way, from critical to passing.
fn to_passing<S>(strategy: &S, p: f64) -> f64
where
    S: Strategy<State: Eq + Hash>,
{
    to_flip(strategy, Status::Critical, Status::Passing, 1.0 - p)
}

/// `p`: the probability of the result `against`; all others are like `reported`.
fn to_flip<S>(strategy: &S, reported: Status, against: Status, p: f64) -> f64
where
    S: Strategy<State: Eq + Hash>,
{
    let mut start = strategy.start(reported, FirstResult::Counted, NOW);
    // The state that it always comes back to: one contrary result leaves a trace
    // even when nothing is pending any more.
    let mut settled = start;
    if strategy
        .observe(&mut settled, against.into(), NOW)
        .is_none()
    {
        for _ in 0..100 {
            strategy.observe(&mut settled, reported.into(), NOW);
        }
        start = settled;
    }
    let mut number = HashMap::from([(start, 0)]);
    let mut states = vec![start];
    // Per state, where a result for and one against lead; None is the flip.
    let mut steps = Vec::new();
    while let Some(&state) = states.get(steps.len()) {
        steps.push([reported, against].map(|result| {
            let mut next = state;
            if strategy.observe(&mut next, result.into(), NOW).is_some() {
                return None;
            }
            Some(*number.entry(next).or_insert_with(|| {
                states.push(next);
                states.len() - 1
            }))
        }));
    }
    mean_steps(&steps, p)
}

/// The mean number of steps from state 0 to a flip. A cycle goes from state 0 to
/// the flip or back; the mean is that of a cycle over the probability that it
/// ends in the flip. Only positive numbers are added, so means of 1e14 keep
/// their digits.
fn mean_steps(steps: &[[Option<usize>; 2]], p: f64) -> f64 {
    let (mut cycle, mut flips) = (0.0, 0.0);
    let mut mass = vec![0.0; steps.len()];
    mass[0] = 1.0;
    loop {
        let mut next = vec![0.0; steps.len()];
        for (&mass, ways) in mass.iter().zip(steps) {
            cycle += mass;
            for (way, probability) in ways.iter().zip([1.0 - p, p]) {
                match *way {
                    None => flips += mass * probability,
                    Some(0) => {}
                    Some(state) => next[state] += mass * probability,
                }
            }
        }
        mass = next;
        if mass.iter().sum::<f64>() <= 1e-12 * flips {
            return cycle / flips;
        }
    }
}

/// `printed` is `value`, rounded to the digits it has.
pub(crate) fn assert_prints(value: f64, printed: &str, what: &str) {
    let (mantissa, exponent) = printed.split_once('e').unwrap_or((printed, "0"));
    let decimals = mantissa
        .split_once('.')
        .map_or(0, |(_, digits)| digits.len()) as i32;
    let exponent: i32 = exponent.parse().expect("an exponent");
    let half_a_digit = 0.5 * 10_f64.powi(exponent - decimals);
    let expected: f64 = printed.parse().expect("a number");
    assert!(
        (value - expected).abs() <= half_a_digit * (1.0 + 1e-6),
        "{what}: {value} is not {printed}"
    );
}

pub(crate) const P: [f64; 5] = [0.01, 0.05, 0.1, 0.2, 0.3];

#[test]
fn consecutive_takes_so_many_probes_to_a_false_flip() {
    let table = [
        (1, ["100", "20", "10", "5", "3.33"]),
        (2, ["1.01e4", "420", "110", "30", "14.4"]),
        (3, ["1.01e6", "8420", "1110", "155", "51.5"]),
        (4, ["1.01e8", "1.684e5", "11110", "780", "174.9"]),
        (5, ["1.01e10", "3.37e6", "1.111e5", "3905", "586.5"]),
        (6, ["1.01e12", "6.74e7", "1.111e6", "19530", "1958"]),
    ];
    for (k, row) in table {
        for (p, printed) in P.into_iter().zip(row) {
            let what = format!("consecutive {k}, p {p}");
            assert_prints(to_critical(&consecutive(k, 1), p), printed, &what);
        }
    }
}

#[test]
fn leaky_takes_so_many_probes_to_a_false_flip() {
    let table = [
        (2, ["1.01e4", "420", "110", "30", "14.4"]),
        (3, ["1.00e6", "8040", "1020", "135", "43.7"]),
        (4, ["9.90e7", "1.528e5", "9220", "560", "115.3"]),
        (5, ["9.80e9", "2.904e6", "8.303e4", "2265", "285.7"]),
        (6, ["9.70e11", "5.52e7", "7.473e5", "9090", "686.7"]),
    ];
    for (n, row) in table {
        for (p, printed) in P.into_iter().zip(row) {
            let what = format!("leaky {n}, p {p}");
            assert_prints(to_critical(&Leaky::new(n - 1, 0), p), printed, &what);
        }
    }
}

#[test]
fn leaky_finds_a_target_that_fails_every_other_time_by_chance() {
    assert_prints(
        to_critical(&Leaky::new(3, 0), 0.5),
        "20",
        "n (n + 1) for n = 4",
    );
}

#[test]
fn false_flips_and_time_spent_critical_in_the_long_run() {
    // Per million probes flips to critical, and the fraction of time critical.
    let table = [
        (
            (1, 1),
            [
                "9900 0.01",
                "47500 0.05",
                "90000 0.1",
                "160000 0.2",
                "210000 0.3",
            ],
        ),
        (
            (2, 1),
            [
                "99 1e-4",
                "2375 0.0025",
                "9000 0.01",
                "32000 0.04",
                "63000 0.09",
            ],
        ),
        (
            (3, 1),
            [
                "0.99 1e-6",
                "118.8 1.3e-4",
                "900 0.001",
                "6400 0.008",
                "18900 0.027",
            ],
        ),
        (
            (3, 2),
            [
                "0.99 2e-6",
                "118.7 2.6e-4",
                "899 0.0021",
                "6337 0.018",
                "1.82e4 0.063",
            ],
        ),
        (
            (5, 3),
            [
                "9.9e-5 3e-10",
                "0.297 1e-6",
                "9 3.3e-5",
                "255.8 0.0012",
                "1687 0.011",
            ],
        ),
    ];
    for ((down, up), row) in table {
        let rule = consecutive(down, up);
        for (p, printed) in P.into_iter().zip(row) {
            let (flips, critical) = printed.split_once(' ').expect("two numbers");
            // A flip forgets everything, so a round is a way down and one up.
            let (way_down, way_up) = (to_critical(&rule, p), to_passing(&rule, p));
            let round = way_down + way_up;
            let what = format!("({down}, {up}), p {p}");
            assert_prints(1e6 / round, flips, &what);
            assert_prints(way_up / round, critical, &what);
        }
    }
}

#[test]
fn advice_for_a_year_without_a_false_flip() {
    let table = [
        (3.1536e6, [4, 4, 5, 7, 10, 13]),  // one check every 10 s
        (3.1536e9, [5, 6, 8, 10, 14, 18]), // a thousand of them
        (105_120.0, [3, 3, 4, 5, 8, 10]),  // one check every 5 min
        (1.0512e8, [5, 5, 7, 8, 12, 16]),  // a thousand of them
    ];
    for (target, row) in table {
        for (p, expected) in [0.01, 0.02, 0.05, 0.1, 0.2, 0.3].into_iter().zip(row) {
            let smallest = (1..).find(|&k| to_critical(&consecutive(k, 1), p) >= target);
            assert_eq!(smallest, Some(expected), "target {target}, p {p}");
        }
    }
}
