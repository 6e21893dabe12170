use std::collections::HashSet;

use evenkeel_threshold::{Loaded, Mark, Status, Strategy, Timestamp};

use super::Engine;
use crate::schedule;
use crate::slot::{Entry, ProbeState, Slot};
use crate::{
    CatalogCheck, CatalogDiff, CatalogUpdate, CheckId, EventKind, SavedCheck, StateRestart, Token,
};

/// What the catalog's list changes.
impl<D: Eq, W: Token, S: Strategy + Eq> Engine<D, W, S> {
    /// Takes in the catalog's whole list.
    ///
    /// Checks are told apart by identity. A definition that is not equal to the
    /// one before restarts its check; nothing else does. An entry that is older
    /// than what we know of it (by its token) only counts as being there.
    pub fn handle_catalog(
        &mut self,
        now: Timestamp,
        update: CatalogUpdate<D, W, S>,
    ) -> CatalogDiff {
        let now = self.advance(now);
        self.update = self.update.wrapping_add(1);
        let mut diff = CatalogDiff::default();
        let mut newcomers = Vec::new();
        // Doubling would leave nearly half of a large list's memory unused.
        self.slots.reserve(update.checks.len());
        for check in update.checks {
            match self.index.get(&check.id).copied() {
                Some(key) => match self.slots.get(key) {
                    Some(slot) if slot.departed => {
                        diff.added += 1;
                        self.forget_removal(&check.id);
                        self.come_back(key, check, now);
                        newcomers.push(key);
                    }
                    Some(slot) if slot.seen == self.update => self.counters.duplicate_entries += 1,
                    _ => self.refresh(key, check, &mut diff, now),
                },
                None => {
                    diff.added += 1;
                    self.forget_removal(&check.id);
                    if let Some(key) = self.add(check, now) {
                        newcomers.push(key);
                    }
                }
            }
        }
        self.drop_missing(&update.keep, &mut diff, now);
        self.spread(&newcomers, now);
        self.restored.expire(&self.settings, &update.keep, now);
        if !self.removals.is_empty() {
            let live = self.slots.iter().filter(|slot| !slot.departed);
            let services: HashSet<_> = live.filter_map(|slot| slot.id.service()).collect();
            self.removals.retain(|service| services.contains(service));
        }
        diff
    }

    /// A check not known before. Gives its slot if it still needs a phase.
    fn add(&mut self, check: CatalogCheck<D, W, S>, now: Timestamp) -> Option<u32> {
        let id = check.id.clone();
        let saved = self.restored.take(&id);
        let mut slot = self.new_slot(check, now);
        self.emit(now, id.clone(), EventKind::Added);
        let mut phased = false;
        if let Some(saved) = saved {
            slot.next_due = schedule::align(saved.next_due, slot.interval, now);
            phased = true;
            if let Some(reason) = slot.resume(&saved, now) {
                self.emit(now, id.clone(), EventKind::StateRestarted { reason });
            }
        }
        self.live += 1;
        let key = self.slots.insert(slot);
        self.index.insert(id, key);
        self.reschedule(key);
        (!phased).then_some(key)
    }

    /// A check that was dropped a moment ago, so that something is still on its
    /// way for it. Nothing else of it is remembered (P019).
    fn come_back(&mut self, key: u32, check: CatalogCheck<D, W, S>, now: Timestamp) {
        let mut fresh = self.new_slot(check, now);
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        fresh.probe = slot.probe;
        fresh.flight = slot.flight;
        fresh.outdate_probe();
        if let Some(flight) = slot.flight.and_then(|n| self.outbox.flight_mut(n)) {
            flight.heard = Some(fresh.known.clone());
        }
        *slot = fresh;
        let id = slot.id.clone();
        self.live += 1;
        self.emit(now, id, EventKind::Added);
        self.reschedule(key);
    }

    fn new_slot(&self, check: CatalogCheck<D, W, S>, now: Timestamp) -> Slot<D, W, S> {
        let state = check.strategy.start(check.status, check.first_result, now);
        Slot {
            id: check.id,
            definition: check.definition,
            interval: self.settings.interval(check.interval),
            timeout: self.settings.timeout(check.timeout),
            deregister_after: check.deregister_after,
            strategy: check.strategy,
            first_result: check.first_result,
            known: Entry {
                token: check.token,
                status: check.status,
                output_hash: check.output_hash,
            },
            seen: self.update,
            departed: false,
            state,
            probed: false,
            verified: false,
            mark: Mark::None,
            last: None,
            last_transition: None,
            critical_since: (check.status == Status::Critical).then_some(now),
            unprobed_run: 0,
            raw_changes: 0,
            transitions: 0,
            next_due: now,
            probe: ProbeState::Idle,
            drifted: false,
            output_due: None,
            pending: None,
            queued: false,
            flight: None,
        }
    }

