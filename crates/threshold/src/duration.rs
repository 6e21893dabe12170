//! Durations as people write them: `10s`, `500ms`, `1m30s`.
//!
//! The grammar is that of Go's `time.ParseDuration` without signs, which
//! Consul's definitions use too: decimal numbers, each with a unit of `ns`,
//! `us` (`µs`), `ms`, `s`, `m` or `h`, and `0` alone.

use core::fmt;
use core::time::Duration;

/// Why a text is no duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DurationError {
    /// Nothing there.
    Empty,
    /// A number without a unit, other than 0.
    NoUnit,
    /// A unit that is not one, no number, a sign, a blank, …
    Malformed,
    /// More than `u64::MAX` nanoseconds, which is 584 years.
    TooLong,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "an empty text is no duration",
            Self::NoUnit => "a duration needs a unit",
            Self::Malformed => "not a duration",
            Self::TooLong => "a duration of more than 584 years",
        })
    }
}

impl core::error::Error for DurationError {}

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads `text`. Parts of a nanosecond are dropped.
///
/// # Errors
///
/// `text` is no duration.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut total = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split_digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(DurationError::Malformed);
        }
        let unit_len = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_len);
        if unit.is_empty() {
            return Err(DurationError::NoUnit);
        }
        let nanos = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, nanos)| *nanos)
            .ok_or(DurationError::Malformed)?;
        let whole = match whole {
            "" => 0,
            digits => digits.parse::<u64>().map_err(|_| DurationError::TooLong)?,
        };
        total = whole
            .checked_mul(nanos)
            .and_then(|part| part.checked_add(fraction_of(fraction, nanos)))
            .and_then(|part| total.checked_add(part))
            .ok_or(DurationError::TooLong)?;
        rest = after;
    }
    Ok(Duration::from_nanos(total))
}

/// `0.fraction` of `nanos`, rounded down; digits past the 18th cannot matter
/// (an hour has 3.6e12 nanoseconds).
fn fraction_of(fraction: &str, nanos: u64) -> u64 {
    let mut value = 0_u128;
    let mut scale = 1_u128;
    for digit in fraction.bytes().take(18) {
        value = value * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    // Less than `nanos`, as the fraction is less than one.
    (value * u128::from(nanos) / scale) as u64
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    )
}

/// `duration` in the form that [`parse`] reads, in the largest units that stay
/// exact: `1m30s`, `1500ms`, `0s`. Nanoseconds past `u64::MAX` are cut to it.
pub fn format(duration: Duration) -> impl fmt::Display {
    Text(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

struct Text(u64);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND: u64 = 1_000_000_000;
        let nanos = self.0;
        if !nanos.is_multiple_of(SECOND) {
            return if nanos.is_multiple_of(1_000_000) {
                write!(f, "{}ms", nanos / 1_000_000)
            } else if nanos.is_multiple_of(1_000) {
                write!(f, "{}us", nanos / 1_000)
            } else {
                write!(f, "{nanos}ns")
            };
        }
        let seconds = nanos / SECOND;
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        if seconds > 0 || nanos == 0 {
            write!(f, "{seconds}s")?;
        }
        Ok(())
    }
}

/// A duration as a number of milliseconds, for `#[serde(with)]`.
#[cfg(feature = "serde")]
pub(crate) mod millis {
    use core::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    // serde asks for a reference.
    pub(crate) fn serialize<S: Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(duration.as_millis().min(u128::from(u64::MAX)) as u64)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}
