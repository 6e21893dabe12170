//! Durations as people write them.

use std::time::Duration;

use evenkeel_threshold::duration::{DurationError, format, parse};
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
    assert_eq!(parse("3"), Err(DurationError::NoUnit));
    for text in ["-1s", "+1s", "s", ".s", "1d", "10 s", "1s ", "x", "1e3s"] {
        assert_eq!(parse(text), Err(DurationError::Malformed), "{text}");
    }
    assert_eq!(parse("999999999999999999999h"), Err(DurationError::TooLong));
    assert_eq!(parse("6000000h"), Err(DurationError::TooLong));
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
