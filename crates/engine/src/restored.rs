use std::collections::{HashMap, HashSet};

use evenkeel_threshold::Timestamp;

use crate::{CheckId, SavedCheck, Settings};

/// Saved checks that no catalog update has named yet.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    checks: HashMap<CheckId, SavedCheck>,
    /// When they are forgotten; set by the first update.
    until: Option<Timestamp>,
}

impl Restored {
    pub(crate) fn add(&mut self, saved: impl IntoIterator<Item = SavedCheck>) {
        self.until = None;
        let saved = saved.into_iter();
        self.checks
            .extend(saved.map(|check| (check.id.clone(), check)));
    }

    pub(crate) fn get(&self, id: &CheckId) -> Option<&SavedCheck> {
        self.checks.get(id)
    }

    pub(crate) fn take(&mut self, id: &CheckId) -> Option<SavedCheck> {
        self.checks.remove(id)
    }

    /// Called after each update.
    pub(crate) fn expire(&mut self, settings: &Settings, keep: &HashSet<CheckId>, now: Timestamp) {
        if self.checks.is_empty() {
            return;
        }
        let until = *self
            .until
            .get_or_insert(now.saturating_add(settings.restored_retention));
        if now >= until {
            self.checks.retain(|id, _| keep.contains(id));
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &SavedCheck> {
        self.checks.values()
    }
}
