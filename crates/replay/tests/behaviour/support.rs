//! What the tests have in common.

use std::io::Read;
use std::ops::ControlFlow;

use evenkeel_replay::{BadRow, Candidate, Entry, History, Outcome, Replay, ReplaySettings};
use evenkeel_threshold::{AnyStrategy, Consecutive, Counts, Status};

/// So many in a row, in both directions.
pub(crate) fn in_a_row(down: u32, up: u32) -> AnyStrategy {
    let counts = Counts {
        failures_before_critical: down,
        failures_before_warning: None,
        success_before_passing: up,
    };
    Consecutive::new(counts).unwrap().into()
}

/// No damping.
pub(crate) fn raw() -> AnyStrategy {
    AnyStrategy::default()
}

pub(crate) fn candidates(strategies: &[(&str, AnyStrategy)]) -> Vec<Candidate> {
    strategies
        .iter()
        .map(|&(name, strategy)| Candidate::new(name, strategy))
        .collect()
}

/// Replays a file; bad rows come back as they are told.
pub(crate) fn replay(
    file: &[u8],
    settings: ReplaySettings,
    strategies: &[(&str, AnyStrategy)],
) -> (Outcome, Vec<BadRow>) {
    let mut replay = Replay::new(settings, candidates(strategies));
    let mut bad = Vec::new();
    let mut history = History::new(file).unwrap();
    let outcome = replay.read(&mut history, |row| {
        bad.push(row);
        ControlFlow::Continue(())
    });
    assert!(outcome.unwrap().is_continue());
    (replay.finish(), bad)
}

/// What is read: `line time check status`, or the bad row.
pub(crate) fn told(read: impl Read) -> Vec<String> {
    told_by(&mut History::new(read).unwrap())
}

pub(crate) fn told_by<R: Read>(history: &mut History<R>) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(entry) = history.next().unwrap() {
        told.push(match entry {
            Entry::Row(row) => format!(
                "{} {} {} {}",
                row.line,
                row.time.as_millis(),
                row.check,
                row.status.map_or("-", Status::as_str),
            ),
            Entry::Bad(bad) => bad.to_string(),
        });
    }
    told
}

/// `P`, `W` and anything else.
pub(crate) fn statuses(letters: &str) -> Vec<Status> {
    let status = |letter| match letter {
        'P' => Status::Passing,
        'W' => Status::Warning,
        _ => Status::Critical,
    };
    letters.chars().map(status).collect()
}
