//! The checks that run a command: what its end means, and what it said.

#[cfg(feature = "docker")]
mod api;
#[cfg(feature = "docker")]
pub(crate) mod docker;
mod ends;
#[cfg(all(feature = "script", unix))]
pub(crate) mod script;

use std::time::Duration;

use evenkeel_threshold::Status;
use tokio::sync::AcquireError;
use tokio::time::timeout_at;

pub(crate) use self::ends::Ends;
use crate::fault::Failure;
use crate::kind::outcome_of;
use crate::progress::Progress;
use crate::report::{Phase, Report};

/// A place among those that run at once, for half of the probe's time at most.
/// What has less than the other half to run in would be cut off for nothing, and
/// thousands of those, begun at their deadlines, would be late together.
async fn place<T>(
    acquiring: impl Future<Output = Result<T, AcquireError>>,
    timeout: Duration,
    progress: &Progress,
) -> Option<T> {
    let until = progress.deadline - timeout / 2;
    // The places are never closed.
    timeout_at(until, acquiring).await.ok()?.ok()
}

/// What a command found, by its exit code, as Consul has it: Nagios' 3
/// (unknown) is critical, as all codes above 1 are.
fn verdict(code: i64, progress: &mut Progress) -> Report {
    let status = match code {
        0 => Status::Passing,
        1 => Status::Warning,
        _ => Status::Critical,
    };
    let said = said(progress);
    let text = if said.is_empty() {
        format!("exit status {code}")
    } else {
        said
    };
    Report::observed(status, text)
}

/// The report of a command that did not come to its end, or not to its
/// beginning.
fn failed(kind: &str, what: &str, failure: &Failure, progress: &Progress) -> Report {
    let mut text = format!("{kind} check {what}: {}", failure.text);
    if progress.phase() == Phase::Run {
        let said = progress
            .said
            .as_ref()
            .map(|said| said.text())
            .unwrap_or_default();
        let said = said.trim();
        if !said.is_empty() {
            text.push_str(" Output: ");
            text.push_str(said);
        }
    }
    Report {
        failed_phase: Some(progress.phase()),
        ..Report::of(outcome_of(failure), text)
    }
}

fn said(progress: &mut Progress) -> String {
    let said = progress.said.take().map(|said| said.text());
    said.unwrap_or_default().trim_end().to_owned()
}
