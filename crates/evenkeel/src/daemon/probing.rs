use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::ProbeTicket;
use evenkeel_probe::{Cause, Definition, Prober, Report};
use evenkeel_threshold::Timestamp;
use tokio::sync::mpsc;

use crate::metrics::{Metrics, PROBE_KINDS, set};

/// A probe that waited this long for a place is given up as not run: under such
/// an overload late results would only make everything later.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs probes, so many at once, and sends what they found.
pub(super) struct Probing {
    prober: Prober,
    found: mpsc::UnboundedSender<Found>,
    running: usize,
    most: usize,
    waiting: VecDeque<Waiting>,
}

/// What one probe found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) ticket: ProbeTicket,
    /// Index into [`PROBE_KINDS`].
    pub(super) kind: usize,
    pub(super) report: Report,
    /// Whether it had a place.
    ran: bool,
}

#[derive(Debug)]
struct Waiting {
    since: Timestamp,
    ticket: ProbeTicket,
    definition: Arc<Definition>,
}

impl Probing {
    /// At most `most` at once. There is one finding for each probe asked for, so
    /// the channel holds no more than there are checks.
    pub(super) fn new(prober: Prober, most: usize) -> (Self, mpsc::UnboundedReceiver<Found>) {
        let (found, findings) = mpsc::unbounded_channel();
        let probing = Self {
            prober,
            found,
            running: 0,
            most,
            waiting: VecDeque::new(),
        };
        (probing, findings)
    }

    /// Runs a probe now or as soon as there is a place.
    pub(super) fn start(
        &mut self,
        now: Timestamp,
        ticket: ProbeTicket,
        definition: Arc<Definition>,
    ) {
        if self.running < self.most {
            self.spawn(ticket, definition);
        } else {
            self.waiting.push_back(Waiting {
                since: now,
                ticket,
                definition,
            });
        }
    }

    /// To be called for each finding.
    pub(super) fn ended(&mut self, now: Timestamp, found: &Found) {
        if !found.ran {
            return;
        }
        self.running = self.running.saturating_sub(1);
        while self.running < self.most {
            let Some(next) = self.waiting.pop_front() else {
                break;
            };
            if now.saturating_since(next.since) > PATIENCE {
                self.give_up(
                    &next,
                    "no probe could be started in time: too many are running",
                );
            } else {
                self.spawn(next.ticket, next.definition);
            }
        }
    }

    /// Gives up all that waits.
    pub(super) fn stop_waiting(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            self.give_up(&waiting, "the daemon is stopping");
        }
    }

    pub(super) fn count(&self, metrics: &Metrics) {
        set(&metrics.probes_running, self.running as u64);
        set(&metrics.probes_waiting, self.waiting.len() as u64);
    }

    fn give_up(&self, waiting: &Waiting, why: &str) {
        // The receiver lives as long as the loop, which owns `self`.
        let _ = self.found.send(Found {
            ticket: waiting.ticket,
            kind: kind(&waiting.definition),
            report: Report::unprobed(Cause::System, why),
            ran: false,
        });
    }

    fn spawn(&mut self, ticket: ProbeTicket, definition: Arc<Definition>) {
        self.running += 1;
        let prober = self.prober.clone();
        let mut answer = Answer {
            ticket,
            kind: kind(&definition),
            found: Some(self.found.clone()),
        };
        tokio::spawn(async move {
            let report = prober.run(&definition).await;
            answer.send(report);
        });
    }
}

fn kind(definition: &Definition) -> usize {
    let kind = match definition {
        Definition::Http(_) => "http",
        Definition::Tcp(_) => "tcp",
        _ => "other",
    };
    PROBE_KINDS
        .iter()
        .position(|known| *known == kind)
        .unwrap_or(PROBE_KINDS.len() - 1)
}

/// Sends exactly one finding, also when the probe panics.
struct Answer {
    ticket: ProbeTicket,
    kind: usize,
    found: Option<mpsc::UnboundedSender<Found>>,
}

impl Answer {
    fn send(&mut self, report: Report) {
        if let Some(found) = self.found.take() {
            // A closed channel means that the loop has ended.
            let _ = found.send(Found {
                ticket: self.ticket,
                kind: self.kind,
                report,
                ran: true,
            });
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.send(Report::unprobed(
            Cause::System,
            "the probe was broken off by a fault of this program",
        ));
    }
}
