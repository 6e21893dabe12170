use core::time::Duration;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use evenkeel_threshold::{FirstResult, Status};

use crate::CheckId;

/// What a catalog needs back to write a status: for Consul the index of the
/// entry and how to write it. The engine knows only its age.
pub trait Token: Clone {
    /// Whether `self` belongs to an earlier state of the entry than `other`.
    ///
    /// A strict order: of two tokens of the same state neither is older. A
    /// catalog that has forgotten its past (Consul restored from a backup counts
    /// from a lower index) must give tokens that are not older than those before,
    /// e.g. by an epoch that goes first in the comparison; else its entries
    /// would be ignored.
    fn is_older_than(&self, other: &Self) -> bool;

    /// Whether the catalog keeps the status. `false` for a catalog that only
    /// defines checks, such as a file: then the status of an entry is where a
    /// check without a saved state starts, and nothing more.
    fn keeps_status(&self) -> bool {
        true
    }
}

/// One check as the catalog has it.
#[derive(Debug, Clone)]
pub struct CatalogCheck<D, W, S> {
    /// Who it is.
    pub id: CheckId,
    /// What to probe. Any change of it restarts the check.
    pub definition: Arc<D>,
    /// Time from the start of one probe to the start of the next; zero for
    /// [`Settings::default_interval`](crate::Settings::default_interval), at
    /// least [`Settings::minimum_interval`](crate::Settings::minimum_interval).
    /// Part of the definition.
    pub interval: Duration,
    /// After how long a probe ends by itself; zero for
    /// [`Settings::default_timeout`](crate::Settings::default_timeout). The
    /// engine does not enforce it, it only takes a probe for lost some time
    /// after. Part of the definition.
    pub timeout: Duration,
    /// The status in the catalog.
    pub status: Status,
    /// [`output_hash`] of the text in the catalog.
    pub output_hash: u64,
    /// What a write needs.
    pub token: W,
    /// The rule from results to statuses. A changed one keeps the counts.
    pub strategy: Arc<S>,
    /// What the first result means.
    pub first_result: FirstResult,
    /// Remove the service once the check has been critical for this long.
    /// A change of it restarts nothing.
    pub deregister_after: Option<Duration>,
}

/// The whole list of checks. To be handed in when it changed, and now and then
/// when it did not: that what was removed is still there can only be told by a
/// list that was read afterwards.
#[derive(Debug, Clone)]
pub struct CatalogUpdate<D, W, S> {
    /// All checks. Of two with the same identity the first one counts.
    pub checks: Vec<CatalogCheck<D, W, S>>,
    /// Checks that are missing above but must not be dropped, since the answer
    /// may have been filtered. They go on as they are.
    pub keep: HashSet<CheckId>,
}

impl<D, W, S> CatalogUpdate<D, W, S> {
    /// An authoritative list: what is missing is dropped.
    pub fn all(checks: Vec<CatalogCheck<D, W, S>>) -> Self {
        Self {
            checks,
            keep: HashSet::new(),
        }
    }
}

/// How many checks an update touched, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CatalogDiff {
    /// Checks not known before.
    pub added: usize,
    /// Checks dropped.
    pub removed: usize,
    /// Checks restarted since their definition changed.
    pub restarted: usize,
    /// Checks whose strategy changed.
    pub rethresholded: usize,
    /// Checks with the same definition and strategy, whatever their status.
    pub unchanged: usize,
}

impl CatalogDiff {
    /// Whether any check came, went, was restarted or got another strategy.
    pub fn is_empty(&self) -> bool {
        let Self {
            added,
            removed,
            restarted,
            rethresholded,
            unchanged: _,
        } = *self;
        added + removed + restarted + rethresholded == 0
    }
}

/// A hash of a check's text. The same within one process; not for storage.
pub fn output_hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}
