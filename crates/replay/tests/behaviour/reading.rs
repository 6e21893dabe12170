//! Files as they are found in the wild.

use std::io::{self, Read, Write as _};

use evenkeel_replay::{Entry, History, ReadError};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use crate::support::{told, told_by};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

/// One byte at a time, as a slow pipe may give them.
struct Drip<'a>(&'a [u8]);

impl Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(1);
        self.0.read(&mut buffer[..length])
    }
}

const PLAIN: &str = "time,check,status,latency_ms\n\
                     1730248200,web,passing,12\n\
                     1730248200,db,critical,\n\
                     1730248260,web,warning,900\n";

const EXPECTED: [&str; 3] = [
    "2 1730248200000 web passing",
    "3 1730248200000 db critical",
    "4 1730248260000 web warning",
];

#[test]
fn one_history_reads_the_same_in_all_its_forms() {
    let (header, rows) = PLAIN.split_once('\n').unwrap();
    let shuffled: String = PLAIN
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            format!("{},x,{},{},\n", fields[2], fields[0], fields[1])
        })
        .collect();
    let forms: [(&str, Vec<u8>); 9] = [
        ("plain", PLAIN.into()),
        ("no end of line at the end", PLAIN.trim_end().into()),
        ("CRLF", PLAIN.replace('\n', "\r\n").into()),
        ("CR", PLAIN.replace('\n', "\r").into()),
        ("byte order mark", format!("\u{feff}{PLAIN}").into()),
        ("gzip", gzip(PLAIN.as_bytes())),
        (
            "gzip in two members",
            [
                gzip(header.as_bytes()),
                gzip(format!("\n{rows}").as_bytes()),
            ]
            .concat(),
        ),
        ("other columns", shuffled.into()),
        ("quotes", PLAIN.replace("web", "\"web\"").into()),
    ];
    for (form, bytes) in forms {
        assert_eq!(told(&bytes[..]), EXPECTED, "{form}");
        assert_eq!(told(Drip(&bytes)), EXPECTED, "{form}, byte by byte");
    }
}

#[test]
fn a_header_is_optional() {
    let rows = PLAIN.split_once('\n').unwrap().1;
    let expected = EXPECTED.map(|line| {
        let (number, rest) = line.split_once(' ').unwrap();
        format!("{} {rest}", number.parse::<u32>().unwrap() - 1)
    });
    assert_eq!(told(rows.as_bytes()), expected);
}

#[test]
fn json_lines_are_read_with_keys_in_any_order() {
    let file = r#"
        {"time":1730248200,"check":"web","status":"passing","latency_ms":3}
        {"status":"DOWN","check":"w\u0065b","time":1730248260.5}
        {"timestamp":"2024-10-30T00:33:00Z","target":"web","up":true,"state":true}
        {"ts":1730248440000,"name":"web","id":{"deep":[1,{"er":2}]},"result":0,"check":"x"}
        {"time":1730248500,"check":{"node":"n1","check_id":"c1","service_id":""},"status":null}
        {"time":1730248560,"check":7,"status":1}
    "#;
    let expected = [
        "2 1730248200000 web passing",
        "3 1730248260500 web critical",
        "4 1730248380000 web passing",
        "5 1730248440000 x critical",
        "6 1730248500000 n1/c1 -",
        "7 1730248560000 7 passing",
    ];
    assert_eq!(told(file.as_bytes()), expected);
}

