use crate::Status;
use crate::payload::Fields;

/// Which strategy a [`Record`] belongs to. 0 to 127 are this crate's; an
/// embedder's own strategy takes one from 128 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StrategyTag(pub u8);

/// A saved state: compact, versioned, and readable by another strategy as far
/// as the reported status goes.
///
/// Layout: tag, version, reported status (0 passing, 1 warning, 2 critical),
/// then at most [`Record::MAX_PAYLOAD`] bytes that only the strategy reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    tag: StrategyTag,
    version: u8,
    reported: Status,
    len: u8,
    payload: [u8; Record::MAX_PAYLOAD],
}

impl Record {
    /// The most bytes a strategy's own part may have: room for two records of this
    /// crate's strategies.
    pub const MAX_PAYLOAD: usize = 48;

    /// A record of the strategy `tag` in its format `version`.
    ///
    /// A payload longer than [`Record::MAX_PAYLOAD`] gives `None`.
    pub fn new(tag: StrategyTag, version: u8, reported: Status, payload: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MAX_PAYLOAD];
        bytes.get_mut(..payload.len())?.copy_from_slice(payload);
        Some(Self {
            tag,
            version,
            reported,
            len: payload.len() as u8,
            payload: bytes,
        })
    }

    /// [`Record::new`] for a payload whose length is known; one that is too long
    /// does not compile.
    pub fn with_payload<const N: usize>(
        tag: StrategyTag,
        version: u8,
        reported: Status,
        payload: [u8; N],
    ) -> Self {
        const {
            assert!(
                N <= Self::MAX_PAYLOAD,
                "the payload is longer than a record has room for"
            );
        }
        let mut bytes = [0; Self::MAX_PAYLOAD];
        bytes[..N].copy_from_slice(&payload);
        Self {
            tag,
            version,
            reported,
            len: N as u8,
            payload: bytes,
        }
    }

    /// Reads what [`Record::write`] wrote; `None` if it is too short, too long
    /// or names no status.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let [tag, version, reported, payload @ ..] = bytes else {
            return None;
        };
        Self::new(
            StrategyTag(*tag),
            *version,
            Status::from_u8(*reported)?,
            payload,
        )
    }

    /// The record as bytes: the first `.1` bytes of `.0`.
    pub fn write(&self) -> ([u8; Self::MAX_PAYLOAD + 3], usize) {
        let mut bytes = [0; Self::MAX_PAYLOAD + 3];
        bytes[0] = self.tag.0;
        bytes[1] = self.version;
        bytes[2] = self.reported as u8;
        bytes[3..].copy_from_slice(&self.payload);
        (bytes, usize::from(self.len) + 3)
    }

    /// The payload, if strategy `tag` saved the record in format `version`.
    ///
    /// # Errors
    ///
    /// It did not; the reason is one to restart the state for.
    pub fn expect_version(&self, tag: StrategyTag, version: u8) -> Result<&[u8], RestartReason> {
        if self.tag != tag {
            Err(RestartReason::OtherStrategy)
        } else if self.version != version {
            Err(RestartReason::OtherVersion)
        } else {
            Ok(self.payload())
        }
    }

    /// The strategy that saved it.
    pub const fn tag(&self) -> StrategyTag {
        self.tag
    }

    /// The strategy's format version.
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// The status that was reported when it was saved.
    pub const fn reported(&self) -> Status {
        self.reported
    }

    /// The strategy's own part.
    pub fn payload(&self) -> &[u8] {
        &self.payload[..usize::from(self.len)]
    }
}

/// What came of loading a [`Record`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loaded<T> {
    /// The state goes on where it was saved.
    Resumed(T),
    /// The state starts anew from the reported status.
    Restarted(T, RestartReason),
}

impl<T> Loaded<T> {
    /// What [`Strategy::load`](crate::Strategy::load) has to do: `read` reads
    /// the whole payload, if strategy `tag` saved it in format `version`, and
    /// gives `None` for one that makes no sense.
    pub(crate) fn read(
        record: &Record,
        tag: StrategyTag,
        version: u8,
        read: impl FnOnce(&mut Fields<'_>) -> Option<T>,
        restart: impl FnOnce() -> T,
    ) -> Self {
        let payload = match record.expect_version(tag, version) {
            Ok(payload) => payload,
            Err(reason) => return Self::Restarted(restart(), reason),
        };
        let mut fields = Fields(payload);
        match read(&mut fields) {
            Some(state) if fields.end().is_some() => Self::Resumed(state),
            _ => Self::Restarted(restart(), RestartReason::Damaged),
        }
    }

    /// The state, whichever way it came about.
    pub fn into_state(self) -> T {
        match self {
            Self::Resumed(state) | Self::Restarted(state, _) => state,
        }
    }

    /// Maps the state.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Loaded<U> {
        match self {
            Self::Resumed(state) => Loaded::Resumed(f(state)),
            Self::Restarted(state, reason) => Loaded::Restarted(f(state), reason),
        }
    }
}

/// Why a saved state could not be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestartReason {
    /// Another strategy saved it.
    OtherStrategy,
    /// Another version of the strategy saved it.
    OtherVersion,
    /// The strategy's own part makes no sense.
    Damaged,
}
