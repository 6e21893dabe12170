use core::time::Duration;

/// How the engine schedules and writes. Fields out of range are raised to the
/// least value that makes sense, never refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Interval of a check whose definition has none (zero). 30 s, as
    /// consul-esm 0.10 has it.
    pub default_interval: Duration,
    /// Shorter intervals are raised to this. 1 s, as consul-esm 0.10 has it.
    pub minimum_interval: Duration,
    /// Timeout of a check whose definition has none (zero). 10 s, as Consul's
    /// agent and consul-esm 0.10 have it.
    pub default_timeout: Duration,
    /// A probe that has not answered this long after its timeout is taken for
    /// lost, and the check is probed again at its next tick. 5 s.
    pub lost_probe_margin: Duration,
    /// Newcomers that come together are first probed at least at this rate, or
    /// at the steady rate of all checks if that is higher. 20 per second; at
    /// least 1.
    pub newcomers_per_second: u32,
    /// How long a text that differs from the catalog's waits, the status being
    /// the same, before it is written. 5 min, as Consul's `check_update_interval`.
    pub output_period: Duration,
    /// Least time between the starts of two batches of writes, unless a batch
    /// is full. 100 ms.
    pub batch_gap: Duration,
    /// Most writes in a batch. 64, the most operations that Consul takes in one
    /// transaction (1.8.7 and before; later servers take more). At least 1.
    pub batch_size: usize,
    /// Most batches on their way at once. 4; at least 1.
    pub batches_in_flight: usize,
    /// Delay after the first failed write of a check; doubled for each further
    /// one. 250 ms.
    pub retry_first: Duration,
    /// Longest delay after a failed write. 10 s.
    pub retry_most: Duration,
    /// Delay after a write that was refused, or whose check was gone: trying at
    /// once would change nothing. 60 s.
    pub refused_retry: Duration,
    /// A write or a deregistration without an answer for this long is taken for
    /// failed. 60 s; the shell's own timeouts should be well below.
    pub answer_deadline: Duration,
    /// Restored checks that the catalog does not name are remembered this long
    /// after they were restored. 10 min.
    pub restored_retention: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_interval: Duration::from_secs(30),
            minimum_interval: Duration::from_secs(1),
            default_timeout: Duration::from_secs(10),
            lost_probe_margin: Duration::from_secs(5),
            newcomers_per_second: 20,
            output_period: Duration::from_secs(300),
            batch_gap: Duration::from_millis(100),
            batch_size: 64,
            batches_in_flight: 4,
            retry_first: Duration::from_millis(250),
            retry_most: Duration::from_secs(10),
            refused_retry: Duration::from_secs(60),
            answer_deadline: Duration::from_secs(60),
            restored_retention: Duration::from_secs(600),
        }
    }
}

/// No interval or timeout is longer: arithmetic on times stays far from the end
/// of the clock.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

impl Settings {
    /// The interval to use for one that a definition gives.
    pub(crate) fn interval(&self, given: Duration) -> Duration {
        let wanted = if given.is_zero() {
            self.default_interval
        } else {
            given
        };
        // A schedule in milliseconds needs at least one of them.
        let floor = self.minimum_interval.max(Duration::from_millis(1));
        wanted.max(floor).min(LONGEST)
    }

    /// The timeout to use for one that a definition gives.
    pub(crate) fn timeout(&self, given: Duration) -> Duration {
        let wanted = if given.is_zero() {
            self.default_timeout
        } else {
            given
        };
        wanted.min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // P044: an empty interval must not become a busy loop.
    #[test]
    fn interval_has_a_default_and_a_floor() {
        let settings = Settings::default();
        let cases = [
            (0, 30_000),
            (1, 1000),
            (100, 1000),
            (1000, 1000),
            (4500, 4500),
        ];
        for (given, used) in cases {
            assert_eq!(
                settings.interval(Duration::from_millis(given)),
                Duration::from_millis(used),
                "{given} ms"
            );
        }
        assert_eq!(settings.interval(Duration::MAX), LONGEST);
    }

    #[test]
    fn a_zero_floor_still_leaves_a_millisecond() {
        let settings = Settings {
            minimum_interval: Duration::ZERO,
            default_interval: Duration::ZERO,
            ..Settings::default()
        };
        assert_eq!(settings.interval(Duration::ZERO), Duration::from_millis(1));
    }
}
