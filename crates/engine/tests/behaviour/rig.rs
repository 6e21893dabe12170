//! An engine with the plainest possible surroundings: a clock that is moved by
//! hand, and lists of what was asked for.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::{
    Action, CatalogCheck, CatalogDiff, CatalogUpdate, CheckId, CheckView, DeregisterTicket, Engine,
    Event, EventKind, Finding, Outcome, ProbeTicket, SavedCheck, Settings, Token, Write, Written,
    output_hash,
};
use evenkeel_threshold::{AnyStrategy, FirstResult, Leaky, Observation, Status, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Index(pub(crate) u64);

impl Token for Index {
    fn is_older_than(&self, other: &Self) -> bool {
        self < other
    }
}

pub(crate) type Definition = &'static str;
pub(crate) type Check = CatalogCheck<Definition, Index, AnyStrategy>;

pub(crate) struct Rig {
    pub(crate) engine: Engine<Definition, Index, AnyStrategy>,
    pub(crate) now: Timestamp,
    pub(crate) probes: VecDeque<(Timestamp, CheckId, ProbeTicket, Definition)>,
    pub(crate) batches: VecDeque<(Timestamp, Vec<Write<Index>>)>,
    pub(crate) removals: VecDeque<(Timestamp, CheckId, DeregisterTicket, Duration)>,
    pub(crate) events: Vec<Event>,
}

pub(crate) fn id(check: &str) -> CheckId {
    CheckId::new("", "", "node", "web", check)
}

/// A passing check, probed each 10 s, that flips at the third failure and at the
/// second success.
pub(crate) fn check(name: &str) -> Check {
    CatalogCheck {
        id: id(name),
        definition: Arc::new("http://target"),
        interval: Duration::from_secs(10),
        timeout: Duration::from_secs(2),
        status: Status::Passing,
        output_hash: output_hash("fine"),
        token: Index(10),
        strategy: leaky(2, 1),
        first_result: FirstResult::Counted,
        deregister_after: None,
    }
}

pub(crate) fn leaky(critical: u32, passing: u32) -> Arc<AnyStrategy> {
    Arc::new(Leaky::new(critical, passing).into())
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self {
            engine: Engine::new(settings),
            // Unix time, roughly now.
            now: Timestamp::from_millis(1_800_000_000_000),
            probes: VecDeque::new(),
            batches: VecDeque::new(),
            removals: VecDeque::new(),
            events: Vec::new(),
        }
    }

    /// Another process with what this one saved, at the same time.
    pub(crate) fn restarted(&self) -> Self {
        self.restarted_from(self.saved())
    }

    pub(crate) fn restarted_from(&self, saved: Vec<SavedCheck>) -> Self {
        let mut next = Self::with(self.engine.settings().clone());
        next.now = self.now;
        next.engine.restore(saved);
        next
    }

    pub(crate) fn saved(&self) -> Vec<SavedCheck> {
        self.engine.snapshot(self.now).collect()
    }

    pub(crate) fn list(&mut self, checks: &[Check]) -> CatalogDiff {
        self.list_keeping(checks, &[])
    }

    pub(crate) fn list_keeping(&mut self, checks: &[Check], keep: &[CheckId]) -> CatalogDiff {
        let update = CatalogUpdate {
            checks: checks.to_vec(),
            keep: HashSet::from_iter(keep.iter().cloned()),
        };
        let diff = self.engine.handle_catalog(self.now, update);
        self.drain();
        diff
    }

    /// Lets time pass, waking the engine when it asks for it.
    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.now.saturating_add(time);
        self.drain();
        while let Some(at) = self.engine.poll_timeout()
            && at <= until
        {
            // A wake-up that changes nothing would be a busy loop in a shell.
            assert!(at > self.now || self.now == Timestamp::ZERO, "no progress");
            self.now = at;
            self.engine.handle_timeout(at);
            self.drain();
        }
        self.now = until;
        self.drain();
    }

    pub(crate) fn drain(&mut self) {
        for polls in 0.. {
            assert!(polls < 100_000, "no end of actions");
            let Some(action) = self.engine.poll_action(self.now) else {
                return;
            };
            match action {
                Action::Probe {
                    ticket,
                    id,
                    definition,
                } => self.probes.push_back((self.now, id, ticket, *definition)),
                Action::Write { writes } => self.batches.push_back((self.now, writes)),
                Action::Deregister {
                    ticket,
                    id,
                    critical_for,
                    ..
                } => self
                    .removals
                    .push_back((self.now, id, ticket, critical_for)),
                Action::Event(event) => self.events.push(event),
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn answer(&mut self, ticket: ProbeTicket, outcome: Outcome, output: &str) {
        let finding = Finding {
            outcome,
            output: output.to_owned(),
        };
        self.engine.handle_observation(self.now, ticket, finding);
        self.drain();
    }

    pub(crate) fn take_probe(&mut self) -> ProbeTicket {
        self.probes.pop_front().expect("a probe is due").2
    }

    /// Waits for the next probe and answers it at once.
    pub(crate) fn probe(&mut self, status: Status) {
        self.probe_with(
            Outcome::Observed(Observation::counted(status)),
            text(status),
        );
    }

    pub(crate) fn probe_with(&mut self, outcome: Outcome, output: &str) {
        for _ in 0..100 {
            if let Some((_, _, ticket, _)) = self.probes.pop_front() {
                return self.answer(ticket, outcome, output);
            }
            let at = self.engine.poll_timeout().expect("there are checks");
            self.pass(at.saturating_since(self.now));
        }
        panic!("no probe comes");
    }

    /// `P`, `W` and `F` as the reference files write results, `U` for unprobed.
    pub(crate) fn results(&mut self, results: &str) {
        for result in results.chars() {
            match result {
                'P' => self.probe(Status::Passing),
                'W' => self.probe(Status::Warning),
                'F' => self.probe(Status::Critical),
                'U' => self.probe_with(Outcome::Unprobed, "no descriptor"),
                _ => panic!("{result}"),
            }
        }
    }

    /// Waits for the next batch.
    pub(crate) fn await_batch(&mut self) {
        for _ in 0..6000 {
            if !self.batches.is_empty() {
                return;
            }
            self.pass(millis(10));
        }
        panic!("no write comes");
    }

    /// The only write of the only batch.
    pub(crate) fn take_write(&mut self) -> Write<Index> {
        let (_, mut writes) = self.batches.pop_front().expect("a batch");
        assert!(self.batches.is_empty());
        assert_eq!(writes.len(), 1);
        writes.remove(0)
    }

    pub(crate) fn written(&mut self, write: &Write<Index>, written: Written<Index>) {
        self.engine.handle_written(self.now, write.ticket, written);
        self.drain();
    }

    pub(crate) fn view(&self, name: &str) -> CheckView<'_, Definition, Index, AnyStrategy> {
        self.engine.check(&id(name)).expect("known")
    }

    pub(crate) fn kinds(&self) -> Vec<EventKind> {
        self.events.iter().map(|event| event.kind).collect()
    }
}

pub(crate) fn text(status: Status) -> &'static str {
    match status {
        Status::Passing => "fine",
        Status::Warning => "slow",
        Status::Critical => "down",
    }
}
