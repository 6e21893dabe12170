//! From a decided status to the catalog.

use evenkeel_engine::{EventKind, Outcome, Settings, WriteReason, Written, output_hash};
use evenkeel_threshold::Status;

use crate::rig::{Check, Index, Rig, check, id, leaky, millis, secs, text};

/// Flips at once.
fn undamped(name: &str) -> Check {
    let mut check = check(name);
    check.strategy = leaky(0, 0);
    check
}

fn many(count: usize) -> Vec<Check> {
    (0..count).map(|n| undamped(&n.to_string())).collect()
}

/// Answers whatever probes are out.
fn answer_all(rig: &mut Rig, status: Status) {
    for (_, _, ticket, _) in rig.probes.drain(..).collect::<Vec<_>>() {
        rig.answer(ticket, Outcome::Observed(status.into()), text(status));
    }
}

#[test]
fn a_change_is_written_at_once_and_only_when_the_results_justify_it() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.results("PFF");
    assert!(rig.batches.is_empty());
    rig.results("F");
    let write = rig.take_write();
    assert_eq!(
        (write.status, write.reason),
        (Status::Critical, WriteReason::Status)
    );
    assert_eq!((&*write.output, write.token), ("down", Index(10)));
    rig.written(&write, Written::Done(Index(11)));
    rig.results("FPF");
    assert!(rig.batches.is_empty());
    assert_eq!(rig.view("a").written(), Status::Critical);
    rig.results("PP");
    assert_eq!(rig.take_write().status, Status::Passing);
}

#[test]
fn the_first_change_goes_at_once_and_the_next_ones_together_after_the_gap() {
    let mut rig = Rig::new();
    rig.list(&many(30));
    rig.pass(secs(2));
    let begin = rig.now;
    answer_all(&mut rig, Status::Critical);
    assert_eq!(rig.batches.len(), 1);
    assert_eq!(rig.batches[0].1.len(), 1);
    rig.pass(millis(99));
    assert_eq!(rig.batches.len(), 1);
    rig.pass(millis(1));
    assert_eq!(rig.batches.len(), 2);
    assert_eq!(rig.batches[1].0.saturating_since(begin), millis(100));
    assert_eq!(rig.batches[1].1.len(), 29);
}

#[test]
fn a_full_batch_does_not_wait_and_no_more_than_four_are_on_their_way() {
    let mut rig = Rig::new();
    rig.list(&many(500));
    for _ in 0..30 {
        rig.pass(secs(1));
    }
    answer_all(&mut rig, Status::Critical);
    let sizes: Vec<_> = rig.batches.iter().map(|(_, batch)| batch.len()).collect();
    assert_eq!(sizes, [1, 64, 64, 64]);
    rig.pass(secs(1));
    assert_eq!(rig.batches.len(), 4);
    // One of them is answered, in part and then whole.
    let (_, mut second) = rig.batches.remove(1).expect("sent");
    let last = second.pop().expect("64");
    for write in &second {
        rig.written(write, Written::Done(Index(11)));
    }
    assert_eq!(rig.batches.len(), 3);
    rig.written(&last, Written::Done(Index(11)));
    assert_eq!(rig.batches.len(), 4);
    assert_eq!(rig.batches[3].1.len(), 64);
}

#[test]
fn of_one_check_one_write_is_on_its_way_and_the_latest_status_follows() {
    let mut rig = Rig::new();
    rig.list(&[undamped("a")]);
    rig.results("F");
    let write = rig.take_write();
    rig.results("PFW");
    rig.pass(secs(5));
    assert!(rig.batches.is_empty());
    rig.written(&write, Written::Done(Index(11)));
    let write = rig.take_write();
    assert_eq!((write.status, write.token), (Status::Warning, Index(11)));
    assert_eq!(&*write.output, "slow");
}

#[test]
fn a_status_that_is_back_before_it_was_sent_is_not_sent() {
    let mut rig = Rig::new();
    rig.list(&[undamped("a")]);
    rig.engine.handle_writable(rig.now, false);
    rig.results("FP");
    rig.engine.handle_writable(rig.now, true);
    rig.pass(secs(1));
    assert!(rig.batches.is_empty());
    assert!(rig.engine.idle() || rig.view("a").is_probing());

    // While another is on its way, likewise.
    rig.results("F");
    let write = rig.take_write();
    rig.results("PF");
    rig.written(&write, Written::Done(Index(11)));
    rig.pass(secs(1));
    assert!(rig.batches.is_empty());
}

