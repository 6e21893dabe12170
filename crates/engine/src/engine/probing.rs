use evenkeel_threshold::{Mark, Observation, Outlook, Status, Strategy, Timestamp};

use super::Engine;
use crate::slot::{ProbeState, Verdict};
use crate::{Action, CheckId, EventKind, Finding, LastTransition, Outcome, ProbeTicket, Token};

/// From a due tick to a transition.
impl<D: Eq, W: Token, S: Strategy + Eq> Engine<D, W, S> {
    /// The next due probe.
    pub(super) fn next_probe(&mut self, now: Timestamp) -> Option<Action<D, W>> {
        loop {
            let key = self.due.pop_front()?;
            let generation = self.slots.next_generation(key);
            let Some(slot) = self.slots.get_mut(key) else {
                continue;
            };
            if slot.probe != ProbeState::Queued {
                continue;
            }
            let lost_at = now
                .saturating_add(slot.timeout)
                .saturating_add(self.settings.lost_probe_margin);
            slot.probe = ProbeState::Running {
                generation,
                lost_at,
                verdict: Verdict::Counts,
            };
            let action = Action::Probe {
                ticket: ProbeTicket {
                    slot: key,
                    generation,
                },
                id: slot.id.clone(),
                definition: slot.definition.clone(),
            };
            self.running += 1;
            self.counters.probes += 1;
            self.reschedule(key);
            return Some(action);
        }
    }

    /// Takes in what a probe found.
    ///
    /// A ticket that is not valid any more (the check went, or the probe was
    /// taken for lost) or never was is counted and changes nothing.
    pub fn handle_observation(&mut self, now: Timestamp, ticket: ProbeTicket, finding: Finding) {
        let now = self.advance(now);
        let key = ticket.slot;
        let verdict = match self.slots.get_mut(key) {
            Some(slot) => match slot.probe {
                ProbeState::Running {
                    generation,
                    verdict,
                    ..
                } if generation == ticket.generation => {
                    slot.probe = ProbeState::Idle;
                    verdict
                }
                _ => return self.counters.late_tickets += 1,
            },
            None => return self.counters.late_tickets += 1,
        };
        self.running -= 1;
        match (verdict, finding.outcome) {
            (Verdict::Outdated, _) => self.counters.outdated_findings += 1,
            (Verdict::OverlapsPause, _) => {
                self.counters.unprobed += 1;
                self.counters.overlapped_pause += 1;
            }
            (Verdict::Counts, Outcome::Unprobed) => self.unprobed(key, now),
            (Verdict::Counts, Outcome::Observed(observation)) => {
                self.observed(key, observation, finding.output, now);
            }
        }
        self.reschedule(key);
        self.bury(key);
    }

    /// Takes in a result that no probe was asked for: somebody reports how a
    /// check is. It counts as that of a probe does. The next probe is due an
    /// interval later, so that a check whose probes only say that nobody has
    /// reported is not asked for as long as reports come.
    ///
    /// `false`: there is no such check.
    pub fn handle_report(&mut self, now: Timestamp, id: &CheckId, finding: Finding) -> bool {
        let now = self.advance(now);
        let Some(key) = self.index.get(id).copied() else {
            return false;
        };
        let Some(slot) = self.slots.get_mut(key).filter(|slot| !slot.departed) else {
            return false;
        };
        if slot.probe == ProbeState::Queued {
            slot.probe = ProbeState::Idle;
        }
        slot.next_due = now.saturating_add(slot.interval);
        match finding.outcome {
            Outcome::Unprobed => self.unprobed(key, now),
            Outcome::Observed(observation) => {
                self.observed(key, observation, finding.output, now);
            }
        }
        self.reschedule(key);
        true
    }

    fn unprobed(&mut self, key: u32, now: Timestamp) {
        self.counters.unprobed += 1;
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        slot.unprobed_run = slot.unprobed_run.saturating_add(1);
        if slot.unprobed_run == 1 {
            let id = slot.id.clone();
            self.emit(now, id, EventKind::UnprobedStarted);
        }
    }

    fn observed(&mut self, key: u32, observation: Observation, output: String, now: Timestamp) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        let status = observation.status;
        self.counters.observations[status as usize] += 1;
        let run = core::mem::take(&mut slot.unprobed_run);
        let before = slot.released();
        let previous = slot.last.map_or(before, |(status, _)| status);
        slot.last = Some((status, now));
        if previous != status {
            slot.raw_changes = slot.raw_changes.saturating_add(1);
            self.counters.raw_changes += 1;
        }
        let outlook = slot.strategy.outlook(&slot.state, now);
        slot.strategy.observe(&mut slot.state, observation, now);
        slot.probed = true;
        slot.verified = true;
        let changed = slot.released() != before;
        if previous != status {
            // The results before have ended without having been reported, and
            // these need not be.
            let ended = previous != before;
            let returned = status == before && !changed;
            self.counters.suppressed_changes += u64::from(ended) + u64::from(returned);
        }
        if run > 0 {
            let id = slot.id.clone();
            self.emit(now, id, EventKind::UnprobedEnded { run });
        }
        if changed {
            let count = match outlook {
                // Toward the side to which the status went.
                Outlook::Counting {
                    toward,
                    seen,
                    needed,
                    ..
                } if (toward > before) == (status > before) => (seen.saturating_add(1), needed),
                _ => (1, 1),
            };
            self.changed(key, before, Some(status), count, now);
        }
        self.remark(key, now);
        self.settle(key, Some((status, output)), now);
    }

    /// Tells of a remark that the strategy makes, or makes no longer.
    // P144, P146
    pub(super) fn remark(&mut self, key: u32, now: Timestamp) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        let mark = match slot.departed {
            true => Mark::None,
            false => slot.strategy.mark(&slot.state),
        };
        let before = core::mem::replace(&mut slot.mark, mark);
        if before == mark {
            return;
        }
        let id = slot.id.clone();
        if before != Mark::None {
            self.emit(now, id.clone(), EventKind::MarkEnded { mark: before });
        }
        if mark != Mark::None {
            self.counters.marks += 1;
            self.emit(now, id, EventKind::MarkStarted { mark });
        }
    }

    /// The reported status of the slot is no longer `from`.
    pub(super) fn changed(
        &mut self,
        key: u32,
        from: Status,
        observed: Option<Status>,
        (seen, needed): (u32, u32),
        now: Timestamp,
    ) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        let to = slot.released();
        slot.last_transition = Some(LastTransition { at: now, from });
        slot.critical_since = (to == Status::Critical).then_some(now);
        slot.transitions = slot.transitions.saturating_add(1);
        self.counters.transitions += 1;
        let id = slot.id.clone();
        let kind = EventKind::Transition {
            from,
            observed,
            to,
            seen,
            needed,
        };
        self.emit(now, id, kind);
    }

    /// A probe that has not answered is given up, so that the check is probed
    /// again.
    // P014, P015
    pub(super) fn lose_probe(&mut self, key: u32, now: Timestamp) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        if let ProbeState::Running { lost_at, .. } = slot.probe
            && lost_at <= now
        {
            slot.probe = ProbeState::Idle;
            let id = slot.id.clone();
            self.running -= 1;
            self.counters.lost_probes += 1;
            self.emit(now, id, EventKind::ProbeLost);
        }
    }
}
