use std::time::Duration;

use evenkeel_threshold::advice::{self, Delay, Noise, Proposal};
use evenkeel_threshold::{Consecutive, Counts};

use crate::candidate::Candidate;
use crate::replay::{CheckOutcome, Outcome};
use crate::tally::NoiseCounts;

/// Successes in a row that are proposed: what comes back for one result only has
/// not come back. More of them would only prolong an outage.
const SUCCESSES: u32 = 2;

/// What is wanted of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// The mean time between two false alarms of one check.
    pub between_false_alarms: Duration,
    /// What a probe of a target that does not answer takes.
    pub timeout: Duration,
}

/// A false alarm of a check in thirty days, and 10 s for a probe.
impl Default for Wish {
    fn default() -> Self {
        Self {
            between_false_alarms: Duration::from_secs(30 * 86_400),
            timeout: Duration::from_secs(10),
        }
    }
}

/// What a history says about the thresholds it would take.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// How results fail while the targets work, over all checks.
    pub noise: NoiseCounts,
    /// The mean of the checks' intervals.
    pub interval: Duration,
    /// Each check, the one that needs the most first.
    pub checks: Vec<CheckAdvice>,
    /// Strategies to try: for the checks on average, and for the one that needs
    /// most if that is another.
    pub proposals: Vec<Proposed>,
}

/// What one check would take.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CheckAdvice {
    /// Its name.
    pub name: String,
    /// How its results fail while it works.
    pub noise: NoiseCounts,
    /// Its interval.
    pub interval: Duration,
    /// Failures in a row; `None` if no number of them would do.
    pub failures: Option<u32>,
}

/// A strategy, and what is to be expected of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Proposed {
    /// To be replayed.
    pub candidate: Candidate,
    /// Failures in a row that it waits for.
    pub failures: u32,
    /// For what it is proposed.
    pub reason: &'static str,
    /// The mean time between two false alarms of one check, by the noise of all.
    pub between_false_alarms: Duration,
    /// How many false alarms are to be expected in this history, by the noise of
    /// each check.
    pub false_alarms: f64,
    /// From the first failed result to the report.
    pub after_first_failure: Duration,
    /// From the failure of the target to the report.
    pub delay: Delay,
}

/// A history from which nothing can be learnt about noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoAdvice {
    /// No check has two results.
    #[error("no check has two results, so there is no interval")]
    NoInterval,
    /// Nothing failed while it worked.
    #[error(
        "no result failed while its target worked: there is no noise to damp, and every \
         strategy will do"
    )]
    NoNoise,
    /// No number of failures in a row is enough.
    #[error(
        "failures come in such long bursts that no number of them in a row gives the wished \
         time between false alarms; wish for less, or take a narrower window for the truth \
         if they are outages"
    )]
    NoNumber,
}

/// Measures how results fail while their targets work, and proposes strategies
/// that give the wished time between false alarms.
///
/// The number of failures comes from [`advice::propose`], whose page has the
/// formula. It takes bursts to go on as they begin, however long they get; the
/// truth of the replay takes long ones for outages. So the prediction is on the
/// safe side, and a number of failures beyond what the truth needs misses outages
/// that are shorter.
///
/// # Errors
///
/// There is no noise in the history, or too much.
pub fn advise(outcome: &Outcome, wish: Wish) -> Result<Advice, NoAdvice> {
    let interval = outcome.interval().ok_or(NoAdvice::NoInterval)?;
    let noise = outcome.noise();
    if noise.failures() == 0 {
        return Err(NoAdvice::NoNoise);
    }
    let mut checks: Vec<CheckAdvice> = outcome
        .checks
        .iter()
        .filter_map(|check| {
            let interval = check.interval?;
            Some(CheckAdvice {
                name: check.name.clone(),
                noise: check.noise,
                interval,
                failures: proposal(&check.noise, wish, interval).map(|it| it.failures),
            })
        })
        .collect();
    let needs = |check: &CheckAdvice| check.failures.unwrap_or(u32::MAX);
    checks.sort_by(|one, other| {
        let rate = |check: &CheckAdvice| check.noise.rate();
        needs(other)
            .cmp(&needs(one))
            .then_with(|| rate(other).total_cmp(&rate(one)))
            .then_with(|| one.name.cmp(&other.name))
    });
    let most = checks.iter().filter_map(|check| check.failures).max();
    let average = proposal(&noise, wish, interval).map(|it| it.failures);
    let mut proposals = Vec::new();
    for (failures, reason) in [
        (average, "for the checks on average"),
        (
            most.filter(|most| Some(*most) != average),
            "for the check that needs most",
        ),
    ] {
        proposals.extend(failures.and_then(|failures| {
            let expected = Expected {
                outcome,
                noise,
                interval,
                wish,
            };
            expected.of(failures, reason)
        }));
    }
    if proposals.is_empty() {
        return Err(NoAdvice::NoNumber);
    }
    Ok(Advice {
        noise,
        interval,
        checks,
        proposals,
    })
}

/// Failures in a row for this noise; one is enough where there is none.
fn proposal(noise: &NoiseCounts, wish: Wish, interval: Duration) -> Option<Proposal> {
    let wish = advice::Wish {
        between_false_alarms: wish.between_false_alarms,
        interval,
        timeout: wish.timeout,
    };
    match chain(noise) {
        Some(noise) => advice::propose(noise, wish),
        None => Some(Proposal {
            failures: 1,
            mean_results: f64::INFINITY,
            delay: Delay::of(1, interval, wish.timeout),
        }),
    }
}

fn chain(noise: &NoiseCounts) -> Option<Noise> {
    Noise::measured(
        (noise.failed_after_success, noise.after_success),
        (noise.failed_after_failure, noise.after_failure),
    )
    .ok()
}

/// What is to be expected of so many failures in a row.
struct Expected<'a> {
    outcome: &'a Outcome,
    noise: NoiseCounts,
    interval: Duration,
    wish: Wish,
}

impl Expected<'_> {
    fn of(&self, failures: u32, reason: &'static str) -> Option<Proposed> {
        let counts = Counts {
            failures_before_critical: failures,
            failures_before_warning: None,
            success_before_passing: SUCCESSES,
        };
        let strategy = Consecutive::new(counts).ok()?;
        let mean_results = chain(&self.noise)?.mean_results(failures);
        let of_check = |check: &CheckOutcome| {
            chain(&check.noise).map_or(0.0, |noise| {
                check.noise.results() as f64 / noise.mean_results(failures)
            })
        };
        Some(Proposed {
            candidate: Candidate::new(
                format!("consecutive:down={failures},up={SUCCESSES}"),
                strategy.into(),
            ),
            failures,
            reason,
            between_false_alarms: times(self.interval, mean_results),
            false_alarms: self.outcome.checks.iter().map(of_check).sum(),
            after_first_failure: self.interval.saturating_mul(failures - 1),
            delay: Delay::of(failures, self.interval, self.wish.timeout),
        })
    }
}

/// A product that may be beyond all durations.
fn times(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}
