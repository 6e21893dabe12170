use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use evenkeel_engine::{
    Action, CatalogUpdate, CheckId, Deregistered, Event, EventKind, Finding, Outcome,
};
use evenkeel_probe::Report;
use evenkeel_threshold::Timestamp;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::admin::{Question, ReportRefused, StatusPage};
use crate::catalog::{CatalogFault, CatalogMessage, CatalogView, Definition, Unsupported, Watched};
use crate::clock::{Clock, PauseDetector};
use crate::daemon::Engine;
use crate::daemon::aliases::Aliases;
use crate::daemon::heartbeats::Heartbeats;
use crate::daemon::leader::{LeaderWatch, Leadership};
use crate::daemon::lookups::{LookedUp, Lookups};
use crate::daemon::probing::{Found, Probing};
use crate::daemon::readiness::{Condition, UNPROBED_RUN};
use crate::daemon::reporting::Reporting;
use crate::daemon::saving::{Saves, Saving};
use crate::daemon::statuses::status_of;
use crate::daemon::writing::{Done, Writing};
use crate::events::Kind;
use crate::metrics::{Metrics, raise_to, set};
use crate::shutdown::Request;
use crate::status::{Fault, Readiness, StatusFilter, UnsupportedCheck};
use crate::thresholds::EffectiveThresholds;
use crate::zones::Released;

/// How often all checks are counted and the readiness is judged.
const SURVEY: Duration = Duration::from_secs(1);

/// Checks looked at for one page of a status answer: some milliseconds' worth,
/// so that probes are not late for a status.
const PAGE: usize = 1000;

/// Findings and write outcomes taken in one turn before anything else is
/// looked at.
const TURN: usize = 256;

/// What the loop listens to.
pub(super) struct Inputs {
    pub(super) catalog: mpsc::Receiver<CatalogMessage>,
    pub(super) findings: mpsc::UnboundedReceiver<Found>,
    pub(super) written: mpsc::UnboundedReceiver<Done>,
    pub(super) leadership: mpsc::Receiver<Leadership>,
    pub(super) looked_up: mpsc::UnboundedReceiver<LookedUp>,
    pub(super) questions: mpsc::Receiver<Question>,
    pub(super) saves: Saves,
    /// Checks whose released status is asked for; the answer goes to
    /// [`Driver::released`].
    pub(super) statuses: mpsc::Receiver<Vec<CheckId>>,
}

/// The loop's own: the engine and what is known besides.
pub(super) struct Driver {
    pub(super) engine: Engine,
    pub(super) clock: Clock,
    pub(super) metrics: Arc<Metrics>,
    pub(super) probing: Probing,
    pub(super) writing: Writing,
    pub(super) leader: Option<LeaderWatch>,
    /// Where aliases are asked for that look at nodes nobody watches here.
    pub(super) lookups: Option<Lookups>,
    /// Notified when Consul is found to be well again.
    pub(super) well: Option<Arc<Notify>>,
    pub(super) reporting: Reporting,
    pub(super) saving: Saving,
    pub(super) readiness: watch::Sender<Readiness>,
    pub(super) beat: Arc<AtomicU64>,
    pub(super) grace: Duration,
    pub(super) known: Known,
    pub(super) condition: Condition,
    pub(super) heartbeats: Heartbeats,
    pub(super) aliases: Aliases,
    /// Where released statuses are told, whenever one changes.
    pub(super) released: mpsc::UnboundedSender<Released>,
}

/// What is known of the catalog besides the checks in the engine.
#[derive(Debug, Default)]
pub(super) struct Known {
    thresholds: HashMap<CheckId, Arc<EffectiveThresholds>>,
    unsupported: Vec<Unsupported>,
    faults: Vec<CatalogFault>,
}

