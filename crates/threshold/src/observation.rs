use crate::Status;

/// One result of one probe.
///
/// A probe that *could not be run* is not an observation: it must count neither
/// for nor against a status, so a strategy never sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Observation {
    /// What the probe found.
    pub status: Status,
    /// The result belongs to a class that bypasses the counts, e.g. a drain
    /// signal: it is reported at once.
    pub immediate: bool,
}

impl Observation {
    /// A result that counts as the strategy says.
    pub const fn counted(status: Status) -> Self {
        Self {
            status,
            immediate: false,
        }
    }

    /// A result that is reported at once.
    pub const fn immediate(status: Status) -> Self {
        Self {
            status,
            immediate: true,
        }
    }
}

impl From<Status> for Observation {
    fn from(status: Status) -> Self {
        Self::counted(status)
    }
}

/// A change of the reported status. `from` and `to` always differ, and the
/// `from` of one is the `to` of the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Transition {
    /// The status reported until now.
    pub from: Status,
    /// The status reported from now on.
    pub to: Status,
}

impl Transition {
    /// `None` if there is no change.
    #[inline]
    pub(crate) fn between(from: Status, to: Status) -> Option<Self> {
        (from != to).then_some(Self { from, to })
    }
}
