//! The catalog: entries, each with the index of its last change, compared and
//! set in transactions that are all or nothing.

use std::collections::{BTreeMap, VecDeque};

use evenkeel_engine::{CheckId, Token, output_hash};
use evenkeel_threshold::Status;

use crate::spec::Rule;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Index(pub(crate) u64);

impl Token for Index {
    fn is_older_than(&self, other: &Self) -> bool {
        self < other
    }
}

/// What is probed: the target, and how often the user has edited it.
pub(crate) type Definition = (usize, u32);

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) definition: Definition,
    /// Seconds.
    pub(crate) interval: u64,
    pub(crate) status: Status,
    pub(crate) output: String,
    pub(crate) index: u64,
    /// In the metadata, so that a change does not touch `index`.
    pub(crate) rule: Rule,
    /// Seconds.
    pub(crate) limit: Option<u64>,
}

pub(crate) type List = BTreeMap<CheckId, Entry>;

pub(crate) struct Catalog {
    pub(crate) entries: List,
    index: u64,
    /// Goes up with every change, also of metadata.
    pub(crate) version: u64,
    /// What the servers that lag still have: version and list.
    history: VecDeque<(u64, List)>,
}

/// One operation of a transaction.
#[derive(Debug, Clone)]
pub(crate) struct Set {
    pub(crate) id: CheckId,
    pub(crate) index: u64,
    pub(crate) status: Status,
    pub(crate) output: String,
}

impl Catalog {
    pub(crate) fn new() -> Self {
        Self {
            entries: List::new(),
            index: 100,
            version: 0,
            history: VecDeque::new(),
        }
    }

    /// Any change, by whomever.
    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&mut List, u64) -> T) -> T {
        self.index += 1;
        self.version += 1;
        let changed = change(&mut self.entries, self.index);
        self.history.push_back((self.version, self.entries.clone()));
        if self.history.len() > 12 {
            self.history.pop_front();
        }
        changed
    }

    /// The index of all entries afterwards, or nothing changed.
    pub(crate) fn transact(&mut self, sets: &[Set]) -> Option<u64> {
        let fits = |set: &Set| {
            let entry = self.entries.get(&set.id);
            entry.is_some_and(|entry| entry.index == set.index)
        };
        if !sets.iter().all(fits) {
            return None;
        }
        Some(self.change(|entries, index| {
            for set in sets {
                if let Some(entry) = entries.get_mut(&set.id) {
                    entry.status = set.status;
                    entry.output = set.output.clone();
                    entry.index = index;
                }
            }
            index
        }))
    }

    /// The list as a server has it that lags by so many changes.
    pub(crate) fn list(&self, lag: usize) -> (u64, List) {
        match self.history.len().checked_sub(1 + lag) {
            Some(position) => self.history[position].clone(),
            None => (self.version, self.entries.clone()),
        }
    }
}

impl Entry {
    pub(crate) fn hash(&self) -> u64 {
        output_hash(&self.output)
    }
}
