use crate::{Status, Timestamp};

/// What a state waits for, as data for a user interface to word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outlook {
    /// No result speaks against the reported status; nothing is pending.
    Settled,
    /// There is no result yet, and the first one is reported as it is.
    FirstResult,
    /// `seen` of `needed` counted results toward another status: "2 of 4
    /// failures". `0 < seen < needed`. If only results like the latest one in
    /// this count follow, the flip comes with number `needed - seen` of them.
    Counting {
        /// The status that would be reported then. While failures are counted
        /// toward `warning` this can be better than what the results say.
        toward: Status,
        /// Contrary results counted so far.
        seen: u32,
        /// Contrary results at which the status changes.
        needed: u32,
        /// What one agreeing result does to the count.
        agreeing: Agreeing,
    },
    /// Time has to pass: the status may change at `until`, or with the first
    /// result after it where [`Strategy::deadline`](crate::Strategy::deadline)
    /// names no time.
    Waiting {
        /// The status it would change to, if results like the latest follow; the
        /// reported one if that would be confirmed.
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
    /// It takes the place of the oldest result that counts; if that was a
    /// contrary one, the count goes down by one (`window`).
    TakesOldestsPlace,
    /// All that was counted weighs less (`ewma`, `cusum`).
    LessensAll,
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
