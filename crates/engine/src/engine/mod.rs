mod catalog;
mod probing;
mod removing;
mod snapshot;
mod waking;
mod writing;

use core::fmt;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};

use evenkeel_threshold::{Strategy, Timestamp};

use crate::agenda::Agenda;
use crate::outbox::Outbox;
use crate::removals::Removals;
use crate::restored::Restored;
use crate::slab::Slab;
use crate::slot::{ProbeState, Slot};
use crate::{Action, CheckId, CheckView, Counters, Event, EventKind, Settings, Token};

/// Later times are taken for this one, so that no due time is lost at the end of
/// the clock. In Unix milliseconds far beyond any date.
const END_OF_TIME: Timestamp = Timestamp::from_millis(u64::MAX / 4);

/// Actions for which room is kept when there are none.
const MOST_ROOM: usize = 256;

/// The state of all checks, and the only place where it changes.
///
/// Inputs are the `handle_*` methods. After each of them the shell takes what
/// there is to do by [`Engine::poll_action`] until that gives `None`, and calls
/// [`Engine::handle_timeout`] at the time that [`Engine::poll_timeout`] names.
///
/// `now` never runs backwards: an earlier time than one seen before is taken for
/// that one.
pub struct Engine<D, W, S: Strategy> {
    settings: Settings,
    now: Timestamp,
    slots: Slab<Slot<D, W, S>>,
    /// Slots by identity, also those of departed checks.
    index: HashMap<CheckId, u32>,
    /// Checks that have not departed.
    live: usize,
    agenda: Agenda,
    /// Slots whose probe is due and not handed out yet.
    due: VecDeque<u32>,
    running: usize,
    outbox: Outbox<W>,
    removals: Removals,
    restored: Restored,
    /// Actions that were decided while time passed.
    prepared: VecDeque<Action<D, W>>,
    counters: Counters,
    /// The number of the latest catalog update.
    update: u32,
    writable: bool,
    shutting_down: bool,
}

impl<D, W, S: Strategy> fmt::Debug for Engine<D, W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("now", &self.now)
            .field("checks", &self.live)
            .field("running", &self.running)
            .field("writable", &self.writable)
            .field("shutting_down", &self.shutting_down)
            .finish_non_exhaustive()
    }
}

