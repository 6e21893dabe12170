//! Rows of comma-separated values, one on a line.

use std::ops::Range;

use csv_core::ReadRecordResult;

use crate::lines::LONGEST;
use crate::row::{Fault, Snippet};
use crate::source::ReadError;
use crate::{time, word};

/// What a column may be called, in lower case; also keys of JSON objects.
pub(crate) const TIME: [&str; 3] = ["time", "timestamp", "ts"];
pub(crate) const CHECK: [&str; 3] = ["check", "target", "name"];
pub(crate) const STATUS: [&str; 3] = ["status", "state", "result"];

/// More fields than this are no row of a history.
const MOST_FIELDS: usize = 256;

/// Where in a row the three values are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns {
    time: usize,
    check: usize,
    status: usize,
}

/// Without a header: time, check, status, and what follows is not looked at.
impl Default for Columns {
    fn default() -> Self {
        Self {
            time: 0,
            check: 1,
            status: 2,
        }
    }
}

impl Columns {
    fn needed(self) -> usize {
        self.time.max(self.check).max(self.status) + 1
    }
}

/// A parser with its buffers; one line at a time.
#[derive(Debug)]
pub(crate) struct Csv {
    reader: csv_core::Reader,
    /// The fields of the line, one behind the other, without their quotes.
    text: Box<[u8]>,
    /// Where each of them ends.
    ends: Box<[usize]>,
    columns: Columns,
}

impl Csv {
    pub(crate) fn new() -> Self {
        Self {
            reader: csv_core::Reader::new(),
            text: vec![0; LONGEST].into(),
            ends: vec![0; MOST_FIELDS].into(),
            columns: Columns::default(),
        }
    }

