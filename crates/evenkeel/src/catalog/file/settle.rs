//! When a changed file may be judged: a file that is just being written is not
//! what its writer means, and half a list of checks reads without a fault.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

/// What a look at the file tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It is what was judged last.
    Same,
    /// It has changed since the last look; it may go on changing.
    Unsettled,
    /// It has changed since it was judged, and not since the last look.
    Settled(Vec<u8>),
    /// It cannot be read; why.
    Unreadable(String),
}

/// A file's times have a limited resolution, so one that just changed is read a
/// few times more although it looks the same.
const READS_AFTER_A_CHANGE: u32 = 3;

/// Whether a file has to be read, by what the system says of it (`S`).
#[derive(Debug)]
pub(super) struct Quiet<S> {
    last: Option<S>,
    reads_left: u32,
}

impl<S: PartialEq> Quiet<S> {
    pub(super) const fn new() -> Self {
        Self {
            last: None,
            reads_left: READS_AFTER_A_CHANGE,
        }
    }

    /// Whether to read the file that looks like `stamp` now; one that is not
    /// there is always tried.
    pub(super) fn must_read(&mut self, stamp: Option<S>) -> bool {
        if stamp.is_none() || stamp != self.last {
            self.last = stamp;
            self.reads_left = READS_AFTER_A_CHANGE;
            return true;
        }
        let must = self.reads_left > 0;
        self.reads_left = self.reads_left.saturating_sub(1);
        must
    }

    /// The file is not as it was: look at it closely for a while.
    pub(super) fn disturb(&mut self) {
        self.reads_left = READS_AFTER_A_CHANGE;
    }
}

/// Remembers versions of a file by their hashes.
#[derive(Debug, Default)]
pub(super) struct Settling {
    judged: Option<u64>,
    seen: Option<u64>,
}

impl Settling {
    /// What was judged before the first look.
    pub(super) fn after(bytes: &[u8]) -> Self {
        Self {
            judged: Some(hash(bytes)),
            seen: None,
        }
    }

    /// Takes in one look.
    pub(super) fn look(&mut self, content: Result<Vec<u8>, String>) -> Look {
        let bytes = match content {
            Ok(bytes) => bytes,
            Err(text) => {
                self.seen = None;
                return Look::Unreadable(text);
            }
        };
        let found = Some(hash(&bytes));
        if found == self.judged {
            self.seen = None;
            return Look::Same;
        }
        if found == self.seen {
            self.judged = found;
            self.seen = None;
            return Look::Settled(bytes);
        }
        self.seen = found;
        Look::Unsettled
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
