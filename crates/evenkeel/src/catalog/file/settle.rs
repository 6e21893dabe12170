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
