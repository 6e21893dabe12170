//! What the shell does: probes, writes and removals, with their accidents.

use std::collections::BTreeSet;

use evenkeel_engine::{
    CheckId, DeregisterTicket, Finding, Outcome, ProbeTicket, Write, WriteReason, WriteTicket,
    Written,
};

use evenkeel_threshold::Status;

use super::{Answer, Flying, Happening, Running, TIMEOUT, Target, World};
use crate::catalog::{Definition, Index, Set};
use crate::spec::service;

impl World {
    pub(super) fn probe_starts(
        &mut self,
        ticket: ProbeTicket,
        id: CheckId,
        definition: Definition,
    ) {
        let check = self.spec.checks.get(&id).expect("in the list");
        assert_eq!(definition, check.entry.definition, "{id}");
        assert!(!self.stopping, "a probe after the stop");
        let lost_at = self.now + TIMEOUT + 5000;
        let running = Running {
            lost_at,
            overlaps_pause: false,
        };
        let before = self.running.insert(id.clone(), running);
        assert!(before.is_none(), "two probes of {id} at once");
        self.spec.outdated.remove(&id);
        if self.fault(10) {
            return; // It never ends.
        }
        let status = match self.targets[definition.0] {
            Target::Steady(status) => status,
            Target::Flaky(permille) if self.random.permille(permille) => Status::Critical,
            Target::Flaky(_) => Status::Passing,
        };
        let outcome = if self.fault(30) {
            Outcome::Unprobed
        } else {
            Outcome::Observed(status.into())
        };
        let output = if self.varied {
            format!("{status} {}", self.now)
        } else {
            status.to_string()
        };
        let took = if self.random.permille(50) {
            TIMEOUT
        } else {
            self.random.below(0..200)
        };
        let finding = Finding { outcome, output };
        let life = self.life;
        self.after(took, Happening::ProbeEnds(life, ticket, id, finding));
    }

    pub(super) fn probe_ends(&mut self, ticket: ProbeTicket, id: &CheckId, finding: Finding) {
        self.say(|| format!("{id} is {:?}", finding.outcome));
        if let Some(running) = self.running.remove(id) {
            let counts = !running.overlaps_pause && !self.spec.outdated.remove(id);
            match finding.outcome {
                Outcome::Observed(observation) if counts => {
                    self.spec.result(id, observation.status, self.now);
                }
                Outcome::Unprobed if counts => {
                    if let Some(check) = self.spec.checks.get_mut(id) {
                        check.unprobed = true;
                    }
                }
                _ => {}
            }
        }
        self.engine.handle_observation(self.at(), ticket, finding);
    }

    pub(super) fn batch_leaves(&mut self, writes: Vec<Write<Index>>) {
        assert!(self.told_writable, "a write without a leader");
        assert!(!writes.is_empty() && writes.len() <= self.settings.batch_size);
        self.numbers += 1;
        let batch = self.numbers;
        let deadline = self.settings.answer_deadline.as_millis() as u64;
        let mut ids = BTreeSet::new();
        for write in &writes {
            assert!(ids.insert(write.id.clone()), "twice in a batch");
            self.judge(write);
            let flying = Flying {
                id: write.id.clone(),
                batch,
                status: write.status,
                expires: self.now + deadline,
            };
            self.flying.insert(write.ticket, flying);
        }
        let batches: BTreeSet<_> = self.flying.values().map(|flying| flying.batch).collect();
        assert!(batches.len() <= self.settings.batches_in_flight);
        let took = if self.fault(50) {
            self.random.below(1000..6000)
        } else {
            self.random.below(1..40)
        };
        let life = self.life;
        self.after(took, Happening::WriteArrives(life, writes));
    }

    /// No status without the results that justify it.
    pub(super) fn judge(&mut self, write: &Write<Index>) {
        let id = &write.id;
        self.say(|| {
            format!(
                "{id} sends {} on {:?}, {:?}",
                write.status, write.token, write.reason
            )
        });
        assert!(!self.flies(id), "two writes of {id} at once");
        let check = self.spec.checks.get(id).expect("in the list");
        let (reported, _) = check.story.told();
        assert!(check.probed, "a write of {id} that no probe justifies");
        assert_eq!(write.status, reported, "{id}");
        assert_eq!(write.token.0, check.known.0, "{id}");
        if write.reason == WriteReason::Output {
            assert_eq!(write.status, check.known.1, "{id}");
            let last = self.outputs.insert(id.clone(), self.now);
            let period = self.settings.output_period.as_millis() as u64;
            // A failed one is tried again before.
            let unlucky = self.engine.counters().failed_writes
                + self.engine.counters().lost_races
                + self.engine.counters().rolled_back
                + self.engine.counters().refused_writes
                + self.engine.counters().gone_writes
                > 0;
            assert!(
                unlucky || last.is_none_or(|last| self.now - last >= period),
                "{id}"
            );
        } else {
            assert_ne!(write.status, check.known.1, "a needless write of {id}");
            self.sent += 1;
        }
    }

