//! Durations as people write them: `10s`, `500ms`, `1m30s`.
//!
//! The grammar is that of Go's `time.ParseDuration` without signs, which
//! Consul's definitions use too: decimal numbers, each with a unit of `ns`,
//! `us` (`µs`), `ms`, `s`, `m` or `h`, and `0` alone. With the feature `serde`
//! the module fits `#[serde(with = "evenkeel_probe::duration")]`; a bare number
//! is refused there, since its unit would be a guess.

use std::fmt;
use std::time::Duration;

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
/// A [`DurationError`] that names the text.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let malformed = || DurationError::Malformed(text.to_owned());
    let too_long = || DurationError::TooLong(text.to_owned());
    let mut total = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split_digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(malformed());
        }
        let unit_len = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_len);
        if unit.is_empty() {
            return Err(DurationError::NoUnit(text.to_owned()));
        }
        let nanos = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, nanos)| *nanos)
            .ok_or_else(malformed)?;
        let whole = match whole {
            "" => 0,
            digits => digits.parse::<u64>().map_err(|_| too_long())?,
        };
        total = whole
            .checked_mul(nanos)
            .and_then(|part| part.checked_add(fraction_of(fraction, nanos)))
            .and_then(|part| total.checked_add(part))
            .ok_or_else(too_long)?;
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

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    use proptest::prelude::*;

    /// Values of Go's own documentation and tests of `time.ParseDuration`.
    #[test]
    fn reads_what_go_reads() {
        for (text, nanos) in [
            ("0", 0),
            ("5s", 5_000_000_000),
            ("30s", 30_000_000_000),
            ("5.0s", 5_000_000_000),
            ("5.6s", 5_600_000_000),
            ("5.s", 5_000_000_000),
            (".5s", 500_000_000),
            ("1.004s", 1_004_000_000),
            ("100.00100s", 100_001_000_000),
            ("10ns", 10),
            ("11us", 11_000),
            ("12\u{b5}s", 12_000),
            ("12\u{3bc}s10ns", 12_010),
            ("13ms", 13_000_000),
            ("15m", 900_000_000_000),
            ("16h", 57_600_000_000_000),
            ("3h30m", 12_600_000_000_000),
            ("10.5s4m", 250_500_000_000),
            ("1h2m3s4ms5us6ns", 3_723_004_005_006),
            ("0.3333333333333333333h", 1_199_999_999_999),
            ("9007199254740993ns", 9_007_199_254_740_993),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_duration_and_says_why() {
        assert_eq!(parse(""), Err(DurationError::Empty));
        assert_eq!(parse("3"), Err(DurationError::NoUnit("3".into())));
        for text in ["-1s", "+1s", "s", ".s", "1d", "10 s", "1s ", "x", "1e3s"] {
            assert_eq!(
                parse(text),
                Err(DurationError::Malformed(text.into())),
                "{text}"
            );
        }
        assert!(matches!(
            parse("999999999999999999999h"),
            Err(DurationError::TooLong(_))
        ));
        assert!(matches!(parse("6000000h"), Err(DurationError::TooLong(_))));
    }

    #[test]
    fn writes_the_largest_exact_units() {
        for (text, written) in [
            ("0", "0s"),
            ("90s", "1m30s"),
            ("60m", "1h"),
            ("1500ms", "1500ms"),
            ("1ns", "1ns"),
            ("25us", "25us"),
            ("1h0m1s", "1h1s"),
        ] {
            let duration = parse(text).expect("valid");
            assert_eq!(format(duration).to_string(), written);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(nanos: u64) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(parse(&format(duration).to_string()), Ok(duration));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9.a-zµ ]{0,24}|\\PC{0,12}") {
            let _ = parse(&text);
        }
    }
}
