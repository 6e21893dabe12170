//! Everything around the engine, in virtual time: targets, a catalog with its
//! faults, other writers, and a process that is paused, stopped and killed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::time::Duration;

use evenkeel_engine::{
    Action, CheckId, Counters, DeregisterTicket, Deregistered, Engine, EventKind, Finding,
    ProbeTicket, SavedCheck, Settings, Write, WriteTicket, Written,
};
use evenkeel_threshold::{AnyStrategy, Outlook, Status, Timestamp};

mod faults;
mod io;

use crate::catalog::{Catalog, Definition, Entry, Index};
use crate::random::Random;
use crate::spec::{Rule, Spec, SpecSaved, service};

/// From then on no new faults.
const CALM: u64 = 90_000;
/// The end of the story.
const END: u64 = 180_000;
/// Unix time of its begin, in milliseconds.
const EPOCH: u64 = 1_800_000_000_000;

const TIMEOUT: u64 = 2_000;

/// What a target does.
#[derive(Debug, Clone, Copy)]
enum Target {
    Steady(Status),
    /// Fails in so many of a thousand probes.
    Flaky(u64),
}

enum Happening {
    ProbeEnds(u32, ProbeTicket, CheckId, Finding),
    WriteArrives(u32, Vec<Write<Index>>),
    WriteAnswered(u32, Vec<Answer>),
    RemovalArrives(u32, DeregisterTicket, CheckId),
    RemovalAnswered(u32, DeregisterTicket, CheckId, bool),
    ListArrives,
    AskForLeader,
    LeaderBack,
    Snapshot,
    Fault,
    Fresh(Entry, CheckId),
    StopEnds(u32),
}

type Answer = (WriteTicket, CheckId, Written<Index>);

struct Scheduled(u64, u64, Happening);

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Scheduled {}
impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

struct Running {
    lost_at: u64,
    overlaps_pause: bool,
}

pub(crate) struct World {
    random: Random,
    aloud: bool,
    settings: Settings,
    now: u64,
    queue: BinaryHeap<Reverse<Scheduled>>,
    numbers: u64,

    targets: Vec<Target>,
    catalog: Catalog,
    delivered: u64,
    last_list: u64,
    list_due: bool,
    leader: bool,
    /// Outputs that never repeat.
    varied: bool,

    engine: Engine<Definition, Index, AnyStrategy>,
    /// Number of the process.
    life: u32,
    stopping: bool,
    told_writable: bool,
    saved: Vec<SavedCheck>,
    spec_saved: HashMap<CheckId, SpecSaved>,

    spec: Spec,
    running: BTreeMap<CheckId, Running>,
    flying: HashMap<WriteTicket, Flying>,
    removing: BTreeMap<(String, String), DeregisterTicket>,
    /// The engine was not called at the time that it asked for.
    stalled: bool,
    sent: u64,
    restarts: u64,
    outputs: HashMap<CheckId, u64>,
}

struct Flying {
    id: CheckId,
    batch: u64,
    status: Status,
    expires: u64,
}

impl World {
    /// With `aloud` the story is told on standard error.
    pub(crate) fn new(seed: u64, aloud: bool) -> Self {
        let mut random = Random::new(seed);
        let settings = Settings {
            output_period: Duration::from_secs(random.below(5..40)),
            batch_size: random.below(1..5) as usize,
            batches_in_flight: random.below(1..4) as usize,
            batch_gap: Duration::from_millis(random.below(0..300)),
            answer_deadline: Duration::from_secs(8),
            refused_retry: Duration::from_secs(6),
            restored_retention: Duration::from_secs(3600),
            ..Settings::default()
        };
        let count = random.below(1..8) as usize;
        let mut world = Self {
            targets: (0..count).map(|_| target(&mut random)).collect(),
            varied: random.permille(300),
            engine: Engine::new(settings.clone()),
            random,
            aloud,
            settings,
            now: EPOCH,
            queue: BinaryHeap::new(),
            numbers: 0,
            catalog: Catalog::new(),
            delivered: 0,
            last_list: 0,
            list_due: false,
            leader: true,
            life: 0,
            stopping: false,
            told_writable: true,
            saved: Vec::new(),
            spec_saved: HashMap::new(),
            spec: Spec::default(),
            running: BTreeMap::new(),
            flying: HashMap::new(),
            removing: BTreeMap::new(),
            stalled: false,
            sent: 0,
            restarts: 0,
            outputs: HashMap::new(),
        };
        for n in 0..count {
            let (id, entry) = world.fresh(n);
            world.register(id, entry);
        }
        world.after(1, Happening::AskForLeader);
        world.after(1, Happening::Snapshot);
        world.after(100, Happening::Fault);
        world
    }

