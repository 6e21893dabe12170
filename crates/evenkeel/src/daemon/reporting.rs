use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::{CheckId, Event, EventKind, StateRestart};
use evenkeel_probe::Report;
use evenkeel_threshold::{Mark, Status, Timestamp};

use crate::catalog::Unsupported;
use crate::clock::{Clock, rfc3339};
use crate::daemon::conversions::excerpt;
use crate::events::{EventLine, EventLog, Kind};
use crate::metrics::{Metrics, raise_to};

/// Drifts within [`FOREIGN_WINDOW`] from which on they are taken for the work of
/// another monitor: somebody who registers a service anew causes one or two.
const FOREIGN_DRIFTS: u32 = 5;
const FOREIGN_WINDOW: Duration = Duration::from_secs(600);

/// Tells people and machines what happened: log, event log, counters. One line
/// per change, none per failing probe.
#[derive(Debug)]
pub(super) struct Reporting {
    clock: Clock,
    events: EventLog,
    metrics: Arc<Metrics>,
    /// Checks that come with the first list are no news.
    first_list: bool,
    drifts: u32,
    drifts_since: Timestamp,
    /// Why statuses that are not ours are taken for another monitor's, and when
    /// there was reason to for the last time.
    foreign: Option<(String, Timestamp)>,
    /// Another monitor that is registered.
    registered: Option<String>,
}

impl Reporting {
    pub(super) fn new(clock: Clock, events: EventLog, metrics: Arc<Metrics>) -> Self {
        Self {
            clock,
            events,
            metrics,
            first_list: true,
            drifts: 0,
            drifts_since: clock.now(),
            foreign: None,
            registered: None,
        }
    }

    /// From now on new checks are news.
    pub(super) fn first_list_taken(&mut self) {
        self.first_list = false;
    }

    /// Why another monitor is believed to be at work, if it is.
    pub(super) fn other_monitor(&self) -> impl Iterator<Item = &str> {
        let foreign = self.foreign.as_ref().map(|(text, _)| text.as_str());
        self.registered.as_deref().into_iter().chain(foreign)
    }