    pub(super) fn flies(&self, id: &CheckId) -> bool {
        self.flying.values().any(|flying| flying.id == *id)
    }

    pub(super) fn write_arrives(&mut self, life: u32, writes: &[Write<Index>]) {
        let all = |written: Written<Index>| -> Vec<Answer> {
            let one = |write: &Write<Index>| (write.ticket, write.id.clone(), written.clone());
            writes.iter().map(one).collect()
        };
        if !self.leader {
            let answers = all(Written::Failed);
            return self.after(1, Happening::WriteAnswered(life, answers));
        }
        if self.fault(30) {
            let answers = all(Written::Refused);
            return self.after(1, Happening::WriteAnswered(life, answers));
        }
        if self.fault(50) {
            let answers = all(Written::Failed);
            return self.after(1, Happening::WriteAnswered(life, answers));
        }
        let sets: Vec<_> = writes
            .iter()
            .map(|write| Set {
                id: write.id.clone(),
                index: write.token.0,
                status: write.status,
                output: write.output.to_string(),
            })
            .collect();
        let done = self.catalog.transact(&sets);
        self.expect_list();
        if self.fault(50) {
            // It was written, or not; the answer is lost or says that it failed.
            if self.random.permille(500) {
                let answers = all(Written::Failed);
                self.after(30, Happening::WriteAnswered(life, answers));
            }
            return;
        }
        let answers = match done {
            Some(index) => all(Written::Done(Index(index))),
            None => writes
                .iter()
                .map(|write| {
                    let written = match self.catalog.entries.get(&write.id) {
                        Some(entry) => Written::Stale {
                            token: Index(entry.index),
                            status: entry.status,
                            output_hash: entry.hash(),
                        },
                        None => Written::Gone,
                    };
                    (write.ticket, write.id.clone(), written)
                })
                .collect(),
        };
        let took = if self.fault(50) {
            self.random.below(1000..6000)
        } else {
            self.random.below(0..30)
        };
        self.after(took, Happening::WriteAnswered(life, answers));
    }

    pub(super) fn answer(&mut self, ticket: WriteTicket, id: &CheckId, written: Written<Index>) {
        self.say(|| format!("{id} hears {written:?}"));
        // Past its time it is already taken for failed.
        if let Some(flying) = self.flying.remove(&ticket) {
            let entry = match &written {
                Written::Done(token) => Some((token.0, flying.status)),
                Written::Stale { token, status, .. } => Some((token.0, *status)),
                _ => None,
            };
            let done = matches!(written, Written::Done(_));
            self.spec.written(id, entry, done, self.now);
        }
        self.engine.handle_written(self.at(), ticket, written);
    }

    pub(super) fn removal_leaves(&mut self, ticket: DeregisterTicket, id: CheckId) {
        let check = self.spec.checks.get(&id).expect("in the list");
        let since = check.critical_since.expect("it is critical");
        let limit = check.entry.limit.expect("it has a limit");
        assert!(
            since + limit * 1000 <= self.now,
            "{id} is removed too early"
        );
        assert!(check.verified && !check.unprobed, "{id} is removed unseen");
        assert!(!id.service_id().is_empty(), "a node's check removes {id}");
        assert!(!self.stopping && self.told_writable);
        self.removing.insert(service(&id), ticket);
        self.spec.deregistering(&id);
        let took = self.random.below(1..50);
        let life = self.life;
        self.after(took, Happening::RemovalArrives(life, ticket, id));
    }

    pub(super) fn removal_arrives(&mut self, life: u32, ticket: DeregisterTicket, id: CheckId) {
        let works = self.leader && !self.fault(200);
        if works {
            let gone = service(&id);
            self.catalog
                .change(|entries, _| entries.retain(|id, _| service(id) != gone));
            self.expect_list();
            if self.fault(500) {
                let (id, entry) = self.fresh(id.check_id().parse().expect("a number"));
                let pause = self.random.below(1..5000);
                self.after(pause, Happening::Fresh(entry, id));
            }
        }
        if !self.fault(100) {
            let took = self.random.below(1..50);
            self.after(took, Happening::RemovalAnswered(life, ticket, id, works));
        }
    }
}
