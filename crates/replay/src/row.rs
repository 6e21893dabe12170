use std::fmt;

use evenkeel_threshold::{Status, Timestamp};

/// The most bytes of a check's name.
pub const LONGEST_NAME: usize = 1024;

/// One result of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// The line of the file that it comes from, from 1 on.
    pub line: u64,
    /// When, in Unix milliseconds.
    pub time: Timestamp,
    /// The check's name.
    pub check: &'a str,
    /// What the probe found; `None` if it could not be run, which says nothing
    /// about the target.
    pub status: Option<Status>,
}

/// A row that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The line of the file, from 1 on.
    pub line: u64,
    /// What is wrong with it.
    pub fault: Fault,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.fault)
    }
}

/// Why a row cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The line is longer than 64 KiB; it was skipped to its end.
    #[error("longer than {} KiB", crate::lines::LONGEST / 1024)]
    LongLine,
    /// A quoted field does not end on its line.
    #[error("a quote is not closed on its line")]
    OpenQuote,
    /// There are fewer fields than columns that are needed, or hundreds.
    #[error("{found} fields, {needed} are needed")]
    Fields {
        /// Fields on the line.
        found: usize,
        /// Fields wanted at least.
        needed: usize,
    },
    /// The time cannot be read.
    #[error("`{0}` is no time: Unix seconds, Unix milliseconds or RFC 3339")]
    Time(Snippet),
    /// The status cannot be read.
    #[error("`{0}` is no status such as passing, warning, critical, up or down")]
    Status(Snippet),
    /// The check has no name.
    #[error("the check has no name")]
    NoName,
    /// The check's name is not UTF-8.
    #[error("the name of the check is not UTF-8")]
    NameNotUtf8,
    /// The check's name is longer than [`LONGEST_NAME`].
    #[error("the name of the check is longer than {LONGEST_NAME} bytes")]
    LongName,
    /// The line is no JSON object, or has a value of the wrong kind.
    #[error("not a result in JSON: {0}")]
    Json(Snippet),
    /// A key is missing in a JSON object.
    #[error("no `{0}`")]
    Missing(&'static str),
    /// An event lies so far after the one before it of its check that the results
    /// between them are not made up.
    #[error(
        "too long after the event before it of this check: nothing is taken to be known in between"
    )]
    FarEvent,
    /// The time is before that of the row before it of the same check.
    #[error("before the row before it of this check; sort the history by time")]
    Backwards,
    /// Time, check and status are those of the row before it of this check.
    #[error("the same as the row before it of this check")]
    Duplicate,
    /// Time and check are those of the row before it of this check, the status is
    /// not.
    #[error("another status at the time of the row before it of this check")]
    Contradiction,
    /// There are more checks than are kept.
    #[error("there are more than {0} checks, and this is one more")]
    ManyChecks(usize),
}

impl Fault {
    /// A word for the kind of fault, for counts: `time`, `duplicate`, …
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::LongLine => "long_line",
            Self::OpenQuote => "open_quote",
            Self::Fields { .. } => "fields",
            Self::Time(_) => "time",
            Self::Status(_) => "status",
            Self::NoName | Self::NameNotUtf8 | Self::LongName => "name",
            Self::Json(_) | Self::Missing(_) => "json",
            Self::FarEvent => "far_event",
            Self::Backwards => "backwards",
            Self::Duplicate => "duplicate",
            Self::Contradiction => "contradiction",
            Self::ManyChecks(_) => "many_checks",
        }
    }
}

/// The beginning of a text from a file, fit to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet(Box<str>);

impl Snippet {
    const LONGEST: usize = 60;

    pub(crate) fn new(text: &[u8]) -> Self {
        // A character is at most four bytes long, and what is cut in two at the
        // end is beyond what is shown.
        let head = &text[..text.len().min(Self::LONGEST * 4 + 4)];
        let text = String::from_utf8_lossy(head);
        let mut shown: String = text
            .chars()
            .take(Self::LONGEST)
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect();
        if text.chars().nth(Self::LONGEST).is_some() {
            shown.push('…');
        }
        Self(shown.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Snippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
