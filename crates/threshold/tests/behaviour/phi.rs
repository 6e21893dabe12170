//! A deadline that follows the gaps seen.

use std::time::Duration;

use evenkeel_threshold::{
    FirstResult, Observation, Phi, PhiParameters, PhiState, Status, Strategy, Timestamp,
};
use proptest::prelude::*;

use crate::generators::timed_observations;
use crate::support::{NOW, elapse_until};

fn phi(phi: f64) -> Phi {
    Phi::new(PhiParameters {
        phi,
        expected_gap: Duration::from_secs(10),
        ..PhiParameters::default()
    })
    .expect("valid")
}

/// A target whose gaps are 10 s on average, with a deviation of `deviation` s.
fn seen(rule: &Phi, deviation: f64) -> (PhiState, Timestamp) {
    let mut now = NOW;
    let mut state = rule.start(Status::Passing, FirstResult::Counted, now);
    for beat in 0..4000 {
        let sign = if beat % 2 == 0 { -1.0 } else { 1.0 };
        let gap = 10_000.0 + sign * deviation * 1000.0;
        now = now.saturating_shift(gap as i64);
        rule.observe(&mut state, Status::Passing.into(), now);
        assert_eq!(rule.reported(&state), Status::Passing);
    }
    (state, now)
}

fn after(now: Timestamp, seconds: f64) -> Timestamp {
    now.saturating_shift((seconds * 1000.0) as i64)
}

#[test]
fn suspicion_is_a_number_of_deviations() {
    for (wanted, deviations) in [(1.0, 1.2816), (3.0, 3.0902), (5.0, 4.2649), (8.0, 5.6120)] {
        let rule = phi(wanted);
        let state = rule.start(Status::Passing, FirstResult::Counted, NOW);
        // Nothing seen: 10 s, give or take 2.5 s.
        let patience = rule.deadline(&state).unwrap().saturating_since(NOW);
        let expected = 10.0 + deviations * 2.5;
        assert!(
            (patience.as_secs_f64() - expected).abs() < 2e-3,
            "{wanted}: {patience:?}"
        );
    }
}

#[test]
fn a_punctual_target_is_missed_sooner() {
    for (threshold, deviation, silence) in [
        (8.0, 0.1, 10.56),
        (8.0, 1.0, 15.61),
        (5.0, 1.0, 14.26),
        (3.0, 1.0, 13.09),
        (8.0, 3.0, 26.84),
    ] {
        let rule = phi(threshold);
        // Less than the detector would allow for while it learns.
        let (state, now) = seen(&phi(100.0), deviation);
        let patience = rule.deadline(&state).unwrap().saturating_since(now);
        assert!(
            (patience.as_secs_f64() - silence).abs() < 0.02,
            "{threshold} {deviation}: {patience:?}"
        );
    }
}

/// Akka's approximation of the tail, for comparison.
fn akka(deviations: f64) -> f64 {
    let e = (-deviations * (1.5976 + 0.070566 * deviations * deviations)).exp();
    -(e / (1.0 + e)).log10()
}

#[test]
fn the_tail_is_exact_and_not_akkas() {
    let (state, now) = seen(&phi(100.0), 1.0);
    let rule = phi(8.0);
    for (seconds, exact, theirs) in [
        (10.0, 0.301, 0.301),
        (12.0, 1.643, 1.643),
        (15.0, 6.54, 7.30),
        (15.6, 7.97, 9.27),
        (20.0, 23.1, 37.6),
    ] {
        let suspicion = rule.suspicion(&state, after(now, seconds));
        let printed = if seconds < 13.0 { 3e-3 } else { 0.06 };
        assert!(
            (suspicion - exact).abs() < printed,
            "{seconds}: {suspicion}"
        );
        let approximated = akka(seconds - 10.0);
        assert!(
            (approximated - theirs).abs() < 0.06,
            "{seconds}: {approximated}"
        );
    }
}

/// Cassandra takes gaps to be exponential, `phi = 0.434 t / mean`: too slow as a
/// health check, which is why it is not offered.
#[test]
fn exponential_gaps_would_take_nineteen_missed_probes() {
    let mean_gaps = |phi: f64| phi * std::f64::consts::LN_10;
    assert!((mean_gaps(8.0) - 18.4).abs() < 0.05);
    assert!((mean_gaps(5.0) - 11.5).abs() < 0.05);
    assert!((std::f64::consts::LOG10_E - 0.434).abs() < 5e-4);
    assert_eq!(mean_gaps(8.0).ceil(), 19.0);
}

