use evenkeel_threshold::{Strategy, Timestamp};

use super::Engine;
use crate::slot::Slot;
use crate::{CheckId, SavedCheck, Token};

/// What survives the process.
impl<D: Eq, W: Token, S: Strategy + Eq> Engine<D, W, S> {
    /// Takes in saved checks, to be resumed when a catalog update names them.
    /// Checks that are known already are not touched. Usually called once, before
    /// the first [`Engine::handle_catalog`].
    ///
    /// A check whose status in the catalog is another one than the saved starts
    /// anew from the catalog's. Nothing is ever written for a restored state
    /// before a probe has confirmed it.
    pub fn restore(&mut self, saved: impl IntoIterator<Item = SavedCheck>) {
        let index = &self.index;
        let unknown = saved
            .into_iter()
            .filter(|check| !index.contains_key(&check.id));
        self.restored.add(unknown);
    }

    /// What has to be saved so that another engine can go on.
    pub fn snapshot(&self, _now: Timestamp) -> impl Iterator<Item = SavedCheck> {
        let live = self.slots.iter().filter(|slot| !slot.departed);
        live.map(Slot::save).chain(self.restored.iter().cloned())
    }

    /// The same of one check, for a hand-over.
    pub fn snapshot_of(&self, id: &CheckId) -> Option<SavedCheck> {
        let slot = self.index.get(id).and_then(|&key| self.slots.get(key));
        match slot.filter(|slot| !slot.departed) {
            Some(slot) => Some(slot.save()),
            None => self.restored.get(id).cloned(),
        }
    }
}

impl<D, W, S: Strategy> Slot<D, W, S> {
    fn save(&self) -> SavedCheck {
        SavedCheck {
            id: self.id.clone(),
            record: self.strategy.save(&self.state),
            critical_since: self.critical_since,
            last_transition: self.last_transition,
            next_due: self.next_due,
        }
    }
}
