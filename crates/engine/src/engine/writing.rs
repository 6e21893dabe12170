use core::time::Duration;
use std::sync::Arc;

use evenkeel_threshold::{Status, Strategy, Timestamp};

use super::Engine;
use crate::outbox::{Flight, backoff};
use crate::slot::{Entry, Pending, Slot};
use crate::{
    EventKind, StateRestart, Token, Write, WriteReason, WriteTicket, Written, output_hash,
};

/// The text of a status that time alone brought about.
const TIME_ALONE: &str = "No new result; the status follows from the time that has passed.";

/// How often a write that lost a race is sent again without a delay.
const PROMPT_RESENDS: u32 = 1;

/// From the released status to the catalog.
impl<D: Eq, W: Token, S: Strategy + Eq> Engine<D, W, S> {
    /// Compares what we stand for with what the catalog has or is about to have,
    /// after a result (its status and text) or a lapse of time, and makes sure
    /// that the difference is written.
    pub(super) fn settle(&mut self, key: u32, result: Option<(Status, String)>, now: Timestamp) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        let released = slot.released();
        let flight = slot.flight.and_then(|number| self.outbox.flight(number));
        let (shown, shown_hash) = match flight {
            Some(flight) => (flight.status, flight.output_hash),
            None => (slot.known.status, slot.known.output_hash),
        };
        if released != shown {
            let waits = slot
                .pending
                .as_ref()
                .is_some_and(|pending| pending.reason != WriteReason::Output);
            // The text of a result that disagrees with the status is the second
            // choice.
            let agrees = result
                .as_ref()
                .is_none_or(|&(status, _)| status == released);
            if !waits || agrees {
                let output: Arc<str> = match result {
                    Some((_, output)) => output.into(),
                    None => TIME_ALONE.into(),
                };
                slot.await_status(output, now);
            }
            return self.enqueue(key, now);
        }
        if flight.is_none() {
            slot.drifted = false;
        }
        if slot
            .pending
            .as_ref()
            .is_some_and(|pending| pending.reason != WriteReason::Output)
        {
            slot.pending = None;
        }
        let Some((status, output)) = result else {
            return;
        };
        // A text that speaks against the status would only confuse.
        if status != released || slot.pending.is_some() {
            return;
        }
        let hash = output_hash(&output);
        let differs = hash != shown_hash;
        match slot.output_due {
            None if differs => {
                slot.output_due = Some(now.saturating_add(self.settings.output_period));
            }
            Some(due) if due <= now && flight.is_none() && self.writable => {
                slot.output_due = None;
                if differs {
                    slot.pending = Some(Box::new(Pending {
                        reason: WriteReason::Output,
                        output: output.into(),
                        output_hash: hash,
                        attempts: 0,
                        not_before: now,
                        refused: false,
                    }));
                    self.enqueue(key, now);
                }
            }
            _ => {}
        }
    }

    /// Puts the slot's pending write into the queue if it may be sent.
    pub(super) fn enqueue(&mut self, key: u32, now: Timestamp) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        let ready = slot
            .pending
            .as_ref()
            .is_some_and(|pending| pending.not_before <= now);
        if ready && slot.flight.is_none() && !slot.queued {
            slot.queued = true;
            self.outbox.enqueue(key);
        }
    }

    /// The next batch of writes, if one may go now.
    pub(super) fn next_batch(&mut self, now: Timestamp) -> Option<Vec<Write<W>>> {
        if !self.writable
            || !self
                .outbox
                .may_send(&self.settings, now, self.shutting_down)
        {
            return None;
        }
        let batch = self.outbox.number();
        let mut writes = Vec::new();
        while writes.len() < self.settings.batch_size.max(1) {
            let Some(key) = self.outbox.dequeue() else {
                break;
            };
            if let Some(write) = self.send(key, batch, now) {
                writes.push(write);
            }
            self.reschedule(key);
        }
        if writes.is_empty() {
            return None;
        }
        self.outbox.batch_sent(batch, writes.len(), now);
        self.counters.batches += 1;
        Some(writes)
    }

    /// Turns the slot's pending write into one on its way.
    fn send(&mut self, key: u32, batch: u64, now: Timestamp) -> Option<Write<W>> {
        let slot = self.slots.get_mut(key)?;
        if !core::mem::take(&mut slot.queued) || slot.flight.is_some() || slot.departed {
            return None;
        }
        if slot
            .pending
            .as_ref()
            .is_none_or(|pending| pending.not_before > now)
        {
            return None;
        }
        let pending = slot.pending.take()?;
        let status = slot.released();
        if pending.reason != WriteReason::Output && status == slot.known.status {
            return None;
        }
        let number = self.outbox.number();
        slot.flight = Some(number);
        let write = Write {
            ticket: WriteTicket(number),
            id: slot.id.clone(),
            status,
            output: pending.output.clone(),
            token: slot.known.token.clone(),
            reason: pending.reason,
        };
        let flight = Flight {
            slot: key,
            batch,
            sent_at: now,
            status,
            reason: pending.reason,
            output: pending.output,
            output_hash: pending.output_hash,
            attempts: pending.attempts,
            heard: None,
        };
        self.outbox.depart(number, flight);
        Some(write)
    }

    /// Takes in what came of a write. A ticket that is not valid (any more) is
    /// counted and changes nothing.
    pub fn handle_written(&mut self, now: Timestamp, ticket: WriteTicket, written: Written<W>) {
        let now = self.advance(now);
        self.written(now, ticket.0, written);
    }

    fn written(&mut self, now: Timestamp, number: u64, written: Written<W>) {
        let Some(mut flight) = self.outbox.arrive(number) else {
            self.counters.late_tickets += 1;
            return;
        };
        let key = flight.slot;
        let Some(id) = self.slots.get(key).map(|slot| slot.id.clone()) else {
            return;
        };
        let removed = self.was_removed(&id);
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        slot.flight = None;
        let ours = slot.released();
        let heard = flight.heard.take();
        match written {
            Written::Done(token) => {
                self.counters.written.add(flight.reason);
                if !token.is_older_than(&slot.known.token) {
                    slot.known = Entry {
                        token,
                        status: flight.status,
                        output_hash: flight.output_hash,
                    };
                }
                slot.drifted = false;
                // What was sent is there; a newer need has its own text.
                if let Some(pending) = &mut slot.pending {
                    pending.attempts = 0;
                    pending.not_before = now;
                    pending.refused = false;
                }
            }
            Written::Stale {
                token,
                status,
                output_hash,
            } => {
                // An unchanged entry was only rolled back with those of others.
                let lost = slot.known.token.is_older_than(&token);
                slot.known = Entry {
                    token,
                    status,
                    output_hash,
                };
                let delay = if flight.attempts < PROMPT_RESENDS {
                    Duration::ZERO
                } else {
                    backoff(&self.settings, &id, flight.attempts)
                };
                slot.try_again(flight, now.saturating_add(delay), false);
                if lost && removed {
                    // It exists: someone has registered the service again.
                    slot.start_anew(now);
                    self.counters.lost_races += 1;
                    self.remark(key, now);
                    self.registered_again(&id, now);
                } else if lost {
                    self.counters.lost_races += 1;
                    let kind = EventKind::WriteLost {
                        catalog: status,
                        ours,
                    };
                    self.emit(now, id, kind);
                } else {
                    self.counters.rolled_back += 1;
                }
            }
            Written::Gone => {
                self.counters.gone_writes += 1;
                slot.try_again(
                    flight,
                    now.saturating_add(self.settings.refused_retry),
                    true,
                );
                self.emit(now, id, EventKind::WriteGone);
            }
            Written::Failed => {
                self.counters.failed_writes += 1;
                let first = flight.attempts == 0;
                let delay = backoff(&self.settings, &id, flight.attempts + 1);
                slot.try_again(flight, now.saturating_add(delay), false);
                if first {
                    self.emit(now, id, EventKind::WriteFailed { refused: false });
                }
            }
            Written::Refused => {
                self.counters.refused_writes += 1;
                let first = flight.attempts == 0;
                slot.try_again(
                    flight,
                    now.saturating_add(self.settings.refused_retry),
                    true,
                );
                if first {
                    self.emit(now, id, EventKind::WriteFailed { refused: true });
                }
            }
        }
        if heard.is_some()
            && let Some(slot) = self.slots.get_mut(key)
            && let Some(pending) = &mut slot.pending
        {
            // The outcome was about an entry that is no longer that way.
            pending.not_before = now;
            pending.refused = false;
        }
        self.reconcile(key, now);
        if let Some(entry) = heard {
            self.learn(key, entry, now);
        }
        self.reschedule(key);
        self.bury(key);
    }

    /// Takes in what the catalog says of a check without a write on its way.
    /// What is not newer than what we know changes nothing.
    pub(super) fn learn(&mut self, key: u32, entry: Entry<W>, now: Timestamp) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        if !slot.known.token.is_older_than(&entry.token) {
            return;
        }
        slot.known = entry;
        if let Some(pending) = &mut slot.pending {
            pending.not_before = now;
            pending.refused = false;
        }
        self.reconcile(key, now);
    }

    /// Compares what we stand for with what the catalog has, after news from
    /// there and with no write on its way.
    fn reconcile(&mut self, key: u32, now: Timestamp) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        if slot.departed {
            slot.pending = None;
            return;
        }
        let catalog = slot.known.status;
        let ours = slot.released();
        let reason = slot.pending.as_ref().map(|pending| pending.reason);
        if catalog == ours {
            slot.drifted = false;
            if reason != Some(WriteReason::Output) {
                slot.pending = None;
            }
            return self.enqueue(key, now);
        }
        if !slot.probed {
            // P007 the other way round: before a probe, the catalog knows better.
            slot.start_anew(now);
            let id = slot.id.clone();
            self.remark(key, now);
            let reason = StateRestart::CatalogDiffers { catalog, ours };
            return self.emit(now, id, EventKind::StateRestarted { reason });
        }
        if let Some(WriteReason::Status | WriteReason::Drift) = reason {
            return self.enqueue(key, now);
        }
        // Put right by the next result, so that two writers of different minds
        // write once per interval and no more.
        slot.pending = None;
        slot.drifted = true;
        let id = slot.id.clone();
        self.counters.drifts += 1;
        self.emit(now, id, EventKind::Drift { catalog, ours });
    }

    /// Sends without further delay what waits: all of it, or all but what was
    /// refused.
    pub(super) fn hurry_writes(&mut self, now: Timestamp, refused_too: bool) {
        for key in self.slots.keys() {
            if let Some(slot) = self.slots.get_mut(key)
                && let Some(pending) = &mut slot.pending
                && (refused_too || !pending.refused)
            {
                pending.not_before = now;
                pending.attempts = 0;
                self.enqueue(key, now);
            }
            self.reschedule(key);
        }
    }

    /// Gives up on answers that do not come.
    pub(super) fn expire_flights(&mut self, now: Timestamp) {
        while let Some((number, sent_at)) = self.outbox.oldest() {
            if sent_at.saturating_add(self.settings.answer_deadline) > now {
                break;
            }
            self.counters.lost_writes += 1;
            self.written(now, number, Written::Failed);
        }
    }
}

