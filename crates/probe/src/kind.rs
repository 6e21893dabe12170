//! What a kind of check brings along.
//!
//! A kind is one file in `definition/` (what is to be probed, validated), one
//! in `definition/raw/` (how a file or an API writes it), one here beside
//! `tcp` (how it is probed), and one line in `definition/mod.rs`.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::join;
use tokio::time::Instant;

use crate::capture::excerpt;
use crate::definition::{ConnectOptions, Family};
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

    /// Over which family and from which address; for kinds that connect.
    fn connect(&self) -> &ConnectOptions {
        &ConnectOptions::NONE
    }

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
pub(crate) fn run<K: Kind>(
    check: &K,
    shared: &Shared,
    now: Instant,
    deadline: Instant,
) -> impl Future<Output = Report> + Send {
    run_as(check, shared, now, deadline, check.connect().family)
}

/// Runs one probe over this family.
fn run_as<K: Kind>(
    check: &K,
    shared: &Shared,
    now: Instant,
    deadline: Instant,
    family: Family,
) -> impl Future<Output = Report> + Send {
    // An async fn, or one made within the future, would be there beside what it is
    // made of, and a daemon has thousands of these.
    let mut progress = Progress::new(now, deadline).connecting(&ConnectOptions {
        family,
        source: check.connect().source,
    });
    async move {
        let deadline = progress.deadline;
        if progress.family == Family::Both {
            return over_both(check, shared, now, deadline).await;
        }
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

/// Runs the probe once over each family, at the same time. Its type is named, so
/// that it can run what it is part of.
fn over_both<'a, K: Kind>(
    check: &'a K,
    shared: &'a Shared,
    now: Instant,
    deadline: Instant,
) -> Pin<Box<dyn Future<Output = Report> + Send + 'a>> {
    let over = move |family| run_as(check, shared, now, deadline, family);
    Box::pin(async move {
        let (v4, v6) = join(over(Family::V4), over(Family::V6)).await;
        worse(v4, v6)
    })
}

/// What two probes of one target, over each family, come to.
fn worse(v4: Report, v6: Report) -> Report {
    const NAMES: [&str; 2] = ["IPv4", "IPv6"];
    let badness = [&v4, &v6].map(|report| match report.outcome {
        Outcome::Observed(seen) => match seen.status {
            Status::Passing => 0,
            Status::Warning => 1,
            Status::Critical => 3,
        },
        // What has not been seen may be as good as the other, or worse.
        Outcome::Unprobed(_) => 2,
    });
    let took = v4.took.max(v6.took);
    let reports = if badness[1] > badness[0] {
        [(NAMES[1], v6, badness[1]), (NAMES[0], v4, badness[0])]
    } else {
        [(NAMES[0], v4, badness[0]), (NAMES[1], v6, badness[1])]
    };
    let [(name, decides, bad), (other_name, other, other_bad)] = reports;
    let text = &decides.output;
    let output = match (bad, other_bad) {
        (0, _) => format!("IPv4 and IPv6: {text}"),
        (_, 0) => format!("{name}: {text}"),
        // The whole of one is enough: an answer's body may be in it.
        (..) => format!("{name}: {text}; {other_name}: {}", excerpt(&other.output)),
    };
    Report {
        output,
        took,
        ..decides
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

#[cfg(test)]
mod tests {
    use super::*;

    fn report(kind: &str, text: &str) -> Report {
        match kind {
            "passing" => Report::observed(Status::Passing, text),
            "warning" => Report::observed(Status::Warning, text),
            "critical" => Report::observed(Status::Critical, text),
            _ => Report::unprobed(Cause::NoRoute, text),
        }
    }

    #[test]
    fn of_two_families_the_worse_counts_and_is_named() {
        for (v4, v6, counts, says) in [
            ("passing", "passing", "passing", "IPv4 and IPv6: 4"),
            ("passing", "warning", "warning", "IPv6: 6"),
            ("critical", "passing", "critical", "IPv4: 4"),
            ("passing", "unprobed", "unprobed", "IPv6: 6"),
            ("unprobed", "warning", "unprobed", "IPv4: 4; IPv6: 6"),
            ("unprobed", "critical", "critical", "IPv6: 6; IPv4: 4"),
            ("critical", "critical", "critical", "IPv4: 4; IPv6: 6"),
        ] {
            let worse = worse(report(v4, "4"), report(v6, "6"));
            assert_eq!(worse, report(counts, says), "{v4} {v6}");
        }
    }
}