impl Driver {
    /// Turns until it is asked to stop. `reload` is called when the
    /// configuration is to be read again.
    pub(super) async fn run(
        mut self,
        mut inputs: Inputs,
        mut requests: mpsc::Receiver<Request>,
        mut reload: impl FnMut(),
    ) {
        let sleep = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(sleep);
        let mut pause = PauseDetector::new(self.clock.now());
        let mut surveyed = Timestamp::ZERO;
        let mut stop_by: Option<Timestamp> = None;
        let mut armed = self.clock.now();
        let mut findings = Vec::with_capacity(TURN);
        let mut outcomes = Vec::new();
        self.reporting.daemon(Kind::Started, None);

        loop {
            let now = self.clock.now();
            self.act(now, None);
            if let Some(stop_by) = stop_by
                && (self.engine.idle() || now >= stop_by)
            {
                break;
            }
            if now.saturating_since(surveyed) >= SURVEY {
                surveyed = now;
                self.survey(now);
                self.probing.trim();
                self.probing.give_up_late(now);
            }
            if self.saving.is_due(now) {
                self.saving.begin(now, self.clock, &self.engine);
            }
            let wake = now
                .saturating_add(PauseDetector::BEAT)
                .min(
                    self.engine
                        .poll_timeout()
                        .unwrap_or(Timestamp::from_millis(u64::MAX)),
                )
                .min(stop_by.unwrap_or(Timestamp::from_millis(u64::MAX)));
            if wake != armed {
                armed = wake;
                sleep.as_mut().reset(self.clock.instant(wake));
            }

            let event = tokio::select! {
                _ = inputs.findings.recv_many(&mut findings, TURN) => Input::Findings,
                () = &mut sleep => Input::Time,
                _ = inputs.written.recv_many(&mut outcomes, TURN) => Input::Outcomes,
                Some(message) = inputs.catalog.recv(), if stop_by.is_none() => Input::Catalog(message),
                Some(leadership) = inputs.leadership.recv() => Input::Leadership(leadership),
                Some(found) = inputs.looked_up.recv() => Input::LookedUp(found),
                Some(question) = inputs.questions.recv() => Input::Question(question),
                Some(result) = inputs.saves.recv() => Input::Saved(result),
                Some(checks) = inputs.statuses.recv() => Input::Statuses(checks),
                Some(request) = requests.recv() => Input::Request(request),
            };

            // Before anything that came in is looked at: it may be from before a
            // pause.
            let now = self.clock.now();
            self.beat.store(now.as_millis(), Ordering::Relaxed);
            if let Some(paused) = pause.turn(now) {
                self.engine.handle_pause(now, paused);
                self.heartbeats.paused(now);
                self.reporting.paused(paused);
            }
            match event {
                Input::Findings => {
                    for found in findings.drain(..) {
                        self.take_finding(now, found);
                    }
                }
                Input::Time => {
                    self.metrics
                        .loop_lag
                        .observe(now.saturating_since(armed).as_secs_f64());
                    // A timer that has fired must be set again.
                    armed = Timestamp::ZERO;
                }
                Input::Outcomes => {
                    for done in outcomes.drain(..) {
                        self.take_outcome(now, done);
                    }
                }
                Input::Catalog(message) => self.take_catalog(now, message),
                Input::Leadership(leadership) => self.take_leadership(now, leadership),
                Input::LookedUp(LookedUp { ticket, finding }) => {
                    self.engine.handle_observation(now, ticket, finding);
                }
                Input::Question(question) => self.answer(now, question),
                Input::Saved(result) => self.saving.ended(&result),
                Input::Statuses(checks) => {
                    for check in checks {
                        self.tell_released(check);
                    }
                }
                Input::Request(Request::Reload) => reload(),
                Input::Request(Request::Shutdown) => {
                    if stop_by.is_none() {
                        tracing::info!(
                            grace = ?self.grace,
                            "stopping: no new probes, waiting for running ones and pending writes"
                        );
                        stop_by = Some(now.saturating_add(self.grace));
                        self.condition.stopping = true;
                        self.engine.handle_shutdown(now);
                        self.probing.stop_waiting();
                        self.survey(now);
                    }
                }
            }
        }
        self.finish(inputs.saves).await;
    }