    /// Takes the first line of a file for a header, if it is one: none of its
    /// fields begins with a digit, and at least one is the name of a column.
    pub(crate) fn header(&mut self, line: &[u8], number: u64) -> Result<bool, ReadError> {
        let Ok(fields) = self.split(line) else {
            return Ok(false);
        };
        let names: Vec<String> = (0..fields)
            .map(|index| {
                String::from_utf8_lossy(self.field(index))
                    .trim()
                    .to_lowercase()
            })
            .collect();
        let known = |name: &String| {
            [TIME, CHECK, STATUS]
                .iter()
                .any(|names| names.contains(&name.as_str()))
        };
        let numbers = |name: &String| name.starts_with(|c: char| c.is_ascii_digit());
        if names.iter().any(numbers) || !names.iter().any(known) {
            return Ok(false);
        }
        // An earlier name of the list is the better one where a header has two.
        let place = |wanted: [&str; 3], known: &'static str| {
            wanted
                .iter()
                .find_map(|wanted| names.iter().position(|name| name == wanted))
                .ok_or(ReadError::Header {
                    line: number,
                    missing: known.split(',').next().unwrap_or(known),
                    known,
                })
        };
        self.columns = Columns {
            time: place(TIME, "time, timestamp, ts")?,
            check: place(CHECK, "check, target, name")?,
            status: place(STATUS, "status, state, result")?,
        };
        Ok(true)
    }

    /// Reads one row; the check's name is put into `name`.
    pub(crate) fn row(&mut self, line: &[u8], name: &mut String) -> Result<super::Parsed, Fault> {
        let found = self.split(line)?;
        let needed = self.columns.needed();
        if found < needed {
            return Err(Fault::Fields { found, needed });
        }
        let text = self.field(self.columns.time);
        let time = time::parse(text).ok_or_else(|| Fault::Time(Snippet::new(text)))?;
        super::history::take_name(self.field(self.columns.check), name)?;
        let text = self.field(self.columns.status);
        let status = word::parse(text).ok_or_else(|| Fault::Status(Snippet::new(text)))?;
        Ok(super::Parsed::Result { time, status })
    }

    fn field(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let range: Range<usize> = start..self.ends[index];
        &self.text[range]
    }

    /// Splits a line into its fields and says how many there are.
    fn split(&mut self, line: &[u8]) -> Result<usize, Fault> {
        let (mut written, mut fields) = (0, 0);
        // Quotes could hold the end of a line. Here they do not: a stray quote
        // costs its line and not the rest of the file.
        for input in [line, b"\n"] {
            let (result, _, bytes, ends) =
                self.reader
                    .read_record(input, &mut self.text[written..], &mut self.ends[fields..]);
            written += bytes;
            fields += ends;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record => return Ok(fields),
                ReadRecordResult::End => break,
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    self.reader.reset();
                    return Err(Fault::Fields {
                        found: fields,
                        needed: self.columns.needed(),
                    });
                }
            }
        }
        self.reader.reset();
        Err(Fault::OpenQuote)
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_threshold::{Status, Timestamp};

    use super::*;
    use crate::Parsed;

    fn row(csv: &mut Csv, line: &str) -> Result<(Timestamp, String, Option<Status>), Fault> {
        let mut name = String::new();
        let Parsed::Result { time, status } = csv.row(line.as_bytes(), &mut name)? else {
            panic!("rows are results");
        };
        Ok((time, name, status))
    }

    #[test]
    fn quotes_are_taken_off_and_may_hold_commas() {
        let mut csv = Csv::new();
        for line in [r#"5,"a,""b""",passing"#, r#""5","a,""b""","passing",120"#] {
            let (time, name, status) = row(&mut csv, line).unwrap();
            assert_eq!(time, Timestamp::from_millis(5000));
            assert_eq!(name, r#"a,"b""#);
            assert_eq!(status, Some(Status::Passing));
        }
    }

    #[test]
    fn a_stray_quote_costs_its_line_alone() {
        let mut csv = Csv::new();
        assert_eq!(row(&mut csv, r#"5,"a,passing"#), Err(Fault::OpenQuote));
        assert!(row(&mut csv, "5,a,passing").is_ok());
        assert_eq!(row(&mut csv, r#"5,a,passing,""#), Err(Fault::OpenQuote));
        assert!(row(&mut csv, "5,a,passing").is_ok());
    }

    #[test]
    fn faults_say_what_is_wrong() {
        let mut csv = Csv::new();
        let long = format!("5,{},up", "n".repeat(2000));
        for (line, expected) in [
            ("5", "1 fields, 3 are needed"),
            (
                "x,a,up",
                "`x` is no time: Unix seconds, Unix milliseconds or RFC 3339",
            ),
            (
                "5,a,sideways\u{1b}[2J",
                "`sideways\u{fffd}[2J` is no status such as passing, warning, critical, up or down",
            ),
            ("5,,up", "the check has no name"),
            (&long, "the name of the check is longer than 1024 bytes"),
            (&",".repeat(300), "256 fields, 3 are needed"),
        ] {
            let fault = row(&mut csv, line).unwrap_err();
            assert_eq!(fault.to_string(), expected);
            assert!(row(&mut csv, "5,a,up").is_ok());
        }
    }

    #[test]
    fn a_header_gives_the_order() {
        let mut csv = Csv::new();
        assert!(
            csv.header(b" Status ,latency_ms,Name,id,Timestamp", 1)
                .unwrap()
        );
        let (time, name, status) = row(&mut csv, "down,7,web,12,60").unwrap();
        assert_eq!(time, Timestamp::from_millis(60_000));
        assert_eq!((name.as_str(), status), ("web", Some(Status::Critical)));

        let error = csv.header(b"time,when,status", 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 1: the header has no column for the check; names that are known: \
             check, target, name"
        );
    }

    #[test]
    fn a_row_is_not_taken_for_a_header() {
        let mut csv = Csv::new();
        for line in ["1730248200,time,passing", "1730248200,name,up", "a,b,c", ""] {
            assert!(!csv.header(line.as_bytes(), 1).unwrap(), "{line}");
        }
    }
}
