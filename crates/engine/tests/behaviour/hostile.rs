//! Inputs in any order, with any ticket and any time, end in no panic, no
//! busy loop and no broken count.

use evenkeel_engine::{
    Action, CatalogUpdate, DeregisterTicket, Deregistered, Engine, Finding, Outcome, ProbeTicket,
    Settings, WriteTicket, Written,
};
use evenkeel_threshold::{Status, Timestamp};
use proptest::prelude::*;
use std::sync::Arc;

use crate::rig::{Check, Index, check, leaky, secs};

#[derive(Debug, Clone)]
enum Input {
    List(Vec<(u8, u8, u8)>),
    Probe(usize, u8),
    Write(usize, u8),
    Removed(usize, bool),
    Writable(bool),
    Pause(u64),
    Shutdown,
    Poll,
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        3 => prop::collection::vec((0u8..6, any::<u8>(), 0u8..20), 0..8).prop_map(Input::List),
        6 => (any::<usize>(), 0u8..5).prop_map(|(n, outcome)| Input::Probe(n, outcome)),
        4 => (any::<usize>(), 0u8..5).prop_map(|(n, outcome)| Input::Write(n, outcome)),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(n, done)| Input::Removed(n, done)),
        1 => any::<bool>().prop_map(Input::Writable),
        1 => any::<u64>().prop_map(Input::Pause),
        1 => Just(Input::Shutdown),
        6 => Just(Input::Poll),
    ]
}

fn listed((name, variant, index): (u8, u8, u8)) -> Check {
    let mut check = check(&name.to_string());
    check.interval = secs(u64::from(variant % 3));
    check.status = Status::ALL[usize::from(variant / 3 % 3)];
    check.deregister_after = (variant % 2 == 0).then(|| secs(u64::from(variant % 4)));
    check.strategy = leaky(u32::from(variant / 16 % 3), 0);
    check.token = Index(index.into());
    if variant > 200 {
        check.definition = Arc::new("http://other");
    }
    check
}

/// Tickets, all kept and so mostly outdated.
struct Tickets {
    probes: Vec<ProbeTicket>,
    writes: Vec<WriteTicket>,
    removals: Vec<DeregisterTicket>,
}

fn poll(
    engine: &mut Engine<&'static str, Index, evenkeel_threshold::AnyStrategy>,
    now: Timestamp,
    tickets: &mut Tickets,
) {
    for polls in 0.. {
        assert!(polls < 10_000, "a busy loop");
        match engine.poll_action(now) {
            Some(Action::Probe { ticket, .. }) => tickets.probes.push(ticket),
            Some(Action::Write { writes }) => {
                assert!(!writes.is_empty() && writes.len() <= 64);
                tickets
                    .writes
                    .extend(writes.iter().map(|write| write.ticket));
            }
            Some(Action::Deregister { ticket, .. }) => tickets.removals.push(ticket),
            Some(_) => {}
            None => return,
        }
    }
}

fn pick<T: Copy>(tickets: &[T], n: usize) -> Option<T> {
    let count = tickets.len().max(1);
    tickets.get(n % count).copied()
}

proptest! {
    #[test]
    fn nothing_panics(steps in prop::collection::vec((input(), prop_oneof![
        20 => 0u64..5000,
        1 => Just(u64::MAX),
        1 => Just(3_600_000),
    ], any::<bool>()), 0..100)) {
        let mut engine = Engine::new(Settings::default());
        let mut tickets = Tickets { probes: vec![], writes: vec![], removals: vec![] };
        let mut now = Timestamp::from_millis(1_800_000_000_000);
        for (input, step, back) in steps {
            // Time jumps about, backwards too.
            now = if back && step < 1000 {
                Timestamp::from_millis(now.as_millis().saturating_sub(step))
            } else {
                Timestamp::from_millis(now.as_millis().saturating_add(step))
            };
            match input {
                Input::List(checks) => {
                    let checks = checks.into_iter().map(listed).collect();
                    engine.handle_catalog(now, CatalogUpdate::all(checks));
                }
                Input::Probe(n, outcome) => {
                    let outcome = match outcome {
                        0 | 1 => Outcome::Observed(Status::Critical.into()),
                        2 => Outcome::Observed(Status::Warning.into()),
                        3 => Outcome::Observed(Status::Passing.into()),
                        _ => Outcome::Unprobed,
                    };
                    if let Some(ticket) = pick(&tickets.probes, n) {
                        let output = "x".to_owned();
                        engine.handle_observation(now, ticket, Finding { outcome, output });
                    }
                }
                Input::Write(n, outcome) => {
                    let token = Index(n as u64 % 30);
                    let written = match outcome {
                        0 => Written::Done(token),
                        1 => Written::Stale { token, status: Status::Warning, output_hash: 0 },
                        2 => Written::Gone,
                        3 => Written::Failed,
                        _ => Written::Refused,
                    };
                    if let Some(ticket) = pick(&tickets.writes, n) {
                        engine.handle_written(now, ticket, written);
                    }
                }
                Input::Removed(n, done) => {
                    if let Some(ticket) = pick(&tickets.removals, n) {
                        let result = if done { Deregistered::Done } else { Deregistered::Refused };
                        engine.handle_deregistered(now, ticket, result);
                    }
                }
                Input::Writable(writable) => engine.handle_writable(now, writable),
                Input::Pause(millis) => {
                    engine.handle_pause(now, core::time::Duration::from_millis(millis));
                }
                Input::Shutdown => engine.handle_shutdown(now),
                Input::Poll => poll(&mut engine, now, &mut tickets),
            }
            prop_assert_eq!(engine.checks().count(), engine.len());
            let probing = engine.checks().filter(|view| view.is_probing()).count();
            prop_assert!(probing <= engine.running_probes());
            prop_assert!(engine.snapshot(now).count() == engine.len());
        }
        // In the end everything comes to rest.
        engine.handle_shutdown(now);
        engine.handle_writable(now, true);
        for _ in 0..10_000 {
            poll(&mut engine, now, &mut tickets);
            for ticket in tickets.writes.drain(..) {
                engine.handle_written(now, ticket, Written::Done(Index(99)));
            }
            for ticket in tickets.removals.drain(..) {
                engine.handle_deregistered(now, ticket, Deregistered::Done);
            }
            match engine.poll_timeout() {
                Some(at) if at < Timestamp::from_millis(u64::MAX) => now = now.max(at),
                _ => break,
            }
        }
        poll(&mut engine, now, &mut tickets);
        if now < Timestamp::from_millis(u64::MAX / 2) {
            prop_assert!(engine.idle(), "{engine:?}");
        }
    }
}
