//! The one place where wall time is read.
//!
//! The engine's clock is Unix milliseconds taken once at the start and driven
//! by the monotonic clock from then on, so that a step of the wall clock never
//! moves a schedule. What is written for people or for the next process is
//! converted by the offset between the two at that moment.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use evenkeel_threshold::Timestamp;
use tokio::time::Instant;

/// Milliseconds since the Unix epoch, anchored at the start of the process and
/// monotonic since.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
    unix_at_origin: u64,
}

impl Clock {
    /// A clock anchored at the wall time of now.
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
            unix_at_origin: wall_millis(),
        }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        let elapsed = self.origin.elapsed().as_millis();
        Timestamp::from_millis(
            self.unix_at_origin
                .saturating_add(u64::try_from(elapsed).unwrap_or(u64::MAX)),
        )
    }

    /// The moment of the runtime's timer that `at` stands for; a time before
    /// the clock's start is its start. At most ten years ahead, which is as far
    /// as a timer goes.
    pub fn instant(&self, at: Timestamp) -> Instant {
        const FAR: u64 = 10 * 365 * 24 * 3_600_000;
        let ahead = at.as_millis().saturating_sub(self.unix_at_origin).min(FAR);
        self.origin + Duration::from_millis(ahead)
    }

    /// What must be added to a [`Timestamp`] of this clock to get the wall
    /// clock's Unix milliseconds of now. Zero until somebody steps the wall
    /// clock or the machine sleeps.
    pub fn wall_offset(&self) -> i64 {
        let wall = i64::try_from(wall_millis()).unwrap_or(i64::MAX);
        let ours = i64::try_from(self.now().as_millis()).unwrap_or(i64::MAX);
        wall.saturating_sub(ours)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads wall time"
)]
fn wall_millis() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map(|since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
        .unwrap_or(0)
}

/// A time as RFC 3339 in UTC with milliseconds.
pub fn rfc3339(unix_millis: u64) -> String {
    // The year 9999 is the last that the format has.
    const LAST: u64 = 253_402_300_799_000;
    let at = UNIX_EPOCH + Duration::from_millis(unix_millis.min(LAST));
    humantime::format_rfc3339_millis(at).to_string()
}

/// Notices that the process did not run for a while (SIGSTOP, a suspended
/// machine, a starved core), from a loop that is sure to come round every
/// [`PauseDetector::BEAT`].
#[derive(Debug)]
pub struct PauseDetector {
    last: Timestamp,
}

impl PauseDetector {
    /// The longest the loop sleeps.
    pub const BEAT: Duration = Duration::from_millis(250);
    /// By how much a turn may be late before it counts as a pause. Probes that
    /// were under way over such a gap say more about us than about the target.
    pub const TOLERANCE: Duration = Duration::from_secs(1);

    /// A detector that was last awake at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { last: now }
    }

    /// To be called at each turn of the loop, before anything that came in is
    /// looked at. Gives how long the process stood still, if it did.
    pub fn turn(&mut self, now: Timestamp) -> Option<Duration> {
        let gap = now.saturating_since(self.last);
        self.last = now;
        (gap > Self::BEAT + Self::TOLERANCE).then(|| gap.saturating_sub(Self::BEAT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_clock_moves_with_the_runtime() {
        let clock = Clock::start();
        let before = clock.now();
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert_eq!(
            clock.now().saturating_since(before),
            Duration::from_millis(1500)
        );
        assert_eq!(clock.instant(clock.now()), Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn a_far_deadline_is_no_overflow() {
        let clock = Clock::start();
        let far = clock.instant(Timestamp::from_millis(u64::MAX));
        assert!(far > Instant::now() + Duration::from_secs(1_000_000));
        assert!(clock.instant(Timestamp::ZERO) <= Instant::now());
    }

    // P104
    #[test]
    fn only_a_gap_longer_than_beat_and_tolerance_is_a_pause() {
        let at = Timestamp::from_millis;
        let mut detector = PauseDetector::new(at(1_000));
        assert_eq!(detector.turn(at(1_250)), None);
        assert_eq!(detector.turn(at(2_500)), None);
        assert_eq!(
            detector.turn(at(62_750)),
            Some(Duration::from_millis(60_000))
        );
        assert_eq!(detector.turn(at(62_760)), None);
    }

    #[test]
    fn times_are_written_in_utc_with_milliseconds() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        // `date -u -d @1795600245 +%FT%TZ` of GNU coreutils.
        assert_eq!(rfc3339(1_795_600_245_007), "2026-11-25T09:50:45.007Z");
        assert!(rfc3339(u64::MAX).starts_with("9999-"));
    }
}
