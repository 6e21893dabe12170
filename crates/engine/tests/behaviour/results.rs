//! From a finding to a reported status.

use evenkeel_engine::{EventKind, Outcome};
use evenkeel_threshold::{
    FirstResult, Loaded, Observation, Outlook, Record, Status, Strategy, StrategyTag, Timestamp,
    Transition,
};

use crate::rig::{Rig, check, leaky, secs};

// P109
#[test]
fn the_event_of_a_change_has_old_observed_new_and_the_count() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("PFFF");
    let changes: Vec<_> = rig
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Transition { .. }))
        .collect();
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].at, rig.now);
    let expected = EventKind::Transition {
        from: Status::Passing,
        observed: Some(Status::Critical),
        to: Status::Critical,
        seen: 3,
        needed: 3,
    };
    assert_eq!(changes[0].kind, expected);
}

// P003, P121
#[test]
fn what_the_strategy_holds_back_is_counted() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("PFPFPFPFPF");
    let counters = rig.engine.counters();
    assert_eq!((counters.raw_changes, counters.transitions), (9, 0));
    // The last change may still be reported.
    assert_eq!(counters.suppressed_changes, 8);
    assert_eq!(counters.observed(Status::Critical), 5);
    assert!(rig.batches.is_empty());
}

#[test]
fn what_was_held_back_stays_counted_when_a_change_is_reported_after_all() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    let mut before = 0;
    let mut steps = Vec::new();
    for results in ["PFP", "FF", "F", "F", "P", "P", "FWP"] {
        rig.results(results);
        let counters = rig.engine.counters();
        assert!(counters.suppressed_changes >= before);
        before = counters.suppressed_changes;
        steps.push((
            counters.raw_changes,
            counters.transitions,
            counters.suppressed_changes,
        ));
    }
    // A blip; an outage that is confirmed at the third failure; its end, at the
    // second success; three changes within one excursion.
    let expected = [
        (2, 0, 2),
        (3, 0, 2),
        (3, 1, 2),
        (3, 1, 2),
        (4, 1, 2),
        (4, 2, 2),
        (7, 2, 5),
    ];
    assert_eq!(steps, expected);
}

// P056, P127
#[test]
fn a_probe_that_could_not_be_run_counts_neither_way_and_is_said_once_per_run() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("FF");
    rig.results("UUUUUUUUUU");
    assert_eq!(rig.view("a").unprobed_run(), 10);
    assert!(rig.batches.is_empty());
    rig.results("F");
    assert_eq!(rig.take_write().status, Status::Critical);
    rig.results("UF");
    let kinds = rig.kinds();
    let runs: Vec<_> = kinds
        .iter()
        .filter(|kind| {
            matches!(
                kind,
                EventKind::UnprobedStarted | EventKind::UnprobedEnded { .. }
            )
        })
        .collect();
    let expected = [
        EventKind::UnprobedStarted,
        EventKind::UnprobedEnded { run: 10 },
        EventKind::UnprobedStarted,
        EventKind::UnprobedEnded { run: 1 },
    ];
    assert!(runs.into_iter().eq(&expected));
    assert_eq!(rig.engine.counters().unprobed, 11);
}

// P081
#[test]
fn a_status_that_no_result_has_confirmed_for_three_intervals_is_stale() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    assert!(rig.view("a").is_stale(rig.now));
    rig.results("P");
    let fresh = rig.now;
    assert!(!rig.view("a").is_stale(fresh.saturating_add(secs(30))));
    assert!(rig.view("a").is_stale(fresh.saturating_add(secs(31))));
    rig.results("UUUU");
    assert!(rig.view("a").is_stale(rig.now));
}

// P075
#[test]
fn the_first_result_is_believed_if_the_check_says_so() {
    let mut rig = Rig::new();
    let mut believing = check("a");
    believing.first_result = FirstResult::Believed;
    rig.list(&[believing]);
    rig.results("F");
    assert_eq!(rig.take_write().status, Status::Critical);
}

#[test]
fn an_immediate_result_is_not_counted_but_reported() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("P");
    rig.probe_with(
        Outcome::Observed(Observation::immediate(Status::Critical)),
        "draining",
    );
    assert_eq!(&*rig.take_write().output, "draining");
}

