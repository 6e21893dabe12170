//! Services that have been critical for too long.

use evenkeel_engine::{Deregistered, EventKind, Outcome, StateRestart, Written};
use evenkeel_threshold::{Status, Timestamp};

use crate::rig::{Check, Index, Rig, check, id, leaky, secs};

fn short_lived(name: &str) -> Check {
    let mut check = check(name);
    check.interval = secs(1);
    check.strategy = leaky(0, 0);
    check.deregister_after = Some(secs(60));
    check
}

/// One second after the other, with every probe answered and every write done.
fn run(rig: &mut Rig, seconds: u64, status: Status) {
    let outcome = Outcome::Observed(status.into());
    run_with(rig, seconds, outcome);
}

fn run_with(rig: &mut Rig, seconds: u64, outcome: Outcome) {
    for _ in 0..seconds {
        rig.pass(secs(1));
        while let Some((_, _, ticket, _)) = rig.probes.pop_front() {
            rig.answer(ticket, outcome, "down");
        }
        while let Some((_, writes)) = rig.batches.pop_front() {
            for write in writes {
                let index = rig.now.as_millis();
                rig.written(&write, Written::Done(Index(index)));
            }
        }
    }
}

fn since(rig: &Rig, begin: Timestamp) -> u64 {
    rig.removals[0].0.saturating_since(begin).as_secs()
}

#[test]
fn a_service_critical_for_the_limit_is_removed_by_time() {
    let mut rig = Rig::new();
    rig.list(&[short_lived("a")]);
    let begin = rig.now;
    run(&mut rig, 59, Status::Critical);
    assert!(rig.removals.is_empty());
    run(&mut rig, 3, Status::Critical);
    assert_eq!(rig.removals.len(), 1);
    assert!((60..=61).contains(&since(&rig, begin)));
    let (_, removed, ticket, critical_for) = rig.removals[0].clone();
    assert_eq!(removed, id("a"));
    assert!(critical_for >= secs(60));
    assert!(
        rig.kinds()
            .contains(&EventKind::Deregistering { critical_for })
    );
    rig.engine
        .handle_deregistered(rig.now, ticket, Deregistered::Done);
    rig.drain();
    assert!(rig.kinds().contains(&EventKind::Deregistered));
    run(&mut rig, 30, Status::Critical);
    assert_eq!(rig.removals.len(), 1);
    rig.list(&[]);
    assert!(rig.engine.is_empty());
}

#[test]
fn a_recovery_starts_the_time_anew() {
    let mut rig = Rig::new();
    rig.list(&[short_lived("a")]);
    run(&mut rig, 50, Status::Critical);
    run(&mut rig, 1, Status::Passing);
    run(&mut rig, 50, Status::Critical);
    assert!(rig.removals.is_empty());
    run(&mut rig, 15, Status::Critical);
    assert_eq!(rig.removals.len(), 1);
}

// P038
#[test]
fn the_time_goes_on_over_a_restart() {
    let mut rig = Rig::new();
    rig.list(&[short_lived("a")]);
    let begin = rig.now;
    run(&mut rig, 40, Status::Critical);
    let mut listed = short_lived("a");
    listed.status = Status::Critical;
    listed.token = Index(rig.now.as_millis());
    let mut rig = rig.restarted();
    rig.list(&[listed.clone()]);
    run(&mut rig, 25, Status::Critical);
    assert_eq!(rig.removals.len(), 1);
    assert!((60..=62).contains(&since(&rig, begin)));

    // The process was away when the time ended: not before a probe has looked.
    let mut late = rig.restarted();
    late.now = late.now.saturating_add(secs(500));
    late.list(&[listed]);
    late.drain();
    assert!(late.removals.is_empty());
    run(&mut late, 2, Status::Critical);
    assert_eq!(late.removals.len(), 1);
}

