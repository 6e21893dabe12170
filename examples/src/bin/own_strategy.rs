//! A strategy of one's own in the engine: the majority of the latest three
//! results, which no strategy of evenkeel is.
//!
//! The engine takes any [`Strategy`]. What belongs to one check is a few `Copy`
//! bytes, and can be saved, so that a restart loses nothing.

#![expect(clippy::print_stdout, reason = "what a program prints is its result")]

use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::{
    Action, CatalogCheck, CatalogUpdate, CheckId, Engine, EventKind, Finding, Outcome, SavedCheck,
    Settings, Token, Written, output_hash,
};
use evenkeel_threshold::{
    FirstResult, Loaded, Observation, Outlook, Record, RestartReason, Status, Strategy,
    StrategyTag, Timestamp, Transition,
};

/// Reports what at least two of the latest three results say.
#[derive(PartialEq, Eq)]
struct Majority;

#[derive(Clone, Copy)]
struct Latest {
    results: [Status; 3],
    reported: Status,
}

impl Majority {
    /// Numbers from 128 on are free for embedders.
    const TAG: StrategyTag = StrategyTag(200);
    const VERSION: u8 = 1;
}

impl Strategy for Majority {
    type State = Latest;

    fn start(&self, reported: Status, _first: FirstResult, _now: Timestamp) -> Latest {
        Latest {
            results: [reported; 3],
            reported,
        }
    }

    fn observe(
        &self,
        state: &mut Latest,
        observation: Observation,
        _now: Timestamp,
    ) -> Option<Transition> {
        let [_, before, latest] = state.results;
        state.results = [before, latest, observation.status];
        let mut sorted = state.results;
        sorted.sort();
        // The middle one is the majority; of three that differ it is a compromise.
        let to = if observation.immediate {
            observation.status
        } else {
            sorted[1]
        };
        let from = core::mem::replace(&mut state.reported, to);
        (from != to).then_some(Transition { from, to })
    }

    fn reported(&self, state: &Latest) -> Status {
        state.reported
    }

    fn outlook(&self, state: &Latest, _now: Timestamp) -> Outlook {
        let latest = state.results[2];
        if latest == state.reported {
            return Outlook::Settled;
        }
        Outlook::Counting {
            toward: latest,
            seen: 1,
            needed: 2,
            agreeing: evenkeel_threshold::Agreeing::TakesOldestsPlace,
        }
    }

    fn adopt(&self, old: &Latest, _now: Timestamp) -> Latest {
        *old
    }

    fn save(&self, state: &Latest) -> Record {
        let payload = state.results.map(|status| status as u8);
        Record::with_payload(Self::TAG, Self::VERSION, state.reported, payload)
    }

    fn load(&self, record: &Record, now: Timestamp) -> Loaded<Latest> {
        let reported = record.reported();
        let read = |payload: &[u8]| {
            let status = |byte: u8| Status::ALL.get(usize::from(byte)).copied();
            let [a, b, c] = <[u8; 3]>::try_from(payload).ok()?;
            Some([status(a)?, status(b)?, status(c)?])
        };
        let restarted =
            |reason| Loaded::Restarted(self.start(reported, FirstResult::Counted, now), reason);
        match record.expect_version(Self::TAG, Self::VERSION).map(read) {
            Ok(Some(results)) => Loaded::Resumed(Latest { results, reported }),
            Ok(None) => restarted(RestartReason::Damaged),
            Err(reason) => restarted(reason),
        }
    }
}

/// A catalog that is not written back to.
#[derive(Clone)]
struct Nowhere;

impl Token for Nowhere {
    fn is_older_than(&self, _other: &Self) -> bool {
        false
    }
    fn keeps_status(&self) -> bool {
        false
    }
}

type Monitor = Engine<&'static str, Nowhere, Majority>;

fn start(saved: Vec<SavedCheck>, now: Timestamp) -> Monitor {
    let mut engine = Engine::new(Settings::default());
    engine.restore(saved);
    let check = CatalogCheck {
        id: CheckId::new("", "", "pump", "", "pressure"),
        definition: Arc::new("the gauge"),
        interval: Duration::from_secs(1),
        timeout: Duration::ZERO, // the default
        status: Status::Passing,
        output_hash: output_hash(""),
        token: Nowhere,
        strategy: Arc::new(Majority),
        first_result: FirstResult::Counted,
        deregister_after: None,
    };
    engine.handle_catalog(now, CatalogUpdate::all(vec![check]));
    engine
}

/// Answers each probe with the next result, and gives the changes.
fn play(engine: &mut Monitor, now: &mut Timestamp, results: &[Status]) -> Vec<Status> {
    let mut changes = Vec::new();
    let mut results = results.iter();
    loop {
        while let Some(action) = engine.poll_action(*now) {
            match action {
                Action::Probe {
                    ticket, definition, ..
                } => {
                    let Some(&result) = results.next() else {
                        return changes;
                    };
                    let finding = Finding {
                        outcome: Outcome::Observed(result.into()),
                        output: format!("{definition} shows {result}"),
                    };
                    engine.handle_observation(*now, ticket, finding);
                }
                Action::Write { writes } => {
                    for write in writes {
                        engine.handle_written(*now, write.ticket, Written::Done(write.token));
                    }
                }
                Action::Event(event) => {
                    if let EventKind::Transition { from, to, .. } = event.kind {
                        println!("{}: {from} to {to}", event.id);
                        changes.push(to);
                    }
                }
                _ => {}
            }
        }
        *now = engine.poll_timeout().unwrap_or(*now);
        engine.handle_timeout(*now);
    }
}

fn main() {
    use Status::{Critical, Passing};
    let mut now = Timestamp::from_millis(1_700_000_000_000);
    let mut engine = start(Vec::new(), now);
    // A single failure is outvoted, two of three are not.
    let results = [Passing, Critical, Passing, Passing, Critical];
    assert_eq!(play(&mut engine, &mut now, &results), []);

    // Another process takes over, with the failure that has been seen.
    let saved: Vec<SavedCheck> = engine.snapshot(now).collect();
    let mut engine = start(saved, now);
    let results = [Critical, Passing, Passing];
    assert_eq!(play(&mut engine, &mut now, &results), [Critical, Passing]);
}
