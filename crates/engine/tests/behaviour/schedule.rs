//! When probes start.

use std::collections::BTreeMap;

use evenkeel_engine::{EventKind, Outcome, Written};
use evenkeel_threshold::{Status, Timestamp};

use crate::rig::{Index, Rig, check, millis, secs, text};

/// Answers every probe at once for this long, and gives when each started.
fn starts(rig: &mut Rig, time: core::time::Duration) -> Vec<(Timestamp, String)> {
    let until = rig.now.saturating_add(time);
    let mut starts = Vec::new();
    loop {
        for (at, id, ticket, _) in rig.probes.drain(..).collect::<Vec<_>>() {
            starts.push((at, id.check_id().to_owned()));
            let outcome = Outcome::Observed(Status::Passing.into());
            rig.answer(ticket, outcome, text(Status::Passing));
        }
        match rig.engine.poll_timeout() {
            Some(at) if at <= until => rig.pass(at.saturating_since(rig.now)),
            _ => break,
        }
    }
    rig.pass(until.saturating_since(rig.now));
    starts
}

#[test]
fn a_newcomer_is_probed_at_once_and_then_at_its_phase() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    let begin = rig.now;
    let starts = starts(&mut rig, secs(45));
    let offsets: Vec<_> = starts
        .iter()
        .map(|(at, _)| at.saturating_since(begin).as_secs())
        .collect();
    assert_eq!(offsets, [0, 10, 20, 30, 40]);
}

// P110
#[test]
fn many_newcomers_are_spread_over_their_interval_and_stay_so() {
    let checks: Vec<_> = (0..5000).map(|n| check(&n.to_string())).collect();
    let mut rig = Rig::new();
    rig.list(&checks);
    let begin = rig.now;
    let first = starts(&mut rig, secs(30));
    let mut next = rig.restarted();
    next.list(&checks);
    let second = starts(&mut next, secs(30));
    for starts in [first, second] {
        let mut per_second = BTreeMap::new();
        for (at, _) in &starts {
            *per_second
                .entry(at.saturating_since(begin).as_secs())
                .or_insert(0) += 1;
        }
        assert!(per_second.values().all(|&n| n <= 750), "{per_second:?}");
        assert!(
            (14_900..=15_100).contains(&starts.len()),
            "{}",
            starts.len()
        );
    }
}

#[test]
fn a_few_newcomers_follow_at_twenty_per_second() {
    let checks: Vec<_> = (0..5).map(|n| check(&n.to_string())).collect();
    let mut rig = Rig::new();
    rig.list(&checks);
    let begin = rig.now;
    let offsets: Vec<_> = starts(&mut rig, secs(1))
        .iter()
        .map(|(at, _)| at.saturating_since(begin).as_millis())
        .collect();
    assert_eq!(offsets, [0, 50, 100, 150, 200]);
}

// P044
#[test]
fn an_empty_interval_is_thirty_seconds_and_a_short_one_is_one() {
    let mut empty = check("empty");
    empty.interval = secs(0);
    let mut short = check("short");
    short.interval = millis(100);
    let mut rig = Rig::new();
    rig.list(&[empty, short]);
    let starts = starts(&mut rig, secs(60));
    let count = |name: &str| starts.iter().filter(|(_, id)| id == name).count();
    assert_eq!(count("empty"), 3);
    assert_eq!(count("short"), 60);
}

#[test]
fn the_period_does_not_depend_on_how_long_a_probe_takes() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    let begin = rig.now;
    for tick in 0..20 {
        let (at, _, ticket, _) = rig.probes.pop_front().expect("due");
        assert_eq!(at.saturating_since(begin), secs(10 * tick));
        rig.pass(millis(9_900));
        rig.answer(ticket, Outcome::Observed(Status::Passing.into()), "fine");
        rig.pass(millis(100));
    }
    assert_eq!(rig.engine.counters().ticks_busy, 0);
}

#[test]
fn a_probe_that_still_runs_at_the_tick_leaves_it_out_and_keeps_the_phase() {
    let mut slow = check("a");
    slow.timeout = secs(20);
    let mut rig = Rig::new();
    rig.list(&[slow]);
    let begin = rig.now;
    let ticket = rig.take_probe();
    rig.pass(secs(13));
    assert!(rig.probes.is_empty());
    rig.answer(ticket, Outcome::Observed(Status::Passing.into()), "fine");
    assert!(rig.probes.is_empty());
    rig.pass(secs(7));
    let (at, ..) = rig.probes[0];
    assert_eq!(at.saturating_since(begin), secs(20));
    assert_eq!(rig.engine.counters().ticks_busy, 1);
}

