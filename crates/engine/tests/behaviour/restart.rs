//! What survives the process.

use evenkeel_engine::{EventKind, StateRestart, Token, Written};
use evenkeel_threshold::{Consecutive, Counts, Outlook, RestartReason, Status};
use std::sync::Arc;

use crate::rig::{Check, Index, Rig, check, secs};

fn seen(rig: &Rig) -> u32 {
    match rig.view("a").outlook(rig.now) {
        Outlook::Counting { seen, .. } => seen,
        _ => 0,
    }
}

// P078, P137
#[test]
fn pending_counts_go_on_and_a_restart_writes_nothing() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("PFF");
    let mut next = rig.restarted();
    next.list(&[check("a")]);
    assert_eq!(seen(&next), 2);
    next.pass(secs(5));
    assert!(next.batches.is_empty());
    next.results("F");
    assert_eq!(next.take_write().status, Status::Critical);
}

#[test]
fn where_the_catalog_differs_from_what_was_saved_the_catalog_is_right() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    // Critical, and the write never made it.
    rig.results("FFFF");
    let mut next = rig.restarted();
    next.list(&[check("a")]);
    assert_eq!(next.view("a").reported(), Status::Passing);
    assert_eq!(next.view("a").critical_since(), None);
    let reason = StateRestart::CatalogDiffers {
        catalog: Status::Passing,
        ours: Status::Critical,
    };
    assert!(next.kinds().contains(&EventKind::StateRestarted { reason }));
    next.results("FF");
    assert!(next.batches.is_empty());
    next.results("F");
    assert_eq!(next.take_write().status, Status::Critical);
}

#[test]
fn a_state_of_another_strategy_starts_anew_from_its_status() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("FF");
    let mut other = check("a");
    let counts = Counts {
        failures_before_critical: 3,
        ..Counts::default()
    };
    other.strategy = Arc::new(Consecutive::new(counts).expect("valid").into());
    let mut next = rig.restarted();
    next.list(&[other]);
    let reason = StateRestart::Record(RestartReason::OtherStrategy);
    assert!(next.kinds().contains(&EventKind::StateRestarted { reason }));
    assert_eq!(next.view("a").reported(), Status::Passing);
}

#[test]
fn the_last_change_and_the_critical_time_are_remembered() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("FFF");
    let flipped = rig.now;
    let write = rig.take_write();
    rig.written(&write, Written::Done(Index(11)));
    rig.results("FFFF");
    let mut listed = check("a");
    listed.status = Status::Critical;
    listed.token = Index(11);
    let mut next = rig.restarted();
    next.list(&[listed.clone()]);
    let view = next.view("a");
    assert_eq!(view.critical_since(), Some(flipped));
    assert_eq!(
        view.last_transition().map(|last| (last.at, last.from)),
        Some((flipped, Status::Passing))
    );

    // A clock that was set back must not make a time of the future.
    let mut saved = rig.saved();
    saved[0].critical_since = Some(next.now.saturating_add(secs(9999)));
    let mut next = rig.restarted_from(saved);
    next.list(&[listed]);
    assert_eq!(next.view("a").critical_since(), Some(next.now));
}

#[test]
fn what_no_list_has_named_yet_is_not_forgotten_at_once() {
    let mut rig = Rig::new();
    rig.list(&[check("a"), check("b")]);
    rig.results("PPFF");
    let mut next = rig.restarted();
    // The first lists lack it; the state is saved all the same.
    next.list(&[]);
    next.pass(secs(60));
    next.list(&[]);
    assert_eq!(next.saved().len(), 2);
    let mut third = next.restarted();
    third.list(&[check("a")]);
    assert_eq!(seen(&third), 1);
    third.pass(secs(700));
    third.list(&[check("a")]);
    assert_eq!(third.saved().len(), 1);
}

#[test]
fn a_snapshot_restored_and_saved_again_is_the_same() {
    let checks = [check("a"), check("b"), check("c")];
    let sorted = |rig: &Rig| {
        let mut saved = rig.saved();
        saved.sort_by(|a, b| a.id.cmp(&b.id));
        saved
    };
    let mut rig = Rig::new();
    rig.list(&checks);
    rig.results("PFPFFW");
    let saved = sorted(&rig);
    let one = rig.engine.snapshot_of(&saved[0].id);
    assert_eq!(one.as_ref(), Some(&saved[0]));
    let mut next = rig.restarted();
    assert_eq!(next.engine.snapshot_of(&saved[0].id), one);
    assert_eq!(sorted(&next), saved);
    next.list(&checks);
    assert_eq!(sorted(&next), saved);
}

/// Of a catalog that only defines checks.
#[derive(Debug, Clone)]
struct Stateless;

impl Token for Stateless {
    fn is_older_than(&self, _: &Self) -> bool {
        false
    }

    fn keeps_status(&self) -> bool {
        false
    }
}

#[test]
fn a_catalog_without_statuses_leaves_them_to_the_engine() {
    use evenkeel_engine::{
        Action, CatalogCheck, CatalogUpdate, Engine, Finding, Outcome, Settings,
    };

    let listed = || {
        let check: Check = check("a");
        CatalogCheck {
            id: check.id,
            definition: check.definition,
            interval: check.interval,
            timeout: check.timeout,
            status: Status::Passing,
            output_hash: 0,
            token: Stateless,
            strategy: check.strategy,
            first_result: check.first_result,
            deregister_after: None,
        }
    };
    let mut now = evenkeel_threshold::Timestamp::from_millis(1_800_000_000_000);
    let mut engine = Engine::new(Settings::default());
    engine.handle_catalog(now, CatalogUpdate::all(vec![listed()]));
    let mut writes = 0;
    for _ in 0..50 {
        while let Some(action) = engine.poll_action(now) {
            match action {
                Action::Probe { ticket, .. } => {
                    let finding = Finding {
                        outcome: Outcome::Observed(Status::Critical.into()),
                        output: "down".to_owned(),
                    };
                    engine.handle_observation(now, ticket, finding);
                }
                Action::Write { writes: batch } => {
                    for write in batch {
                        writes += 1;
                        engine.handle_written(now, write.ticket, Written::Done(Stateless));
                    }
                }
                _ => {}
            }
        }
        now = now.saturating_add(secs(1));
        // The file is read again, and again says what it said at first.
        engine.handle_catalog(now, CatalogUpdate::all(vec![listed()]));
    }
    assert_eq!(writes, 1);
    assert_eq!(engine.counters().drifts, 0);

    let mut next = Engine::new(Settings::default());
    next.restore(engine.snapshot(now).collect::<Vec<_>>());
    next.handle_catalog(now, CatalogUpdate::all(vec![listed()]));
    let reported = next.checks().map(|view| (view.reported(), view.written()));
    assert!(reported.eq([(Status::Critical, Status::Critical)]));
}