    /// Does what the engine asks for.
    fn act(&mut self, now: Timestamp, report: Option<&Report>) {
        loop {
            let Some(action) = self.engine.poll_action(now) else {
                // An alias that changes may change another one.
                match self.aliases.next_stale() {
                    Some(alias) => self.ask_alias(now, &alias),
                    None => return,
                }
                continue;
            };
            match action {
                Action::Probe {
                    ticket,
                    id,
                    definition,
                } => match &*definition {
                    Definition::Probe(probe) => self.probing.start(now, ticket, Arc::clone(probe)),
                    Definition::Heartbeat { silence } => {
                        let finding = self.heartbeats.silent(&id, *silence, now);
                        self.engine.handle_observation(now, ticket, finding);
                    }
                    Definition::Alias(target) => match (self.alias_finding(&id), &self.lookups) {
                        (None, Some(lookups)) => lookups.start(ticket, &id, target),
                        (found, _) => {
                            let finding = found.unwrap_or_else(|| self.aliases.absent(&id));
                            self.engine.handle_observation(now, ticket, finding);
                        }
                    },
                },
                Action::Write { writes } => self.writing.write(writes),
                Action::Deregister {
                    ticket, id, token, ..
                } => self.writing.deregister(ticket, &id, &token),
                Action::Event(event) => {
                    self.reporting.event(&event, report);
                    self.tell_of(&event);
                }
                _ => {}
            }
        }
    }

    /// What an alias finds now among the checks that are watched here.
    fn alias_finding(&self, alias: &CheckId) -> Option<Finding> {
        let released = |id: &CheckId| self.engine.check(id).map(|check| check.reported());
        self.aliases.finding(alias, released)
    }

    /// Something that an alias looks at has changed. It need not wait for its next
    /// turn if that changes what it finds.
    fn ask_alias(&mut self, now: Timestamp, alias: &CheckId) {
        let finding = match (self.alias_finding(alias), &self.lookups) {
            (Some(finding), _) => finding,
            (None, None) => self.aliases.absent(alias),
            // Consul is asked at its next turn.
            (None, Some(_)) => return,
        };
        let last = self
            .engine
            .check(alias)
            .and_then(|check| check.last_observation());
        let is_news = match finding.outcome {
            Outcome::Observed(observation) => {
                last.is_none_or(|(last, _)| last != observation.status)
            }
            Outcome::Unprobed => false,
        };
        if is_news {
            self.engine.handle_report(now, alias, finding);
        }
    }

    /// Somebody reports how a check is.
    fn take_report(
        &mut self,
        now: Timestamp,
        report: crate::admin::HeartbeatReport,
    ) -> Result<(), ReportRefused> {
        let id = self.heartbeats.find(&report.path)?;
        let finding = Finding {
            outcome: Outcome::Observed(report.status.into()),
            output: report.output,
        };
        self.engine.handle_report(now, &id, finding);
        self.act(now, None);
        Ok(())
    }

    /// Takes in which checks come to their results without probes.
    fn list_unprobed_kinds(&mut self, now: Timestamp) {
        let mut targets = HashMap::new();
        let mut heartbeats = Vec::new();
        for check in self.engine.checks() {
            match &**check.definition() {
                Definition::Probe(_) => {}
                Definition::Heartbeat { .. } => heartbeats.push(check.id().clone()),
                Definition::Alias(target) => {
                    targets.insert(check.id().clone(), target.clone());
                }
            }
        }
        self.heartbeats.list(now, heartbeats.into_iter());
        let checks = self.engine.checks().map(|check| check.id().clone());
        self.aliases = Aliases::new(targets, checks);
        for alias in self.aliases.in_circle() {
            self.known.faults.push(CatalogFault {
                id: Some(alias.clone()),
                text: "is an alias in a circle of aliases, and leaves the others of it out"
                    .to_owned(),
            });
        }
    }

    /// Tells of a released status that may be another one since `event`.
    fn tell_of(&mut self, event: &Event) {
        if matches!(
            event.kind,
            EventKind::Added
                | EventKind::Removed
                | EventKind::Restarted
                | EventKind::StateRestarted { .. }
                | EventKind::Transition { .. }
        ) {
            self.aliases.changed(&event.id);
            self.tell_released(event.id.clone());
        }
    }