// P102
#[test]
fn a_check_of_a_node_removes_nothing() {
    let mut node = short_lived("a");
    node.id = evenkeel_engine::CheckId::new("", "", "node", "", "a");
    let mut rig = Rig::new();
    rig.list(&[node]);
    run(&mut rig, 200, Status::Critical);
    assert!(rig.removals.is_empty());
}

// P039
#[test]
fn a_service_goes_once_for_all_its_checks_and_the_other_nodes_for_itself() {
    let mut elsewhere = short_lived("a");
    elsewhere.id = evenkeel_engine::CheckId::new("", "", "other", "web", "a");
    let mut rig = Rig::new();
    rig.list(&[short_lived("a"), short_lived("b"), elsewhere]);
    run(&mut rig, 100, Status::Critical);
    let mut nodes: Vec<_> = rig.removals.iter().map(|(_, id, ..)| id.node()).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["node", "other"]);
}

#[test]
fn a_removal_that_fails_or_is_never_answered_is_tried_again() {
    let mut rig = Rig::new();
    rig.list(&[short_lived("a")]);
    run(&mut rig, 62, Status::Critical);
    let (_, _, first, _) = rig.removals.pop_front().expect("asked");
    rig.engine
        .handle_deregistered(rig.now, first, Deregistered::Failed);
    run(&mut rig, 2, Status::Critical);
    assert_eq!(rig.removals.len(), 1);
    // No answer for 60 s.
    run(&mut rig, 62, Status::Critical);
    assert_eq!(rig.removals.len(), 2);
    assert_eq!(rig.engine.counters().failed_deregistrations, 2);
    // Late and foreign answers change nothing.
    rig.engine
        .handle_deregistered(rig.now, first, Deregistered::Done);
    assert_eq!(rig.engine.counters().deregistrations, 0);
    assert_eq!(rig.engine.counters().late_tickets, 1);
}

#[test]
fn a_removal_that_is_refused_is_tried_again_slowly_and_said_once() {
    let mut rig = Rig::new();
    rig.list(&[short_lived("a")]);
    run(&mut rig, 62, Status::Critical);
    let mut tries = 0;
    for _ in 0..300 {
        while let Some((_, _, ticket, _)) = rig.removals.pop_front() {
            tries += 1;
            let refused = Deregistered::Refused;
            rig.engine.handle_deregistered(rig.now, ticket, refused);
        }
        run(&mut rig, 1, Status::Critical);
    }
    assert!((4..=6).contains(&tries), "{tries}");
    let said = |rig: &Rig, failed: bool| {
        let kinds = rig.kinds().into_iter();
        kinds
            .filter(|kind| match kind {
                EventKind::Deregistering { .. } => !failed,
                EventKind::DeregistrationFailed => failed,
                _ => false,
            })
            .count()
    };
    assert_eq!((said(&rig, false), said(&rig, true)), (1, 1));
    // Another outage is another decision.
    run(&mut rig, 5, Status::Passing);
    run(&mut rig, 70, Status::Critical);
    assert_eq!(said(&rig, false), 2);
}

#[test]
fn what_is_not_there_is_not_asked_for_again_before_the_catalog_says_so() {
    let mut rig = Rig::new();
    rig.list(&[short_lived("a")]);
    run(&mut rig, 62, Status::Critical);
    let (_, _, ticket, _) = rig.removals.pop_front().expect("asked");
    rig.engine
        .handle_deregistered(rig.now, ticket, Deregistered::Gone);
    run(&mut rig, 200, Status::Critical);
    assert!(rig.removals.is_empty());
    assert!(!rig.kinds().contains(&EventKind::Deregistered));
    assert_eq!(rig.engine.counters().gone_deregistrations, 1);
}

