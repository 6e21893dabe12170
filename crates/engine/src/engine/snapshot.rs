use evenkeel_threshold::{Strategy, Timestamp};

use super::Engine;
use crate::{SavedCheck, Token};

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
        let live = live.map(|slot| SavedCheck {
            id: slot.id.clone(),
            record: slot.strategy.save(&slot.state),
            critical_since: slot.critical_since,
            last_transition: slot.last_transition,
            next_due: slot.next_due,
        });
        live.chain(self.restored.iter().cloned())
    }
}
