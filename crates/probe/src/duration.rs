//! Durations as people write them: `10s`, `500ms`, `1m30s`.
//!
//! The grammar is that of [`evenkeel_threshold::duration`]. With the feature `serde`
//! the module fits `#[serde(with = "evenkeel_probe::duration")]`; a bare number
//! is refused there, since its unit would be a guess.

use std::time::Duration;

use evenkeel_threshold::duration;
pub use evenkeel_threshold::duration::format;
use thiserror::Error;

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DurationError {
    /// Nothing there.
    #[error("a duration is empty: write it as 10s, 500ms or 1m30s")]
    Empty,
    /// A number without a unit, other than 0.
    #[error("the duration `{0}` has no unit: write it as 10s, 500ms or 1m30s")]
    NoUnit(String),
    /// A unit that is not one, no number, a sign, a blank, …
    #[error("`{0}` is no duration: write it as 10s, 500ms or 1m30s")]
    Malformed(String),
    /// More than `u64::MAX` nanoseconds, which is 584 years.
    #[error("the duration `{0}` is too long")]
    TooLong(String),
}

/// Reads `text`. Parts of a nanosecond are dropped.
///
/// # Errors
/// A [`DurationError`] that names the text.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    duration::parse(text).map_err(|error| match error {
        duration::DurationError::Empty => DurationError::Empty,
        duration::DurationError::NoUnit => DurationError::NoUnit(text.to_owned()),
        duration::DurationError::TooLong => DurationError::TooLong(text.to_owned()),
        _ => DurationError::Malformed(text.to_owned()),
    })
}

/// Writes a duration as text.
///
/// # Errors
/// Those of the serialiser.
#[cfg(feature = "serde")]
pub fn serialize<S: serde::Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format(*duration))
}

/// Reads a duration from text.
///
/// # Errors
/// Those of the deserialiser, and a [`DurationError`] as its custom error.
#[cfg(feature = "serde")]
pub fn deserialize<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    struct Visitor;

    impl serde::de::Visitor<'_> for Visitor {
        type Value = Duration;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a duration such as \"10s\", \"500ms\" or \"1m30s\"")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Duration, E> {
            parse(text).map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Visitor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_duration_is_told_with_its_text() {
        assert_eq!(parse(""), Err(DurationError::Empty));
        assert_eq!(parse("3"), Err(DurationError::NoUnit("3".into())));
        assert_eq!(parse("10 s"), Err(DurationError::Malformed("10 s".into())));
        assert_eq!(
            parse("6000000h"),
            Err(DurationError::TooLong("6000000h".into()))
        );
    }
}
