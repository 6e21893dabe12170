//! Durations as text: `10s`, `1m30s`, `500ms`, `1.5h`, in the grammar of
//! [`evenkeel_probe::duration`], which is Go's.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

/// Longest duration taken: ten years. Longer ones are typing errors, and sums
/// of times stay far from overflow.
pub const MAX: Duration = Duration::from_secs(10 * 366 * 86_400);

/// Reads a duration.
///
/// # Errors
///
/// A sentence that says what is wrong with `text`, without naming the key.
pub fn parse(text: &str) -> Result<Duration, String> {
    if text.len() > 40 {
        return Err("not a duration: write it as 10s, 500ms or 1m30s".to_owned());
    }
    let duration = evenkeel_probe::duration::parse(text).map_err(|error| error.to_string())?;
    match duration > MAX {
        true => Err(format!("`{text}` is longer than ten years")),
        false => Ok(duration),
    }
}

/// Writes a duration so that [`parse`] reads it back: `1m30s`, `0s`.
pub fn format(duration: Duration) -> String {
    evenkeel_probe::duration::format(duration).to_string()
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
    fn what_is_no_duration_or_too_long_is_refused() {
        for text in ["", "3", "-5s", "1x", "5 s", "99999999h", "100000h"] {
            assert!(parse(text).is_err(), "{text}");
        }
        let error = parse(&format!("{}s", "9".repeat(100_000))).unwrap_err();
        assert!(error.len() < 100, "{error}");
    }

    proptest! {
        #[test]
        fn reads_back_what_it_writes(nanos in 0..MAX.as_nanos() as u64) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }
    }
}
