//! An outcome for people.

use std::fmt::Write as _;
use std::time::Duration;

use evenkeel_replay::{Advice, Delays, Gaps, Tally, civil};

use super::Simulated;
use crate::columns::columns;

/// Checks that the advice names.
const MOST_CHECKS: usize = 10;

/// The outcome as text.
pub fn as_table(simulated: &Simulated) -> String {
    let mut text = String::new();
    let out = &mut text;
    history(out, simulated);
    let _ = writeln!(out);
    let header = [
        "STRATEGY",
        "WRITES",
        "FALSE FLIPS",
        "MISSED",
        "DETECTED AFTER",
        "AT MOST",
        "BACK AFTER",
        "WRONG",
    ]
    .map(str::to_owned);
    let rows = simulated.outcome.strategies.iter().map(|strategy| {
        let tally = &strategy.tally;
        [
            strategy.name.clone(),
            tally.writes.to_string(),
            tally.false_flips.to_string(),
            missed(tally),
            mean(&tally.failures),
            tally.failures.longest().map_or_else(|| "-".into(), time),
            mean(&tally.recoveries),
            format!("{:.2} %", tally.wrong_share() * 100.0),
        ]
    });
    out.push_str(&columns(
        &std::iter::once(header).chain(rows).collect::<Vec<_>>(),
        "  ",
    ));
    match &simulated.advice {
        None => {}
        Some(Err(none)) => {
            let _ = writeln!(out, "\nno advice: {none}");
        }
        Some(Ok(given)) => advice(out, given, simulated),
    }
    if let Some(first) = simulated.pictures.first() {
        let directory = first.parent().unwrap_or(first);
        let _ = writeln!(
            out,
            "\n{} pictures in {}: delay-writes.svg and {} timelines",
            simulated.pictures.len(),
            directory.display(),
            simulated.pictures.len() - 1
        );
    }
    text
}

/// What was replayed, and what was not.
fn history(out: &mut String, simulated: &Simulated) {
    let outcome = &simulated.outcome;
    let _ = write!(
        out,
        "{} results of {} checks",
        outcome.results,
        outcome.checks.len()
    );
    if let (Some(first), Some(last)) = (outcome.first, outcome.last) {
        let _ = write!(out, ", {} to {} UTC", civil(first), civil(last));
    }
    if let Some(interval) = outcome.interval() {
        let _ = write!(out, ", one every {}", time(interval));
    }
    let (worse, better) = outcome.truth_changes();
    let truth = simulated.replay.truth;
    let _ = writeln!(
        out,
        "\n{} changes of the results; the truth ({} of {} results agree) got worse {worse} times, \
         better {better} times",
        outcome.changes(),
        truth.needed(),
        truth.results()
    );
    let (gaps, gap_ms) = outcome.gaps();
    if gaps > 0 {
        let what = match simulated.replay.gaps {
            Gaps::LongerThan(limit) => format!("longer than {}", time(limit)),
            _ => "of more than ten intervals".to_owned(),
        };
        let _ = writeln!(
            out,
            "{gaps} gaps {what}, together {}, count for nothing",
            time(Duration::from_millis(gap_ms))
        );
    }
    if outcome.unprobed > 0 {
        let _ = writeln!(
            out,
            "{} rows without a result (could not be probed)",
            outcome.unprobed
        );
    }
    if simulated.bad_rows.total() > 0 {
        let kinds: Vec<String> = simulated
            .bad_rows
            .kinds
            .iter()
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        let _ = writeln!(
            out,
            "{} bad rows left out: {}",
            simulated.bad_rows.total(),
            kinds.join(", ")
        );
    }
    if simulated.events > 0 {
        let _ = writeln!(
            out,
            "{} lines of an event log: statuses that were damped already, with results made up in between",
            simulated.events
        );
    }
}

fn missed(tally: &Tally) -> String {
    (tally.failures.missed + tally.recoveries.missed).to_string()
}

fn mean(delays: &Delays) -> String {
    delays.mean().map_or_else(|| "-".into(), time)
}

