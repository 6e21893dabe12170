use std::time::Duration;

/// Delays between tries that fail: 1 s to 60 s, doubling, each ± 20 %, so that
/// many clients do not come back at the same moment.
#[derive(Debug, Clone)]
pub struct Backoff {
    streak: u32,
    random: u64,
}

/// What to do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// How long to wait before the next try.
    pub after: Duration,
    /// How many tries have failed in a row, this one included.
    pub streak: u32,
    /// Whether this delay is a longer one than that of the failure before.
    /// One line in the log for each of these is enough. (P162)
    pub grew: bool,
}

/// Steps until the delay is at its longest: 1.25 s doubled 6 times is beyond
/// [`LONGEST`].
const STEPS: u32 = 6;

/// Middle of the first delay; 20 % less is 1 s.
const FIRST: Duration = Duration::from_millis(1_250);

/// Middle of the longest delay; 20 % more is 60 s.
const LONGEST: Duration = Duration::from_secs(50);

impl Backoff {
    /// No failure yet. The jitter follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            streak: 0,
            random: seed,
        }
    }

    /// A try has failed; `retry_after` is what the server asks for.
    pub fn failed(&mut self, retry_after: Option<Duration>) -> Retry {
        let step = self.streak.min(STEPS);
        let grew = self.streak <= STEPS;
        self.streak = self.streak.saturating_add(1);
        let middle = (FIRST * 2_u32.pow(step)).min(LONGEST);
        let jitter = self.jitter();
        let mut after = middle.mul_f64(0.8 + 0.4 * jitter);
        if let Some(asked) = retry_after {
            after = after.max(asked.mul_f64(1.0 + 0.2 * jitter));
        }
        Retry {
            after,
            streak: self.streak,
            grew,
        }
    }

    /// A try has succeeded.
    pub fn succeeded(&mut self) {
        self.streak = 0;
    }

    /// How many tries have failed in a row.
    pub fn streak(&self) -> u32 {
        self.streak
    }

    /// The next number of the sequence, from 0 to 1: Steele's splitmix64,
    /// which needs no more than these lines and no dependency.
    fn jitter(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn delays_go_from_one_second_to_sixty() {
        let middles = [1_250, 2_500, 5_000, 10_000, 20_000, 40_000, 50_000, 50_000];
        for seed in 0..200 {
            let mut backoff = Backoff::new(seed);
            for (failures, middle) in middles.into_iter().enumerate() {
                let retry = backoff.failed(None);
                let millis = retry.after.as_millis();
                assert!(
                    millis >= middle * 8 / 10 && millis <= middle * 12 / 10,
                    "{millis}"
                );
                assert_eq!(retry.streak as usize, failures + 1);
            }
        }
    }

    #[test]
    fn one_line_for_each_step() {
        // P162: 20 failures in a row are not 20 lines.
        let mut backoff = Backoff::new(1);
        let lines = (0..20).filter(|_| backoff.failed(None).grew).count();
        assert_eq!(lines, 7);
        backoff.succeeded();
        assert!(backoff.failed(None).grew);
    }

    #[test]
    fn different_seeds_come_back_at_different_times() {
        let firsts: std::collections::BTreeSet<Duration> = (0..100)
            .map(|seed| Backoff::new(seed).failed(None).after)
            .collect();
        assert!(firsts.len() > 95);
    }

    proptest! {
        #[test]
        fn what_the_server_asks_for_is_obeyed(seed: u64, asked in 0_u64..4_000, failures in 1..20) {
            // P161
            let asked = Duration::from_secs(asked);
            let mut backoff = Backoff::new(seed);
            for _ in 0..failures {
                let retry = backoff.failed(Some(asked));
                prop_assert!(retry.after >= asked);
                prop_assert!(retry.after >= Duration::from_secs(1));
            }
        }
    }
}