#[test]
fn bad_lines_of_json_say_what_is_wrong() {
    let file = concat!(
        "{\"time\":1,\"check\":\"a\",\"status\":\"up\"}\n",
        "{\"time\":1,\"check\":\"a\"}\n",
        "{\"check\":\"a\",\"status\":\"up\"}\n",
        "{\"time\":1,\"status\":\"up\"}\n",
        "{\"time\":-1,\"check\":\"a\",\"status\":\"up\"}\n",
        "{\"time\":1,\"check\":\"a\",\"status\":2}\n",
        "{\"time\":1,\"check\":[],\"status\":\"up\"}\n",
        "{\"time\":1,\"check\":\"a\",\"status\":\"up\"\n",
        "[1]\n",
        "time,check,status\n",
    );
    let told = told(file.as_bytes());
    let expected = [
        "1 1000 a passing",
        "line 2: no `status`",
        "line 3: no `time`",
        "line 4: no `check`",
        "line 5: `…` is no time",
        "line 6: `2` is no status",
        "line 7: the check has no name",
        "line 8: not a result in JSON: EOF",
        "line 9: not a result in JSON: invalid type",
        "line 10: not a result in JSON: expected ident",
    ];
    assert_eq!(told.len(), expected.len());
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told:?} is not {expected:?}");
    }
}

#[test]
fn deep_json_is_a_bad_row_and_no_overflow() {
    let deep = format!("{{\"x\":{}", "[".repeat(60_000));
    let told = told(format!("{{\"time\":1,\"check\":\"a\",\"status\":1}}\n{deep}\n").as_bytes());
    assert_eq!(told.len(), 2);
    assert!(told[1].contains("not a result in JSON"), "{told:?}");
}

/// From the page of the event log: what was reported stood in between.
#[test]
fn an_event_log_is_the_history_of_what_was_reported() {
    let line = |second: u32, event: &str, rest: &str| {
        format!(
            "{{\"v\":1,\"time\":\"2026-11-30T10:{:02}:{:02}.000Z\",\"event\":\"{event}\"{rest}}}\n",
            second / 60,
            second % 60
        )
    };
    let check = |name: &str| format!(",\"check\":{{\"node\":\"n\",\"check_id\":\"{name}\"}}");
    let change = |name: &str, from: &str, to: &str| {
        let check = check(name);
        format!(
            "{check},\"from\":\"{from}\",\"observed\":\"{to}\",\"to\":\"{to}\",\"seen\":4,\"needed\":4"
        )
    };
    let log = [
        line(0, "started", ""),
        line(65, "transition", &change("a", "passing", "critical")),
        line(70, "unprobed_started", &check("a")),
        line(90, "transition", &change("b", "critical", "passing")),
        line(100, "transition", &change("a", "critical", "warning")),
        line(110, "check_removed", &check("a")),
        line(150, "stopped", ""),
    ]
    .concat();
    let begun = 1_796_033_400_000_u64;
    assert_eq!(
        evenkeel_replay::civil(evenkeel_threshold::Timestamp::from_millis(begun)),
        "2026-11-30 10:10:00"
    );
    let begun = begun - 600_000;
    let mut history = History::new(log.as_bytes())
        .unwrap()
        .with_event_interval(std::time::Duration::from_secs(30));
    let told: Vec<String> = told_by(&mut history)
        .iter()
        .map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let at = fields[1].parse::<u64>().unwrap() - begun;
            format!("{} {} {}", at / 1000, fields[2], fields[3])
        })
        .collect();
    let expected = [
        "0 n/a passing",
        "30 n/a passing",
        "60 n/a passing",
        "65 n/a critical",
        "0 n/b critical",
        "30 n/b critical",
        "60 n/b critical",
        "90 n/b passing",
        "95 n/a critical",
        "100 n/a warning",
        // `a` is gone, `b` is as it was to the end of the log.
        "120 n/b passing",
    ];
    assert_eq!(told, expected);
    assert_eq!(history.events(), 7);
}

#[test]
fn an_event_log_never_makes_up_years() {
    let line = |year: u32, from: &str, to: &str| {
        format!(
            "{{\"v\":1,\"time\":\"{year}-01-01T00:00:00Z\",\"event\":\"transition\",\
             \"check\":{{\"node\":\"n\",\"check_id\":\"c\"}},\"from\":\"{from}\",\"to\":\"{to}\"}}\n"
        )
    };
    let log = line(2020, "passing", "critical") + &line(2030, "critical", "passing");
    let told = told(log.as_bytes());
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(
        told[2].contains("line 2: too long after the event before it"),
        "{told:?}"
    );
    assert!(told[3].ends_with("passing"));
}