    /// Something happened to a check. `report` is the probe whose result is
    /// being taken in, if one is.
    pub(super) fn event(&mut self, event: &Event, report: Option<&Report>) {
        let id = &event.id;
        let mut line = self.line(event.at, Kind::Unknown);
        line.check = Some(id.into());
        let kind = match event.kind {
            EventKind::Added => {
                tracing::debug!(check = %id, "check added");
                if self.first_list {
                    return;
                }
                Kind::CheckAdded
            }
            EventKind::Removed => {
                tracing::info!(check = %id, "check removed");
                Kind::CheckRemoved
            }
            EventKind::Restarted => {
                tracing::info!(check = %id, "check changed: probing anew");
                Kind::CheckRestarted
            }
            EventKind::Rethresholded => {
                tracing::info!(check = %id, "thresholds changed, counts kept");
                Kind::ThresholdsChanged
            }
            EventKind::StateRestarted { reason } => {
                let text = restart(reason);
                tracing::info!(check = %id, reason = text, "counting starts anew");
                line.text = Some(text);
                Kind::StateRestarted
            }
            EventKind::Transition {
                from,
                observed,
                to,
                seen,
                needed,
            } => {
                self.metrics.transition(to);
                let text = report.map(|report| excerpt(&report.output));
                let why = text.as_deref().unwrap_or("");
                if to == Status::Passing {
                    tracing::info!(check = %id, %from, %to, seen, needed, output = why, "status changed");
                } else {
                    tracing::warn!(check = %id, %from, %to, seen, needed, output = why, "status changed");
                }
                line.from = Some(from);
                line.observed = observed;
                line.to = Some(to);
                line.seen = Some(seen);
                line.needed = Some(needed);
                line.text = text;
                if let Some(report) = report {
                    line.phases_ms = Some(report.phases.into());
                    line.failed_phase = report.failed_phase.map(|phase| phase.as_str().to_owned());
                }
                Kind::Transition
            }
            EventKind::MarkStarted {
                mark: Mark::Flapping,
            } => {
                tracing::warn!(check = %id, "flapping: the results change too often");
                self.metrics.marks[0].inc();
                Kind::FlappingStarted
            }
            EventKind::MarkEnded {
                mark: Mark::Flapping,
            } => {
                tracing::info!(check = %id, "no longer flapping");
                Kind::FlappingEnded
            }
            EventKind::MarkStarted { .. } => {
                tracing::warn!(check = %id, "changes are suppressed: there were too many");
                self.metrics.marks[1].inc();
                Kind::SuppressionStarted
            }
            EventKind::MarkEnded { .. } => {
                tracing::info!(check = %id, "changes are reported again");
                Kind::SuppressionEnded
            }
            EventKind::UnprobedStarted => {
                let why = report.map_or_else(String::new, |report| excerpt(&report.output));
                tracing::warn!(check = %id, reason = why, "cannot probe; the status stays as it is");
                line.text = Some(why);
                Kind::UnprobedStarted
            }
            EventKind::UnprobedEnded { run } => {
                tracing::info!(check = %id, missed = run, "probing works again");
                line.count = Some(run.into());
                Kind::UnprobedEnded
            }
            EventKind::ProbeLost => {
                tracing::warn!(check = %id, "a probe never ended; probing again");
                Kind::ProbeLost
            }
            EventKind::Drift { catalog, ours } => {
                tracing::warn!(check = %id, %catalog, %ours, "the catalog shows a status that is not ours; writing ours again");
                line.from = Some(catalog);
                line.to = Some(ours);
                self.drifted(event.at, id);
                Kind::Drift
            }
            EventKind::WriteLost { catalog, ours } => {
                tracing::info!(check = %id, %catalog, %ours, "the check changed before our write; deciding again");
                line.from = Some(catalog);
                line.to = Some(ours);
                Kind::WriteLost
            }
            EventKind::WriteFailed { refused } => {
                tracing::debug!(check = %id, refused, "status not written; trying again");
                line.text = Some(if refused { "refused" } else { "failed" }.to_owned());
                Kind::WriteFailed
            }
            EventKind::WriteGone => {
                tracing::info!(check = %id, "the check to write to is gone");
                line.text = Some("gone".to_owned());
                Kind::WriteFailed
            }
            EventKind::Deregistering { critical_for } => {
                tracing::warn!(check = %id, ?critical_for, "critical for too long: removing its service");
                line.for_ms = Some(millis(critical_for));
                Kind::Deregistering
            }
            EventKind::Deregistered => {
                tracing::info!(check = %id, "service removed");
                Kind::Deregistered
            }
            EventKind::DeregistrationFailed => {
                tracing::warn!(check = %id, "service not removed; trying again");
                Kind::DeregistrationFailed
            }
            _ => return,
        };
        line.event = kind;
        self.events.write(&line);
    }

    /// Something happened to the daemon.
    pub(super) fn daemon(&self, kind: Kind, text: Option<String>) {
        let mut line = self.line(self.clock.now(), kind);
        line.text = text;
        self.events.write(&line);
    }

    /// The process stood still.
    pub(super) fn paused(&self, paused: Duration) {
        self.metrics.pauses.inc();
        tracing::warn!(
            ?paused,
            "this process stood still; probes under way do not count"
        );
        let mut line = self.line(self.clock.now(), Kind::Paused);
        line.for_ms = Some(millis(paused));
        self.events.write(&line);
    }

