//! Results and reported statuses as letters.

use evenkeel_threshold::{
    Consecutive, Counts, FirstResult, Outlook, Status, Strategy, Timestamp, Transition,
};

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

// One input, several rules. T1 has scattered failures and one real outage, T3
// alternates, T4 is a clean outage.
pub(crate) const T1: &str = "PPFPFFPFFFFPFPPPPP";
pub(crate) const T3: &str = "FPFPFPFPFPPPPPPP";
pub(crate) const T4: &str = "PPPFFFFFFFPPPPPPP";

/// `P` passing, `W` warning, `C` and `F` critical.
pub(crate) fn status(letter: char) -> Status {
    match letter {
        'P' => Status::Passing,
        'W' => Status::Warning,
        'C' | 'F' => Status::Critical,
        _ => panic!("no status: {letter}"),
    }
}

pub(crate) fn letter(status: Status) -> char {
    match status {
        Status::Passing => 'P',
        Status::Warning => 'W',
        Status::Critical => 'C',
    }
}

/// The results in a trace; blanks are for the eye.
pub(crate) fn results(trace: &str) -> impl Iterator<Item = Status> {
    trace.chars().filter(|c| !c.is_whitespace()).map(status)
}

/// What is reported after each result of `trace`.
pub(crate) fn play<S: Strategy>(
    strategy: &S,
    initial: Status,
    first: FirstResult,
    trace: &str,
) -> String {
    let mut state = strategy.start(initial, first, NOW);
    results(trace)
        .map(|result| {
            strategy.observe(&mut state, result.into(), NOW);
            letter(strategy.reported(&state))
        })
        .collect()
}

/// [`play`] from passing, all results counted.
pub(crate) fn play_counted<S: Strategy>(strategy: &S, trace: &str) -> String {
    play(strategy, Status::Passing, FirstResult::Counted, trace)
}

/// The number of the first result, from 1, after which `wanted` is reported.
pub(crate) fn first(reported: &str, wanted: char) -> Option<usize> {
    reported.find(wanted).map(|index| index + 1)
}

pub(crate) fn consecutive(critical: u32, passing: u32) -> Consecutive {
    Consecutive::new(Counts {
        failures_before_critical: critical,
        failures_before_warning: None,
        success_before_passing: passing,
    })
    .expect("there is no warning threshold")
}

pub(crate) fn consecutive_with_warning(warning: u32, critical: u32, passing: u32) -> Consecutive {
    Consecutive::new(Counts {
        failures_before_critical: critical,
        failures_before_warning: Some(warning),
        success_before_passing: passing,
    })
    .expect("warning comes before critical")
}

/// Lets time go on to `now`, keeping every deadline on the way.
pub(crate) fn elapse_until<S: Strategy>(
    strategy: &S,
    state: &mut S::State,
    now: Timestamp,
) -> Vec<Transition> {
    let mut transitions = Vec::new();
    while let Some(deadline) = strategy.deadline(state).filter(|&deadline| deadline <= now) {
        transitions.extend(strategy.elapse(state, deadline));
        assert!(
            strategy.deadline(state) != Some(deadline),
            "the deadline is not over"
        );
    }
    transitions
}

/// The outlook's parts, for what counts: toward, seen, needed.
pub(crate) fn counting<S: Strategy>(strategy: &S, state: &S::State) -> Option<(Status, u32, u32)> {
    match strategy.outlook(state, NOW) {
        Outlook::Counting {
            toward,
            seen,
            needed,
            ..
        } => Some((toward, seen, needed)),
        _ => None,
    }
}

/// The state after `trace`, from `initial`, all results counted.
pub(crate) fn state_after<S: Strategy>(strategy: &S, initial: Status, trace: &str) -> S::State {
    let mut state = strategy.start(initial, FirstResult::Counted, NOW);
    for result in results(trace) {
        strategy.observe(&mut state, result.into(), NOW);
    }
    state
}
