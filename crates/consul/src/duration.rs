//! Durations in the spellings that Consul's JSON uses.
//!
//! Consul writes most durations of a check definition as Go's text form
//! (`1m30s`), some as a plain number of nanoseconds (`TTL` on 1.8.7), and it
//! accepts both, as well as a missing, `null` or empty value for "not set".

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// The longest duration Go can express: `i64::MAX` nanoseconds, about 292 years.
pub const MAX: Duration = Duration::from_nanos(i64::MAX as u64);

/// A duration as Consul's JSON has it. Zero means "not set".
///
/// Reads Go text (`"1m30s"`, `"1.5h"`, `"250ms"`), a number of nanoseconds,
/// a number of nanoseconds as text (`"5000000000"`), `""` and `null`. Writes
/// Go text. Negative durations are refused, except that a negative zero is zero.
///
/// ```
/// use evenkeel_consul::duration::GoDuration;
/// use std::time::Duration;
///
/// let text: GoDuration = serde_json::from_str(r#""1m30s""#)?;
/// let nanos: GoDuration = serde_json::from_str("90000000000")?;
/// assert_eq!(text, nanos);
/// assert_eq!(text.get(), Duration::from_secs(90));
/// assert_eq!(text.to_string(), "1m30s");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GoDuration(Duration);

impl GoDuration {
    /// Not set.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// `duration`, at most [`MAX`].
    pub fn new(duration: Duration) -> Self {
        Self(duration.min(MAX))
    }

    /// The duration; zero when it is not set.
    pub const fn get(self) -> Duration {
        self.0
    }

    /// Whether it is not set.
    pub const fn is_zero(&self) -> bool {
        self.0.is_zero()
    }
}

impl From<Duration> for GoDuration {
    fn from(duration: Duration) -> Self {
        Self::new(duration)
    }
}

/// A text is not a duration in Go's form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration: {reason} (a duration is like \"10s\", \"1m30s\", \"250ms\")")]
pub struct ParseDurationError {
    text: String,
    reason: &'static str,
}

/// Units of Go's `time.ParseDuration`, in nanoseconds. Longer names first
/// where one is the beginning of another.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000), // U+00B5
    ("μs", 1_000), // U+03BC
    ("ms", 1_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
];

impl FromStr for GoDuration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|reason| ParseDurationError {
            // Quoting a megabyte of somebody's mistake helps nobody.
            text: text.chars().take(64).collect(),
            reason,
        })
    }
}

fn parse(text: &str) -> Result<GoDuration, &'static str> {
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest.is_empty() {
        return if text.is_empty() {
            Ok(GoDuration::ZERO)
        } else {
            Err("a sign alone")
        };
    }
    let nanos = if rest.bytes().all(|byte| byte.is_ascii_digit()) {
        rest.parse::<u64>().map_err(|_| "too long")?
    } else {
        let mut nanos = 0_u64;
        while !rest.is_empty() {
            let (part, after) = component(rest)?;
            nanos = nanos.checked_add(part).ok_or("too long")?;
            rest = after;
        }
        nanos
    };
    if nanos > i64::MAX as u64 {
        return Err("too long");
    }
    if negative && nanos > 0 {
        return Err("negative");
    }
    Ok(GoDuration(Duration::from_nanos(nanos)))
}

/// One number with its unit; the nanoseconds and what comes after.
fn component(text: &str) -> Result<(u64, &str), &'static str> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err("a number is expected");
    }
    let (unit, nanos_per_unit) = UNITS
        .iter()
        .find(|(name, _)| rest.starts_with(name))
        .ok_or(if rest.is_empty() {
            "the unit is missing"
        } else {
            "unknown unit"
        })?;
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| "too long")?
    };
    let mut nanos = whole.checked_mul(*nanos_per_unit).ok_or("too long")?;
    // Digits beyond the 18th are below a nanosecond for every unit.
    let fraction = &fraction[..fraction.len().min(18)];
    if !fraction.is_empty() {
        let value: u128 = fraction.parse().map_err(|_| "a number is expected")?;
        let scale = 10_u128.pow(fraction.len() as u32);
        let part = value * u128::from(*nanos_per_unit) / scale;
        nanos = nanos
            .checked_add(u64::try_from(part).map_err(|_| "too long")?)
            .ok_or("too long")?;
    }
    Ok((nanos, &rest[unit.len()..]))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

/// As Go's `Duration.String`: `1h30m0s`, `1.5s`, `250ms`, `0s`.
impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = u64::try_from(self.0.as_nanos()).unwrap_or(i64::MAX as u64);
        let text = match nanos {
            0 => "0s".to_owned(),
            1..1_000 => format!("{nanos}ns"),
            1_000..1_000_000 => decimal(nanos, 1_000, "µs"),
            1_000_000..1_000_000_000 => decimal(nanos, 1_000_000, "ms"),
            _ => {
                let minutes = nanos / 60_000_000_000;
                let seconds = decimal(nanos % 60_000_000_000, 1_000_000_000, "s");
                match (minutes / 60, minutes % 60) {
                    (0, 0) => seconds,
                    (0, minutes) => format!("{minutes}m{seconds}"),
                    (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
                }
            }
        };
        f.pad(&text)
    }
}