#[test]
fn late_ticks_are_left_out_and_counted_not_queued() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    let begin = rig.now;
    rig.results("P");
    // The caller comes back only after 57 s: ticks at 10, 20, 30, 40 and 50.
    rig.now = rig.now.saturating_add(secs(57));
    rig.drain();
    assert_eq!(rig.probes.len(), 1);
    assert_eq!(rig.engine.counters().ticks_late, 4);
    rig.results("P");
    rig.pass(secs(3));
    assert_eq!(rig.probes[0].0.saturating_since(begin), secs(60));
}

// P014, P015
#[test]
fn a_probe_that_never_answers_is_given_up_and_the_check_probed_again() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    let lost = rig.take_probe();
    rig.pass(secs(6));
    assert!(rig.view("a").is_probing());
    // 2 s timeout and 5 s margin.
    rig.pass(secs(1));
    assert!(!rig.view("a").is_probing());
    rig.pass(secs(3));
    let again = rig.take_probe();
    let said = rig.kinds();
    let said = said.iter().filter(|kind| **kind == EventKind::ProbeLost);
    assert_eq!(said.count(), 1);
    // The lost one answers after all.
    rig.answer(lost, Outcome::Observed(Status::Critical.into()), "down");
    assert_eq!(rig.engine.counters().late_tickets, 1);
    assert_eq!(rig.view("a").last_observation(), None);
    rig.answer(again, Outcome::Observed(Status::Passing.into()), "fine");
    assert!(rig.view("a").last_observation().is_some());
}

// P104
#[test]
fn a_pause_counts_for_nothing_and_is_followed_by_no_burst() {
    let checks: Vec<_> = (0..200).map(|n| check(&n.to_string())).collect();
    let mut rig = Rig::new();
    rig.list(&checks);
    starts(&mut rig, secs(21));
    rig.pass(secs(1));
    let running: Vec<_> = rig
        .probes
        .drain(..)
        .map(|(_, _, ticket, _)| ticket)
        .collect();
    assert!(!running.is_empty());
    rig.now = rig.now.saturating_add(secs(60));
    rig.engine.handle_pause(rig.now, secs(60));
    rig.drain();
    assert!(rig.probes.is_empty(), "no burst");
    for ticket in running {
        rig.answer(
            ticket,
            Outcome::Observed(Status::Critical.into()),
            "timeout",
        );
    }
    assert_eq!(rig.engine.counters().observed(Status::Critical), 0);
    let begin = rig.now;
    let starts = starts(&mut rig, secs(10));
    assert!((199..=201).contains(&starts.len()), "{}", starts.len());
    let soon = starts
        .iter()
        .filter(|(at, _)| at.saturating_since(begin) < secs(1));
    assert!(soon.count() <= 30);
    assert!(rig.batches.is_empty());
}

// P137
#[test]
fn a_long_interval_survives_restarts_that_come_more_often() {
    let mut slow = check("a");
    slow.interval = secs(600);
    let mut rig = Rig::new();
    rig.list(&[slow.clone()]);
    let mut begins: Vec<_> = starts(&mut rig, secs(300));
    for _ in 0..12 {
        rig = rig.restarted();
        rig.list(&[slow.clone()]);
        begins.extend(starts(&mut rig, secs(300)));
    }
    assert_eq!(begins.len(), 7, "{begins:?}");
    for pair in begins.windows(2) {
        assert_eq!(pair[1].0.saturating_since(pair[0].0), secs(600));
    }
}

#[test]
fn after_shutdown_nothing_is_probed_and_running_probes_still_count() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("FF");
    rig.pass(secs(10));
    let ticket = rig.take_probe();
    rig.engine.handle_shutdown(rig.now);
    assert!(!rig.engine.idle());
    rig.answer(ticket, Outcome::Observed(Status::Critical.into()), "down");
    let write = rig.take_write();
    assert!(!rig.engine.idle());
    rig.written(&write, Written::Done(Index(11)));
    assert!(rig.engine.idle());
    rig.pass(secs(100));
    assert!(rig.probes.is_empty());
}