    fn fresh(&mut self, target: usize) -> (CheckId, Entry) {
        // Two checks to a service, two services to a node; one check is the
        // node's own.
        let owner = if target == 3 {
            String::new()
        } else {
            format!("s{}", target / 2)
        };
        let node = format!("n{}", target / 4);
        let id = CheckId::new("", "", &node, &owner, &target.to_string());
        let entry = Entry {
            definition: (target, 0),
            interval: self.random.below(1..6),
            status: *self.random.pick(&[Status::Passing, Status::Critical]),
            output: String::new(),
            index: 0,
            rule: rule(&mut self.random),
            limit: self.random.permille(300).then(|| self.random.below(5..30)),
        };
        (id, entry)
    }

    fn register(&mut self, id: CheckId, mut entry: Entry) {
        self.catalog.change(|entries, index| {
            entry.index = index;
            entries.insert(id, entry);
        });
        self.expect_list();
    }

    fn after(&mut self, millis: u64, happening: Happening) {
        self.numbers += 1;
        let at = self.now + millis;
        self.queue
            .push(Reverse(Scheduled(at, self.numbers, happening)));
    }

    fn calm(&self) -> bool {
        self.now >= EPOCH + CALM
    }

    /// A fault, with this chance, unless all is calm.
    fn fault(&mut self, permille: u64) -> bool {
        let chance = self.random.permille(permille);
        chance && !self.calm()
    }

    // ---- The loop.

    pub(crate) fn run(mut self) {
        while self.now < EPOCH + END || self.is_restless() {
            let world = self.queue.peek().map(|Reverse(next)| next.0);
            let engine = self.engine.poll_timeout().map(Timestamp::as_millis);
            let next = [world, engine].into_iter().flatten().min();
            let next = next.expect("snapshots go on").max(self.now);
            assert!(
                next > self.now || engine.is_none_or(|at| at > self.now) || world == Some(self.now),
                "the engine wants to be called again and again"
            );
            self.now = next;
            while let Some(Reverse(happening)) = self.queue.peek()
                && happening.0 <= self.now
            {
                let Some(Reverse(Scheduled(_, _, happening))) = self.queue.pop() else {
                    break;
                };
                self.happen(happening);
            }
            self.step();
        }
        self.check_the_end();
    }

    /// Something is on its way that the end must not cut off.
    fn is_restless(&self) -> bool {
        let restless = self.list_due || !self.removing.is_empty() || !self.flying.is_empty();
        restless && self.now < EPOCH + END + 10_000
    }

    /// The story of one seed, for whoever asked for it.
    #[expect(clippy::print_stderr)]
    fn say(&self, what: impl FnOnce() -> String) {
        if self.aloud {
            eprintln!("{:>6} process {}: {}", self.now - EPOCH, self.life, what());
        }
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::ProbeEnds(life, ticket, id, finding) if life == self.life => {
                self.probe_ends(ticket, &id, finding);
            }
            Happening::WriteArrives(life, writes) => self.write_arrives(life, &writes),
            Happening::WriteAnswered(life, answers) if life == self.life => {
                for (ticket, id, written) in answers {
                    self.answer(ticket, &id, written);
                }
            }
            Happening::RemovalArrives(life, ticket, id) => self.removal_arrives(life, ticket, id),
            Happening::RemovalAnswered(life, ticket, id, done) if life == self.life => {
                if self.removing.get(&service(&id)) == Some(&ticket) {
                    self.removing.remove(&service(&id));
                    if done {
                        self.spec.deregistered(&id);
                    }
                }
                let result = if done {
                    Deregistered::Done
                } else {
                    Deregistered::Failed
                };
                self.engine.handle_deregistered(self.at(), ticket, result);
            }
            Happening::ListArrives => self.list_arrives(),
            Happening::AskForLeader => {
                if self.leader != self.told_writable {
                    self.told_writable = self.leader;
                    self.engine.handle_writable(self.at(), self.leader);
                }
                self.after(1000, Happening::AskForLeader);
            }
            Happening::LeaderBack => self.leader = true,
            Happening::Snapshot => {
                self.save();
                self.after(10_000, Happening::Snapshot);
                // A watch comes back from time to time without a change.
                self.expect_list();
            }
            Happening::Fault => {
                if !self.calm() {
                    self.commit_fault();
                    let pause = self.random.below(50..4000);
                    self.after(pause, Happening::Fault);
                } else {
                    self.settle_targets();
                }
            }
            Happening::Fresh(entry, id) => self.register(id, entry),
            Happening::StopEnds(life) if life == self.life => {
                self.save();
                self.start_process();
            }
            // For a process that is no more.
            _ => {}
        }
    }
}

