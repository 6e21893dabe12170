use evenkeel_threshold::{Status, Strategy, Timestamp};

use super::Engine;
use crate::outbox::backoff;
use crate::slot::Slot;
use crate::{Action, CheckId, DeregisterTicket, Deregistered, EventKind, StateRestart, Token};

/// Services that have been critical for too long are removed from the catalog.
impl<D: Eq, W: Token, S: Strategy + Eq> Engine<D, W, S> {
    /// When the slot's service is to be removed, if nothing changes.
    ///
    /// Only on the word of a probe that was run after the last start and pause,
    /// and not while we cannot probe: a fault of our own must not remove what it
    /// cannot see. Never for a check of a node (P102).
    pub(super) fn removal_due(&self, slot: &Slot<D, W, S>) -> Option<Timestamp> {
        let limit = slot.deregister_after?;
        let since = slot.critical_since?;
        if self.shutting_down
            || !self.writable
            || slot.departed
            || !slot.verified
            || slot.unprobed_run > 0
            || slot.released() != Status::Critical
            || slot.id.service_id().is_empty()
        {
            return None;
        }
        let due = since.saturating_add(limit);
        if self.removals.is_empty() {
            return Some(due);
        }
        let removal = slot.id.service().and_then(|id| self.removals.get(&id));
        match removal {
            // Someone may have registered it again since. Only the list can tell.
            Some(removal) if removal.done && !removal.listed_since => None,
            Some(removal) => Some(due.max(removal.not_before)),
            None => Some(due),
        }
    }

    pub(super) fn ask_removal(&mut self, key: u32, now: Timestamp) {
        let Some(slot) = self.slots.get(key) else {
            return;
        };
        let (Some(service), Some(since)) = (slot.id.service(), slot.critical_since) else {
            return;
        };
        let unanswered = self
            .removals
            .get(&service)
            .is_some_and(|removal| removal.ticket.is_some());
        if unanswered {
            self.counters.failed_deregistrations += 1;
        }
        let id = slot.id.clone();
        let token = slot.known.token.clone();
        let critical_for = now.saturating_since(since);
        let answer_by = now.saturating_add(self.settings.answer_deadline);
        let (ticket, first) = self
            .removals
            .ask(service, id.clone(), since, now, answer_by);
        if first {
            let event = EventKind::Deregistering { critical_for };
            self.emit(now, id.clone(), event);
        }
        self.prepared.push_back(Action::Deregister {
            ticket: DeregisterTicket(ticket),
            id,
            critical_for,
            token,
        });
    }

    /// Takes in whether a service was removed from the catalog. The checks go
    /// when the catalog does not list them any more.
    pub fn handle_deregistered(
        &mut self,
        now: Timestamp,
        ticket: DeregisterTicket,
        result: Deregistered,
    ) {
        let now = self.advance(now);
        let Some(removal) = self.removals.answered(ticket.0) else {
            self.counters.late_tickets += 1;
            return;
        };
        let id = removal.check.clone();
        let kind = match result {
            Deregistered::Done | Deregistered::Gone => {
                removal.done = true;
                removal.attempts = 0;
                // Lists from before may be on their way for a while.
                removal.not_before = now.saturating_add(self.settings.answer_deadline);
                if result == Deregistered::Done {
                    self.counters.deregistrations += 1;
                    Some(EventKind::Deregistered)
                } else {
                    self.counters.gone_deregistrations += 1;
                    None
                }
            }
            Deregistered::Failed | Deregistered::Refused => {
                let first = removal.attempts == 0;
                removal.attempts = removal.attempts.saturating_add(1);
                let delay = if result == Deregistered::Refused {
                    self.settings.refused_retry
                } else {
                    backoff(&self.settings, &id, removal.attempts)
                };
                removal.not_before = now.saturating_add(delay);
                self.counters.failed_deregistrations += 1;
                first.then_some(EventKind::DeregistrationFailed)
            }
        };
        if let Some(&key) = self.index.get(&id) {
            self.reschedule(key);
        }
        if let Some(kind) = kind {
            self.emit(now, id, kind);
        }
    }

    /// A service that we removed has been registered again; its check has been
    /// started anew.
    pub(super) fn registered_again(&mut self, id: &CheckId, now: Timestamp) {
        self.forget_removal(id);
        let reason = StateRestart::Reregistered;
        self.emit(now, id.clone(), EventKind::StateRestarted { reason });
    }

    /// If the service of the check was removed, it now is another one.
    pub(super) fn forget_removal(&mut self, id: &CheckId) {
        if self.was_removed(id)
            && let Some(service) = id.service()
        {
            self.removals.forget(&service);
        }
    }

    /// Whether the check belongs to a service that we removed.
    pub(super) fn was_removed(&self, id: &CheckId) -> bool {
        !self.removals.is_empty()
            && id
                .service()
                .and_then(|service| self.removals.get(&service))
                .is_some_and(|removal| removal.done)
    }
}