    fn tell_released(&self, check: CheckId) {
        let status = self.engine.check(&check).map(|check| check.reported());
        // Nobody follows zones while the daemon stops.
        let _ = self.released.send((check, status));
    }

    fn take_finding(&mut self, now: Timestamp, found: Found) {
        self.probing.ended(now, &found);
        let Found {
            ticket,
            kind,
            mut report,
            ..
        } = found;
        self.metrics
            .probe_ended(kind, report.status(), report.took.as_secs_f64());
        let outcome = match report.outcome {
            evenkeel_probe::Outcome::Observed(observation) => Outcome::Observed(observation),
            evenkeel_probe::Outcome::Unprobed(_) => Outcome::Unprobed,
        };
        // The text goes to the engine; an event needs the beginning of it.
        let output = std::mem::take(&mut report.output);
        beginning(&output).clone_into(&mut report.output);
        self.engine
            .handle_observation(now, ticket, Finding { outcome, output });
        self.act(now, Some(&report));
    }

    fn take_outcome(&mut self, now: Timestamp, done: Done) {
        match done {
            Done::Writes {
                outcomes,
                error,
                unavailable,
            } => {
                match &error {
                    None => self.condition.failed_writes = 0,
                    Some(error) => {
                        self.condition.failed_writes =
                            self.condition.failed_writes.saturating_add(1);
                        // One line for a streak; its end is said by the leader watch
                        // or shows in the readiness.
                        if self.condition.failed_writes == 1 {
                            tracing::warn!(%error, "statuses could not be written; trying again");
                        }
                    }
                }
                self.condition.write_error = error;
                for (ticket, written) in outcomes {
                    self.engine.handle_written(now, ticket, written);
                }
                if unavailable {
                    self.ask_for_leader();
                }
            }
            Done::Deregistration {
                ticket,
                result,
                error,
            } => {
                if result != Deregistered::Gone {
                    self.metrics.deregistered(result == Deregistered::Done);
                }
                // One line for a streak, not one per try.
                if let Some(error) = &error
                    && self.condition.removal_error.as_ref() != Some(error)
                {
                    tracing::warn!(%error, "a service could not be removed");
                }
                self.condition.removal_error = error;
                self.engine.handle_deregistered(now, ticket, result);
            }
        }
        self.act(now, None);
    }

    /// Has the leader watch look whether there is a leader. Until it says that
    /// there is none, writes go on, each after its own delay: a Consul that has a
    /// leader and refuses for another reason must not be asked without a pause.
    fn ask_for_leader(&self) {
        if let Some(leader) = &self.leader {
            leader.ask();
        }
    }

    fn take_leadership(&mut self, now: Timestamp, leadership: Leadership) {
        match leadership {
            Leadership::Known => {
                if let Some((since, _)) = self.condition.held.take() {
                    let held = now.saturating_since(since);
                    tracing::info!(?held, "Consul has a leader: writes go on");
                    self.reporting.daemon(Kind::WritesResumed, None);
                    // Only after it was away: a list that fails although there is a
                    // leader is to be left alone for its time.
                    if let Some(well) = &self.well {
                        well.notify_waiters();
                    }
                }
                self.metrics.writable.set(1);
                self.engine.handle_writable(now, true);
            }
            Leadership::Unknown(why) => {
                let since = match self.condition.held.take() {
                    Some((since, _)) => since,
                    None => {
                        tracing::warn!(reason = %why, "writes are held; probing and counting go on");
                        self.reporting.daemon(Kind::WritesHeld, Some(why.clone()));
                        now
                    }
                };
                self.condition.held = Some((since, why));
                self.metrics.writable.set(0);
                self.engine.handle_writable(now, false);
            }
        }
        self.act(now, None);
    }

    fn take_catalog(&mut self, now: Timestamp, message: CatalogMessage) {
        match message {
            CatalogMessage::View(view) => self.take_view(now, view),
            CatalogMessage::Trouble(why) => {
                self.set_trouble(Some(why));
                self.ask_for_leader();
            }
            CatalogMessage::OtherMonitor(text) => self.reporting.registered_monitor(text),
        }
        self.survey(now);
    }