#[test]
fn a_failed_write_is_sent_again_later_and_later() {
    let mut rig = Rig::new();
    let mut slow = undamped("a");
    slow.interval = secs(3600);
    rig.list(&[slow]);
    rig.results("F");
    let mut delays = Vec::new();
    for _ in 0..10 {
        let write = rig.take_write();
        assert_eq!((write.status, &*write.output), (Status::Critical, "down"));
        let failed = rig.now;
        rig.written(&write, Written::Failed);
        rig.await_batch();
        delays.push(rig.batches[0].0.saturating_since(failed));
    }
    assert!(
        delays[0] >= millis(180) && delays[0] <= millis(320),
        "{delays:?}"
    );
    assert!(delays.windows(2).take(4).all(|pair| pair[0] < pair[1]));
    assert!(
        delays.iter().all(|&delay| delay <= millis(12_510)),
        "{delays:?}"
    );
    let kinds = rig.kinds();
    let said = kinds
        .iter()
        .filter(|kind| matches!(kind, EventKind::WriteFailed { refused: false }));
    assert_eq!(said.count(), 1, "not one line per try");
    assert_eq!(rig.view("a").reported(), Status::Critical);
}

#[test]
fn a_retry_carries_the_latest_status() {
    let mut rig = Rig::new();
    rig.list(&[undamped("a")]);
    rig.results("F");
    let write = rig.take_write();
    rig.results("W");
    rig.written(&write, Written::Failed);
    rig.pass(secs(1));
    let write = rig.take_write();
    assert_eq!((write.status, &*write.output), (Status::Warning, "slow"));
}

#[test]
fn a_write_that_is_never_answered_is_sent_again() {
    let mut rig = Rig::new();
    let mut slow = undamped("a");
    slow.interval = secs(3600);
    rig.list(&[slow]);
    rig.results("F");
    let lost = rig.take_write();
    rig.pass(secs(61));
    let write = rig.take_write();
    assert_eq!(write.status, Status::Critical);
    assert_eq!(rig.engine.counters().lost_writes, 1);
    // The answer comes after all, and then once more.
    rig.written(&lost, Written::Done(Index(11)));
    rig.written(&write, Written::Done(Index(12)));
    rig.written(&write, Written::Done(Index(13)));
    assert_eq!(rig.engine.counters().late_tickets, 2);
    assert_eq!(*rig.view("a").token(), Index(12));
}

// P020, P022
#[test]
fn every_write_of_a_transaction_that_lost_a_race_is_sent_again() {
    let settings = Settings {
        batch_gap: secs(1),
        ..Settings::default()
    };
    let mut rig = Rig::with(settings);
    rig.list(&many(11));
    rig.pass(secs(2));
    answer_all(&mut rig, Status::Critical);
    let (_, first) = rig.batches.pop_front().expect("the first goes at once");
    rig.written(&first[0], Written::Done(Index(11)));
    rig.pass(secs(1));
    let (_, batch) = rig.batches.pop_front().expect("ten");
    assert_eq!(batch.len(), 10);
    for (n, write) in batch.iter().enumerate() {
        rig.written(
            write,
            Written::Stale {
                // The user's edit of one of them; the others were rolled back.
                token: Index(if n == 3 { 12 } else { 10 }),
                status: Status::Passing,
                output_hash: output_hash("fine"),
            },
        );
    }
    let counters = rig.engine.counters();
    assert_eq!((counters.lost_races, counters.rolled_back), (1, 9));
    rig.pass(secs(1));
    let (_, again) = rig.batches.pop_front().expect("all again");
    assert_eq!(again.len(), 10);
    let edited = again.iter().find(|write| write.id == batch[3].id);
    assert_eq!(edited.expect("in it").token, Index(12));
    assert!(again.iter().all(|write| write.status == Status::Critical));
}

// P021
#[test]
fn a_race_lost_again_and_again_is_not_a_busy_loop() {
    let mut rig = Rig::new();
    rig.list(&[undamped("a")]);
    rig.results("F");
    let begin = rig.now;
    let mut tries = 0;
    while rig.now.saturating_since(begin) < secs(9) {
        if let Some((_, batch)) = rig.batches.pop_front() {
            tries += 1;
            rig.written(
                &batch[0],
                Written::Stale {
                    token: Index(10 + tries),
                    status: Status::Passing,
                    output_hash: 0,
                },
            );
        }
        rig.pass(millis(10));
    }
    assert!((4..=9).contains(&tries), "{tries}");
}

#[test]
fn a_race_lost_to_the_same_status_needs_no_write() {
    let mut rig = Rig::new();
    rig.list(&[undamped("a")]);
    rig.results("F");
    let write = rig.take_write();
    rig.written(
        &write,
        Written::Stale {
            token: Index(12),
            status: Status::Critical,
            output_hash: 0,
        },
    );
    rig.results("FF");
    assert!(rig.batches.is_empty());
    assert_eq!(rig.view("a").written(), Status::Critical);
}

