//! An outcome for programs.

use std::time::Duration;

use evenkeel_replay::{Advice, Delays, NoiseCounts};
use serde_json::{Value as Json, json};

use super::Simulated;

/// The outcome as JSON: `{"strategies":[{"name":…,"writes":…}]}` and more
/// beside it.
pub fn as_json(simulated: &Simulated) -> Json {
    let outcome = &simulated.outcome;
    let strategies: Vec<Json> = outcome
        .strategies
        .iter()
        .map(|strategy| {
            let tally = &strategy.tally;
            json!({
                "name": strategy.name,
                "writes": tally.writes,
                "false_flips": tally.false_flips,
                "false_alarms": tally.false_alarms,
                "failures": delays(&tally.failures),
                "recoveries": delays(&tally.recoveries),
                "wrong_ms": tally.wrong_ms,
                "wrong_share": tally.wrong_share(),
            })
        })
        .collect();
    let (gaps, gap_ms) = outcome.gaps();
    let named: Vec<Json> = simulated
        .bad_rows
        .named
        .iter()
        .map(|(file, row)| {
            let (line, reason) = (row.line, row.fault.to_string());
            json!({ "file": &**file, "line": line, "kind": row.fault.kind(), "reason": reason })
        })
        .collect();
    let mut whole = json!({
        "strategies": strategies,
        "history": {
            "results": outcome.results,
            "checks": outcome.checks.len(),
            "changes": outcome.changes(),
            "first_ms": outcome.first.map(|at| at.as_millis()),
            "last_ms": outcome.last.map(|at| at.as_millis()),
            "interval_ms": outcome.interval().map(millis),
            "watched_ms": outcome.strategies.first().map(|it| it.tally.watched_ms),
            "gaps": gaps,
            "gap_ms": gap_ms,
            "unprobed": outcome.unprobed,
            "event_log_lines": simulated.events,
            "truth": {
                "window": simulated.replay.truth.results(),
                "needed": simulated.replay.truth.needed(),
                "worse": outcome.truth_changes().0,
                "better": outcome.truth_changes().1,
            },
        },
        "bad_rows": {
            "total": simulated.bad_rows.total(),
            "kinds": simulated.bad_rows.kinds,
            "named": named,
        },
    });
    match &simulated.advice {
        None => {}
        Some(Ok(given)) => whole["advice"] = advice(given),
        Some(Err(none)) => whole["advice"] = json!({ "none": none.to_string() }),
    }
    if !simulated.pictures.is_empty() {
        let paths = simulated.pictures.iter().map(|path| path.to_string_lossy());
        whole["pictures"] = paths.collect();
    }
    whole
}

fn delays(delays: &Delays) -> Json {
    json!({
        "detected": delays.detected,
        "missed": delays.missed,
        "mean_delay_ms": delays.mean().map(millis),
        "max_delay_ms": delays.longest().map(millis),
    })
}

fn advice(advice: &Advice) -> Json {
    let proposals: Vec<Json> = advice
        .proposals
        .iter()
        .map(|proposed| {
            json!({
                "strategy": proposed.candidate.name,
                "reason": proposed.reason,
                "predicted": {
                    "between_false_alarms_ms": millis(proposed.between_false_alarms),
                    "false_alarms": proposed.false_alarms,
                    "after_first_failure_ms": millis(proposed.after_first_failure),
                    "delay_ms": {
                        "best": millis(proposed.delay.best),
                        "mean": millis(proposed.delay.mean),
                        "worst": millis(proposed.delay.worst),
                    },
                },
            })
        })
        .collect();
    let checks: Vec<Json> = advice
        .checks
        .iter()
        .map(|check| {
            json!({
                "name": check.name,
                "interval_ms": millis(check.interval),
                "noise": noise(&check.noise),
                "failures_in_a_row": check.failures,
            })
        })
        .collect();
    json!({ "noise": noise(&advice.noise), "proposals": proposals, "checks": checks })
}

fn noise(noise: &NoiseCounts) -> Json {
    json!({
        "results": noise.results(),
        "failures": noise.failures(),
        "rate": noise.rate(),
        "a": noise.a(),
        "b": noise.b(),
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