/// `nanos / per` with as many decimals as needed, then the unit.
fn decimal(nanos: u64, per: u64, unit: &str) -> String {
    let (whole, rest) = (nanos / per, nanos % per);
    if rest == 0 {
        return format!("{whole}{unit}");
    }
    let width = per.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    format!("{whole}.{}{unit}", fraction.trim_end_matches('0'))
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DurationVisitor)
    }
}

struct DurationVisitor;

impl<'de> Visitor<'de> for DurationVisitor {
    type Value = GoDuration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration as text (\"1m30s\") or as a number of nanoseconds")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<GoDuration, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, nanos: u64) -> Result<GoDuration, E> {
        i64::try_from(nanos)
            .map(|_| GoDuration(Duration::from_nanos(nanos)))
            .map_err(|_| E::custom("the duration is too long"))
    }

    fn visit_i64<E: de::Error>(self, nanos: i64) -> Result<GoDuration, E> {
        u64::try_from(nanos)
            .map(|nanos| GoDuration(Duration::from_nanos(nanos)))
            .map_err(|_| E::custom("the duration is negative"))
    }

    fn visit_f64<E: de::Error>(self, nanos: f64) -> Result<GoDuration, E> {
        // Some JSON writers turn 1e10 nanoseconds into a floating number.
        if nanos >= 0.0 && nanos < i64::MAX as f64 {
            Ok(GoDuration(Duration::from_nanos(nanos as u64)))
        } else {
            Err(E::custom("the duration is out of range"))
        }
    }

    fn visit_unit<E: de::Error>(self) -> Result<GoDuration, E> {
        Ok(GoDuration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(json: &str) -> Result<Duration, serde_json::Error> {
        serde_json::from_str::<GoDuration>(json).map(GoDuration::get)
    }

    #[test]
    fn every_spelling_of_consul_is_read() {
        for (json, nanos) in [
            (r#""1m30s""#, 90_000_000_000),
            (r#""10s""#, 10_000_000_000),
            (r#""1.5h""#, 5_400_000_000_000),
            (r#"".5s""#, 500_000_000),
            (r#""1.s""#, 1_000_000_000),
            (r#""250ms""#, 250_000_000),
            (r#""3µs""#, 3_000),
            (r#""3us""#, 3_000),
            (r#""7ns""#, 7),
            (r#""+2s""#, 2_000_000_000),
            (r#""0""#, 0),
            (r#""-0s""#, 0),
            (r#""1h30m0s""#, 5_400_000_000_000),
            (r#""5000000000""#, 5_000_000_000),
            ("5000000000", 5_000_000_000),
            ("5e9", 5_000_000_000),
            ("0", 0),
            (r#""""#, 0),
            ("null", 0),
        ] {
            assert_eq!(read(json).unwrap(), Duration::from_nanos(nanos), "{json}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_the_text() {
        for json in [
            r#""10""#.replace("10", "10 s"),
            r#""1d""#.into(),
            r#""s""#.into(),
            r#""-""#.into(),
            r#""-1s""#.into(),
            "-1".into(),
            r#""1s2""#.into(),
            r#""3000000h""#.into(),
            "1e30".into(),
            "true".into(),
            "[]".into(),
        ] {
            assert!(read(&json).is_err(), "{json}");
        }
        let error = "1day".parse::<GoDuration>().unwrap_err().to_string();
        assert!(error.contains("1day"), "{error}");
    }

    #[test]
    fn written_as_go_writes_it() {
        // Values and texts as Consul 1.8.7 answered them.
        for (duration, text) in [
            (Duration::from_secs(5400), "1h30m0s"),
            (Duration::from_secs(90), "1m30s"),
            (Duration::from_millis(1500), "1.5s"),
            (Duration::from_millis(250), "250ms"),
            (Duration::from_micros(1_050), "1.05ms"),
            (Duration::from_nanos(999), "999ns"),
            (Duration::ZERO, "0s"),
        ] {
            assert_eq!(GoDuration::new(duration).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(nanos in 0..=i64::MAX as u64) {
            let duration = GoDuration::new(Duration::from_nanos(nanos));
            prop_assert_eq!(duration.to_string().parse::<GoDuration>().unwrap(), duration);
        }

        #[test]
        fn garbage_never_panics(text in "\\PC{0,40}", digits in "[-+0-9.hmsnuµ]{0,40}") {
            let _ = text.parse::<GoDuration>();
            let _ = digits.parse::<GoDuration>();
        }
    }
}