#[test]
fn a_write_to_an_entry_that_is_gone_waits_for_the_catalog() {
    let mut rig = Rig::new();
    rig.list(&[undamped("a")]);
    rig.results("F");
    let write = rig.take_write();
    rig.written(&write, Written::Gone);
    rig.pass(secs(9));
    assert!(rig.batches.is_empty());
    let mut again = undamped("a");
    again.token = Index(20);
    rig.list(&[again]);
    let write = rig.take_write();
    assert_eq!((write.status, write.token), (Status::Critical, Index(20)));
    rig.written(&write, Written::Gone);
    rig.list(&[]);
    rig.pass(secs(100));
    assert!(rig.batches.is_empty());
}

#[test]
fn a_refused_write_is_tried_again_slowly() {
    let mut rig = Rig::new();
    rig.list(&[undamped("a")]);
    rig.results("F");
    let write = rig.take_write();
    rig.written(&write, Written::Refused);
    assert!(
        rig.kinds()
            .contains(&EventKind::WriteFailed { refused: true })
    );
    for _ in 0..5 {
        rig.results("F");
    }
    assert!(rig.batches.is_empty());
    rig.pass(secs(20));
    assert_eq!(rig.take_write().status, Status::Critical);
}

#[test]
fn without_a_leader_writes_are_held_and_afterwards_all_go_at_once() {
    let mut rig = Rig::new();
    rig.list(&many(300));
    rig.engine.handle_writable(rig.now, false);
    for _ in 0..60 {
        rig.pass(secs(1));
        answer_all(&mut rig, Status::Critical);
    }
    assert!(rig.batches.is_empty());
    assert!(!rig.engine.idle());
    assert_eq!(rig.view("7").reported(), Status::Critical);
    rig.engine.handle_writable(rig.now, true);
    rig.drain();
    let begin = rig.now;
    let mut written = 0;
    while written < 300 {
        assert!(rig.now.saturating_since(begin) < secs(9));
        while let Some((_, batch)) = rig.batches.pop_front() {
            for write in batch {
                written += 1;
                assert_eq!(write.status, Status::Critical);
                rig.written(&write, Written::Done(Index(11)));
            }
        }
        rig.pass(millis(10));
    }
    assert!(rig.now.saturating_since(begin) < secs(1));
}

#[test]
fn a_write_that_failed_before_the_leader_was_missed_does_not_wait_when_it_is_back() {
    let mut rig = Rig::new();
    let mut slow = undamped("a");
    slow.interval = secs(3600);
    rig.list(&[slow]);
    rig.results("F");
    for _ in 0..6 {
        let (_, batch) = rig.batches.pop_front().expect("again");
        rig.written(&batch[0], Written::Failed);
        rig.await_batch();
    }
    let (_, batch) = rig.batches.pop_front().expect("again");
    rig.written(&batch[0], Written::Failed);
    rig.engine.handle_writable(rig.now, false);
    rig.pass(millis(500));
    rig.engine.handle_writable(rig.now, true);
    rig.drain();
    assert_eq!(rig.take_write().status, Status::Critical);
}

#[test]
fn a_leader_that_is_back_does_not_hurry_what_was_refused() {
    for refusal in [Written::Refused, Written::Gone] {
        let mut rig = Rig::new();
        let mut slow = undamped("a");
        slow.interval = secs(3600);
        rig.list(&[slow]);
        rig.results("F");
        let write = rig.take_write();
        let refused = rig.now;
        rig.written(&write, refusal);
        for _ in 0..20 {
            rig.engine.handle_writable(rig.now, false);
            rig.pass(secs(1));
            rig.engine.handle_writable(rig.now, true);
            rig.pass(secs(1));
        }
        assert!(rig.batches.is_empty());
        rig.await_batch();
        assert!(rig.now.saturating_since(refused) >= secs(60));
    }
}

#[test]
fn what_can_be_written_all_the_time_keeps_its_delay() {
    let mut rig = Rig::new();
    let mut slow = undamped("a");
    slow.interval = secs(3600);
    rig.list(&[slow]);
    rig.results("F");
    let begin = rig.now;
    let mut tries = 0;
    while rig.now.saturating_since(begin) < secs(10) {
        while let Some((_, batch)) = rig.batches.pop_front() {
            tries += 1;
            rig.written(&batch[0], Written::Failed);
            // What a shell hears that asks for the leader after a failure.
            rig.engine.handle_writable(rig.now, true);
            rig.drain();
        }
        rig.pass(millis(10));
    }
    assert!((4..=7).contains(&tries), "{tries}");
}

