use core::fmt;
use core::str::FromStr;

/// What is published of a check, in Consul's three levels and spelling.
///
/// Ordered by severity: `Passing < Warning < Critical`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[repr(u8)]
pub enum Status {
    /// The check works.
    Passing = 0,
    /// The check works with reservations, e.g. an HTTP 429.
    Warning = 1,
    /// The check does not work.
    Critical = 2,
}

impl Status {
    /// All three, from best to worst.
    pub const ALL: [Self; 3] = [Self::Passing, Self::Warning, Self::Critical];

    /// The word Consul uses: `passing`, `warning` or `critical`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passing => "passing",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }

    /// The inverse of `self as u8`.
    pub(crate) const fn from_u8(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Passing),
            1 => Some(Self::Warning),
            2 => Some(Self::Critical),
            _ => None,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Status {
    type Err = ParseStatusError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or(ParseStatusError)
    }
}

/// The text is none of `passing`, `warning` and `critical`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseStatusError;

impl fmt::Display for ParseStatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a status: expected `passing`, `warning` or `critical`")
    }
}

impl core::error::Error for ParseStatusError {}