    fn take_view(&mut self, now: Timestamp, view: CatalogView) {
        let CatalogView {
            checks,
            keep,
            unsupported,
            faults,
            degraded,
        } = view;
        self.set_trouble(degraded);
        let said: HashSet<&Unsupported> = self.known.unsupported.iter().collect();
        let new = unsupported.iter().filter(|entry| !said.contains(entry));
        self.reporting.unsupported(new);
        let said: HashSet<&CatalogFault> = self.known.faults.iter().collect();
        for new in faults.iter().filter(|fault| !said.contains(fault)) {
            self.reporting
                .fault(Kind::CatalogFault, new.id.as_ref(), &new.text);
        }
        let mut thresholds = HashMap::with_capacity(checks.len());
        let checks: Vec<_> = checks
            .into_iter()
            .map(
                |Watched {
                     check,
                     thresholds: effective,
                 }| {
                    self.say_threshold_faults(&check.id, &effective);
                    thresholds.insert(check.id.clone(), effective);
                    check
                },
            )
            .collect();
        for id in &keep {
            if let Some(kept) = self.known.thresholds.remove(id) {
                thresholds.insert(id.clone(), kept);
            }
        }
        let diff = self
            .engine
            .handle_catalog(now, CatalogUpdate { checks, keep });
        if !diff.is_empty() || !self.condition.catalog_seen {
            tracing::info!(
                checks = self.engine.len(),
                added = diff.added,
                removed = diff.removed,
                changed = diff.restarted,
                rethresholded = diff.rethresholded,
                unsupported = unsupported.len(),
                "list of checks"
            );
        }
        self.known = Known {
            thresholds,
            unsupported,
            faults,
        };
        self.list_unprobed_kinds(now);
        self.condition.catalog_seen = true;
        self.act(now, None);
        self.reporting.first_list_taken();
    }

    fn say_threshold_faults(&self, id: &CheckId, effective: &Arc<EffectiveThresholds>) {
        if effective.faults.is_empty() {
            return;
        }
        // Results are shared, so the same faults are mostly the same allocation.
        let before = self.known.thresholds.get(id);
        if before.is_some_and(|before| {
            Arc::ptr_eq(before, effective) || before.faults == effective.faults
        }) {
            return;
        }
        for fault in &effective.faults {
            self.reporting
                .fault(Kind::ThresholdFault, Some(id), &fault.to_string());
        }
    }

    fn set_trouble(&mut self, trouble: Option<String>) {
        match (&self.condition.catalog_trouble, &trouble) {
            (None, Some(why)) => {
                if self.condition.catalog_seen {
                    tracing::warn!(reason = %why, "the catalog is degraded; the last list of checks is kept");
                } else {
                    tracing::warn!(reason = %why, "no list of checks yet; trying on");
                }
                self.reporting
                    .daemon(Kind::CatalogDegraded, Some(why.clone()));
            }
            (Some(_), None) => {
                tracing::info!("the catalog is well again");
                self.reporting.daemon(Kind::CatalogRecovered, None);
            }
            _ => {}
        }
        self.metrics
            .catalog_degraded
            .set(i64::from(trouble.is_some()));
        self.condition.catalog_trouble = trouble;
    }

    /// Counts all checks and judges the readiness.
    fn survey(&mut self, now: Timestamp) {
        self.reporting.survey(now);
        let mut counts = [0; 3];
        let mut unwritten = 0;
        let mut unprobed = 0;
        for check in self.engine.checks() {
            counts[check.reported() as usize] += 1;
            unwritten += u64::from(check.written() != check.reported());
            unprobed += usize::from(check.unprobed_run() >= UNPROBED_RUN);
        }
        self.metrics.set_checks(counts);
        set(&self.metrics.checks_unwritten, unwritten);
        set(&self.metrics.checks_unprobed, unprobed as u64);
        self.condition.checks = self.engine.len();
        self.condition.unprobed = unprobed;
        let readiness = self.condition.readiness(now);
        self.metrics.ready.set(i64::from(readiness.ready));
        self.readiness.send_if_modified(|current| {
            let changed = *current != readiness;
            if changed {
                *current = readiness;
            }
            changed
        });
    }

