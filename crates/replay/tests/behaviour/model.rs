//! The replay beside a slow model: whole series in memory, one definition after
//! the other.

use evenkeel_replay::{Candidate, Delays, Gaps, ReplaySettings, Tally, TruthWindow};
use evenkeel_threshold::{AnyStrategy, FirstResult, Leaky, Status, Strategy as _, Timestamp};
use proptest::prelude::*;

use crate::support::{in_a_row, raw, replay};

/// The truth at each result: it moves toward the result if four fifths of the
/// results from this one on are on that side of it.
fn truth(results: &[Status], window: usize) -> Vec<Status> {
    let mut first = results[..window.min(results.len())].to_vec();
    first.sort();
    let mut truth = first[first.len() / 2];
    let mut found = Vec::new();
    for (index, result) in results.iter().enumerate() {
        let ahead = &results[index..results.len().min(index + window)];
        let enough = |count: usize| count * 5 >= window * 4;
        let worse: Vec<Status> = Status::ALL
            .into_iter()
            .filter(|to| *to > truth && to <= result)
            .filter(|to| enough(ahead.iter().filter(|it| *it >= to).count()))
            .collect();
        let better: Vec<Status> = Status::ALL
            .into_iter()
            .filter(|to| *to < truth && to >= result)
            .filter(|to| enough(ahead.iter().filter(|it| *it <= to).count()))
            .collect();
        // As far as it may.
        if let Some(to) = worse.last().or(better.first()) {
            truth = *to;
        }
        found.push(truth);
    }
    found
}

/// The reported status at each millisecond from the first result to the last.
fn reported(strategy: AnyStrategy, times: &[u64], results: &[Status]) -> Vec<Status> {
    let start = times[0];
    let mut state = strategy.start(
        results[0],
        FirstResult::Counted,
        Timestamp::from_millis(start),
    );
    let mut reported = Vec::new();
    let mut next = 0;
    for now in start..=times[times.len() - 1] {
        let at = Timestamp::from_millis(now);
        if next < times.len() && times[next] == now {
            strategy.observe(&mut state, results[next].into(), at);
            next += 1;
        } else if strategy.deadline(&state).is_some_and(|due| due <= at) {
            strategy.elapse(&mut state, at);
        }
        reported.push(strategy.reported(&state));
    }
    reported
}

fn tally(strategy: AnyStrategy, times: &[u64], results: &[Status], window: usize) -> Tally {
    let by_result = truth(results, window);
    let start = times[0];
    // The truth at each millisecond.
    let mut truth = Vec::new();
    for (index, time) in times.iter().enumerate() {
        truth.resize(
            (time - start) as usize,
            *truth.last().unwrap_or(&by_result[0]),
        );
        truth.push(by_result[index]);
    }
    let reported = reported(strategy, times, results);
    assert_eq!(truth.len(), reported.len());
    let length = truth.len() - 1;
    let mut tally = Tally {
        watched_ms: length as u64,
        wrong_ms: (0..length).filter(|&at| reported[at] != truth[at]).count() as u64,
        ..Tally::default()
    };
    for at in 1..=length {
        let (from, to) = (reported[at - 1], reported[at]);
        if from == to {
            continue;
        }
        tally.writes += 1;
        let held = reported[at..]
            .iter()
            .take_while(|status| **status == to)
            .count();
        if !truth[at..at + held].contains(&to) {
            tally.false_flips += 1;
            tally.false_alarms += u64::from(to > from);
        }
    }
    let mut missed = false;
    for at in 1..=length {
        let (from, to) = (truth[at - 1], truth[at]);
        if from == to {
            continue;
        }
        let held = truth[at..]
            .iter()
            .take_while(|status| **status == to)
            .count();
        if std::mem::take(&mut missed) && reported[at] == to {
            continue;
        }
        let delays: &mut Delays = match to > from {
            true => &mut tally.failures,
            false => &mut tally.recoveries,
        };
        match (at..at + held).find(|&later| reported[later] == to) {
            Some(later) => {
                let delay = (later - at) as u64;
                delays.detected += 1;
                delays.total_ms += delay;
                delays.longest_ms = delays.longest_ms.max(delay);
            }
            None => {
                delays.missed += 1;
                missed = true;
            }
        }
    }
    tally
}

/// Small times, so that every millisecond can be looked at.
fn suppressing(hold: &str) -> AnyStrategy {
    let times = "half-life=20ms,suppress=2000,reuse=750,longest=80ms";
    let text = format!("penalty:{times},while-suppressed={hold}");
    Candidate::parse(&text).unwrap().strategy
}

fn silent(millis: u64) -> AnyStrategy {
    let text = format!("heartbeat:silence={millis}ms");
    Candidate::parse(&text).unwrap().strategy
}

proptest! {
    #[test]
    fn every_figure_is_that_of_the_slow_model(
        history in proptest::collection::vec((1_u64..12, prop_oneof![
            5 => Just(Status::Passing),
            1 => Just(Status::Warning),
            4 => Just(Status::Critical),
        ]), 1..60),
        window in 1_usize..9,
    ) {
        let mut now = 1_000_000_000_000;
        let (mut times, mut results, mut file) = (Vec::new(), Vec::new(), String::new());
        for (passed, status) in history {
            now += passed;
            times.push(now);
            results.push(status);
            file += &format!("{now},check,{status}\n");
        }
        let strategies = [
            ("raw", raw()),
            ("two", in_a_row(2, 2)),
            ("leaky", Leaky::new(2, 1).into()),
            // Time alone changes these.
            ("critical", suppressing("critical")),
            ("last", suppressing("last-stable")),
            ("silent", silent(5)),
        ];
        let mut settings = ReplaySettings::default();
        settings.gaps = Gaps::Never;
        settings.truth = TruthWindow::new(window).unwrap();
        let (outcome, bad) = replay(file.as_bytes(), settings, &strategies);
        prop_assert!(bad.is_empty());
        for (outcome, (name, strategy)) in outcome.strategies.iter().zip(strategies) {
            let expected = tally(strategy, &times, &results, window);
            prop_assert_eq!(outcome.tally, expected, "{}", name);
        }
    }
}
