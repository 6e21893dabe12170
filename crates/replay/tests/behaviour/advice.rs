//! Advice beside what really comes of it.

use std::fmt::Write as _;
use std::time::Duration;

use evenkeel_replay::{Candidate, NoAdvice, Outcome, ReplaySettings, TruthWindow, Wish, advise};

use crate::support::{in_a_row, raw, replay};

/// Marsaglia's xorshift: the same numbers at each run.
struct Random(u64);

impl Random {
    fn chance(&mut self, share: f64) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) as f64 / (1_u64 << 53) as f64) < share
    }
}

/// Checks that work, whose results fail with probability `a` after a success and
/// `b` after a failure; one each 10 s.
fn noisy(checks: &[(f64, f64)], results: u32) -> String {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut file = String::new();
    for (check, &(a, b)) in checks.iter().enumerate() {
        let mut failed = false;
        for index in 0..results {
            failed = random.chance(if failed { b } else { a });
            let status = if failed { "down" } else { "up" };
            let _ = writeln!(file, "{},check-{check},{status}", 10 * index);
        }
    }
    file
}

/// So wide that bursts are never taken for outages.
fn patient() -> ReplaySettings {
    let mut settings = ReplaySettings::default();
    settings.truth = TruthWindow::new(60).unwrap();
    settings
}

fn measured(file: &str) -> Outcome {
    replay(file.as_bytes(), patient(), &[("raw", raw())]).0
}

fn near(found: f64, expected: f64, share: f64) -> bool {
    (found - expected).abs() <= expected * share
}

// hysteresis.md §11: a and b, measured, and the rate a/(a+1-b).
#[test]
fn noise_is_measured_as_it_was_made() {
    let (a, b) = (0.02, 0.5);
    let noise = measured(&noisy(&[(a, b)], 200_000)).noise();
    assert!(near(noise.a(), a, 0.05), "{noise:?}");
    assert!(near(noise.b(), b, 0.05), "{noise:?}");
    assert!(near(noise.rate(), a / (a + 1.0 - b), 0.05), "{noise:?}");
}

/// The wish is three days, N for k in a row is that of the table: with p = 0.05,
/// 8,420 results of 10 s for three and 168,400 for four (§2.1).
#[test]
fn independent_failures_want_as_many_in_a_row_as_the_table_says() {
    let outcome = measured(&noisy(&[(0.05, 0.05)], 200_000));
    for (wish, failures) in [(8000, 3), (9500, 4), (150_000, 4), (200_000, 5)] {
        let wish = Wish {
            between_false_alarms: Duration::from_secs(10 * wish),
            timeout: Duration::from_secs(5),
        };
        let advice = advise(&outcome, wish).unwrap();
        assert_eq!(advice.interval, Duration::from_secs(10));
        let proposed = &advice.proposals[0];
        assert_eq!(proposed.failures, failures, "{wish:?}");
        let name = format!("consecutive:down={failures},up=2");
        let strategy = in_a_row(failures, 2);
        assert_eq!(proposed.candidate, Candidate::new(name, strategy));
        // k = 3: 25, 30 and 35 s (§12).
        let best = Duration::from_secs(u64::from(10 * (failures - 1) + 5));
        assert_eq!(proposed.delay.best, best);
        assert_eq!(proposed.delay.worst, best + Duration::from_secs(10));
    }
}

#[test]
fn what_is_predicted_is_what_is_replayed() {
    let noises = [(0.02, 0.5), (0.05, 0.05), (0.01, 0.7), (0.10, 0.3)];
    let file = noisy(&noises, 100_000);
    let wish = Wish {
        between_false_alarms: Duration::from_secs(10 * 3000),
        ..Wish::default()
    };
    let advice = advise(&measured(&file), wish).unwrap();
    assert_eq!(advice.proposals.len(), 2, "{advice:?}");
    for proposed in &advice.proposals {
        let strategies = [("it", proposed.candidate.strategy)];
        let (outcome, _) = replay(file.as_bytes(), patient(), &strategies);
        let alarms = outcome.strategies[0].tally.false_alarms as f64;
        // At least 100 are counted, so a fifth is two standard deviations.
        assert!(proposed.false_alarms > 20.0, "{proposed:?}");
        assert!(
            near(alarms, proposed.false_alarms, 0.2),
            "{alarms} of {proposed:?}"
        );
    }
}

#[test]
fn the_check_that_needs_most_is_first_and_has_a_proposal_of_its_own() {
    let noises = [(0.001, 0.001), (0.06, 0.06), (0.02, 0.6), (0.05, 0.05)];
    let outcome = measured(&noisy(&noises, 20_000));
    let wish = Wish {
        between_false_alarms: Duration::from_secs(10 * 500_000),
        ..Wish::default()
    };
    let advice = advise(&outcome, wish).unwrap();
    let names: Vec<&str> = advice
        .checks
        .iter()
        .map(|check| check.name.as_str())
        .collect();
    // Of two that need as much the one that fails more often comes first.
    assert_eq!(names, ["check-2", "check-1", "check-3", "check-0"]);
    assert_eq!(advice.checks[1].failures, advice.checks[2].failures);
    let most = advice.checks[0].failures.unwrap();
    assert_eq!(advice.proposals.last().unwrap().failures, most);
    assert!(advice.proposals[0].failures < most);
}

#[test]
fn without_noise_or_with_too_much_there_is_no_advice() {
    let quiet = measured("0,a,up\n10,a,up\n20,a,up\n");
    assert_eq!(advise(&quiet, Wish::default()), Err(NoAdvice::NoNoise));
    let single = measured("0,a,up\n");
    assert_eq!(advise(&single, Wish::default()), Err(NoAdvice::NoInterval));
    let mut settings = ReplaySettings::default();
    settings.truth = TruthWindow::new(100).unwrap();
    let endless = noisy(&[(0.2, 0.99)], 5000);
    let (endless, _) = replay(endless.as_bytes(), settings, &[]);
    let wish = Wish {
        between_false_alarms: Duration::from_secs(1 << 40),
        ..Wish::default()
    };
    if endless.noise().failures() > 0 {
        assert_eq!(advise(&endless, wish), Err(NoAdvice::NoNumber));
    }
}