// P084, P008
#[test]
fn a_text_that_always_changes_is_written_once_per_period() {
    let mut rig = Rig::new();
    let mut fast = check("a");
    fast.interval = secs(1);
    rig.list(&[fast]);
    let begin = rig.now;
    let mut writes = Vec::new();
    for n in 0..10_000 {
        let ticket = rig.take_probe();
        rig.answer(
            ticket,
            Outcome::Observed(Status::Passing.into()),
            &format!("it is {n}"),
        );
        while let Some((at, batch)) = rig.batches.pop_front() {
            for write in batch {
                assert_eq!(
                    (write.status, write.reason),
                    (Status::Passing, WriteReason::Output)
                );
                // The state at the time of sending, not at the time of noticing.
                assert_eq!(&*write.output, format!("it is {n}"));
                writes.push(at.saturating_since(begin).as_secs());
                rig.written(&write, Written::Done(Index(11 + n)));
            }
        }
        rig.pass(secs(1));
    }
    assert!(
        (30..=1 + 10_000 / 300).contains(&writes.len()),
        "{writes:?}"
    );
    assert!(writes.windows(2).all(|pair| pair[1] - pair[0] >= 300));
}

#[test]
fn a_text_is_not_written_if_it_is_the_old_one_when_its_time_comes() {
    let mut rig = Rig::new();
    rig.list(&[check("a")]);
    rig.probe_with(Outcome::Observed(Status::Passing.into()), "other");
    for _ in 0..60 {
        rig.results("P");
    }
    assert!(rig.batches.is_empty());
}

#[test]
fn a_text_that_speaks_against_the_status_is_not_written() {
    let mut rig = Rig::new();
    let mut patient = check("a");
    patient.strategy = leaky(1000, 1000);
    rig.list(&[patient]);
    for n in 0..100 {
        rig.probe_with(Outcome::Observed(Status::Critical.into()), &n.to_string());
    }
    assert!(rig.batches.is_empty());
}

#[test]
fn a_failed_text_waits_for_a_newer_one() {
    let settings = Settings {
        output_period: secs(5),
        ..Settings::default()
    };
    let mut rig = Rig::with(settings);
    rig.list(&[check("a")]);
    for text in ["one", "two"] {
        rig.probe_with(Outcome::Observed(Status::Passing.into()), text);
    }
    let write = rig.take_write();
    assert_eq!(&*write.output, "two");
    rig.written(&write, Written::Failed);
    rig.pass(secs(3));
    assert!(rig.batches.is_empty());
    rig.probe_with(Outcome::Observed(Status::Passing.into()), "three");
    assert_eq!(&*rig.take_write().output, "three");
}

#[test]
fn a_change_of_status_takes_the_place_of_a_text_that_waits() {
    let settings = Settings {
        output_period: secs(5),
        batch_gap: secs(60),
        ..Settings::default()
    };
    let mut rig = Rig::with(settings);
    rig.list(&[undamped("other"), undamped("a")]);
    rig.results("FP");
    let other = rig.take_write();
    rig.written(&other, Written::Done(Index(11)));
    for text in ["one", "two"] {
        rig.results("F");
        rig.probe_with(Outcome::Observed(Status::Passing.into()), text);
    }
    rig.results("FF");
    rig.pass(secs(60));
    let write = rig.take_write();
    assert_eq!(write.id, id("a"));
    assert_eq!(
        (write.status, write.reason),
        (Status::Critical, WriteReason::Status)
    );
    assert_eq!(&*write.output, "down");
}

// P025, P042: half of 1,000 checks flip; writes are batched, and soon.
#[test]
fn five_hundred_flips_are_written_within_two_seconds_in_few_batches() {
    let mut rig = Rig::new();
    let checks: Vec<_> = many(1000)
        .into_iter()
        .map(|mut check| {
            check.interval = secs(1);
            check
        })
        .collect();
    rig.list(&checks);
    let step = |rig: &mut Rig, down: bool| {
        rig.pass(millis(10));
        for (_, id, ticket, _) in rig.probes.drain(..).collect::<Vec<_>>() {
            let odd = id.check_id().parse::<u32>().expect("a number") % 2 == 1;
            let status = Status::ALL[if odd && down { 2 } else { 0 }];
            rig.answer(ticket, Outcome::Observed(status.into()), text(status));
        }
        let mut batches = 0;
        while let Some((_, batch)) = rig.batches.pop_front() {
            batches += 1;
            for write in batch {
                rig.written(&write, Written::Done(Index(11)));
            }
        }
        batches
    };
    for _ in 0..300 {
        assert_eq!(step(&mut rig, false), 0);
    }
    let mut batches = 0;
    for _ in 0..130 {
        batches += step(&mut rig, true);
    }
    let down = rig
        .engine
        .checks()
        .filter(|check| check.written() == Status::Critical);
    assert_eq!(down.count(), 500);
    assert!(batches <= 24, "{batches}");
    // An hour of peace: nothing is written.
    let before = rig.engine.counters().written.total();
    for _ in 0..1000 {
        step(&mut rig, true);
    }
    assert_eq!(rig.engine.counters().written.total(), before);
}