#[test]
fn what_is_packed_otherwise_is_refused_with_the_way_to_unpack_it() {
    for (magic, name) in [
        (&b"\x28\xb5\x2f\xfd...."[..], "zstd -dc"),
        (b"\xfd7zXZ\0", "xz -dc"),
        (b"BZh91AY", "bzip2 -dc"),
        (b"PK\x03\x04...", "unzip -p"),
    ] {
        let error = History::new(magic).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    let utf16: Vec<u8> = PLAIN.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf16 = [&[0xff, 0xfe], &utf16[..]].concat();
    let error = History::new(&utf16[..]).unwrap_err();
    assert!(matches!(error, ReadError::Utf16), "{error}");
}

#[test]
fn a_damaged_gzip_gives_its_rows_and_then_an_error_with_the_line() {
    let long: String = (0..100_000)
        .map(|second| format!("{second},web,up\n"))
        .collect();
    let packed = gzip(long.as_bytes());
    let mut history = History::new(&packed[..packed.len() / 2]).unwrap();
    let mut rows = 0;
    let error = loop {
        match history.next() {
            Ok(Some(Entry::Row(_))) => rows += 1,
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
    };
    assert!(rows > 10_000, "{rows}");
    assert!(
        error
            .to_string()
            .starts_with(&format!("after line {rows}: ")),
        "{error}"
    );
}

#[test]
fn an_empty_file_has_no_rows() {
    for empty in ["", "\n", "\n\r\n  \n", "\u{feff}", "time,check,status\n"] {
        assert!(told(empty.as_bytes()).is_empty(), "{empty:?}");
    }
    assert!(told(&gzip(b"")[..]).is_empty());
}

#[test]
fn a_field_without_an_end_costs_its_line_and_no_memory() {
    // Half a gigabyte on one line, behind a quote that never ends.
    let endless = io::repeat(b'x').take(512 << 20);
    let file = b"5,a,up\n6,\"".chain(endless).chain(&b"\n7,a,up\n"[..]);
    assert_eq!(
        told(file),
        [
            "1 5000 a passing",
            "line 2: longer than 64 KiB",
            "3 7000 a passing"
        ]
    );
}

/// Bytes that come near to what is read.
fn fragments() -> impl Strategy<Value = Vec<u8>> {
    let fragment = proptest::sample::select(vec![
        &b"time,check,status\n"[..],
        b"1730248200,web,passing\n",
        b"1730248200000,web,down,7\r\n",
        b"2024-10-30T00:30:00Z",
        b"{\"time\":1,\"check\":\"a\",\"status\":\"up\"}\n",
        b"{\"v\":1,\"time\":9999999999999,\"event\":\"transition\",\"check\":{\"node\":\"n\"},\"from\":\"passing\",\"to\":\"critical\"}\n",
        b"{\"event\":\"check_removed\",\"time\":",
        b"\"check\":{\"node\":",
        b",",
        b"\"",
        b"\n",
        b"\r",
        b"{",
        b"}",
        b"\xef\xbb\xbf",
        b"\xff\xfe\0",
        b"\x1f\x8b\x08\0\0\0\0\0",
        b"99999999999999999999",
    ]);
    proptest::collection::vec(fragment, 0..20).prop_map(|parts| parts.concat())
}

fn read_all(bytes: &[u8]) {
    let Ok(mut history) = History::new(bytes) else {
        return;
    };
    // An event log may make up a million results for a few bytes.
    for _ in 0..10_000 {
        match history.next() {
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read_all(&bytes);
        read_all(&gzip(&bytes));
        read_all(&[b"\x1f\x8b", &bytes[..]].concat());
        read_all(&[b"{", &bytes[..]].concat());
    }

    #[test]
    fn nothing_that_looks_like_a_history_makes_it_panic(bytes in fragments()) {
        read_all(&bytes);
        read_all(&gzip(&bytes));
    }
}
