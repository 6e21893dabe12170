//! What goes wrong, and what people do.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::{CatalogCheck, CatalogUpdate, CheckId, Engine};
use evenkeel_threshold::{FirstResult, Status, Timestamp};

use super::{Happening, TIMEOUT, Target, World, rule, target};
use crate::catalog::{Entry, Index, List};
use crate::spec::Spec;

impl World {
    pub(super) fn commit_fault(&mut self) {
        let which = self.random.below(0..24);
        self.say(|| format!("fault {which}"));
        match which {
            0..4 => {
                let which = self.random.below(0..self.targets.len() as u64) as usize;
                self.targets[which] = target(&mut self.random);
            }
            4..7 => self.edit(|random, entry| {
                entry.status = *random.pick(&[Status::Passing, Status::Critical]);
                true
            }),
            7 => self.edit(|_, entry| {
                entry.definition.1 += 1;
                true
            }),
            8 => self.edit(|random, entry| {
                entry.interval = random.below(1..6);
                true
            }),
            9..11 => self.edit(|random, entry| {
                entry.rule = rule(random);
                false
            }),
            11 => self.edit(|random, entry| {
                entry.limit = random.permille(500).then(|| random.below(5..30));
                true
            }),
            // The notes, or the same once more.
            12..14 => self.edit(|_, _| true),
            14..16 => {
                if let Some(id) = self.any_check() {
                    self.unregister(&[id]);
                }
            }
            16 => {
                let all: Vec<_> = self.catalog.entries.keys().cloned().collect();
                self.unregister(&all);
            }
            17..19 => {
                self.leader = false;
                let pause = self.random.below(1000..20_000);
                self.after(pause, Happening::LeaderBack);
            }
            19 => self.pause(),
            20 => {
                self.now += self.random.below(1..8000);
                self.stalled = true;
            }
            21 if !self.stopping => {
                self.stopping = true;
                self.engine.handle_shutdown(self.at());
                let life = self.life;
                self.after(3000, Happening::StopEnds(life));
            }
            _ => {
                // Killed, and started again after a while.
                if self.random.permille(500) {
                    self.now += self.random.below(0..20_000);
                }
                self.start_process();
            }
        }
    }

    pub(super) fn settle_targets(&mut self) {
        for target in &mut self.targets {
            *target = Target::Steady(*self.random.pick(&[Status::Passing, Status::Critical]));
        }
    }

    fn any_check(&mut self) -> Option<CheckId> {
        let ids: Vec<_> = self.catalog.entries.keys().cloned().collect();
        (!ids.is_empty()).then(|| self.random.pick(&ids).clone())
    }

    /// Changes an entry; `true` if that is a change of the check itself.
    fn edit(&mut self, edit: impl FnOnce(&mut crate::random::Random, &mut Entry) -> bool) {
        let Some(id) = self.any_check() else {
            return;
        };
        let random = &mut self.random;
        self.catalog.change(|entries, index| {
            if let Some(entry) = entries.get_mut(&id)
                && edit(random, entry)
            {
                entry.index = index;
            }
        });
        self.expect_list();
    }

    fn unregister(&mut self, ids: &[CheckId]) {
        for id in ids {
            self.catalog.change(|entries, _| entries.remove(id));
            if self.random.permille(800) {
                let (id, entry) = self.fresh(id.check_id().parse().expect("a number"));
                let pause = self.random.below(1..8000);
                self.after(pause, Happening::Fresh(entry, id));
            }
        }
        self.expect_list();
    }

    fn pause(&mut self) {
        let millis = self.random.below(1000..40_000);
        self.now += millis;
        self.engine
            .handle_pause(self.at(), Duration::from_millis(millis));
        self.spec.pause(self.now);
        for running in self.running.values_mut() {
            running.overlaps_pause = true;
            running.lost_at = running.lost_at.max(self.now + 5000);
        }
    }

    pub(super) fn save(&mut self) {
        self.saved = self.engine.snapshot(self.at()).collect();
        self.spec_saved = self.spec.saved();
        assert_eq!(self.saved.len(), self.spec_saved.len());
    }

    pub(super) fn start_process(&mut self) {
        self.life += 1;
        self.engine = Engine::new(self.settings.clone());
        self.engine.restore(self.saved.clone());
        self.spec = Spec::default();
        self.spec.restored = self.spec_saved.clone();
        self.running.clear();
        self.flying.clear();
        self.removing.clear();
        self.outputs.clear();
        self.sent = 0;
        self.restarts = 0;
        self.stopping = false;
        self.told_writable = true;
        self.delivered = 0;
        self.expect_list();
    }

    // ---- The list on its way.

    pub(super) fn expect_list(&mut self) {
        if self.list_due {
            return;
        }
        self.list_due = true;
        let latency = self.random.below(1..50);
        let wait = (self.last_list + 1000).saturating_sub(self.now);
        self.after(wait + latency, Happening::ListArrives);
    }

    pub(super) fn list_arrives(&mut self) {
        self.list_due = false;
        self.last_list = self.now;
        if !self.leader || self.fault(100) {
            return self.expect_list();
        }
        if self.fault(30) {
            // Without rights the list is empty, and nothing may be dropped.
            let keep: HashSet<_> = self.spec.checks.keys().cloned().collect();
            self.deliver(&List::new(), keep);
            return self.expect_list();
        }
        let lag = if self.fault(200) {
            self.random.below(1..8) as usize
        } else {
            0
        };
        let (version, list) = self.catalog.list(lag);
        self.deliver(&list, HashSet::new());
        self.delivered = version;
        if version < self.catalog.version {
            self.expect_list();
        }
    }

    fn deliver(&mut self, list: &List, keep: HashSet<CheckId>) {
        let checks = list.iter().map(|(id, entry)| CatalogCheck {
            id: id.clone(),
            definition: Arc::new(entry.definition),
            interval: Duration::from_secs(entry.interval),
            timeout: Duration::from_millis(TIMEOUT),
            status: entry.status,
            output_hash: entry.hash(),
            token: Index(entry.index),
            strategy: entry.rule.strategy(),
            first_result: FirstResult::Counted,
            deregister_after: entry.limit.map(Duration::from_secs),
        });
        let checks: Vec<_> = checks.collect();
        let told =
            |(id, entry): (&CheckId, &Entry)| format!("{id} {}@{}", entry.status, entry.index);
        self.say(|| format!("list {:?}", list.iter().map(told).collect::<Vec<_>>()));
        let flying = |id: &CheckId| self.flying.values().any(|flying| flying.id == *id);
        let newcomers = self.spec.list(list, &keep, flying, self.now);
        let update = CatalogUpdate { checks, keep };
        self.engine.handle_catalog(self.at(), update);

        let rate = |check: &crate::spec::SpecCheck| 1.0 / check.entry.interval as f64;
        let steady: f64 = self.spec.checks.values().map(rate).sum();
        for (k, id) in newcomers.iter().enumerate() {
            let view = self.engine.check(id).expect("in the list");
            let due = view.next_due();
            let expected = self.now + (k as f64 * 1000.0 / steady.max(20.0)) as u64;
            let error = due.as_millis().abs_diff(expected);
            assert!(error <= 1, "{id} is first probed at {due:?}");
            if let Some(check) = self.spec.checks.get_mut(id) {
                check.next_due = Timestamp::as_millis(due);
            }
        }
    }
}
