//! What the catalog's list changes, and what it does not.

use std::sync::Arc;

use evenkeel_engine::{CatalogDiff, CheckId, EventKind, StateRestart, WriteReason, Written};
use evenkeel_threshold::{Observation, Outlook, Status};

use crate::rig::{Index, Rig, check, id, leaky, millis, secs};

fn seen(rig: &Rig, name: &str) -> u32 {
    match rig.view(name).outlook(rig.now) {
        Outlook::Counting { seen, .. } => seen,
        _ => 0,
    }
}

// P005, P080
#[test]
fn a_refresh_keeps_the_counts() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("FF");
    for n in 0..100 {
        let mut again = check("a");
        again.token = Index(10 + n);
        let diff = rig.list(&[again, check("b")]);
        assert_eq!((diff.restarted, diff.removed), (0, 0));
    }
    assert_eq!(seen(&rig, "a"), 2);
    rig.probes.retain(|(_, probed, ..)| *probed == id("a"));
    for _ in 0..10 {
        rig.pass(secs(1));
        rig.probes.retain(|(_, probed, ..)| *probed == id("a"));
    }
    rig.results("F");
    assert_eq!(rig.take_write().status, Status::Critical);
}

#[test]
fn a_change_of_any_one_field_restarts_exactly_once() {
    type Change = fn(&mut crate::rig::Check);
    let changes: [Change; 3] = [
        |check| check.definition = Arc::new("http://other"),
        |check| check.interval = secs(7),
        |check| check.timeout = secs(3),
    ];
    for change in changes {
        let mut rig = Rig::new();
        rig.list(&[check("a"), check("b")]);
        rig.results("FFFF");
        let mut changed = check("a");
        change(&mut changed);
        changed.token = Index(20);
        let diff = rig.list(&[changed.clone(), check("b")]);
        assert_eq!((diff.restarted, diff.unchanged), (1, 1));
        assert_eq!((seen(&rig, "a"), seen(&rig, "b")), (0, 2));
        let diff = rig.list(&[changed, check("b")]);
        assert_eq!((diff.restarted, diff.unchanged), (0, 2));
        let restarts = rig.kinds();
        let restarts = restarts
            .iter()
            .filter(|kind| **kind == EventKind::Restarted);
        assert_eq!(restarts.count(), 1);
    }
}

#[test]
fn the_finding_of_a_definition_out_of_force_is_ignored() {
    let mut rig = Rig::new();
    let mut changed = check("a");
    changed.strategy = leaky(0, 0);
    rig.list(&[changed.clone()]);
    let old = rig.take_probe();
    changed.definition = Arc::new("http://other");
    rig.list(&[changed]);
    // Still one prober per check: the old probe has not ended yet.
    rig.pass(secs(5));
    assert!(rig.probes.is_empty());
    rig.answer(
        old,
        evenkeel_engine::Outcome::Observed(Status::Critical.into()),
        "down",
    );
    assert_eq!(rig.view("a").reported(), Status::Passing);
    assert_eq!(rig.engine.counters().outdated_findings, 1);
    rig.pass(secs(5));
    let (_, _, _, definition) = rig.probes[0];
    assert_eq!(definition, "http://other");
}

// P011
#[test]
fn definitions_rewritten_all_the_time_do_not_stop_the_probes() {
    let mut rig = Rig::new();
    let targets: [&'static str; 2] = ["http://a", "http://b"];
    let mut started = 0;
    let mut running = Vec::new();
    for round in 0..600 {
        let checks: Vec<_> = (0..20)
            .map(|n| {
                let mut check = check(&n.to_string());
                check.interval = secs(1);
                check.definition = Arc::new(targets[round % 2]);
                check.token = Index(10 + round as u64);
                check
            })
            .collect();
        rig.list(&checks);
        rig.pass(millis(100));
        started += rig.probes.len();
        // A probe takes 200 ms.
        for (_, _, ticket, _) in running.drain(..) {
            rig.answer(
                ticket,
                evenkeel_engine::Outcome::Observed(Observation::counted(Status::Passing)),
                "fine",
            );
        }
        running.extend(rig.probes.drain(..));
    }
    // 20 checks for 60 s, spread over the first second.
    assert!((1180..=1220).contains(&started), "{started}");
}

// P012
#[test]
fn refreshes_while_results_arrive_start_no_second_prober() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    let mut per_interval = 0;
    for n in 0..1000 {
        if n % 10 == 0 {
            assert!(per_interval <= 1);
            per_interval = 0;
        }
        let tickets: Vec<_> = rig
            .probes
            .drain(..)
            .map(|(_, _, ticket, _)| ticket)
            .collect();
        rig.list(&[check("a")]);
        per_interval += tickets.len();
        for ticket in tickets {
            rig.answer(
                ticket,
                evenkeel_engine::Outcome::Observed(Status::Passing.into()),
                "fine",
            );
            rig.list(&[check("a")]);
        }
        rig.pass(secs(1));
    }
    assert_eq!(rig.engine.counters().probes, 101);
}

