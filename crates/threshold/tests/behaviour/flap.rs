//! Flap detection.

use evenkeel_threshold::{
    FirstResult, Flap, FlapParameters, FlapWeights, Mark, Observation, Status, Strategy,
    WhileSuppressed,
};
use proptest::prelude::*;

use crate::generators::{any_first, any_flap, any_status, at_least, observations};
use crate::support::{NOW, letter, play_counted, results};

fn nagios(low: u8, high: u8) -> Flap {
    Flap::nagios(1, low, high).expect("valid")
}

/// The percentage after each result, and whether it is flapping.
fn percentages(rule: &Flap, trace: &str) -> Vec<(f64, bool)> {
    let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
    results(trace)
        .map(|result| {
            rule.observe(&mut state, result.into(), NOW);
            (rule.percentage(&state), rule.mark(&state) == Mark::Flapping)
        })
        .collect()
}

fn assert_percentages(rule: &Flap, trace: &str, expected: &[(usize, f64)], digits: i32) {
    let percentages = percentages(rule, trace);
    for &(result, expected) in expected {
        let (percentage, _) = percentages[result - 1];
        let half_a_digit = 0.5 * 10_f64.powi(-digits) + 1e-9;
        assert!(
            (percentage - expected).abs() <= half_a_digit,
            "{rule} {trace} {result}: {percentage} is not {expected}"
        );
    }
}

#[test]
fn percentages_of_nagios() {
    let rule = nagios(20, 30);
    let alternating = [
        (1, 6.25),
        (2, 12.37),
        (3, 18.36),
        (4, 24.21),
        (5, 29.93),
        (6, 35.53),
        (20, 100.0),
    ];
    assert_percentages(&rule, &"FP".repeat(10), &alternating, 2);
    let blip = [
        (1, 6.25),
        (2, 12.37),
        (3, 12.11),
        (4, 11.84),
        (20, 7.63),
        (21, 3.75),
        (22, 0.0),
    ];
    assert_percentages(&rule, &format!("F{}", "P".repeat(30)), &blip, 2);
    assert_percentages(
        &rule,
        &"F".repeat(30),
        &[(1, 6.25), (2, 6.12), (3, 5.99)],
        2,
    );
}

#[test]
fn percentages_of_icinga() {
    let rule = Flap::default();
    let alternating = [
        (1, 5.9),
        (2, 11.7),
        (3, 17.4),
        (4, 23.0),
        (5, 28.5),
        (6, 33.9),
        (20, 99.0),
    ];
    assert_percentages(&rule, &"FP".repeat(10), &alternating, 1);
    let blip = [
        (1, 5.9),
        (2, 11.7),
        (3, 11.5),
        (4, 11.3),
        (20, 8.1),
        (21, 4.0),
        (22, 0.0),
    ];
    assert_percentages(&rule, &format!("F{}", "P".repeat(30)), &blip, 1);
    assert_percentages(&rule, &"F".repeat(30), &[(1, 5.9), (2, 5.8), (3, 5.7)], 1);
}

/// The manual's example: changes of these weights, 39.1 % together.
#[test]
fn the_example_of_icingas_manual() {
    let changed = [0.84, 0.86, 0.88, 0.90, 0.98, 1.06, 1.12, 1.18];
    let mut status = 'P';
    let trace: String = (0..20)
        .map(|age| {
            let weight = 0.8 + 0.02 * f64::from(age);
            if changed
                .iter()
                .any(|&one: &f64| (one - weight).abs() < 0.001)
            {
                status = if status == 'P' { 'F' } else { 'P' };
            }
            status
        })
        .collect();
    assert_percentages(&Flap::default(), &trace, &[(20, 39.1)], 1);
}

/// From which result to which, both from 1: flapping there, and not at `.1`.
fn flapping(rule: &Flap, trace: &str) -> Option<(usize, usize)> {
    let marks = percentages(rule, trace);
    let start = marks.iter().position(|&(_, flapping)| flapping)?;
    let end = marks[start..].iter().position(|&(_, flapping)| !flapping)?;
    Some((start + 1, start + end + 1))
}

#[test]
fn flapping_starts_and_ends_at_its_thresholds() {
    let trace = format!("{}{}", "FP".repeat(5), "P".repeat(40));
    assert_eq!(flapping(&nagios(20, 30), &trace), Some((6, 26)));
    assert_percentages(&nagios(20, 30), &trace, &[(26, 15.79)], 2);
    assert_eq!(flapping(&nagios(5, 20), &trace), Some((4, 29)));
    assert_percentages(&nagios(5, 20), &trace, &[(29, 3.75)], 2);
    assert_eq!(flapping(&Flap::default(), &trace), Some((6, 25)));
    assert_percentages(&Flap::default(), &trace, &[(25, 21.0)], 1);
}

/// Constant loss by chance: 200 p (1 - p) per cent on average, so 10 % of loss is
/// below 30 and 20 % above.
#[test]
fn the_mean_percentage_of_random_results() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 11) as f64 / (1_u64 << 53) as f64
    };
    for p in [0.1, 0.2, 0.5] {
        let trace: String = (0..200_000)
            .map(|_| if random() < p { 'F' } else { 'P' })
            .collect();
        let mean = |rule: &Flap| {
            let percentages = percentages(rule, &trace);
            percentages.iter().map(|(one, _)| one).sum::<f64>() / percentages.len() as f64
        };
        let expected = 200.0 * p * (1.0 - p);
        assert!((mean(&nagios(20, 30)) - expected).abs() < 0.3);
        assert!((mean(&Flap::default()) - 0.99 * expected).abs() < 0.3);
    }
}

