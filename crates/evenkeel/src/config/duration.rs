//! Durations as text: `10s`, `1m30s`, `500ms`, `1.5h`.
//!
//! The grammar is Go's (`time.ParseDuration`), which consul-esm's files and
//! Consul use, without a sign, and with `d` for 24 hours.

use std::fmt::Write as _;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

/// Units from the largest to the smallest, with their nanoseconds.
const UNITS: [(&str, u64); 8] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];

/// Longest duration taken: ten years. Longer ones are typing errors, and sums
/// of times stay far from overflow.
pub const MAX: Duration = Duration::from_secs(10 * 366 * 86_400);

/// Reads a duration.
///
/// # Errors
///
/// A sentence that says what is wrong with `text`, without naming the key.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration such as \"10s\", \"1m30s\" or \"500ms\"");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    if text.is_empty() {
        return Err(wrong());
    }
    let mut rest = text;
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(|| match rest == text {
                true => format!("`{text}` has no unit: write \"{text}s\" for seconds"),
                false => wrong(),
            })?;
        let (number, after) = rest.split_at(digits);
        let letters = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let scale = UNITS
            .iter()
            .find_map(|(name, scale)| (*name == unit).then_some(*scale))
            .ok_or_else(wrong)?;
        nanos = nanos
            .checked_add(scaled(number, scale).ok_or_else(wrong)?)
            .ok_or_else(wrong)?;
        rest = after;
    }
    let seconds = u64::try_from(nanos / 1_000_000_000).map_err(|_| wrong())?;
    let duration = Duration::new(seconds, (nanos % 1_000_000_000) as u32);
    if duration > MAX {
        return Err(format!("`{text}` is longer than ten years"));
    }
    Ok(duration)
}

/// `number` (digits with at most one point) times `scale`, rounded down.
fn scaled(number: &str, scale: u64) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    // Beyond ten years or a nanosecond nothing more is told by more digits.
    let whole: u128 = match whole {
        "" => 0,
        digits if digits.len() <= 20 => digits.parse().ok()?,
        _ => return None,
    };
    let mut nanos = whole.checked_mul(u128::from(scale))?;
    let mut place = u128::from(scale) * 1_000;
    for digit in fraction.bytes() {
        place /= 10;
        nanos += u128::from(digit - b'0') * place / 1_000;
    }
    Some(nanos)
}

/// Writes a duration so that [`parse`] reads it back: `1m30s`, `0s`.
pub fn format(duration: Duration) -> String {
    if duration.is_zero() {
        return "0s".to_owned();
    }
    let mut nanos = duration.as_nanos();
    let mut text = String::new();
    for (unit, scale) in UNITS
        .iter()
        .filter(|(unit, _)| *unit != "µs" && *unit != "d")
    {
        let count = nanos / u128::from(*scale);
        if count > 0 {
            let _ = write!(text, "{count}{unit}");
            nanos -= count * u128::from(*scale);
        }
    }
    text
}

/// For `#[serde(with)]`.
///
/// # Errors
///
/// Those of the serializer.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

/// For `#[serde(with)]`.
///
/// # Errors
///
/// The value is not text, or [`parse`] refuses it.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).map_err(serde::de::Error::custom)
}

/// For `#[serde(with)]` on an `Option<Duration>`.
pub mod option {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    /// For `#[serde(with)]`.
    ///
    /// # Errors
    ///
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// For `#[serde(with)]`.
    ///
    /// # Errors
    ///
    /// The value is neither absent nor a duration's text.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| super::parse(&text).map_err(serde::de::Error::custom))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_go_reads() {
        // Values of Go's time package tests (duration_test of Go 1.22), where in range.
        for (text, nanos) in [
            ("0", 0),
            ("5s", 5_000_000_000),
            ("30s", 30_000_000_000),
            ("1478s", 1_478_000_000_000),
            ("5.0s", 5_000_000_000),
            ("5.6s", 5_600_000_000),
            ("5.s", 5_000_000_000),
            (".5s", 500_000_000),
            ("1.004s", 1_004_000_000),
            ("100.00100s", 100_001_000_000),
            ("10ns", 10),
            ("11us", 11_000),
            ("12µs", 12_000),
            ("13ms", 13_000_000),
            ("14s", 14_000_000_000),
            ("15m", 900_000_000_000),
            ("16h", 57_600_000_000_000),
            ("3h30m", 12_600_000_000_000),
            ("10.5s4m", 250_500_000_000),
            ("1d", 86_400_000_000_000_u64),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_duration() {
        for text in [
            "", "s", ".", ".s", "3", "-5s", "+5s", "1x", "5 s", "1.1.1s", "1e3s", "１s",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("3").is_err_and(|text| text.contains("\"3s\"")));
        assert!(parse("99999999h").is_err());
        assert!(parse(&format!("{}s", "9".repeat(100_000))).is_err());
    }

    proptest! {
        #[test]
        fn reads_back_what_it_writes(nanos in 0..MAX.as_nanos() as u64) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }

        #[test]
        fn never_panics(text in "[0-9.dhmsunµ]{0,40}|\\PC{0,40}") {
            let _ = parse(&text);
        }
    }
}