#[test]
fn a_changed_threshold_keeps_the_counts_and_the_catalogs_age_does_not_matter() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("FF");
    let mut lower = check("a");
    lower.strategy = leaky(1, 0);
    // Metadata changed; the check's own entry did not, and may come from a
    // server that lags.
    lower.token = Index(9);
    let diff = rig.list(&[lower.clone()]);
    assert_eq!(
        (diff.rethresholded, diff.restarted, diff.unchanged),
        (1, 0, 0)
    );
    assert_eq!(rig.view("a").reported(), Status::Passing);
    assert!(rig.batches.is_empty());
    assert_eq!(rig.list(&[lower]).rethresholded, 0);
    rig.results("F");
    assert_eq!(rig.take_write().status, Status::Critical);
}

#[test]
fn a_changed_deregister_time_restarts_nothing() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("FF");
    let mut changed = check("a");
    changed.deregister_after = Some(secs(60));
    changed.token = Index(20);
    assert!(rig.list(&[changed]).is_empty());
    assert_eq!(seen(&rig, "a"), 2);
    assert_eq!(rig.view("a").deregister_after(), Some(secs(60)));
}

// consul-esm's race: the list was read before our write and arrives after it.
#[test]
fn a_list_older_than_our_write_is_not_believed() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("FFF");
    let write = rig.take_write();
    rig.written(&write, Written::Done(Index(11)));
    rig.list(&[check("a")]);
    assert_eq!(rig.view("a").written(), Status::Critical);
    assert!(!rig.view("a").is_drifted());
    // Nor its definition.
    let mut old = check("a");
    old.definition = Arc::new("http://long ago");
    assert_eq!(rig.list(&[old]).restarted, 0);
    assert_eq!(rig.engine.counters().stale_entries, 2);
    rig.results("FF");
    assert!(rig.batches.is_empty());
}

#[test]
fn while_a_write_is_on_its_way_the_list_is_judged_later() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("FFF");
    let write = rig.take_write();
    // Our own write, seen in the list before its answer.
    let mut ours = check("a");
    ours.status = Status::Critical;
    ours.token = Index(11);
    rig.list(&[ours]);
    rig.written(&write, Written::Done(Index(11)));
    assert_eq!(rig.engine.counters().drifts, 0);

    rig.results("PP");
    let write = rig.take_write();
    // Someone else's, after ours; the answer to ours comes last, and no list
    // tells it a second time.
    let mut theirs = check("a");
    theirs.status = Status::Warning;
    theirs.token = Index(13);
    rig.list(&[theirs]);
    assert_eq!(rig.engine.counters().drifts, 0);
    rig.written(&write, Written::Done(Index(12)));
    assert_eq!(rig.engine.counters().drifts, 1);
    assert_eq!(rig.view("a").written(), Status::Warning);
    rig.results("P");
    let write = rig.take_write();
    assert_eq!((write.status, write.token), (Status::Passing, Index(13)));
}

// P018
#[test]
fn an_authoritative_empty_list_removes_all_and_a_kept_check_goes_on() {
    let mut rig = Rig::new();
    rig.list(&[check("a"), check("b")]);
    rig.results("FF");
    let diff = rig.list_keeping(&[], &[id("a")]);
    assert_eq!(diff.removed, 1);
    assert!(rig.engine.check(&id("b")).is_none());
    rig.results("FF");
    assert_eq!(rig.take_write().id, id("a"));
    assert_eq!(rig.list(&[]).removed, 1);
    assert!(rig.engine.is_empty());
    rig.pass(secs(100));
    assert!(rig.probes.is_empty());
    assert!(rig.engine.poll_timeout().is_none_or(|at| at > rig.now));
}

// P019
#[test]
fn a_check_that_comes_back_starts_from_nothing() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("FFF");
    let write = rig.take_write();
    rig.written(&write, Written::Done(Index(11)));
    rig.list(&[]);
    let mut again = check("a");
    again.status = Status::Passing;
    again.token = Index(30);
    rig.list(&[again]);
    assert_eq!(rig.view("a").reported(), Status::Passing);
    assert_eq!(rig.view("a").last_transition(), None);
    rig.results("FFF");
    assert_eq!(rig.take_write().status, Status::Critical);
}