    /// A check that is known.
    fn refresh(
        &mut self,
        key: u32,
        check: CatalogCheck<D, W, S>,
        diff: &mut CatalogDiff,
        now: Timestamp,
    ) {
        let removed = self.was_removed(&check.id);
        let interval = self.settings.interval(check.interval);
        let timeout = self.settings.timeout(check.timeout);
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        slot.seen = self.update;
        let id = slot.id.clone();
        // Thresholds come from elsewhere too (metadata, our own configuration):
        // the token says nothing about their age.
        let rethresholded = slot.strategy != check.strategy;
        if rethresholded {
            slot.state = check.strategy.adopt(&slot.state, now);
        }
        slot.strategy = check.strategy;
        slot.first_result = check.first_result;

        let older = check.token.is_older_than(&slot.known.token);
        let newer = slot.known.token.is_older_than(&check.token);
        let mut restarted = false;
        let mut registered_again = false;
        if older {
            self.counters.stale_entries += 1;
        } else {
            slot.deregister_after = check.deregister_after;
            restarted = *slot.definition != *check.definition
                || slot.interval != interval
                || slot.timeout != timeout;
            registered_again = removed && newer;
            slot.definition = check.definition;
            slot.interval = interval;
            slot.timeout = timeout;
        }
        let entry = newer.then_some(Entry {
            token: check.token,
            status: check.status,
            output_hash: check.output_hash,
        });
        if restarted || registered_again {
            if let Some(entry) = entry.clone() {
                slot.known = entry;
            }
            slot.start_anew(now);
            if restarted {
                slot.outdate_probe();
            }
            slot.next_due = schedule::align(slot.next_due, slot.interval, now);
        }
        let flight = slot.flight;
        if rethresholded {
            diff.rethresholded += 1;
            self.emit(now, id.clone(), EventKind::Rethresholded);
        }
        self.remark(key, now);
        if restarted {
            diff.restarted += 1;
            self.emit(now, id.clone(), EventKind::Restarted);
        }
        if registered_again {
            self.registered_again(&id, now);
        } else if removed
            && !older
            && let Some(service) = id.service()
        {
            self.removals.listed(&service, now);
        }
        if !restarted && !rethresholded {
            diff.unchanged += 1;
        }
        if let Some(entry) = entry {
            match flight.and_then(|number| self.outbox.flight_mut(number)) {
                Some(flight) => {
                    let newest = flight
                        .heard
                        .as_ref()
                        .is_none_or(|heard| heard.token.is_older_than(&entry.token));
                    if newest {
                        flight.heard = Some(entry);
                    }
                }
                None => self.learn(key, entry, now),
            }
        }
        self.reschedule(key);
    }

    fn drop_missing(&mut self, keep: &HashSet<CheckId>, diff: &mut CatalogDiff, now: Timestamp) {
        for key in self.slots.keys() {
            let Some(slot) = self.slots.get_mut(key) else {
                continue;
            };
            if slot.departed || slot.seen == self.update || keep.contains(&slot.id) {
                continue;
            }
            slot.departed = true;
            slot.pending = None;
            slot.queued = false;
            if slot.probe == ProbeState::Queued {
                slot.probe = ProbeState::Idle;
            }
            slot.outdate_probe();
            let id = slot.id.clone();
            self.live -= 1;
            diff.removed += 1;
            self.remark(key, now);
            self.emit(now, id, EventKind::Removed);
            self.reschedule(key);
            self.bury(key);
        }
    }

    /// Gives each newcomer its phase: the first is probed at once, the others
    /// follow so that no more probes start than usual.
    // P110
    fn spread(&mut self, newcomers: &[u32], now: Timestamp) {
        if newcomers.is_empty() {
            return;
        }
        let live = self.slots.iter().filter(|slot| !slot.departed);
        let steady: f64 = live.map(|slot| schedule::rate(slot.interval)).sum();
        let rate = steady.max(f64::from(self.settings.newcomers_per_second.max(1)));
        for (k, &key) in newcomers.iter().enumerate() {
            if let Some(slot) = self.slots.get_mut(key) {
                slot.next_due = now.saturating_add(schedule::spread(k, rate));
            }
            self.reschedule(key);
        }
    }
}

impl<D, W: Token, S: Strategy> Slot<D, W, S> {
    /// Goes on where `saved` ended, unless the catalog disagrees. Says why if the
    /// counts were lost.
    fn resume(&mut self, saved: &SavedCheck, now: Timestamp) -> Option<StateRestart> {
        let ours = saved.record.reported();
        let (state, lost) = match self.strategy.load(&saved.record, now) {
            Loaded::Resumed(state) => (state, None),
            Loaded::Restarted(state, reason) => (state, Some(StateRestart::Record(reason))),
        };
        if !self.known.token.keeps_status() {
            self.known.status = self.strategy.reported(&state);
        }
        // The process before has told of it.
        self.mark = self.strategy.mark(&state);
        self.last_transition = saved.last_transition.filter(|last| last.at <= now);
        let catalog = self.known.status;
        if self.strategy.reported(&state) != catalog {
            // `self` starts from the catalog's status already.
            return Some(StateRestart::CatalogDiffers { catalog, ours });
        }
        self.state = state;
        self.critical_since = match (catalog, saved.critical_since) {
            (Status::Critical, since) => Some(since.unwrap_or(now).min(now)),
            _ => None,
        };
        lost
    }
}
