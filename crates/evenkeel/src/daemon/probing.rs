use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_engine::ProbeTicket;
use evenkeel_probe::{Cause, Definition, HoldingResolver, Prober, Report};
use evenkeel_threshold::Timestamp;
use tokio::sync::{Notify, mpsc};

use crate::metrics::{Metrics, PROBE_KINDS, raise_to, set};

/// A probe that waited this long for a place is given up as not run: under such
/// an overload late results would only make everything later.
const PATIENCE: Duration = Duration::from_secs(5);

/// Idle workers that are always kept.
const SPARE: usize = 64;

/// Runs probes, so many at once, and sends what they found.
///
/// Probes run in tasks that stay: a task per probe would have its memory, some
/// KiB with the alignment of a cache line, allocated and freed each time, which
/// costs about a tenth of a probe.
pub(super) struct Probing {
    prober: Prober,
    found: mpsc::UnboundedSender<Found>,
    jobs: Arc<Jobs>,
    /// Workers that run a probe or have been given one.
    running: usize,
    /// Workers that wait for one.
    idle: usize,
    most: usize,
    waiting: VecDeque<Waiting>,
    held: Option<Arc<HoldingResolver>>,
}

/// What one probe found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) ticket: ProbeTicket,
    /// Index into [`PROBE_KINDS`].
    pub(super) kind: usize,
    pub(super) report: Report,
    from: Origin,
}

/// Where a finding comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A worker that waits for the next probe now.
    Worker,
    /// A worker that is no more.
    LostWorker,
    /// The probe never had a place.
    Nowhere,
}

/// A probe that is to be run.
#[derive(Debug)]
struct Job {
    ticket: ProbeTicket,
    definition: Arc<Definition>,
}

#[derive(Debug)]
struct Waiting {
    since: Timestamp,
    job: Job,
}

/// Work for idle workers; `None` ends one.
#[derive(Debug, Default)]
struct Jobs {
    queue: Mutex<VecDeque<Option<Job>>>,
    added: Notify,
}

impl Jobs {
    fn add(&self, job: Option<Job>) {
        self.lock().push_back(job);
        self.added.notify_one();
    }

