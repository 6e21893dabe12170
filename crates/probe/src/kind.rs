//! What a kind of check brings along.
//!
//! A kind is one file in `definition/` (what is to be probed, validated), one
//! in `definition/raw/` (how a file or an API writes it), one here beside
//! `tcp` (how it is probed), and one line in `definition/mod.rs`.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::fault::{Failure, timed_out};
use crate::prober::Shared;
use crate::progress::Progress;
use crate::report::{Cause, Outcome, Phase, Report};
use evenkeel_threshold::Status;

/// A kind of check, run by [`run`].
pub(crate) trait Kind: Sync {
    /// Its texts say of a certificate that it ends too soon; otherwise that is
    /// put behind them.
    const TELLS_EXPIRY: bool = false;

    /// The longest that a probe takes, never zero.
    fn timeout(&self) -> Duration;

    /// What is probed, for people and in one line: an address, a URL.
    fn target(&self) -> &str;

    /// Probes, telling each phase to `progress`. The future is dropped at the
    /// deadline, so it needs no timeout of its own; what it keeps in `progress`
    /// outlives it. A large future is boxed here: all kinds share its room.
    fn run(
        &self,
        shared: &Shared,
        progress: &mut Progress,
    ) -> impl Future<Output = Result<Report, Failure>> + Send;

    /// The report of a probe that ended early.
    fn failed(&self, failure: Failure, progress: &Progress) -> Report {
        Report {
            failed_phase: Some(progress.phase()),
            ..Report::of(outcome_of(&failure), failure.text)
        }
    }
}

/// Runs one probe up to `deadline`, with its times.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn carries its arguments twice, and a daemon has thousands of these"
)]
pub(crate) fn run<K: Kind>(
    check: &K,
    shared: &Shared,
    now: Instant,
    deadline: Instant,
) -> impl Future<Output = Report> + Send {
    async move {
        let mut progress = Progress::new(now, deadline);
        let running = check.run(shared, &mut progress);
        let result = match tokio::time::timeout_at(deadline, running).await {
            Ok(result) => result,
            Err(_) => Err(late(&progress)),
        };
        progress.end(Instant::now());
        let mut report = result.unwrap_or_else(|failure| check.failed(failure, &progress));
        if let Some(seen) = progress.seen.take() {
            report.certificate = seen.certificate.map(Box::new);
            if let Some(expiry) = seen.expiry {
                expiry.worsen(&mut report, K::TELLS_EXPIRY);
            }
        }
        Report {
            took: progress.since().duration_since(now),
            phases: progress.phases,
            ..report
        }
    }
}

/// The time is up.
fn late(progress: &Progress) -> Failure {
    match &progress.own_fault {
        Some((cause, text)) => Failure::unprobed(*cause, text.clone()),
        None if progress.phase() == Phase::Resolve => {
            Failure::unprobed(Cause::Resolver, timed_out(progress))
        }
        None => Failure::critical(timed_out(progress)),
    }
}

pub(crate) fn outcome_of(failure: &Failure) -> Outcome {
    match failure.cause {
        Some(cause) => Outcome::Unprobed(cause),
        None => Outcome::Observed(Status::Critical.into()),
    }
}
