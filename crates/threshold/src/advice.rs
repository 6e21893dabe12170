//! Proposals for parameters, from what was measured.
//!
//! From a failure rate alone every advice misleads: failures come in bursts.
//! With half of all failures followed by another, each further failure that is
//! asked for merely doubles the time between false alarms, where independent
//! failures of one in a hundred would make it a hundred times as long. So two
//! numbers are wanted, both counted in a history of a target that works.
//!
//! ```
//! use core::time::Duration;
//! use evenkeel_threshold::advice::{Noise, Wish, propose};
//!
//! let wish = Wish {
//!     between_false_alarms: Duration::from_secs(365 * 24 * 3600),
//!     interval: Duration::from_secs(10),
//!     timeout: Duration::from_secs(5),
//! };
//! let noise = Noise::independent(0.05)?;
//! let proposal = propose(noise, wish).expect("five in a row are enough");
//! assert_eq!(proposal.failures, 5);
//! // From 45 s to 55 s after the failure.
//! assert_eq!(proposal.delay.worst, Duration::from_secs(55));
//! # Ok::<(), evenkeel_threshold::ParameterError>(())
//! ```

use core::time::Duration;

use crate::ParameterError;
use crate::key::keys;
use crate::parameters::Rules;
use crate::words::Real;

/// The numbers of [`Noise`], before they are checked.
#[derive(Default)]
struct Probabilities {
    a: f64,
    b: f64,
}

keys! { Probabilities {
    a: f64 = "a", "more than 0 and less than 1", "",
        "The probability of a failure after a success";
    b: f64 = "b", "at least 0 and less than 1", "",
        "The probability of a failure after a failure";
} }

/// How the results of a target that works fail, as a chain: a result depends on
/// the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Noise {
    a: Real,
    b: Real,
}

impl Noise {
    /// `a`: the probability of a failure after a success; `b`: after a failure.
    ///
    /// # Errors
    ///
    /// `a` is not above 0, or one of both is not below 1.
    pub fn new(a: f64, b: f64) -> Result<Self, ParameterError> {
        Rules::new()
            .range::<Probabilities>("a", a > 0.0 && a < 1.0)
            .range::<Probabilities>("b", (0.0..1.0).contains(&b))
            .check()?;
        Ok(Self {
            a: Real::new(a),
            b: Real::new(b),
        })
    }

    /// Each result fails with probability `p`, whatever the one before it did.
    ///
    /// # Errors
    ///
    /// `p` is not between 0 and 1.
    pub fn independent(p: f64) -> Result<Self, ParameterError> {
        Self::new(p, p)
    }

    /// Counted in a history of a target that works: failures and results after a
    /// success, and after a failure. Without any failure in it, `b` is taken to be
    /// as `a`.
    ///
    /// # Errors
    ///
    /// There is no failure after a success, or nothing else.
    pub fn measured(
        (failures_after_success, after_success): (u64, u64),
        (failures_after_failure, after_failure): (u64, u64),
    ) -> Result<Self, ParameterError> {
        let a = failures_after_success as f64 / after_success as f64;
        let b = match after_failure {
            0 => a,
            _ => failures_after_failure as f64 / after_failure as f64,
        };
        Self::new(a, b)
    }

    /// The share of results that fail.
    pub fn rate(&self) -> f64 {
        let (a, b) = (self.a.get(), self.b.get());
        a / (a + 1.0 - b)
    }

    /// The mean number of results, the first of them after a success, until
    /// `failures` in a row; 0 is 1.
    ///
    /// `(1/a + (1 - b^(k-1)) / (1 - b)) / b^(k-1)`; infinite if `b` is 0 and more
    /// than one failure is wanted.
    pub fn mean_results(&self, failures: u32) -> f64 {
        let (a, b) = (self.a.get(), self.b.get());
        let run = libm::pow(b, f64::from(failures.max(1) - 1));
        (1.0 / a + (1.0 - run) / (1.0 - b)) / run
    }
}

/// What is wanted, and how the target is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wish {
    /// The mean time between two false alarms, of this check. For one alarm in
    /// so long of a thousand checks, a thousand times as long.
    pub between_false_alarms: Duration,
    /// From the start of a probe to the start of the next.
    pub interval: Duration,
    /// What a probe of a target that does not answer takes.
    pub timeout: Duration,
}

/// From the failure of a target to the report of it, if each probe ends by its
/// timeout and the failure comes at any time within an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Delay {
    /// The failure comes right before a probe.
    pub best: Duration,
    /// On average.
    pub mean: Duration,
    /// The failure comes right after a probe.
    pub worst: Duration,
}

impl Delay {
    /// For `failures` in a row; 0 is 1.
    pub fn of(failures: u32, interval: Duration, timeout: Duration) -> Self {
        let failures = failures.max(1);
        let best = interval
            .saturating_mul(failures - 1)
            .saturating_add(timeout);
        Self {
            best,
            mean: best.saturating_add(interval / 2),
            worst: best.saturating_add(interval),
        }
    }
}

/// A number of failures in a row, and what it costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proposal {
    /// Failures in a row to ask for: `failures_before_critical` of
    /// [`Consecutive`](crate::Consecutive).
    pub failures: u32,
    /// The mean number of results between two false alarms with that.
    pub mean_results: f64,
    /// The delay it costs.
    pub delay: Delay,
}

/// The most failures in a row that are proposed. Where more were needed a count
/// is the wrong rule: ask for a time that is longer than the usual burst
/// ([`Hold`](crate::Hold)), or for a look at the target.
pub const MOST_FAILURES: u32 = 100;

/// The smallest count of failures in a row with which false alarms are as rare
/// as wished; `None` if [`MOST_FAILURES`] is not enough.
pub fn propose(noise: Noise, wish: Wish) -> Option<Proposal> {
    let wanted = wish.between_false_alarms.as_secs_f64() / wish.interval.as_secs_f64();
    (1..=MOST_FAILURES)
        .map(|failures| Proposal {
            failures,
            mean_results: noise.mean_results(failures),
            delay: Delay::of(failures, wish.interval, wish.timeout),
        })
        .find(|proposal| proposal.mean_results >= wanted)
}