    async fn next(&self) -> Option<Job> {
        loop {
            // Looked at before waiting, so that nothing is missed: there are
            // never more jobs than idle workers.
            if let Some(job) = self.lock().pop_front() {
                return job;
            }
            self.added.notified().await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Option<Job>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Probing {
    /// At most `most` at once. There is one finding for each probe asked for, so
    /// the channel holds no more than there are checks.
    pub(super) fn new(prober: Prober, most: usize) -> (Self, mpsc::UnboundedReceiver<Found>) {
        let (found, findings) = mpsc::unbounded_channel();
        let probing = Self {
            prober,
            found,
            jobs: Arc::default(),
            running: 0,
            idle: 0,
            most,
            waiting: VecDeque::new(),
            held: None,
        };
        (probing, findings)
    }

    /// Has this resolver's help counted, too.
    pub(super) fn count_held(&mut self, held: Option<Arc<HoldingResolver>>) {
        self.held = held;
    }

    /// Runs a probe now or as soon as there is a place.
    pub(super) fn start(
        &mut self,
        now: Timestamp,
        ticket: ProbeTicket,
        definition: Arc<Definition>,
    ) {
        let job = Job { ticket, definition };
        if self.running < self.most {
            self.run(job);
        } else {
            self.waiting.push_back(Waiting { since: now, job });
        }
    }

    /// To be called for each finding.
    pub(super) fn ended(&mut self, now: Timestamp, found: &Found) {
        match found.from {
            Origin::Nowhere => return,
            Origin::Worker => self.idle += 1,
            Origin::LostWorker => {}
        }
        self.running = self.running.saturating_sub(1);
        self.give_up_late(now);
        while self.running < self.most {
            let Some(next) = self.waiting.pop_front() else {
                break;
            };
            self.run(next.job);
        }
    }

    /// Gives up what has waited too long. To be called now and then, too: the
    /// probes that have the places may run for a minute.
    pub(super) fn give_up_late(&mut self, now: Timestamp) {
        let late = |waiting: &Waiting| now.saturating_since(waiting.since) > PATIENCE;
        while self.waiting.front().is_some_and(late) {
            let Some(next) = self.waiting.pop_front() else {
                break;
            };
            self.give_up(
                &next.job,
                "no probe could be started in time: too many are running",
            );
        }
    }

    /// Gives up all that waits.
    pub(super) fn stop_waiting(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            self.give_up(&waiting.job, "the daemon is stopping");
        }
    }

    /// Ends workers that a burst has left behind. To be called now and then.
    pub(super) fn trim(&mut self) {
        let spare = SPARE.max(self.running);
        for _ in 0..self.idle.saturating_sub(spare).div_ceil(2) {
            self.idle -= 1;
            self.jobs.add(None);
        }
    }

    pub(super) fn count(&self, metrics: &Metrics) {
        set(&metrics.probes_running, self.running as u64);
        set(&metrics.probes_waiting, self.waiting.len() as u64);
        raise_to(&metrics.stray_echoes, self.prober.stray_echoes());
        if let Some(held) = &self.held {
            raise_to(&metrics.held_addresses, held.helped());
        }
    }

    fn give_up(&self, job: &Job, why: &str) {
        // The receiver lives as long as the loop, which owns `self`.
        let _ = self.found.send(Found {
            ticket: job.ticket,
            kind: kind(&job.definition),
            report: Report::unprobed(Cause::System, why),
            from: Origin::Nowhere,
        });
    }

    fn run(&mut self, job: Job) {
        self.running += 1;
        if self.idle > 0 {
            self.idle -= 1;
            self.jobs.add(Some(job));
            return;
        }
        let (prober, found, jobs) = (
            self.prober.clone(),
            self.found.clone(),
            Arc::clone(&self.jobs),
        );
        tokio::spawn(async move {
            let mut next = Some(job);
            while let Some(Job { ticket, definition }) = next {
                let guard = Guard {
                    ticket,
                    kind: kind(&definition),
                    found: &found,
                };
                let report = prober.run(&definition).await;
                // The definition goes before the finding: it may be the last of
                // its kind.
                drop(definition);
                guard.send(report);
                next = jobs.next().await;
            }
        });
    }
}

fn kind(definition: &Definition) -> usize {
    let kind = definition.kind();
    let known = PROBE_KINDS.iter().position(|known| *known == kind);
    known.unwrap_or(PROBE_KINDS.len() - 1)
}

/// Sends exactly one finding, also when the probe panics.
struct Guard<'a> {
    ticket: ProbeTicket,
    kind: usize,
    found: &'a mpsc::UnboundedSender<Found>,
}

impl Guard<'_> {
    fn send(self, report: Report) {
        self.tell(report, Origin::Worker);
        std::mem::forget(self);
    }