    fn count(&self) {
        let metrics = &self.metrics;
        let counters = self.engine.counters();
        raise_to(&metrics.suppressed, counters.suppressed_changes);
        raise_to(
            &metrics.late_observations,
            counters.outdated_findings + counters.late_tickets,
        );
        raise_to(
            &metrics.skipped_ticks,
            counters.ticks_busy + counters.ticks_late,
        );
        raise_to(&metrics.write_batches, counters.batches);
        raise_to(&metrics.lost_races, counters.lost_races);
        self.probing.count(metrics);
        self.reporting.count();
        metrics.set_unsupported(self.known.unsupported.iter().map(|entry| entry.kind));
        let faulty = self.known.thresholds.values();
        let faulty = faulty
            .filter(|effective| !effective.faults.is_empty())
            .count();
        set(&metrics.threshold_faults, faulty as u64);
    }

    fn answer(&mut self, now: Timestamp, question: Question) {
        match question {
            Question::Gauges { reply } => {
                self.survey(now);
                self.count();
                let _ = reply.send(());
            }
            Question::Status {
                filter,
                from,
                reply,
            } => self.answer_status(now, &filter, from, reply),
            Question::Report { report, reply } => {
                // A client that has gone away needs no answer.
                let _ = reply.send(self.take_report(now, report));
            }
        }
    }

    fn answer_status(
        &self,
        now: Timestamp,
        filter: &StatusFilter,
        from: usize,
        reply: oneshot::Sender<StatusPage>,
    ) {
        let admits =
            |id: &CheckId, status| filter.admits(id.node(), id.service_id(), id.check_id(), status);
        let mut page = StatusPage::default();
        let mut seen = from;
        for check in self.engine.checks().skip(from).take(PAGE) {
            seen += 1;
            if admits(check.id(), check.reported()) {
                let thresholds = self.known.thresholds.get(check.id());
                page.checks.push(status_of(check, thresholds, now));
            }
        }
        if seen == from + PAGE {
            page.next = Some(seen);
        } else {
            page.unsupported = self
                .known
                .unsupported
                .iter()
                .filter(|entry| {
                    filter.status.is_none()
                        && admits(&entry.id, evenkeel_threshold::Status::Passing)
                })
                .map(|entry| UnsupportedCheck {
                    check: (&entry.id).into(),
                    kind: entry.kind.to_owned(),
                    reason: entry.reason.clone(),
                })
                .collect();
            page.faults = self
                .known
                .faults
                .iter()
                .map(|fault| Fault {
                    check: fault.id.as_ref().map(Into::into),
                    text: fault.text.clone(),
                })
                .chain(self.reporting.other_monitor().map(|text| Fault {
                    check: None,
                    text: text.to_owned(),
                }))
                .collect();
        }
        // A client that has gone away needs no answer.
        let _ = reply.send(page);
    }

    async fn finish(mut self, saves: Saves) {
        let now = self.clock.now();
        self.act(now, None);
        let left = self
            .engine
            .checks()
            .filter(|check| check.written() != check.reported())
            .count();
        if left > 0 && self.leader.is_some() {
            tracing::warn!(
                left,
                "stopped before all statuses were written; they are written at the next start"
            );
        }
        self.saving
            .finish(saves, now, self.clock, &self.engine)
            .await;
        self.reporting.daemon(Kind::Stopped, None);
        // The disk may be slow; nothing else is left to do.
        let _ = tokio::task::spawn_blocking(move || self.reporting.close()).await;
    }
}

/// As much of a probe's output as any event shows.
fn beginning(output: &str) -> &str {
    const MOST: usize = 1024;
    let mut end = output.len().min(MOST);
    while !output.is_char_boundary(end) {
        end -= 1;
    }
    &output[..end]
}

enum Input {
    Findings,
    Time,
    Outcomes,
    Catalog(CatalogMessage),
    Leadership(Leadership),
    LookedUp(LookedUp),
    Question(Question),
    Saved(std::io::Result<()>),
    Statuses(Vec<CheckId>),
    Request(Request),
}
