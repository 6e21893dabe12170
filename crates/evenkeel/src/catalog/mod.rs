//! Where checks come from, and what every source of them delivers.
//!
//! A catalog is a task that sends a [`CatalogMessage`] whenever something has
//! changed. The loop that owns the checks takes whole lists and finds the
//! differences itself.

pub mod consul;
pub mod file;

use std::collections::HashSet;
use std::sync::Arc;

use evenkeel_engine::{CatalogCheck, CheckId};
use evenkeel_threshold::AnyStrategy;
use tokio::sync::mpsc;

use crate::thresholds::EffectiveThresholds;

mod definition;
mod token;

pub use definition::{Aliased, Definition};
pub use token::Token;

/// One check with its thresholds explained.
#[derive(Debug, Clone)]
pub struct Watched {
    /// What the engine needs of it.
    pub check: CatalogCheck<Definition, Token, AnyStrategy>,
    /// Where its strategy comes from, and what is wrong in the sources.
    pub thresholds: Arc<EffectiveThresholds>,
}

/// A whole list of checks.
#[derive(Debug, Clone, Default)]
pub struct CatalogView {
    /// All that can be probed.
    pub checks: Vec<Watched>,
    /// Checks that are missing in the answer but must not be dropped, since the
    /// answer may have been filtered.
    pub keep: HashSet<CheckId>,
    /// Checks of a kind that is not supported.
    pub unsupported: Vec<Unsupported>,
    /// Entries that are wrong, and what is wrong with them.
    pub faults: Vec<CatalogFault>,
    /// Why the list is not to be trusted as a whole: the daemon is not ready
    /// then.
    pub degraded: Option<String>,
}

/// A check that is not probed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unsupported {
    /// Who it is.
    pub id: CheckId,
    /// A stable word, one of
    /// [`UNSUPPORTED_KINDS`](crate::metrics::UNSUPPORTED_KINDS).
    pub kind: &'static str,
    /// Why it is not probed, for people.
    pub reason: String,
}

/// An entry of the catalog that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CatalogFault {
    /// The check, if it is about one.
    pub id: Option<CheckId>,
    /// What is wrong, for people.
    pub text: String,
}

/// What a catalog says.
#[derive(Debug)]
pub enum CatalogMessage {
    /// This is the list from now on.
    View(CatalogView),
    /// The list cannot be read; the last one stands. The text says why.
    Trouble(String),
    /// Another monitor is registered that may write the same checks, or none is.
    OtherMonitor(Option<String>),
}

/// The way from a catalog to the loop. Room for one message: a catalog that is
/// faster than the loop waits.
pub type CatalogSender = mpsc::Sender<CatalogMessage>;
