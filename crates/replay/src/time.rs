//! Times as histories spell them, and back.

use evenkeel_threshold::Timestamp;

/// Numbers below this are seconds, from here on milliseconds: as seconds it is
/// the year 5138, as milliseconds the year 1973.
const FIRST_MILLIS: u64 = 100_000_000_000;

/// The first number that is no time: the year 5138 in milliseconds. What is
/// above it are microseconds or nanoseconds.
const END: u64 = 100_000_000_000_000;

const DAY: u64 = 86_400_000;

/// Reads Unix seconds or milliseconds, whole or with a fraction, or RFC 3339.
pub(crate) fn parse(text: &[u8]) -> Option<Timestamp> {
    let text = text.trim_ascii();
    let millis = match text.iter().position(|byte| !byte.is_ascii_digit()) {
        None => from_number(whole(text)?)?,
        Some(at) if at > 0 && text[at] == b'.' => {
            let unit = from_number(whole(&text[..at])?)?;
            let fraction = &text[at + 1..];
            if fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
                return None;
            }
            match whole(&text[..at])? < FIRST_MILLIS {
                true => unit + thousandths(fraction),
                false => unit,
            }
        }
        Some(_) => rfc3339(text)?,
    };
    Some(Timestamp::from_millis(millis))
}

/// What a number as JSON has it stands for.
#[cfg(feature = "json")]
pub(crate) fn from_float(number: f64) -> Option<Timestamp> {
    let millis = match number < FIRST_MILLIS as f64 {
        true => number * 1000.0,
        false => number,
    };
    (0.0..END as f64)
        .contains(&millis)
        .then(|| Timestamp::from_millis(millis.round() as u64))
}

pub(crate) fn from_number(number: u64) -> Option<u64> {
    match number {
        ..FIRST_MILLIS => Some(number * 1000),
        FIRST_MILLIS..END => Some(number),
        END.. => None,
    }
}

fn whole(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |sum: u64, byte: &u8| sum * 10 + u64::from(byte - b'0');
    Some(digits.iter().fold(0, digit))
}

/// The first three digits of a fraction; what is finer is dropped.
fn thousandths(fraction: &[u8]) -> u64 {
    let digits = fraction.iter().chain(b"00").take(3);
    digits.fold(0, |sum, byte| sum * 10 + u64::from(byte - b'0'))
}

/// `2026-11-30T10:15:02.481Z`, with any offset; a blank does for the `T`.
fn rfc3339(text: &[u8]) -> Option<u64> {
    let (fixed, rest) = text.split_at_checked(19)?;
    let separators: [(usize, &[u8]); 5] =
        [(4, b"-"), (7, b"-"), (10, b"Tt "), (13, b":"), (16, b":")];
    if separators
        .iter()
        .any(|(at, allowed)| !allowed.contains(&fixed[*at]))
    {
        return None;
    }
    let number = |from: usize, to: usize| whole(&fixed[from..to]);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let valid = (1..=12).contains(&month)
        && (1..=days_of_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !valid {
        return None;
    }
    let (millis, zone) = match rest.split_first()? {
        (b'.', rest) => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return None;
            }
            (thousandths(&rest[..digits]), &rest[digits..])
        }
        _ => (0, rest),
    };
    let minutes = match zone {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (whole(&[*h1, *h2])?, whole(&[*m1, *m2])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let minutes = (hours * 60 + minutes) as i64;
            if *sign == b'+' { minutes } else { -minutes }
        }
        _ => return None,
    };
    // A leap second is the last one once more, so that time does not go back.
    let second = second.min(59);
    let local = days_from_civil(year, month, day)? * DAY
        + ((hour * 60 + minute) * 60 + second) * 1000
        + millis;
    local.checked_add_signed(-minutes * 60_000)
}

fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the Gregorian calendar; none for a day before it.
/// Years are taken to begin in March, so that a leap day ends one.
fn days_from_civil(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 {
        year.checked_sub(1)?
    } else {
        year
    };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    days.checked_sub(719_468)
}

/// The inverse: year, month and day.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// `2026-11-30 10:15:02` in UTC.
pub fn civil(at: Timestamp) -> String {
    let (days, rest) = (at.as_millis() / DAY, at.as_millis() % DAY / 1000);
    let (year, month, day) = civil_from_days(days.min(END));
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use proptest::prelude::*;

    use super::*;

    fn millis(text: &str) -> Option<u64> {
        parse(text.as_bytes()).map(Timestamp::as_millis)
    }

    #[test]
    fn seconds_milliseconds_and_rfc_3339_are_told_apart() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1730248200", Some(1_730_248_200_000)),
            ("1730248200.5", Some(1_730_248_200_500)),
            ("1730248200.1239", Some(1_730_248_200_123)),
            ("1730248200123", Some(1_730_248_200_123)),
            ("1730248200123.75", Some(1_730_248_200_123)),
            (" 1730248200 ", Some(1_730_248_200_000)),
            ("2024-10-30T00:30:00Z", Some(1_730_248_200_000)),
            ("2024-10-30 00:30:00z", Some(1_730_248_200_000)),
            ("2024-10-30T01:30:00.25+01:00", Some(1_730_248_200_250)),
            ("2024-10-29T23:00:00.250999-01:30", Some(1_730_248_200_250)),
            ("2016-12-31T23:59:60Z", Some(1_483_228_799_000)),
            ("2024-02-29T00:00:00Z", Some(1_709_164_800_000)),
            ("1970-01-01T00:00:00Z", Some(0)),
        ] {
            assert_eq!(millis(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            " ",
            "-1",
            "+1",
            "1.",
            ".5",
            "1e9",
            "1730248200123456",    // microseconds
            "1730248200123456789", // nanoseconds
            "17302482001234567890123",
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-00-01T00:00:00Z",
            "2024-01-00T00:00:00Z",
            "2024-04-31T00:00:00Z",
            "2024-10-30T24:00:00Z",
            "2024-10-30T00:60:00Z",
            "2024-10-30T00:00:61Z",
            "2024-10-30T00:00:00",
            "2024-10-30T00:00:00.Z",
            "2024-10-30T00:00:00+01",
            "2024-10-30T00:00:00+24:00",
            "2024-10-30",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+00:01",
            "0000-01-01T00:00:00Z",
            "2024-10-30T00:30:00Zjunk",
        ] {
            assert_eq!(millis(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn rfc_3339_reads_as_humantime_writes_it(at in 0..253_402_300_800_000_u64) {
            let time = UNIX_EPOCH + Duration::from_millis(at);
            let text = humantime::format_rfc3339_millis(time).to_string();
            prop_assert_eq!(millis(&text), Some(at), "{}", text);
            let seconds = text.replace('T', " ");
            prop_assert_eq!(&seconds[..19], civil(Timestamp::from_millis(at)));
        }

        #[test]
        fn no_bytes_make_it_panic(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse(&text);
        }

        #[test]
        fn nothing_shaped_like_a_time_makes_it_panic(text in "[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{0,9})?(Z|[+-][0-9]{2}:[0-9]{2})") {
            let _ = parse(text.as_bytes());
        }
    }
}