#[test]
fn views_show_what_is_pending() {
    let mut rig = Rig::new();
    let mut patient = check("a");
    patient.strategy = leaky(3, 1);
    rig.list(&[patient]);
    rig.results("PFF");
    let view = rig.view("a");
    let Outlook::Counting {
        toward,
        seen,
        needed,
        ..
    } = view.outlook(rig.now)
    else {
        panic!("{:?}", view.outlook(rig.now));
    };
    assert_eq!((toward, seen, needed), (Status::Critical, 2, 4));
    assert_eq!(view.last_observation(), Some((Status::Critical, rig.now)));
    assert_eq!(
        (view.reported(), view.written()),
        (Status::Passing, Status::Passing)
    );
    assert_eq!(view.next_due(), rig.now.saturating_add(secs(10)));
    assert!(!view.is_writing() && !view.is_probing());
    assert_eq!(rig.engine.checks().count(), 1);
}

/// Critical 25 s after the last result that was not; else what the result says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Heartbeat;

const SILENCE: core::time::Duration = core::time::Duration::from_secs(25);

impl Strategy for Heartbeat {
    type State = (Status, Timestamp);

    fn start(&self, reported: Status, _: FirstResult, now: Timestamp) -> Self::State {
        (reported, now)
    }

    fn observe(
        &self,
        state: &mut Self::State,
        observation: Observation,
        now: Timestamp,
    ) -> Option<Transition> {
        let from = state.0;
        *state = (observation.status, now);
        (from != state.0).then_some(Transition { from, to: state.0 })
    }

    fn reported(&self, state: &Self::State) -> Status {
        state.0
    }

    fn deadline(&self, state: &Self::State) -> Option<Timestamp> {
        // Does not go away when it has been met: an engine must not spin.
        Some(state.1.saturating_add(SILENCE))
    }

    fn elapse(&self, state: &mut Self::State, now: Timestamp) -> Option<Transition> {
        let from = state.0;
        if now >= state.1.saturating_add(SILENCE) {
            state.0 = Status::Critical;
        }
        (from != state.0).then_some(Transition { from, to: state.0 })
    }

    fn outlook(&self, _: &Self::State, _: Timestamp) -> Outlook {
        Outlook::Settled
    }

    fn shift(&self, state: &mut Self::State, millis: i64) {
        state.1 = state.1.saturating_shift(millis);
    }

    fn adopt(&self, old: &Self::State, _: Timestamp) -> Self::State {
        *old
    }

    fn save(&self, state: &Self::State) -> Record {
        Record::new(StrategyTag(200), 1, state.0, &[]).expect("short")
    }

    fn load(&self, record: &Record, now: Timestamp) -> Loaded<Self::State> {
        Loaded::Resumed((record.reported(), now))
    }
}

#[test]
fn a_strategy_of_ones_own_may_change_the_status_by_time_alone() {
    use evenkeel_engine::{Action, CatalogUpdate, Engine, Finding, Settings, WriteReason};
    use std::sync::Arc;

    let plain = check("a");
    let listed = evenkeel_engine::CatalogCheck {
        id: plain.id,
        definition: plain.definition,
        interval: secs(3600),
        timeout: plain.timeout,
        status: plain.status,
        output_hash: plain.output_hash,
        token: plain.token,
        strategy: Arc::new(Heartbeat),
        first_result: plain.first_result,
        deregister_after: None,
    };
    let begin = Timestamp::from_millis(1_800_000_000_000);
    let mut engine = Engine::new(Settings::default());
    engine.handle_catalog(begin, CatalogUpdate::all(vec![listed]));
    let ticket = loop {
        match engine.poll_action(begin).expect("a probe") {
            Action::Probe { ticket, .. } => break ticket,
            Action::Event(_) => {}
            other => panic!("{other:?}"),
        }
    };
    // Nothing elapses before the first result.
    assert_eq!(
        engine
            .poll_timeout()
            .map(|at| at < begin.saturating_add(SILENCE)),
        Some(true)
    );
    let finding = Finding {
        outcome: Outcome::Observed(Status::Passing.into()),
        output: "fine".to_owned(),
    };
    engine.handle_observation(begin, ticket, finding);
    assert!(engine.poll_action(begin).is_none());
    // A pause does not count as silence.
    engine.handle_pause(begin.saturating_add(secs(100)), secs(100));
    let due = begin.saturating_add(secs(100) + SILENCE);
    assert_eq!(engine.poll_timeout(), Some(due));
    engine.handle_timeout(due);
    let mut actions = Vec::new();
    while let Some(action) = engine.poll_action(due) {
        actions.push(action);
    }
    let [Action::Event(event), Action::Write { writes }] = &actions[..] else {
        panic!("{actions:?}");
    };
    assert!(matches!(
        event.kind,
        EventKind::Transition {
            observed: None,
            to: Status::Critical,
            ..
        }
    ));
    assert_eq!(writes[0].status, Status::Critical);
    assert_eq!(writes[0].reason, WriteReason::Status);
    assert!(
        engine.poll_timeout().is_some_and(|at| at > due),
        "no spinning"
    );
}
