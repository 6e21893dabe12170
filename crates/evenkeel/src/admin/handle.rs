use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use evenkeel_threshold::Timestamp;
use evenkeel_xds::Server;
use tokio::sync::{mpsc, oneshot, watch};

use super::{HeartbeatReport, ReportRefused};
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::status::{CheckStatus, Fault, Readiness, StatusFilter, StatusReport, UnsupportedCheck};
use crate::zones::ZonesHandle;

/// What the server asks the loop that owns the checks.
#[derive(Debug)]
pub enum Question {
    /// The checks from number `from` on, as many as are read in one go.
    Status {
        /// Which checks.
        filter: StatusFilter,
        /// Where to begin, in the loop's own order.
        from: usize,
        /// For the answer.
        reply: oneshot::Sender<StatusPage>,
    },
    /// Take in how somebody says that a check is.
    Report {
        /// What is said.
        report: HeartbeatReport,
        /// For the answer.
        reply: oneshot::Sender<Result<(), ReportRefused>>,
    },
    /// Bring the gauges up to date.
    Gauges {
        /// Said when it is done.
        reply: oneshot::Sender<()>,
    },
}

/// A part of the checks. What comes between two parts may change in the
/// meantime.
#[derive(Debug, Default)]
pub struct StatusPage {
    /// The checks.
    pub checks: Vec<CheckStatus>,
    /// Where the next part begins; none if this was the last.
    pub next: Option<usize>,
    /// Only in the last part: checks that are not probed.
    pub unsupported: Vec<UnsupportedCheck>,
    /// Only in the last part: what is wrong with the catalog.
    pub faults: Vec<Fault>,
}

/// What the server knows and may ask.
#[derive(Debug, Clone)]
pub struct AdminHandle {
    questions: mpsc::Sender<Question>,
    readiness: watch::Receiver<Readiness>,
    metrics: Arc<Metrics>,
    clock: Clock,
    beat: Arc<AtomicU64>,
    zones: ZonesHandle,
    xds: Option<Server>,
}

/// A loop that has not come round for this long is stuck: it turns every quarter
/// of a second.
const STUCK: Duration = Duration::from_secs(10);

/// No answer of the loop takes longer, or it is stuck.
const ANSWER: Duration = Duration::from_secs(5);

impl AdminHandle {
    /// `beat` is where the loop leaves the time of its latest turn, in
    /// milliseconds of `clock`.
    pub fn new(
        questions: mpsc::Sender<Question>,
        readiness: watch::Receiver<Readiness>,
        metrics: Arc<Metrics>,
        clock: Clock,
        beat: Arc<AtomicU64>,
        zones: ZonesHandle,
    ) -> Self {
        Self {
            questions,
            readiness,
            metrics,
            clock,
            beat,
            zones,
            xds: None,
        }
    }

    /// The same with the server for proxies.
    #[must_use]
    pub fn with_xds(mut self, xds: Option<Server>) -> Self {
        self.xds = xds;
        self
    }

    /// The server for proxies, where there is one.
    pub fn xds(&self) -> Option<&Server> {
        self.xds.as_ref()
    }

    /// The split of traffic between zones.
    pub fn zones(&self) -> &ZonesHandle {
        &self.zones
    }

    /// Whether the loop turns.
    pub fn is_live(&self) -> bool {
        let beat = Timestamp::from_millis(self.beat.load(Ordering::Relaxed));
        self.clock.now().saturating_since(beat) < STUCK
    }

    /// Whether the daemon can do its work.
    pub fn readiness(&self) -> Readiness {
        if !self.is_live() {
            return Readiness {
                ready: false,
                reasons: vec!["the daemon's loop does not turn".into()],
            };
        }
        self.readiness.borrow().clone()
    }

    /// The metrics as text; the gauges may be old if the loop does not answer.
    pub async fn metrics(&self) -> String {
        let (reply, done) = oneshot::channel();
        let ask = async {
            if self
                .questions
                .send(Question::Gauges { reply })
                .await
                .is_ok()
            {
                let _ = done.await;
            }
        };
        let _ = tokio::time::timeout(ANSWER, ask).await;
        if let Some(server) = &self.xds {
            self.metrics.follow_xds(server);
        }
        self.metrics.encode()
    }

    /// Hands on how somebody says that a check is; none if the loop does not
    /// answer.
    pub async fn report(&self, report: HeartbeatReport) -> Option<Result<(), ReportRefused>> {
        let (reply, taken) = oneshot::channel();
        let ask = async {
            let question = Question::Report { report, reply };
            self.questions.send(question).await.ok()?;
            taken.await.ok()
        };
        tokio::time::timeout(ANSWER, ask).await.ok()?
    }

    /// The whole report; none if the loop does not answer.
    pub async fn status(&self, filter: StatusFilter) -> Option<StatusReport> {
        let mut report = StatusReport {
            v: crate::status::VERSION,
            version: env!("CARGO_PKG_VERSION").into(),
            at: self.clock.now().as_millis(),
            readiness: self.readiness(),
            checks: Vec::new(),
            unsupported: Vec::new(),
            faults: Vec::new(),
        };
        let mut from = Some(0);
        while let Some(start) = from {
            let (reply, page) = oneshot::channel();
            let question = Question::Status {
                filter: filter.clone(),
                from: start,
                reply,
            };
            let ask = async {
                self.questions.send(question).await.ok()?;
                page.await.ok()
            };
            let page = tokio::time::timeout(ANSWER, ask).await.ok()??;
            report.checks.extend(page.checks);
            report.unsupported.extend(page.unsupported);
            report.faults.extend(page.faults);
            from = page.next;
        }
        let key = |check: &CheckStatus| {
            let name = &check.check;
            (
                name.partition.clone(),
                name.namespace.clone(),
                name.node.clone(),
                name.service_id.clone(),
                name.check_id.clone(),
            )
        };
        report.checks.sort_by_cached_key(key);
        Some(report)
    }
}
