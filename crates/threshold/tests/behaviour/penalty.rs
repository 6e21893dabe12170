//! Route flap damping.

use std::time::Duration;

use evenkeel_threshold::{
    FirstResult, Mark, Observation, Outlook, Penalty, PenaltyParameters, Status, Strategy,
    Timestamp, WhileSuppressed,
};
use proptest::prelude::*;

use crate::generators::{any_first, any_penalty, any_status, at_least, timed_observations};
use crate::support::{NOW, T1, T3, T4, elapse_until, letter, results};

fn minutes(minutes: f64) -> Timestamp {
    NOW.saturating_add(Duration::from_secs_f64(minutes * 60.0))
}

/// RFC 2439 with FRRouting's figures and this limit.
fn frr(suppress: u32) -> Penalty {
    Penalty::new(PenaltyParameters {
        suppress,
        ..PenaltyParameters::default()
    })
    .expect("valid")
}

struct Flapping {
    penalties: Vec<f64>,
    suppressed_at: Option<f64>,
    reusable_at: Option<f64>,
}

/// A flap at each of these minutes, over within a second.
fn flap(rule: &Penalty, at: &[f64]) -> Flapping {
    let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
    let mut penalties = Vec::new();
    let mut suppressed_at = None;
    for &minute in at {
        let now = minutes(minute);
        elapse_until(rule, &mut state, now);
        rule.observe(&mut state, Status::Critical.into(), now);
        penalties.push((rule.penalty(&state, now) * 10.0).round() / 10.0);
        if rule.mark(&state) == Mark::Suppressed {
            suppressed_at.get_or_insert(minute);
        }
        rule.observe(
            &mut state,
            Status::Passing.into(),
            minutes(minute + 1.0 / 60.0),
        );
    }
    let reusable_at = rule
        .deadline(&state)
        .map(|end| end.saturating_since(NOW).as_secs_f64() / 60.0);
    Flapping {
        penalties,
        suppressed_at,
        reusable_at: reusable_at.map(|minutes| (minutes * 100.0).round() / 100.0),
    }
}

