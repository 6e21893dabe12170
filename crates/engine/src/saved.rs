use evenkeel_threshold::{Record, Status, Timestamp};

use crate::CheckId;

/// What of one check survives the process. Plain data, for the shell to store
/// in whatever form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedCheck {
    /// Who it is.
    pub id: CheckId,
    /// The strategy's state.
    pub record: Record,
    /// Since when the reported status has been critical; `None` if it is not.
    pub critical_since: Option<Timestamp>,
    /// The last change of the reported status.
    pub last_transition: Option<LastTransition>,
    /// When the next probe was due: the check's phase.
    pub next_due: Timestamp,
}

/// The last change of a reported status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastTransition {
    /// When.
    pub at: Timestamp,
    /// The status before.
    pub from: Status,
}