impl<D, W, S: Strategy> Slot<D, W, S> {
    /// Makes sure that a write of the status is pending, with this text.
    fn await_status(&mut self, output: Arc<str>, now: Timestamp) {
        let hash = output_hash(&output);
        self.output_due = None;
        let reason = if self.drifted {
            WriteReason::Drift
        } else {
            WriteReason::Status
        };
        match &mut self.pending {
            Some(pending) => {
                if pending.reason == WriteReason::Output {
                    pending.reason = reason;
                    pending.attempts = 0;
                    pending.not_before = now;
                }
                pending.output = output;
                pending.output_hash = hash;
            }
            None => {
                self.pending = Some(Box::new(Pending {
                    reason,
                    output,
                    output_hash: hash,
                    attempts: 0,
                    not_before: now,
                    refused: false,
                }));
            }
        }
    }

    /// Keeps a write that did not get through for another try, unless a newer
    /// one is waiting already, and that one for the same time. `refused`: see
    /// [`Pending::refused`].
    fn try_again<T>(&mut self, flight: Flight<T>, not_before: Timestamp, refused: bool) {
        let attempts = flight.attempts.saturating_add(1);
        match &mut self.pending {
            Some(pending) => {
                pending.attempts = attempts;
                pending.not_before = not_before;
                pending.refused = refused;
            }
            // The next result brings its own text.
            None if flight.reason == WriteReason::Output => self.output_due = Some(not_before),
            None => {
                self.pending = Some(Box::new(Pending {
                    reason: flight.reason,
                    output: flight.output,
                    output_hash: flight.output_hash,
                    attempts,
                    not_before,
                    refused,
                }));
            }
        }
    }
}
