//! Of many durations a few.

use std::fmt;
use std::time::Duration;

/// The median, the 99th percentile and the longest of some durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantiles {
    /// Half are no longer.
    pub p50: Duration,
    /// Of a hundred, 99 are no longer.
    pub p99: Duration,
    /// None is longer.
    pub most: Duration,
}

impl Quantiles {
    /// Of these; all zero if there are none.
    pub fn of(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        // The nearest rank: the smallest that so many are not above.
        let rank = |per_cent: usize| {
            let rank = (durations.len() * per_cent).div_ceil(100);
            let at = rank.saturating_sub(1);
            durations.get(at).copied().unwrap_or_default()
        };
        Self {
            p50: rank(50),
            p99: rank(99),
            most: rank(100),
        }
    }
}

/// In milliseconds, in columns.
impl fmt::Display for Quantiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, most] = [self.p50, self.p99, self.most].map(millis);
        write!(f, "p50 {p50:8.2}  p99 {p99:8.2}  max {most:8.2} ms")
    }
}

/// A duration in milliseconds.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rank_counts() {
        let of = |count: u64| Quantiles::of((1..=count).rev().map(Duration::from_millis).collect());
        let ms = Duration::from_millis;
        assert_eq!(
            (of(100).p50, of(100).p99, of(100).most),
            (ms(50), ms(99), ms(100))
        );
        assert_eq!((of(1).p50, of(1).p99, of(1).most), (ms(1), ms(1), ms(1)));
        assert_eq!(of(0).most, Duration::ZERO);
    }
}