    /// Checks that are not probed. There may be tens of thousands in the first
    /// list: an event for each, and a line in the log for each kind.
    pub(super) fn unsupported<'a>(&self, checks: impl IntoIterator<Item = &'a Unsupported>) {
        let mut kinds: BTreeMap<&str, (usize, &Unsupported)> = BTreeMap::new();
        for check in checks {
            kinds.entry(check.kind).or_insert((0, check)).0 += 1;
            self.event_of_fault(Kind::Unsupported, Some(&check.id), &check.reason);
        }
        for (kind, (checks, first)) in kinds {
            tracing::warn!(
                kind,
                checks,
                first = %first.id,
                reason = excerpt(&first.reason),
                "checks that are not probed"
            );
        }
    }

    /// Something is wrong with a check's entry in the catalog.
    pub(super) fn fault(&self, kind: Kind, id: Option<&CheckId>, text: &str) {
        match id {
            Some(id) => tracing::warn!(check = %id, "{}", excerpt(text)),
            None => tracing::warn!("{}", excerpt(text)),
        }
        self.event_of_fault(kind, id, text);
    }

    fn event_of_fault(&self, kind: Kind, id: Option<&CheckId>, text: &str) {
        let mut line = self.line(self.clock.now(), kind);
        line.check = id.map(Into::into);
        line.text = Some(excerpt(text));
        self.events.write(&line);
    }

    /// Another monitor is registered, or none is any more. Said once per change.
    pub(super) fn registered_monitor(&mut self, text: Option<String>) {
        if self.registered == text {
            return;
        }
        match &text {
            Some(text) => self.say_other_monitor(text),
            None => tracing::info!("no other monitor is registered any more"),
        }
        self.registered = text;
        self.set_other_monitor();
    }

    /// Lets go of what was true for its time only.
    pub(super) fn survey(&mut self, now: Timestamp) {
        if let Some((_, last)) = self.foreign
            && now.saturating_since(last) > FOREIGN_WINDOW
        {
            tracing::info!("no other monitor writes the same checks any more");
            self.foreign = None;
            self.set_other_monitor();
        }
    }

    fn say_other_monitor(&self, text: &str) {
        tracing::warn!("{text}");
        self.daemon(Kind::OtherMonitor, Some(text.to_owned()));
    }

    fn set_other_monitor(&self) {
        let seen = self.other_monitor().next().is_some();
        self.metrics.other_monitor.set(i64::from(seen));
    }

    /// Brings counters that others keep into the metrics.
    pub(super) fn count(&self) {
        raise_to(&self.metrics.events_lost, self.events.lost());
    }

    /// Writes what waits. Blocks.
    pub(super) fn close(self) {
        self.events.close();
    }

    fn drifted(&mut self, at: Timestamp, id: &CheckId) {
        self.metrics.drifts.inc();
        if at.saturating_since(self.drifts_since) > FOREIGN_WINDOW {
            self.drifts = 0;
            self.drifts_since = at;
        }
        self.drifts += 1;
        if self.drifts < FOREIGN_DRIFTS {
            return;
        }
        if let Some((_, last)) = &mut self.foreign {
            *last = at;
            return;
        }
        let text = format!(
            "another monitor seems to write the same checks, {id} among them: {FOREIGN_DRIFTS} statuses that are not ours within {} min",
            FOREIGN_WINDOW.as_secs() / 60
        );
        self.say_other_monitor(&text);
        self.foreign = Some((text, at));
        self.set_other_monitor();
    }

    fn line(&self, at: Timestamp, kind: Kind) -> EventLine {
        let unix = at.saturating_shift(self.clock.wall_offset());
        EventLine::new(rfc3339(unix.as_millis()), kind)
    }
}