// P074
#[test]
fn both_a_count_and_flap_detection_can_be_had() {
    let rule = Flap::icinga(3, 25, 30).expect("valid");
    assert_eq!(play_counted(&rule, "FPPPFFFP"), "PPPPPPCP");
    assert_eq!(
        flapping(&rule, &format!("{}{}", "FP".repeat(5), "P".repeat(40))),
        Some((6, 25))
    );
}

// P144
#[test]
fn nagios_does_not_count_soft_states_and_icinga_does() {
    let trace = format!("{}{}", "FP".repeat(10), "P".repeat(40));
    let nagios = Flap::nagios(3, 20, 30).expect("valid");
    assert_eq!(flapping(&nagios, &trace), None);
    let icinga = Flap::icinga(3, 25, 30).expect("valid");
    assert!(flapping(&icinga, &trace).is_some());
}

// P146
#[test]
fn a_crash_loop_below_the_count_is_a_state_of_its_own() {
    let trace = "FP".repeat(20);
    let rule = Flap::icinga(3, 25, 30).expect("valid");
    assert_eq!(play_counted(&rule, &trace), "P".repeat(40));
    assert!(percentages(&rule, &trace)[39].1);
    let warns = Flap::new(FlapParameters {
        while_flapping: Some(WhileSuppressed::Warning),
        ..rule.parameters()
    })
    .expect("valid");
    assert_eq!(
        play_counted(&warns, &trace),
        format!("{}{}", "P".repeat(5), "W".repeat(35))
    );
}

#[test]
fn the_difference_is_reported_when_flapping_ends() {
    let rule = |hold| {
        Flap::new(FlapParameters {
            while_flapping: Some(hold),
            ..FlapParameters::default()
        })
        .expect("valid")
    };
    let ends = |rule: &Flap, last: &str| {
        let reported = play_counted(rule, &format!("{}{}", "FP".repeat(5), last.repeat(40)));
        (reported[..10].to_owned(), reported[49..].to_owned())
    };
    let stable = rule(WhileSuppressed::LastStable);
    assert_eq!(ends(&stable, "P"), ("CPCPCCCCCC".into(), "P".into()));
    assert_eq!(ends(&stable, "F"), ("CPCPCCCCCC".into(), "C".into()));
    let warning = rule(WhileSuppressed::Warning);
    assert_eq!(ends(&warning, "F"), ("CPCPCWWWWW".into(), "C".into()));
}

#[test]
fn nagios_turns_from_one_failing_state_to_another_at_once() {
    let rule = Flap::nagios(3, 20, 30).expect("valid");
    assert_eq!(play_counted(&rule, "WWCWPCCC"), "PPCWPPPC");
}

#[test]
fn parameters_that_make_no_detection_are_refused_by_name() {
    let fault = |low, high| {
        let error = Flap::nagios(1, low, high).expect_err("no detection");
        error.parameters().collect::<Vec<_>>()
    };
    assert_eq!(fault(20, 101), ["high"]);
    assert_eq!(fault(30, 30), ["low", "high"]);
}

proptest! {
    #![proptest_config(at_least(1024))]

    /// Every state is kept, and the weights are those of the documentation.
    #[test]
    fn detection_does_what_its_prose_says(
        rule in any_flap(),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
    ) {
        let parameters = rule.parameters();
        let mut states = vec![initial; 21];
        let (mut decided, mut flapping, mut held) = (initial, false, None::<Status>);
        let mut run = 0;
        let mut believe_next = first == FirstResult::Believed;
        let mut state = rule.start(initial, first, NOW);
        for Observation { status, immediate } in observations {
            let before = held.unwrap_or(decided);
            if believe_next {
                (decided, believe_next) = (status, false);
                states = vec![status; 21];
            } else {
                let passing = Status::Passing;
                let against = (status == passing) != (decided == passing);
                run = if against { run + 1 } else { 0 };
                let needed = if status == passing { parameters.successes } else { parameters.failures };
                if !against || run >= needed || immediate {
                    (decided, run) = (status, 0);
                }
                if parameters.every_result || status == passing || decided == status {
                    states.push(status);
                    let latest = &states[states.len() - 21..];
                    let mut percentage = 0.0;
                    for (age, pair) in latest.windows(2).enumerate() {
                        if pair[0] != pair[1] {
                            percentage += match parameters.weights {
                                FlapWeights::Nagios => 0.75 + age as f64 * 0.5 / 19.0,
                                FlapWeights::Icinga => 0.8 + 0.02 * age as f64,
                            } * 5.0;
                        }
                    }
                    let above = match parameters.weights {
                        FlapWeights::Nagios => percentage >= f64::from(parameters.high) - 1e-9,
                        FlapWeights::Icinga => percentage > f64::from(parameters.high) + 1e-9,
                    };
                    if !flapping && above {
                        flapping = true;
                        held = parameters.while_flapping.map(|hold| match hold {
                            WhileSuppressed::LastStable => before,
                            WhileSuppressed::Warning => Status::Warning,
                            WhileSuppressed::Critical => Status::Critical,
                        });
                    } else if flapping && percentage <= f64::from(parameters.low) + 1e-9 {
                        (flapping, held) = (false, None);
                    }
                }
                if immediate {
                    held = None;
                }
            }
            rule.observe(&mut state, Observation { status, immediate }, NOW);
            prop_assert_eq!(rule.mark(&state) == Mark::Flapping, flapping);
            prop_assert_eq!(letter(rule.reported(&state)), letter(held.unwrap_or(decided)));
        }
    }
}
