use std::fmt;
use std::hash::{Hash, Hasher};

use regex::bytes::{Regex, RegexBuilder};

use super::DefinitionError;

/// A compiled pattern takes no more memory than this, in bytes: the pattern may
/// be somebody else's.
const MOST_COMPILED: usize = 256 * 1024;

/// What an answer must have in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expected {
    /// These bytes, somewhere.
    Bytes(Box<[u8]>),
    /// A match of this pattern.
    Match(Pattern),
}

impl Expected {
    /// From the two ways of writing it, of which one may be given.
    ///
    /// # Errors
    /// [`DefinitionError::Option`] for both at once, or a wrong pattern.
    pub fn of(bytes: Option<&str>, pattern: Option<&str>) -> Result<Option<Self>, DefinitionError> {
        match (bytes, pattern) {
            (None, None) => Ok(None),
            (Some(bytes), None) => Ok(Some(Self::Bytes(bytes.as_bytes().into()))),
            (None, Some(pattern)) => {
                Pattern::new(pattern).map(|pattern| Some(Self::Match(pattern)))
            }
            (Some(_), Some(_)) => Err(DefinitionError::option(
                "expect_regex",
                "stands beside expect; take one of them",
            )),
        }
    }

    /// Whether `answer` is as expected.
    pub fn is_met(&self, answer: &[u8]) -> bool {
        match self {
            Self::Bytes(bytes) if bytes.is_empty() => true,
            Self::Bytes(bytes) => answer.windows(bytes.len()).any(|part| *part == **bytes),
            Self::Match(pattern) => pattern.0.is_match(answer),
        }
    }
}

/// For texts: what is missing.
impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Match(pattern) => write!(f, "a match of \"{}\"", pattern.as_str()),
        }
    }
}

/// A regular expression of the crate `regex`, on bytes. Equal if its text is.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// [`DefinitionError::Option`] if it is no regular expression or takes too
    /// much memory.
    pub fn new(text: &str) -> Result<Self, DefinitionError> {
        let compiled = RegexBuilder::new(text)
            .size_limit(MOST_COMPILED)
            .dfa_size_limit(MOST_COMPILED)
            .build();
        compiled.map(Self).map_err(|error| {
            // The last line says what is wrong; those before draw where.
            let error = error.to_string();
            let reason = error.lines().last().unwrap_or_default();
            DefinitionError::option("expect_regex", format!("{text}: {reason}"))
        })
    }

    /// Whether it matches somewhere in `bytes`.
    pub fn is_match(&self, bytes: &[u8]) -> bool {
        self.0.is_match(bytes)
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}