    fn tell(&self, report: Report, from: Origin) {
        // A closed channel means that the loop has ended.
        let _ = self.found.send(Found {
            ticket: self.ticket,
            kind: self.kind,
            report,
            from,
        });
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let report = Report::unprobed(
            Cause::System,
            "the probe was broken off by a fault of this program",
        );
        self.tell(report, Origin::LostWorker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_place_in_the_metrics() {
        let http = evenkeel_probe::HttpCheck::new("http://127.0.0.1/").unwrap();
        let tcp = evenkeel_probe::TcpCheck::new("127.0.0.1:1").unwrap();
        assert_eq!(PROBE_KINDS[kind(&http.into())], "http");
        assert_eq!(PROBE_KINDS[kind(&tcp.into())], "tcp");
        assert_eq!(PROBE_KINDS[kind(&Definition::Faulty("".into()))], "other");
    }

    fn faulty(probing: &mut Probing, engine: &mut Tickets, now: Timestamp) {
        let definition = Arc::new(Definition::Faulty("x".into()));
        probing.start(now, engine.next(), definition);
    }

    /// Tickets that an engine would give.
    struct Tickets {
        engine:
            evenkeel_engine::Engine<u32, crate::catalog::Token, evenkeel_threshold::AnyStrategy>,
        tickets: Vec<ProbeTicket>,
    }

    impl Tickets {
        fn new(count: u32) -> Self {
            let mut engine = evenkeel_engine::Engine::new(evenkeel_engine::Settings {
                newcomers_per_second: u32::MAX,
                ..evenkeel_engine::Settings::default()
            });
            let strategy = Arc::new(evenkeel_threshold::Leaky::new(0, 0).into());
            let checks = (0..count)
                .map(|number| evenkeel_engine::CatalogCheck {
                    id: evenkeel_engine::CheckId::new("", "", &number.to_string(), "", "c"),
                    definition: Arc::new(number),
                    interval: Duration::from_secs(1),
                    timeout: Duration::from_secs(1),
                    status: evenkeel_threshold::Status::Passing,
                    output_hash: 0,
                    token: crate::catalog::Token::File,
                    strategy: Arc::clone(&strategy),
                    first_result: evenkeel_threshold::FirstResult::Counted,
                    deregister_after: None,
                })
                .collect();
            let now = Timestamp::from_millis(1_000);
            engine.handle_catalog(now, evenkeel_engine::CatalogUpdate::all(checks));
            let later = Timestamp::from_millis(10_000);
            let mut tickets = Vec::new();
            while let Some(action) = engine.poll_action(later) {
                if let evenkeel_engine::Action::Probe { ticket, .. } = action {
                    tickets.push(ticket);
                }
            }
            Self { engine, tickets }
        }

        fn next(&mut self) -> ProbeTicket {
            let _ = &self.engine;
            self.tickets.pop().unwrap()
        }
    }

    #[tokio::test]
    async fn no_more_run_at_once_than_there_are_places_and_all_are_answered() {
        let prober = Prober::new(evenkeel_probe::ProberSettings::default()).unwrap();
        let (mut probing, mut findings) = Probing::new(prober, 3);
        let mut tickets = Tickets::new(50);
        let now = Timestamp::from_millis(10_000);
        for _ in 0..50 {
            faulty(&mut probing, &mut tickets, now);
        }
        assert_eq!(probing.running, 3);
        for _ in 0..50 {
            let found = findings.recv().await.unwrap();
            assert_eq!(
                found.report.status(),
                Some(evenkeel_threshold::Status::Critical)
            );
            probing.ended(now, &found);
            assert!(probing.running <= 3);
        }
        assert_eq!((probing.running, probing.idle), (0, 3));
    }

    // Under overload a result that comes far too late is worth nothing.
    #[tokio::test]
    async fn a_probe_that_waited_too_long_is_given_up_as_not_run() {
        let prober = Prober::new(evenkeel_probe::ProberSettings::default()).unwrap();
        let (mut probing, mut findings) = Probing::new(prober, 1);
        let mut tickets = Tickets::new(2);
        let now = Timestamp::from_millis(10_000);
        faulty(&mut probing, &mut tickets, now);
        faulty(&mut probing, &mut tickets, now);
        let first = findings.recv().await.unwrap();
        probing.give_up_late(now.saturating_add(PATIENCE));
        assert_eq!((probing.running, probing.waiting.len()), (1, 1));
        // The place is still taken.
        probing.give_up_late(now.saturating_add(PATIENCE * 2));
        probing.ended(now.saturating_add(PATIENCE * 2), &first);
        let second = findings.recv().await.unwrap();
        assert_eq!(second.report.status(), None);
        probing.ended(now, &second);
        assert_eq!((probing.running, probing.idle), (0, 1));
    }
}
