//! Ticks: fixed times, one interval apart.

use core::time::Duration;

use evenkeel_threshold::Timestamp;

/// The next tick of a schedule that has one at `phase`: `phase` itself if that is
/// at most one interval away, else the first one at `now` or later.
pub(crate) fn align(phase: Timestamp, interval: Duration, now: Timestamp) -> Timestamp {
    let step = step(interval);
    if phase >= now && phase.as_millis() - now.as_millis() <= step {
        return phase;
    }
    let wait = (phase.as_millis() % step + step - now.as_millis() % step) % step;
    Timestamp::from_millis(now.as_millis().saturating_add(wait))
}

/// The first tick after `now` of a schedule with one at `due`, and how many
/// ticks lie between: those that were missed. `due` itself is not one of them.
pub(crate) fn advance(due: Timestamp, interval: Duration, now: Timestamp) -> (Timestamp, u64) {
    let step = step(interval);
    let missed = now.as_millis().saturating_sub(due.as_millis()) / step;
    let next = missed.saturating_add(1).saturating_mul(step);
    let next = due.as_millis().saturating_add(next);
    (Timestamp::from_millis(next), missed)
}

/// When the newcomer number `k` (from 0) of a batch is first probed, if
/// newcomers are probed `rate` per second.
pub(crate) fn spread(k: usize, rate: f64) -> Duration {
    // Saturates; the rate is at least one per second.
    Duration::from_millis((k as f64 * 1000.0 / rate) as u64)
}

/// Probes per second of a check.
pub(crate) fn rate(interval: Duration) -> f64 {
    1000.0 / step(interval) as f64
}

fn step(interval: Duration) -> u64 {
    u64::try_from(interval.as_millis()).map_or(u64::MAX / 2, |millis| millis.clamp(1, u64::MAX / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn align_keeps_the_phase_in_both_directions() {
        let interval = Duration::from_secs(10);
        assert_eq!(align(at(3_000), interval, at(100_000)), at(103_000));
        assert_eq!(align(at(503_000), interval, at(100_000)), at(103_000));
        assert_eq!(align(at(103_000), interval, at(103_000)), at(103_000));
        assert_eq!(align(at(103_000), interval, at(103_001)), at(113_000));
        // Just probed: not again in the same moment.
        assert_eq!(align(at(113_000), interval, at(103_000)), at(113_000));
    }

    #[test]
    fn advance_counts_what_was_missed() {
        let interval = Duration::from_secs(10);
        assert_eq!(advance(at(20_000), interval, at(20_000)), (at(30_000), 0));
        assert_eq!(advance(at(20_000), interval, at(29_999)), (at(30_000), 0));
        assert_eq!(advance(at(20_000), interval, at(30_000)), (at(40_000), 1));
        assert_eq!(advance(at(20_000), interval, at(55_000)), (at(60_000), 3));
        // A clock that runs backwards misses nothing.
        assert_eq!(advance(at(20_000), interval, at(5_000)), (at(30_000), 0));
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let end = at(u64::MAX);
        assert_eq!(align(at(3), Duration::MAX, end), end);
        assert_eq!(advance(end, Duration::MAX, end).0, end);
        assert_eq!(advance(at(0), Duration::ZERO, end).0, end);
        assert!(spread(usize::MAX, 1.0) > Duration::from_secs(1));
    }
}
