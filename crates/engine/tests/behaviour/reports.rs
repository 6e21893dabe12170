//! Results that no probe was asked for.

use evenkeel_engine::{Finding, Outcome};
use evenkeel_threshold::Status;

use crate::rig::{Rig, check, id, secs, text};

fn report(rig: &mut Rig, name: &str, status: Status) -> bool {
    let finding = Finding {
        outcome: Outcome::Observed(status.into()),
        output: text(status).to_owned(),
    };
    let known = rig.engine.handle_report(rig.now, &id(name), finding);
    rig.drain();
    known
}

#[test]
fn reports_count_as_the_results_of_probes_do() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    for _ in 0..2 {
        assert!(report(&mut rig, "a", Status::Critical));
        assert_eq!(rig.view("a").reported(), Status::Passing);
    }
    report(&mut rig, "a", Status::Critical);
    assert_eq!(rig.view("a").reported(), Status::Critical);
    rig.await_batch();
    assert_eq!(rig.take_write().status, Status::Critical);
}

#[test]
fn while_reports_come_no_probe_is_due_and_then_one_interval_after_the_last() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.pass(secs(9));
    rig.probes.clear();
    for _ in 0..20 {
        report(&mut rig, "a", Status::Passing);
        rig.pass(secs(9));
        assert!(rig.probes.is_empty());
    }
    let last = rig.now.saturating_add(secs(1));
    rig.pass(secs(2));
    let (at, asked, ..) = rig.probes.pop_front().unwrap();
    assert_eq!((at, asked), (last, id("a")));
}

#[test]
fn a_report_on_what_is_not_watched_changes_nothing() {
    let mut rig = Rig::new();
    assert!(!report(&mut rig, "a", Status::Critical));
    rig.list(&[check("a")]);
    rig.list(&[]);
    assert!(!report(&mut rig, "a", Status::Critical));
    assert_eq!(rig.engine.counters().observed(Status::Critical), 0);
}