impl<D: Eq, W: Token, S: Strategy + Eq> Engine<D, W, S> {
    /// An engine without checks.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            now: Timestamp::ZERO,
            slots: Slab::default(),
            index: HashMap::new(),
            live: 0,
            agenda: Agenda::default(),
            due: VecDeque::new(),
            running: 0,
            outbox: Outbox::new(),
            removals: Removals::default(),
            restored: Restored::default(),
            prepared: VecDeque::new(),
            counters: Counters::default(),
            update: 0,
            writable: true,
            shutting_down: false,
        }
    }

    /// The process was stopped for about `paused_for` until `now`. Probes that
    /// were running do not count, missed ticks are left out, and the pause does
    /// not count as time for the strategies.
    pub fn handle_pause(&mut self, now: Timestamp, paused_for: Duration) {
        let now = self.advance(now);
        let millis = i64::try_from(paused_for.as_millis()).unwrap_or(i64::MAX);
        for key in self.slots.keys() {
            if let Some(slot) = self.slots.get_mut(key) {
                slot.strategy.shift(&mut slot.state, millis);
                let late = slot.pass_over_pause(now, self.settings.lost_probe_margin);
                self.counters.ticks_late = self.counters.ticks_late.saturating_add(late);
            }
            self.reschedule(key);
        }
    }

    /// Starts no more probes and removes no more services; sends at once what
    /// waits to be written. Probes that are running may still be answered.
    pub fn handle_shutdown(&mut self, now: Timestamp) {
        let now = self.advance(now);
        self.shutting_down = true;
        for key in self.due.drain(..) {
            if let Some(slot) = self.slots.get_mut(key)
                && slot.probe == ProbeState::Queued
            {
                slot.probe = ProbeState::Idle;
            }
        }
        self.hurry_writes(now, true);
    }

    /// Whether the catalog can be written at all. While it cannot, writes are
    /// held, and everything else goes on. When it can again, they do not wait for
    /// the end of their delay, except those that were refused.
    ///
    /// This is for a catalog as a whole, such as one without a leader, and not for
    /// a write that failed: the delay before that one's next try would be lost.
    pub fn handle_writable(&mut self, now: Timestamp, writable: bool) {
        let now = self.advance(now);
        let was = core::mem::replace(&mut self.writable, writable);
        if writable && !was {
            self.hurry_writes(now, false);
        }
    }

    /// Lets the time pass.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let now = self.advance(now);
        self.expire_flights(now);
        while let Some((at, key)) = self.agenda.first() {
            if at > now {
                break;
            }
            self.wake(key, now);
            let next = self.wake_at(key);
            // A strategy's deadline that does not move must not end in a loop.
            let later = now.saturating_add(Duration::from_millis(1));
            let next = next.map(|at| at.max(later));
            self.agenda.set(key, next);
        }
    }

    /// The next thing to do now; `None` when there is no more.
    pub fn poll_action(&mut self, now: Timestamp) -> Option<Action<D, W>> {
        let now = self.advance(now);
        self.handle_timeout(now);
        if let Some(action) = self.prepared.pop_front() {
            return Some(action);
        }
        if let Some(writes) = self.next_batch(now) {
            return Some(Action::Write { writes });
        }
        if let Some(probe) = self.next_probe(now) {
            return Some(probe);
        }
        // What a first list or a great change had to say is not kept as room.
        if self.prepared.capacity() > MOST_ROOM {
            self.prepared.shrink_to(MOST_ROOM);
        }
        None
    }

    /// When [`Engine::handle_timeout`] wants to be called, if nothing else
    /// happens before. Valid after [`Engine::poll_action`] gave `None`; may be in
    /// the past.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let slots = self.agenda.first().map(|(at, _)| at);
        let batch = if self.writable {
            self.outbox.next_batch_at(&self.settings)
        } else {
            None
        };
        let answer = self
            .outbox
            .oldest()
            .map(|(_, sent)| sent.saturating_add(self.settings.answer_deadline));
        [slots, batch, answer].into_iter().flatten().min()
    }

    /// Whether nothing runs, waits or is on its way: after
    /// [`Engine::handle_shutdown`] the process may end. While nothing can be
    /// written this may never come, so a shell limits how long it waits.
    pub fn idle(&self) -> bool {
        self.running == 0
            && self.due.is_empty()
            && self.prepared.is_empty()
            && self.outbox.is_empty()
            && !self.removals.unanswered(self.now)
            && self.slots.iter().all(|slot| slot.pending.is_none())
    }

    /// How many checks there are.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether there are no checks.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Probes that are running.
    pub fn running_probes(&self) -> usize {
        self.running
    }

    /// One check.
    pub fn check(&self, id: &CheckId) -> Option<CheckView<'_, D, W, S>> {
        let slot = self.slots.get(*self.index.get(id)?)?;
        (!slot.departed).then(|| CheckView::new(slot))
    }

    /// All checks, in no particular order.
    pub fn checks(&self) -> impl Iterator<Item = CheckView<'_, D, W, S>> {
        let live = self.slots.iter().filter(|slot| !slot.departed);
        live.map(CheckView::new)
    }

    /// What has happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now).min(END_OF_TIME);
        self.now
    }

    fn emit(&mut self, at: Timestamp, id: CheckId, kind: EventKind) {
        self.prepared
            .push_back(Action::Event(Event { at, id, kind }));
    }

    /// Frees the slot of a departed check once nothing is on its way for it.
    fn bury(&mut self, key: u32) {
        let Some(slot) = self.slots.get(key) else {
            return;
        };
        if slot.departed && slot.is_quiet() {
            self.index.remove(&slot.id);
            self.agenda.set(key, None);
            self.slots.remove(key);
        }
    }
}