/// With probes at a fixed interval it is a count in a row that follows the loss.
#[test]
fn with_active_probes_it_is_a_count_that_follows_the_loss_rate() {
    for (loss, failures, false_alarm) in [
        (0.01_f64, 2, 1e-4),
        (0.05, 3, 1.25e-4),
        (0.1, 4, 1e-4),
        (0.2, 5, 3.2e-4),
        (0.3, 6, 7.3e-4),
    ] {
        // Gaps of a target that loses so many probes: geometric.
        let rule = Phi::new(PhiParameters {
            expected_gap: Duration::from_secs(1),
            least_deviation: Duration::from_millis(1),
            samples: 10_000,
            ..PhiParameters::default()
        })
        .unwrap();
        let patient = Phi::new(PhiParameters {
            phi: 100.0,
            acceptable_pause: Duration::from_secs(60),
            ..rule.parameters()
        })
        .unwrap();
        let mut now = NOW;
        let mut state = rule.start(Status::Passing, FirstResult::Counted, now);
        // As many gaps of each length as there are on average among 10,000.
        for length in 1..12_i32 {
            let share = (1.0 - loss) * loss.powi(length - 1);
            for _ in 0..(share * 10_000.0).round() as u32 {
                now = now.saturating_shift(i64::from(length) * 1000);
                patient.observe(&mut state, Status::Passing.into(), now);
            }
        }
        let patience = rule.deadline(&state).unwrap().saturating_since(now);
        assert_eq!(
            patience.as_secs_f64().ceil() as i32,
            failures,
            "{loss}: {patience:?}"
        );
        let run = loss.powi(failures);
        assert!((run / false_alarm - 1.0).abs() < 0.01, "{run}");
    }
}

#[test]
fn a_failing_result_is_no_beat_unless_it_is_immediate() {
    let rule = phi(8.0);
    let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
    let deadline = rule.deadline(&state);
    assert_eq!(
        rule.observe(&mut state, Status::Critical.into(), after(NOW, 5.0)),
        None
    );
    assert_eq!(rule.deadline(&state), deadline);
    let at_once = Observation::immediate(Status::Critical);
    assert!(rule.observe(&mut state, at_once, after(NOW, 6.0)).is_some());
    assert_eq!(rule.deadline(&state), None);
    rule.observe(&mut state, Status::Warning.into(), after(NOW, 900.0));
    assert_eq!(rule.reported(&state), Status::Warning);
    // An outage is no gap between two beats.
    assert_eq!(state.mean_gap(), Duration::from_secs(10));
}

#[test]
fn parameters_that_make_no_detector_are_refused_all_at_once() {
    let error = Phi::new(PhiParameters {
        phi: f64::NAN,
        least_deviation: Duration::from_micros(10),
        expected_gap: Duration::ZERO,
        samples: 1,
        ..PhiParameters::default()
    })
    .unwrap_err();
    let names: Vec<_> = error.parameters().collect();
    assert_eq!(names, ["phi", "least_deviation", "expected_gap", "samples"]);
}

/// `P(gap > t)` by adding up the bell curve in small steps.
fn tail(deviations: f64) -> f64 {
    let step = 1e-3;
    let density = |z: f64| (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    (0..14_000)
        .map(|index| density(deviations + (f64::from(index) + 0.5) * step) * step)
        .sum()
}

proptest! {
    /// Every gap is kept, and the moments are taken anew each time.
    #[test]
    fn it_is_the_slow_model(threshold in 1.0..12.0_f64, observations in timed_observations()) {
        let rule = Phi::new(PhiParameters {
            phi: threshold,
            samples: 10_000,
            ..phi(threshold).parameters()
        }).unwrap();
        let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
        let mut gaps = vec![7_500.0, 12_500.0];
        let (mut latest, mut now, mut down) = (NOW, NOW, false);
        for (millis, observation) in observations.into_iter().take(60) {
            now = now.saturating_shift(millis as i64);
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            let silent = now.saturating_since(latest).as_millis() as f64;
            let suspicion = -tail((silent - mean) / variance.sqrt().max(100.0)).log10();
            let told = rule.suspicion(&state, now);
            if suspicion < 12.0 {
                prop_assert!((suspicion - told).abs() < 0.01 * suspicion.max(1.0), "{suspicion} {told}");
            }
            // Too near to tell.
            prop_assume!((suspicion - threshold).abs() > 0.01 * threshold);
            elapse_until(&rule, &mut state, now);
            down |= suspicion > threshold;
            prop_assert_eq!(rule.reported(&state) == Status::Critical, down);
            rule.observe(&mut state, observation, now);
            if observation.status != Status::Critical {
                if !down {
                    gaps.push(silent);
                }
                latest = now;
                down = false;
            } else {
                down |= observation.immediate;
            }
            prop_assert_eq!(rule.reported(&state) == Status::Critical, down);
        }
    }
}
