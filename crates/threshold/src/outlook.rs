use crate::{Status, Timestamp};

/// What a state waits for, as data for a user interface to word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outlook {
    /// The latest results agree with the reported status; nothing is pending.
    Settled,
    /// `seen` of `needed` counted results toward another status: "2 of 4
    /// failures". `seen < needed`; the flip comes with result number `needed`.
    Counting {
        /// The status that the latest contrary result had.
        toward: Status,
        /// Contrary results counted so far.
        seen: u32,
        /// Contrary results at which the status changes.
        needed: u32,
        /// What one agreeing result does to the count.
        agreeing: Agreeing,
    },
    /// Time alone decides: the status may change at `until`.
    Waiting {
        /// The status it would change to.
        toward: Status,
        /// When.
        until: Timestamp,
    },
}

/// What one result that agrees with the reported status does to a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Agreeing {
    /// The count starts anew (`consecutive`).
    Resets,
    /// The count goes down by one (`leaky`).
    TakesOneOff,
}

/// A remark on the reported status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Mark {
    /// No remark.
    #[default]
    None,
    /// The results change too often; the status is of little worth.
    Flapping,
    /// Changes are held back; the status is an earlier one.
    Suppressed,
}
