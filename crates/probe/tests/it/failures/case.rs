//! One kind of check in one bad situation, and what has to come of it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_probe::{Cause, Outcome, Phase, Report};
use evenkeel_threshold::Status;
use tokio::sync::Semaphore;

use crate::support::SHORT;

/// Cases that run at once. One that floods counts for as many as [`FLOOD`]: on a
/// busy machine it must not keep others from their deadlines.
const AT_ONCE: u32 = 16;
const FLOOD: u32 = 8;

/// What has to come of a probe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    pub(crate) outcome: Outcome,
    pub(crate) phase: Option<Phase>,
    /// Part of the text.
    pub(crate) says: &'static str,
    /// Only the deadline ends it; all others must not wait for it.
    late: bool,
    /// It may also be met in connecting: which of both is a matter of moments.
    either: bool,
}

impl Expected {
    fn observed(status: Status, says: &'static str) -> Self {
        Self {
            outcome: Outcome::Observed(status.into()),
            phase: None,
            says,
            late: false,
            either: false,
        }
    }

    pub(crate) fn late(self) -> Self {
        Self { late: true, ..self }
    }

    pub(crate) fn or_in_connecting(self) -> Self {
        Self {
            either: true,
            ..self
        }
    }

    pub(crate) fn at(self, phase: Phase) -> Self {
        Self {
            phase: Some(phase),
            ..self
        }
    }

    /// Short where the deadline has to come, else longer than a test may take.
    pub(crate) fn timeout(&self) -> Duration {
        if self.late { 2 * SHORT } else { 600 * SHORT }
    }
}

pub(crate) fn passing(says: &'static str) -> Expected {
    Expected::observed(Status::Passing, says)
}

pub(crate) fn warning(says: &'static str) -> Expected {
    Expected::observed(Status::Warning, says)
}

pub(crate) fn critical(says: &'static str) -> Expected {
    Expected::observed(Status::Critical, says)
}

pub(crate) fn unprobed(cause: Cause, says: &'static str) -> Expected {
    Expected {
        outcome: Outcome::Unprobed(cause),
        ..critical(says)
    }
}

type Running = Pin<Box<dyn Future<Output = Report> + Send>>;

pub(crate) struct Case {
    pub(crate) kind: &'static str,
    pub(crate) situation: &'static str,
    pub(crate) expected: Expected,
    /// Whether it is a row of the table.
    pub(crate) shown: bool,
    pub(crate) floods: bool,
    run: Running,
}

impl Case {
    pub(crate) fn new(
        kind: &'static str,
        situation: &'static str,
        expected: Expected,
        run: impl Future<Output = Report> + Send + 'static,
    ) -> Self {
        Self {
            kind,
            situation,
            expected,
            shown: true,
            floods: false,
            run: Box::pin(run),
        }
    }
}

/// A line of the table in `docs/probes.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) kind: String,
    pub(crate) situation: String,
    /// A status, or `unprobed (cause)`.
    pub(crate) result: String,
    pub(crate) phase: String,
    pub(crate) text: String,
}

impl Row {
    pub(crate) fn new(kind: &str, situation: &str, report: &Report) -> Self {
        Self {
            kind: kind.to_owned(),
            situation: situation.to_owned(),
            result: match report.outcome {
                Outcome::Observed(seen) => seen.status.to_string(),
                Outcome::Unprobed(cause) => format!("unprobed ({})", cause.as_str()),
            },
            phase: report.failed_phase.map_or("", Phase::as_str).to_owned(),
            text: super::table::neutral(&report.output),
        }
    }
}

/// Runs them, and gives the rows of those that are shown, in their order.
///
/// # Panics
/// With all that are not as expected.
pub(crate) async fn run_all(cases: Vec<Case>) -> Vec<Row> {
    let places = Arc::new(Semaphore::new(AT_ONCE as usize));
    let mut running = Vec::new();
    for case in cases {
        let places = places.clone();
        let needed = if case.floods { FLOOD } else { 1 };
        let Case {
            kind,
            situation,
            expected,
            shown,
            run,
            ..
        } = case;
        let task = tokio::spawn(async move {
            let _place = places.acquire_many(needed).await.unwrap();
            tokio::time::timeout(50 * SHORT, run).await
        });
        running.push((kind, situation, expected, shown, task));
    }
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    for (kind, situation, expected, shown, task) in running {
        let report = match task.await {
            Ok(Ok(report)) => report,
            Ok(Err(_)) => {
                faults.push(format!("{kind}: {situation}: hangs"));
                continue;
            }
            Err(error) => {
                faults.push(format!("{kind}: {situation}: {error}"));
                continue;
            }
        };
        if let Some(fault) = fault(&report, &expected) {
            faults.push(format!("{kind}: {situation}: {fault}"));
        }
        if shown {
            rows.push(Row::new(kind, situation, &report));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    rows
}

fn fault(report: &Report, expected: &Expected) -> Option<String> {
    let seen = format!(
        "{:?} {:?} {:?}",
        report.outcome, report.failed_phase, report.output
    );
    let phase = match report.failed_phase {
        Some(Phase::Connect) if expected.either => expected.phase,
        phase => phase,
    };
    if (report.outcome, phase) != (expected.outcome, expected.phase) {
        return Some(format!("not {expected:?}, but {seen}"));
    }
    if !report.output.contains(expected.says) {
        return Some(format!("not {:?} in {seen}", expected.says));
    }
    if expected.late && report.took > 4 * SHORT {
        return Some(format!("took {:?}: {seen}", report.took));
    }
    if report.output.len() > 8 * 1024 {
        return Some(format!("a text of {} bytes", report.output.len()));
    }
    None
}