#[test]
fn a_check_that_comes_back_while_its_old_probe_and_write_are_on_their_way() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("FFF");
    let write = rig.take_write();
    rig.pass(secs(10));
    let old = rig.take_probe();
    rig.list(&[]);
    let mut again = check("a");
    again.token = Index(30);
    again.strategy = leaky(0, 0);
    rig.list(&[again]);
    rig.pass(secs(1));
    assert!(rig.probes.is_empty(), "at most one prober per check");
    rig.answer(
        old,
        evenkeel_engine::Outcome::Observed(Status::Critical.into()),
        "down",
    );
    assert_eq!(rig.view("a").reported(), Status::Passing);
    rig.results("F");
    assert!(rig.batches.is_empty(), "at most one write of a check");
    rig.written(&write, Written::Gone);
    let write = rig.take_write();
    assert_eq!((write.status, write.token), (Status::Critical, Index(30)));
}

#[test]
fn before_a_probe_the_catalog_is_right() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    let mut edited = check("a");
    edited.status = Status::Critical;
    edited.token = Index(12);
    rig.list(&[edited]);
    assert_eq!(rig.view("a").reported(), Status::Critical);
    assert_eq!(rig.engine.counters().drifts, 0);
    let restart = EventKind::StateRestarted {
        reason: StateRestart::CatalogDiffers {
            catalog: Status::Critical,
            ours: Status::Passing,
        },
    };
    assert!(rig.kinds().contains(&restart));
    rig.results("P");
    assert!(rig.batches.is_empty());
    rig.results("P");
    assert_eq!(rig.take_write().status, Status::Passing);
}

// P006, P007
#[test]
fn drift_is_put_right_at_the_next_result_and_does_not_disturb_the_counts() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("PFF");
    let mut edited = check("a");
    edited.status = Status::Critical;
    edited.token = Index(12);
    rig.list(&[edited]);
    assert!(rig.view("a").is_drifted());
    assert_eq!(seen(&rig, "a"), 2);
    assert!(rig.batches.is_empty());
    rig.results("P");
    let write = rig.take_write();
    assert_eq!(
        (write.status, write.reason),
        (Status::Passing, WriteReason::Drift)
    );
    assert_eq!(write.token, Index(12));
    rig.written(&write, Written::Done(Index(13)));
    assert!(!rig.view("a").is_drifted());
    assert_eq!(seen(&rig, "a"), 1);
}

#[test]
fn two_writers_of_different_minds_write_once_per_interval() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("P");
    let mut index = 20;
    let mut writes = 0;
    // The other one insists twice per second, for 100 s.
    for _ in 0..200 {
        index += 1;
        let mut edited = check("a");
        edited.status = Status::Critical;
        edited.token = Index(index);
        rig.list(&[edited]);
        rig.pass(millis(500));
        for (_, _, ticket, _) in rig.probes.drain(..).collect::<Vec<_>>() {
            rig.answer(
                ticket,
                evenkeel_engine::Outcome::Observed(Status::Passing.into()),
                "fine",
            );
        }
        for (_, batch) in rig.batches.drain(..).collect::<Vec<_>>() {
            for write in batch {
                writes += 1;
                index += 1;
                rig.written(&write, Written::Done(Index(index)));
            }
        }
    }
    assert!((9..=11).contains(&writes), "{writes}");
}

#[test]
fn the_first_of_two_entries_of_one_check_counts() {
    let mut rig = Rig::new();
    let mut second = check("a");
    second.interval = secs(99);
    let diff = rig.list(&[check("a"), second.clone()]);
    let added = CatalogDiff {
        added: 1,
        ..CatalogDiff::default()
    };
    assert_eq!(diff, added);
    assert_eq!(rig.list(&[check("a"), second]).restarted, 0);
    assert_eq!(rig.view("a").interval(), secs(10));
    assert_eq!(rig.engine.counters().duplicate_entries, 2);
}

// P039
#[test]
fn the_same_ids_elsewhere_are_other_checks() {
    let ids = [
        CheckId::new("", "", "a", "web", "c"),
        CheckId::new("", "", "b", "web", "c"),
        CheckId::new("", "ns", "a", "web", "c"),
        CheckId::new("pt", "ns", "a", "web", "c"),
    ];
    let checks = ids.clone().map(|id| {
        let mut check = check("c");
        check.id = id;
        check.strategy = leaky(0, 0);
        check
    });
    let mut rig = Rig::new();
    assert_eq!(rig.list(&checks).added, 4);
    rig.results("PFPP");
    let write = rig.take_write();
    assert_eq!(write.id, ids[1]);
}