/// Every step of time, and the end.
impl World {
    fn step(&mut self) {
        self.running.retain(|_, running| running.lost_at > self.now);
        let late: Vec<_> = self
            .flying
            .iter()
            .filter(|(_, flying)| flying.expires <= self.now)
            .map(|(&ticket, _)| ticket)
            .collect();
        for ticket in late {
            if let Some(flying) = self.flying.remove(&ticket) {
                self.spec.written(&flying.id, None, false, self.now);
            }
        }
        let expected = self.expected_probes();
        let mut started = BTreeSet::new();
        self.engine.handle_timeout(self.at());
        let mut actions = 0;
        while let Some(action) = self.engine.poll_action(self.at()) {
            actions += 1;
            assert!(actions < 10_000, "no end of actions");
            match action {
                Action::Probe {
                    ticket,
                    id,
                    definition,
                } => {
                    started.insert(id.clone());
                    self.probe_starts(ticket, id, *definition);
                }
                Action::Write { writes } => self.batch_leaves(writes),
                Action::Deregister { ticket, id, .. } => self.removal_leaves(ticket, id),
                Action::Event(event) => {
                    self.say(|| format!("{} {:?}", event.id, event.kind));
                    if let EventKind::Restarted | EventKind::Added = event.kind {
                        self.restarts += 1;
                    }
                }
                _ => {}
            }
        }
        assert_eq!(started, expected, "probes at {}", self.now - EPOCH);
        self.stalled = false;
        self.compare();
    }

    /// Each check at its interval and phase, unless its probe still runs.
    fn expected_probes(&mut self) -> BTreeSet<CheckId> {
        let mut expected = BTreeSet::new();
        if self.stopping {
            return expected;
        }
        for (id, check) in &mut self.spec.checks {
            if check.next_due > self.now {
                continue;
            }
            assert!(self.stalled || check.next_due == self.now, "{id} is late");
            while check.next_due <= self.now {
                check.next_due += check.entry.interval * 1000;
            }
            if !self.running.contains_key(id) {
                expected.insert(id.clone());
            }
        }
        expected
    }

    fn compare(&self) {
        assert_eq!(self.engine.len(), self.spec.checks.len());
        assert_eq!(self.engine.running_probes(), self.running.len());
        for (id, check) in &self.spec.checks {
            let view = self.engine.check(id).expect("in the list");
            let (reported, count) = check.story.told();
            assert_eq!(view.reported(), reported, "{id}");
            let seen = match view.outlook(self.at()) {
                Outlook::Counting { seen, .. } => seen,
                _ => 0,
            };
            assert_eq!(seen, count, "count of {id}");
            assert_eq!((view.token().0, view.written()), check.known, "{id}");
            assert_eq!(**view.definition(), check.entry.definition, "{id}");
            assert_eq!(view.interval().as_secs(), check.entry.interval, "{id}");
            assert_eq!(view.next_due().as_millis(), check.next_due, "{id}");
            let alike = reported == check.known.1 && !self.flies(id);
            assert!(!(alike && view.is_drifted()), "{id}");
            let since = view.critical_since().map(Timestamp::as_millis);
            assert_eq!(since, check.critical_since, "{id}");
        }
        let Counters {
            transitions,
            drifts,
            failed_writes,
            lost_races,
            rolled_back,
            refused_writes,
            gone_writes,
            ..
        } = *self.engine.counters();
        assert_eq!(transitions, self.spec.transitions);
        let excuses = failed_writes + lost_races + rolled_back + refused_writes + gone_writes;
        // A check that starts may find an earlier write of it on the way.
        let excuses = excuses + self.restarts;
        assert!(
            self.sent <= transitions + drifts + excuses,
            "{} writes for {:?}",
            self.sent,
            self.engine.counters()
        );
    }

    fn check_the_end(mut self) {
        for (id, entry) in &self.catalog.entries {
            let Target::Steady(truth) = self.targets[entry.definition.0] else {
                panic!("settled");
            };
            assert_eq!(entry.status, truth, "the catalog is wrong about {id}");
            let view = self.engine.check(id).expect("probed");
            assert!(view.written() == truth && !view.is_drifted(), "{id}");
            if let Some(limit) = entry.limit
                && truth == Status::Critical
                && !id.service_id().is_empty()
            {
                let since = self.spec.checks[id].critical_since.expect("critical");
                assert!(since + limit * 1000 + 20_000 > self.now, "{id} lives on");
            }
        }
        assert!(self.spec.checks.keys().eq(self.catalog.entries.keys()));
        self.engine.handle_shutdown(self.at());
        self.stopping = true;
        let until = self.now + TIMEOUT + 6000;
        while self.now < until && !self.engine.idle() {
            self.now += 10;
            while let Some(Reverse(happening)) = self.queue.peek()
                && happening.0 <= self.now
            {
                if let Some(Reverse(Scheduled(_, _, happening))) = self.queue.pop() {
                    self.happen(happening);
                }
            }
            self.step();
        }
        assert!(self.engine.idle(), "{:?}", self.engine);
    }
}

fn target(random: &mut Random) -> Target {
    match random.below(0..4) {
        0 => Target::Steady(Status::Critical),
        1 => Target::Steady(Status::Passing),
        _ => Target::Flaky(random.below(1..1000)),
    }
}

fn rule(random: &mut Random) -> Rule {
    Rule {
        leaky: random.permille(600),
        failures: random.below(1..5) as u32,
        successes: random.below(1..4) as u32,
    }
}