fn advice(out: &mut String, advice: &Advice, simulated: &Simulated) {
    let outcome = &simulated.outcome;
    let noise = &advice.noise;
    let _ = writeln!(
        out,
        "\nWhile the targets worked, {:.3} % of {} results failed: {:.3} % of those after a \
         success (a), {:.1} % of those after a failure (b).\n",
        noise.rate() * 100.0,
        noise.results(),
        noise.a() * 100.0,
        noise.b() * 100.0
    );
    let header = [
        "PROPOSED",
        "FALSE ALARMS",
        "",
        "DETECTED AFTER",
        "",
        "ONE FALSE ALARM OF A CHECK IN",
    ];
    let second = [
        "",
        "predicted",
        "replayed",
        "predicted",
        "replayed",
        "(predicted)",
    ];
    let mut rows = vec![header.map(str::to_owned), second.map(str::to_owned)];
    for proposed in &advice.proposals {
        let name = &proposed.candidate.name;
        let replayed = outcome.strategies.iter().find(|it| it.name == *name);
        rows.push([
            name.clone(),
            format!("{:.1}", proposed.false_alarms),
            replayed.map_or_else(|| "-".into(), |it| it.tally.false_alarms.to_string()),
            time(proposed.after_first_failure),
            replayed.map_or_else(|| "-".into(), |it| mean(&it.tally.failures)),
            time(proposed.between_false_alarms),
        ]);
    }
    out.push_str(&columns(&rows, "  "));
    for proposed in &advice.proposals {
        let _ = writeln!(
            out,
            "{}: {}; from the failure of the target {} to {}, the timeout included",
            proposed.candidate.name,
            proposed.reason,
            time(proposed.delay.best),
            time(proposed.delay.worst)
        );
    }
    let needed = simulated.replay.truth.needed();
    if advice
        .proposals
        .iter()
        .any(|it| it.failures as usize > needed)
    {
        let _ = writeln!(
            out,
            "{needed} failures in a row are an outage here (--truth); who waits for more misses \
             those that are shorter"
        );
    }
    let _ = writeln!(out);
    let mut rows = vec![["CHECK", "FAILED", "A", "B", "FAILURES IN A ROW"].map(str::to_owned)];
    rows.extend(advice.checks.iter().take(MOST_CHECKS).map(|check| {
        [
            printable(&check.name),
            format!("{:.3} %", check.noise.rate() * 100.0),
            format!("{:.3} %", check.noise.a() * 100.0),
            format!("{:.1} %", check.noise.b() * 100.0),
            check
                .failures
                .map_or_else(|| "none would do".into(), |count| count.to_string()),
        ]
    }));
    out.push_str(&columns(&rows, "  "));
    if let Some(more) = advice
        .checks
        .len()
        .checked_sub(MOST_CHECKS)
        .filter(|more| *more > 0)
    {
        let _ = writeln!(
            out,
            "and {more} checks that need no more than these; --json has all"
        );
    }
}

/// Names come from a file; control characters in them could drive the terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{FFFD}' } else { c })
        .collect()
}

/// A duration in the unit that fits.
fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        0.0 => "0 s".to_owned(),
        ..10.0 => format!("{seconds:.1} s"),
        ..120.0 => format!("{seconds:.0} s"),
        ..7200.0 => format!("{:.1} min", seconds / 60.0),
        ..172_800.0 => format!("{:.1} h", seconds / 3600.0),
        ..3.2e10 => format!("{:.0} d", seconds / 86_400.0),
        _ => "for ever".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_in_a_unit_that_fits() {
        for (seconds, expected) in [
            (0.0, "0 s"),
            (0.25, "0.2 s"),
            (59.6, "60 s"),
            (150.0, "2.5 min"),
            (7200.0, "2.0 h"),
            (864_000.0, "10 d"),
            (1e18, "for ever"),
        ] {
            assert_eq!(time(Duration::from_secs_f64(seconds)), expected);
        }
        assert_eq!(time(Duration::MAX), "for ever");
    }
}