#[test]
fn a_removal_that_had_no_effect_is_asked_for_again() {
    let mut rig = Rig::new();
    rig.list(&[short_lived("a")]);
    run(&mut rig, 62, Status::Critical);
    let (_, _, ticket, _) = rig.removals.pop_front().expect("asked");
    rig.engine
        .handle_deregistered(rig.now, ticket, Deregistered::Done);
    let mut listed = short_lived("a");
    listed.token = *rig.view("a").token();
    listed.status = Status::Critical;
    run(&mut rig, 50, Status::Critical);
    // This list may have been read before.
    rig.list(std::slice::from_ref(&listed));
    run(&mut rig, 50, Status::Critical);
    // Without a list no one knows: it may have been registered again.
    assert!(rig.removals.is_empty());
    rig.list(&[listed]);
    assert_eq!(rig.removals.len(), 1);
}

#[test]
fn a_service_registered_again_between_two_lists_starts_anew() {
    let mut rig = Rig::new();
    rig.list(&[short_lived("a")]);
    run(&mut rig, 62, Status::Critical);
    let (_, _, ticket, _) = rig.removals.pop_front().expect("asked");
    rig.engine
        .handle_deregistered(rig.now, ticket, Deregistered::Done);
    rig.drain();
    let mut again = short_lived("a");
    again.status = Status::Critical;
    again.token = Index(rig.now.as_millis() + 1);
    rig.list(&[again]);
    let reason = StateRestart::Reregistered;
    assert!(rig.kinds().contains(&EventKind::StateRestarted { reason }));
    run(&mut rig, 58, Status::Critical);
    assert!(rig.removals.is_empty());
    run(&mut rig, 5, Status::Critical);
    assert_eq!(rig.removals.len(), 1);
}

#[test]
fn a_service_that_went_before_the_answer_came_is_another_one_when_it_comes_back() {
    let mut rig = Rig::new();
    rig.list(&[short_lived("a")]);
    run(&mut rig, 62, Status::Critical);
    let (_, _, ticket, _) = rig.removals.pop_front().expect("asked");
    rig.list(&[]);
    rig.engine
        .handle_deregistered(rig.now, ticket, Deregistered::Done);
    rig.list(&[short_lived("a")]);
    run(&mut rig, 62, Status::Critical);
    assert_eq!(rig.removals.len(), 1);
}

#[test]
fn a_service_registered_again_is_noticed_by_a_write_too() {
    let mut rig = Rig::new();
    rig.list(&[short_lived("a")]);
    run(&mut rig, 62, Status::Critical);
    let (_, _, ticket, _) = rig.removals.pop_front().expect("asked");
    rig.engine
        .handle_deregistered(rig.now, ticket, Deregistered::Done);
    rig.drain();
    rig.results("P");
    let write = rig.take_write();
    let token = Index(rig.now.as_millis() + 1);
    rig.written(
        &write,
        Written::Stale {
            token,
            status: Status::Critical,
            output_hash: 0,
        },
    );
    assert_eq!(rig.view("a").reported(), Status::Critical);
    run(&mut rig, 58, Status::Critical);
    assert!(rig.removals.is_empty());
    run(&mut rig, 5, Status::Critical);
    assert_eq!(rig.removals.len(), 1);
}

#[test]
fn a_fault_of_our_own_removes_nothing() {
    let mut rig = Rig::new();
    rig.list(&[short_lived("a")]);
    run(&mut rig, 50, Status::Critical);
    run_with(&mut rig, 50, Outcome::Unprobed);
    assert!(rig.removals.is_empty());
    // A pause, likewise.
    run(&mut rig, 0, Status::Critical);
    rig.now = rig.now.saturating_add(secs(100));
    rig.engine.handle_pause(rig.now, secs(100));
    rig.drain();
    assert!(rig.removals.is_empty());
    run(&mut rig, 2, Status::Critical);
    assert_eq!(rig.removals.len(), 1);
}

#[test]
fn without_a_leader_nothing_is_removed() {
    let mut rig = Rig::new();
    rig.list(&[short_lived("a")]);
    run(&mut rig, 50, Status::Critical);
    rig.engine.handle_writable(rig.now, false);
    run(&mut rig, 50, Status::Critical);
    assert!(rig.removals.is_empty());
    rig.engine.handle_writable(rig.now, true);
    rig.drain();
    assert_eq!(rig.removals.len(), 1);
}