#[test]
fn penalties_add_up_and_decay() {
    let three = flap(&frr(2000), &[0.0, 2.0, 4.0]);
    assert_eq!(three.penalties, [1000.0, 1911.7, 2743.0]);
    assert_eq!(three.suppressed_at, Some(4.0));
    assert_eq!(three.reusable_at, Some(32.06));

    let every_two: Vec<_> = (0..9).map(|flap| f64::from(flap) * 2.0).collect();
    let patient = flap(&frr(6000), &every_two);
    assert_eq!(
        patient.penalties[..8],
        [
            1000.0, 1911.7, 2743.0, 3500.8, 4191.8, 4821.7, 5396.1, 5919.7
        ]
    );
    assert_eq!(patient.suppressed_at, Some(16.0), "the ninth flap");

    let every_ten = flap(&frr(2000), &[0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
    assert_eq!(
        every_ten.penalties,
        [1000.0, 1630.0, 2026.8, 2276.8, 2434.3, 2533.5]
    );
    assert_eq!(every_ten.suppressed_at, Some(20.0));
    assert_eq!(every_ten.reusable_at, Some(76.34));

    let every_quarter = flap(&frr(2000), &[0.0, 15.0, 30.0, 45.0, 60.0]);
    assert_eq!(
        every_quarter.penalties,
        [1000.0, 1500.0, 1750.0, 1875.0, 1937.5]
    );
    assert_eq!(every_quarter.suppressed_at, None);

    let quick = flap(&frr(6000), &[0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
    assert_eq!(
        quick.penalties,
        [1000.0, 1977.2, 2932.0, 3865.0, 4776.8, 5667.7, 6538.2]
    );
    assert_eq!(quick.suppressed_at, Some(3.0));

    let every_minute: Vec<_> = (0..40).map(f64::from).collect();
    let ceiling = flap(&frr(2000), &every_minute);
    assert_eq!(ceiling.penalties[39], 12000.0);
    assert_eq!(ceiling.suppressed_at, Some(2.0));
    assert_eq!(ceiling.reusable_at, Some(99.0), "60 min after the last");
}

#[test]
fn a_steady_period_leads_to_a_steady_penalty() {
    let table = [
        (1.0, 12000.0),
        (2.0, 11328.0),
        (5.0, 4847.0),
        (10.0, 2702.0),
        (14.0, 2099.0),
        (15.0, 2000.0),
        (20.0, 1658.0),
        (30.0, 1333.0),
    ];
    for (period, steady) in table {
        let flaps: Vec<_> = (0..200).map(|flap| f64::from(flap) * period).collect();
        let penalties = flap(&frr(12000), &flaps).penalties;
        assert!(
            (penalties[199] - steady).abs() <= 0.6,
            "{period}: {}",
            penalties[199]
        );
    }
}

fn play_every_minute(rule: &Penalty, trace: &str) -> String {
    let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
    results(trace)
        .zip(0_u32..)
        .map(|(result, minute)| {
            let now = minutes(f64::from(minute));
            elapse_until(rule, &mut state, now);
            rule.observe(&mut state, result.into(), now);
            letter(rule.reported(&state))
        })
        .collect()
}

fn quick(while_suppressed: WhileSuppressed) -> Penalty {
    Penalty::new(PenaltyParameters {
        half_life: Duration::from_secs(4 * 60),
        suppress: 2000,
        longest: Duration::from_secs(16 * 60),
        while_suppressed,
        ..PenaltyParameters::default()
    })
    .expect("valid")
}

#[test]
fn one_input_through_a_penalty() {
    let rule = quick(WhileSuppressed::Critical);
    assert_eq!(play_every_minute(&rule, T1), "PPCPCCPCCCCCCCCCCC");
    assert_eq!(play_every_minute(&rule, T3), "CPCPCCCCCCCCCCCC");
    assert_eq!(play_every_minute(&rule, T4), "PPPCCCCCCCPPPPPPP");
}

// P146
#[test]
fn what_is_reported_while_suppressed_is_a_choice() {
    let last_stable = quick(WhileSuppressed::LastStable);
    assert_eq!(play_every_minute(&last_stable, T3), "CPCPPPPPPPPPPPPP");
    let warning = quick(WhileSuppressed::Warning);
    assert_eq!(play_every_minute(&warning, T3), "CPCPWWWWWWWWWWWW");
}

#[test]
fn the_difference_is_reported_when_a_suppression_ends() {
    // Better: suppressed as critical, passing in the end.
    let rule = quick(WhileSuppressed::Critical);
    let better = play_every_minute(&rule, &format!("FPFPF{}", "P".repeat(20)));
    assert_eq!(better, format!("CPCP{}{}", "C".repeat(7), "P".repeat(14)));
    // Worse: suppressed as passing, critical in the end.
    let rule = quick(WhileSuppressed::LastStable);
    let worse = play_every_minute(&rule, &format!("FPFPF{}", "F".repeat(20)));
    assert_eq!(worse, format!("CPCP{}{}", "P".repeat(7), "C".repeat(14)));
    // And no change at all.
    let none = play_every_minute(&rule, &format!("FPFPF{}", "P".repeat(20)));
    assert_eq!(none, format!("CPCP{}", "P".repeat(21)));
}

#[test]
fn a_suppression_tells_how_long_it_takes() {
    let rule = frr(2000);
    let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
    for minute in [0.0, 2.0, 4.0] {
        rule.observe(&mut state, Status::Passing.into(), minutes(minute));
        rule.observe(&mut state, Status::Critical.into(), minutes(minute));
    }
    let until = rule.deadline(&state).expect("it is suppressed");
    assert_eq!(
        rule.outlook(&state, minutes(5.0)),
        Outlook::Waiting {
            toward: Status::Critical,
            until
        }
    );
    // 28.06 min, by t = H log2(P / reuse).
    let wait = until.saturating_since(minutes(4.0)).as_secs_f64();
    assert!((wait / 60.0 - 28.06).abs() < 0.01);
    assert_eq!(rule.elapse(&mut state, until.saturating_shift(-1)), None);
    assert!(rule.elapse(&mut state, until).is_some());
    assert_eq!(rule.mark(&state), Mark::None);
}

#[test]
fn a_count_in_front_keeps_blips_from_costing_anything() {
    let rule = Penalty::new(PenaltyParameters {
        failures: 2,
        ..PenaltyParameters::default()
    })
    .expect("valid");
    let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
    for result in results("FPFPFPFP") {
        rule.observe(&mut state, result.into(), NOW);
    }
    assert_eq!(rule.penalty(&state, NOW), 0.0);
}

#[test]
fn parameters_that_make_no_penalty_are_refused_by_name() {
    let fault = |half_life: u64, suppress, reuse, longest: u64| {
        let error = Penalty::new(PenaltyParameters {
            half_life: Duration::from_secs(half_life),
            suppress,
            reuse,
            longest: Duration::from_secs(longest),
            ..PenaltyParameters::default()
        })
        .expect_err("no penalty");
        error.parameters().collect::<Vec<_>>()
    };
    assert_eq!(fault(0, 2000, 750, 3600), ["half_life"]);
    assert_eq!(fault(900, 2000, 0, 3600), ["reuse"]);
    assert_eq!(fault(900, 750, 750, 3600), ["reuse", "suppress"]);
    assert_eq!(fault(900, 2000, 750, 900), ["longest", "half_life"]);
}

proptest! {
    #![proptest_config(at_least(1024))]

    #[test]
    fn a_deadline_is_kept_to_the_millisecond(
        rule in any_penalty(),
        gaps in prop::collection::vec(1..60_000_u64, 2..10),
    ) {
        let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
        let mut now = NOW;
        for gap in gaps {
            for result in [Status::Critical, Status::Passing] {
                for _ in 0..2 {
                    rule.observe(&mut state, result.into(), now);
                }
            }
            now = now.saturating_shift(gap as i64);
            let Some(deadline) = rule.deadline(&state) else { continue };
            let mut then = state;
            rule.elapse(&mut then, deadline.saturating_shift(-1));
            prop_assert_eq!(rule.mark(&then), Mark::Suppressed);
            rule.elapse(&mut then, deadline);
            prop_assert_eq!(rule.mark(&then), Mark::None);
        }
    }

    /// The penalty as the sum over all flaps, each decayed by itself (without a
    /// ceiling in reach), and the count by looking back.
    #[test]
    fn a_penalty_reports_what_its_prose_says(
        rule in any_penalty(),
        initial in any_status(),
        first in any_first(),
        observations in timed_observations(),
    ) {
        let parameters = rule.parameters();
        let half_life = parameters.half_life.as_millis() as f64;
        let mut level: Vec<(Timestamp, f64)> = Vec::new();
        let mut run: Vec<Status> = Vec::new();
        let (mut decided, mut suppressed) = (initial, None::<Status>);
        let mut believe_next = first == FirstResult::Believed;
        let mut now = NOW;
        let mut state = rule.start(initial, first, now);
        for (millis, Observation { status, immediate }) in observations {
            now = now.saturating_shift(millis as i64);
            let penalty = |level: &[(Timestamp, f64)]| -> f64 {
                level
                    .iter()
                    .map(|(time, cost)| {
                        cost * (-(now.saturating_since(*time).as_millis() as f64) / half_life).exp2()
                    })
                    .sum()
            };
            let near = |one: f64, limit: u32| (one / f64::from(limit) - 1.0).abs() < 1e-4;
            // Too near to a limit to call, with f32 and whole milliseconds.
            prop_assume!(!near(penalty(&level), parameters.reuse));
            if penalty(&level) <= f64::from(parameters.reuse) {
                suppressed = None;
            }
            if run.first().is_some_and(|one| one.cmp(&decided) != status.cmp(&decided)) {
                run.clear();
            }
            run.push(status);
            let needed = match status.cmp(&decided) {
                std::cmp::Ordering::Less => parameters.successes,
                _ => parameters.failures,
            };
            if immediate {
                suppressed = None;
            }
            if status == decided {
                run.clear();
                believe_next = false;
            } else if immediate || believe_next || run.len() as u32 >= needed {
                run.clear();
                let cost = match status {
                    _ if believe_next || status < decided => 0.0,
                    Status::Critical => 1000.0,
                    _ => 500.0,
                };
                if cost > 0.0 {
                    level.push((now, cost));
                    let ceiling = f64::from(parameters.reuse)
                        * (parameters.longest.as_millis() as f64 / half_life).exp2();
                    if penalty(&level) > ceiling {
                        level = vec![(now, ceiling)];
                    }
                    let penalty = penalty(&level);
                    prop_assume!(!near(penalty, parameters.suppress) || penalty == 1000.0);
                    if !immediate && suppressed.is_none()
                        && penalty >= f64::from(parameters.suppress)
                    {
                        suppressed = Some(match parameters.while_suppressed {
                            WhileSuppressed::LastStable => decided,
                            WhileSuppressed::Warning => Status::Warning,
                            WhileSuppressed::Critical => Status::Critical,
                        });
                    }
                }
                (decided, believe_next) = (status, false);
            }
            elapse_until(&rule, &mut state, now);
            rule.observe(&mut state, Observation { status, immediate }, now);
            prop_assert_eq!(rule.reported(&state), suppressed.unwrap_or(decided));
        }
    }
}