fn restart(reason: StateRestart) -> String {
    match reason {
        StateRestart::CatalogDiffers { catalog, ours } => {
            format!("the catalog says {catalog}, the saved state said {ours}; the catalog holds")
        }
        StateRestart::Record(reason) => match reason {
            evenkeel_threshold::RestartReason::OtherStrategy => {
                "the saved state is of another strategy".to_owned()
            }
            evenkeel_threshold::RestartReason::OtherVersion => {
                "the saved state is of another version".to_owned()
            }
            _ => "the saved state is damaged".to_owned(),
        },
        StateRestart::Reregistered => "the service was removed and registered again".to_owned(),
        _ => "the state could not be kept".to_owned(),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use super::*;
    use crate::events::EventLogOptions;

    fn reporting(dir: &Path) -> Reporting {
        let log = EventLog::open(&EventLogOptions {
            path: Some(dir.join("events.jsonl")),
            max_bytes: 0,
            keep: 0,
        });
        Reporting::new(Clock::start(), log.unwrap(), Arc::new(Metrics::new()))
    }

    /// The log of what `run` does.
    fn log(dir: &Path, run: impl FnOnce()) -> String {
        let path = dir.join("log");
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(Arc::new(File::create(&path).unwrap()))
            .finish();
        tracing::subscriber::with_default(subscriber, run);
        std::fs::read_to_string(path).unwrap()
    }

    // P051: said, but not in 20,000 lines at the start.
    #[tokio::test]
    async fn unsupported_checks_are_one_line_per_kind_and_one_event_each() {
        let dir = tempfile::tempdir().unwrap();
        let reporting = reporting(dir.path());
        let check = |kind: &'static str, n: usize| Unsupported {
            id: CheckId::new("", "", "node", "", &format!("{kind}-{n}")),
            kind,
            reason: format!("{kind} is not supported"),
        };
        let mut checks: Vec<_> = (0..200).map(|n| check("grpc", n)).collect();
        checks.push(check("ttl", 0));
        let log = log(dir.path(), || reporting.unsupported(&checks));
        let lines: Vec<_> = log.lines().collect();
        assert_eq!(lines.len(), 2, "{log}");
        for part in [
            "kind=\"grpc\"",
            "checks=200",
            "grpc-0",
            "grpc is not supported",
        ] {
            assert!(lines[0].contains(part), "{part}: {log}");
        }
        assert!(lines[1].contains("checks=1 "), "{log}");
        reporting.close();
        let events = std::fs::read_to_string(dir.path().join("events.jsonl")).unwrap();
        assert_eq!(events.matches("\"event\":\"unsupported\"").count(), 201);
        assert!(events.contains("grpc-199"), "{events}");
    }

    #[tokio::test]
    async fn another_monitor_that_is_gone_is_let_go_of() {
        let dir = tempfile::tempdir().unwrap();
        let mut reporting = reporting(dir.path());
        let id = CheckId::new("", "", "node", "", "check");
        let start = reporting.drifts_since;
        let after = |seconds| start.saturating_add(Duration::from_secs(seconds));
        let state = |reporting: &Reporting| {
            let seen = reporting.other_monitor().count();
            assert_eq!(
                reporting.metrics.other_monitor.get(),
                i64::from(seen > 0),
                "the metric says the same"
            );
            seen
        };

        reporting.registered_monitor(Some("esm".to_owned()));
        assert_eq!(state(&reporting), 1);
        for second in 1..=5 {
            reporting.drifted(after(second), &id);
        }
        assert_eq!(state(&reporting), 2);
        reporting.registered_monitor(None);
        assert_eq!(state(&reporting), 1, "it still writes");

        // It goes on, and is one all the time.
        for second in (10..=1800).step_by(10) {
            reporting.drifted(after(second), &id);
            reporting.survey(after(second));
            assert_eq!(state(&reporting), 1, "after {second} s");
        }
        reporting.survey(after(1800 + 600));
        assert_eq!(state(&reporting), 1);
        reporting.survey(after(1800 + 601));
        assert_eq!(state(&reporting), 0);

        reporting.registered_monitor(Some("esm".to_owned()));
        assert_eq!(state(&reporting), 1);
        reporting.registered_monitor(None);
        assert_eq!(state(&reporting), 0);
        reporting.close();
        let events = std::fs::read_to_string(dir.path().join("events.jsonl")).unwrap();
        let said = events.matches("\"event\":\"other_monitor\"").count();
        assert_eq!(said, 3, "once each time it comes: {events}");
    }
}
