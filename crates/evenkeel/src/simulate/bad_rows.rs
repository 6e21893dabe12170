use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_replay::BadRow;

use crate::exit::{Exit, Failure};

/// What becomes of rows that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnBadRows {
    /// They end the simulation, once all have been counted. Otherwise they are
    /// left out.
    pub refuse: bool,
    /// So many of them are named.
    pub named: usize,
}

/// Rows that were not used.
#[derive(Debug, Clone)]
pub struct BadRows {
    on: OnBadRows,
    /// How many of each kind.
    pub kinds: BTreeMap<&'static str, u64>,
    /// The first ones, with the file that they are from.
    pub named: Vec<(Arc<str>, BadRow)>,
}

impl BadRows {
    pub(super) fn new(on: OnBadRows) -> Self {
        Self {
            on,
            kinds: BTreeMap::new(),
            named: Vec::new(),
        }
    }

    pub(super) fn count(&mut self, file: &Arc<str>, row: BadRow) {
        *self.kinds.entry(row.fault.kind()).or_default() += 1;
        if self.named.len() < self.on.named {
            self.named.push((Arc::clone(file), row));
        }
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.kinds.values().sum()
    }

    /// One line for each that is named, and one for the others.
    pub fn messages(&self) -> Vec<String> {
        let mut messages: Vec<String> = self
            .named
            .iter()
            .map(|(file, row)| format!("{file}: {row}"))
            .collect();
        let more = self.total() - self.named.len() as u64;
        if more > 0 {
            let before = if self.named.is_empty() { "" } else { "more " };
            messages.push(format!("{more} {before}bad rows"));
        }
        messages
    }

    /// Whether the simulation may go on.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        if !self.on.refuse || self.total() == 0 {
            return Ok(());
        }
        let mut messages = self.messages();
        messages.push("refused for its bad rows; --bad-rows skip leaves them out".to_owned());
        Err(Failure {
            exit: Exit::Data,
            messages,
        })
    }
}
