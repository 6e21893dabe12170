use core::time::Duration;

use evenkeel_threshold::{Strategy, Timestamp};

use super::Engine;
use crate::Token;
use crate::schedule;
use crate::slot::{ProbeState, Slot, Verdict};

/// Which times matter to a check, and what is done when they come.
impl<D: Eq, W: Token, S: Strategy + Eq> Engine<D, W, S> {
    /// Puts the slot where it belongs in the agenda, after its times changed.
    pub(super) fn reschedule(&mut self, key: u32) {
        let at = self.wake_at(key);
        self.agenda.set(key, at);
    }

    /// The earliest time that matters to the slot.
    pub(super) fn wake_at(&self, key: u32) -> Option<Timestamp> {
        let slot = self.slots.get(key)?;
        let lost = match slot.probe {
            ProbeState::Running { lost_at, .. } => Some(lost_at),
            _ => None,
        };
        if slot.departed {
            return lost;
        }
        let tick = (!self.shutting_down).then_some(slot.next_due);
        let retry = slot
            .pending
            .as_ref()
            .filter(|_| !slot.queued && slot.flight.is_none())
            .map(|pending| pending.not_before);
        let strategy = self
            .may_elapse(slot)
            .then(|| slot.strategy.deadline(&slot.state))
            .flatten();
        let removal = self.removal_due(slot);
        [tick, lost, retry, strategy, removal]
            .into_iter()
            .flatten()
            .min()
    }

    /// Does what is due for the slot.
    pub(super) fn wake(&mut self, key: u32, now: Timestamp) {
        self.lose_probe(key, now);
        self.tick(key, now);
        self.elapse(key, now);
        if let Some(slot) = self.slots.get(key)
            && slot
                .pending
                .as_ref()
                .is_some_and(|pending| pending.not_before <= now)
        {
            self.enqueue(key, now);
        }
        if let Some(slot) = self.slots.get(key)
            && self.removal_due(slot).is_some_and(|due| due <= now)
        {
            self.ask_removal(key, now);
        }
        self.bury(key);
    }

    /// Before the first result since the start time alone changes nothing.
    fn may_elapse(&self, slot: &Slot<D, W, S>) -> bool {
        slot.probed && !slot.departed
    }

    /// A tick: a probe, unless the one before still runs.
    fn tick(&mut self, key: u32, now: Timestamp) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        if slot.departed || self.shutting_down || slot.next_due > now {
            return;
        }
        let (next, missed) = schedule::advance(slot.next_due, slot.interval, now);
        slot.next_due = next;
        self.counters.ticks_late = self.counters.ticks_late.saturating_add(missed);
        match slot.probe {
            ProbeState::Idle => {
                slot.probe = ProbeState::Queued;
                self.due.push_back(key);
            }
            ProbeState::Queued => self.counters.ticks_late += 1,
            ProbeState::Running { .. } => self.counters.ticks_busy += 1,
        }
    }

    fn elapse(&mut self, key: u32, now: Timestamp) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        let due = slot.probed
            && !slot.departed
            && slot
                .strategy
                .deadline(&slot.state)
                .is_some_and(|at| at <= now);
        if !due {
            return;
        }
        let before = slot.released();
        slot.strategy.elapse(&mut slot.state, now);
        if slot.released() != before {
            self.changed(key, before, None, (1, 1), now);
            self.remark(key, now);
            self.settle(key, None, now);
        } else {
            self.remark(key, now);
        }
    }
}

impl<D, W, S: Strategy> Slot<D, W, S> {
    /// The process was stopped until `now`. Gives the ticks left out.
    pub(super) fn pass_over_pause(&mut self, now: Timestamp, margin: Duration) -> u64 {
        self.verified = false;
        if let ProbeState::Running {
            lost_at, verdict, ..
        } = &mut self.probe
        {
            if *verdict == Verdict::Counts {
                *verdict = Verdict::OverlapsPause;
            }
            *lost_at = (*lost_at).max(now.saturating_add(margin));
        }
        if self.next_due > now {
            return 0;
        }
        // The tick at `next_due` is left out as well.
        let (next, missed) = schedule::advance(self.next_due, self.interval, now);
        self.next_due = next;
        missed + 1
    }
}
