use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::{CheckId, LastTransition, SavedCheck};
use evenkeel_threshold::Timestamp;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::daemon::Engine;
use crate::metrics::Metrics;
use crate::state::{SavedLine, StateFile, encode};

/// Saves the state now and then, without waiting for the disk.
#[derive(Debug)]
pub(super) struct Saving {
    file: Option<StateFile>,
    period: Duration,
    last: Timestamp,
    under_way: bool,
    failing: bool,
    metrics: Arc<Metrics>,
    done: mpsc::Sender<std::io::Result<()>>,
}

/// Outcomes of saves.
pub(super) type Saves = mpsc::Receiver<std::io::Result<()>>;

impl Saving {
    pub(super) fn new(
        file: Option<StateFile>,
        period: Duration,
        now: Timestamp,
        metrics: Arc<Metrics>,
    ) -> (Self, Saves) {
        // One save at a time.
        let (done, saves) = mpsc::channel(1);
        let saving = Self {
            file,
            period,
            last: now,
            under_way: false,
            failing: false,
            metrics,
            done,
        };
        (saving, saves)
    }

    /// When the next save is due.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.file.is_some() && !self.under_way && now.saturating_since(self.last) >= self.period
    }

    /// Begins to save what the engine holds now.
    pub(super) fn begin(&mut self, now: Timestamp, clock: Clock, engine: &Engine) {
        let Some(file) = self.file.clone() else {
            return;
        };
        self.last = now;
        self.under_way = true;
        let bytes = content(now, clock, engine);
        let done = self.done.clone();
        tokio::task::spawn_blocking(move || {
            let _ = done.blocking_send(file.replace(&bytes));
        });
    }

    /// Takes in the outcome of a save.
    pub(super) fn ended(&mut self, result: &std::io::Result<()>) {
        self.under_way = false;
        self.metrics.state_saved(result.is_ok());
        match (result, &self.file) {
            (Err(error), Some(file)) if !self.failing => {
                tracing::error!(path = %file.path().display(), %error, "the state cannot be saved; a restart would lose pending counts");
            }
            (Ok(()), _) if self.failing => tracing::info!("the state is saved again"),
            _ => {}
        }
        self.failing = result.is_err();
    }

    /// Waits for a save under way, then saves a last time and waits for that.
    pub(super) async fn finish(
        mut self,
        mut saves: Saves,
        now: Timestamp,
        clock: Clock,
        engine: &Engine,
    ) {
        for last in [false, true] {
            if last {
                self.begin(now, clock, engine);
            }
            if self.under_way
                && let Some(result) = saves.recv().await
            {
                self.ended(&result);
            }
        }
    }
}

fn content(now: Timestamp, clock: Clock, engine: &Engine) -> Vec<u8> {
    let offset = clock.wall_offset();
    let wall = |at: Timestamp| at.saturating_shift(offset).as_millis();
    let checks = engine.snapshot(now).map(|check| {
        let id = &check.id;
        SavedLine {
            partition: id.partition().to_owned(),
            namespace: id.namespace().to_owned(),
            node: id.node().to_owned(),
            service_id: id.service_id().to_owned(),
            check_id: id.check_id().to_owned(),
            record: check.record,
            critical_since: check.critical_since.map(wall),
            last_transition: check.last_transition.map(|last| (wall(last.at), last.from)),
            next_due: Some(wall(check.next_due)),
        }
    });
    encode(wall(now), checks)
}

/// As much of the time between a save and the next start counts towards how long
/// a check is critical. A restart, or a machine that boots, takes less; a gap of
/// hours is as likely a wall clock that was or is wrong, and nobody has probed
/// the target meanwhile, so that nothing may be removed because of it.
const LONGEST_DOWNTIME: Duration = Duration::from_secs(600);

/// What the engine is to take up again at `now`, from a snapshot saved at
/// `saved_at` (Unix milliseconds). A clock that was set back since does
/// not put anything into the future: the engine keeps times within now.
pub(super) fn restored(
    lines: Vec<SavedLine>,
    saved_at: Option<u64>,
    now: Timestamp,
) -> impl Iterator<Item = SavedCheck> {
    let saved_at = saved_at.map_or(now, Timestamp::from_millis);
    let downtime = now.saturating_since(saved_at);
    let excess = downtime.saturating_sub(LONGEST_DOWNTIME);
    let excess = i64::try_from(excess.as_millis()).unwrap_or(i64::MAX);
    // The other times are for people, or only a place in the interval.
    let critical_since = move |since: u64| Timestamp::from_millis(since).saturating_shift(excess);
    lines.into_iter().map(move |line| SavedCheck {
        id: CheckId::new(
            &line.partition,
            &line.namespace,
            &line.node,
            &line.service_id,
            &line.check_id,
        ),
        record: line.record,
        critical_since: line.critical_since.map(critical_since),
        last_transition: line.last_transition.map(|(at, from)| LastTransition {
            at: Timestamp::from_millis(at),
            from,
        }),
        next_due: line
            .next_due
            .map_or(Timestamp::ZERO, Timestamp::from_millis),
    })
}

#[cfg(test)]
mod tests {
    use evenkeel_threshold::{FirstResult, Leaky, Status, Strategy as _};

    use super::*;

    /// For how long a check counts as critical that was critical for 40 s when it
    /// was saved, at a start `later` milliseconds after that.
    fn critical_for(later: u64) -> Duration {
        let saved_at = 1_700_000_000_000;
        let strategy = Leaky::new(0, 0);
        let line = SavedLine {
            partition: String::new(),
            namespace: String::new(),
            node: "n".to_owned(),
            service_id: "s".to_owned(),
            check_id: "c".to_owned(),
            record: strategy.save(&strategy.start(
                Status::Critical,
                FirstResult::Believed,
                Timestamp::ZERO,
            )),
            critical_since: Some(saved_at - 40_000),
            last_transition: None,
            next_due: None,
        };
        let now = Timestamp::from_millis(saved_at + later);
        let check = restored(vec![line], Some(saved_at), now).next().unwrap();
        now.saturating_since(check.critical_since.unwrap())
    }

    #[test]
    fn a_short_downtime_counts_as_critical() {
        assert_eq!(critical_for(0), Duration::from_secs(40));
        assert_eq!(critical_for(5_000), Duration::from_secs(45));
        assert_eq!(critical_for(600_000), Duration::from_secs(640));
    }

    #[test]
    fn a_clock_that_is_days_ahead_makes_nothing_critical_for_days() {
        let ten_days = 10 * 24 * 3_600_000;
        assert_eq!(critical_for(ten_days), Duration::from_secs(640));
    }
}
