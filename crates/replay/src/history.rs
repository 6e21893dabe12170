use std::io::Read;
use std::time::Duration;

use evenkeel_threshold::{Status, Timestamp};

use crate::csv::Csv;
#[cfg(feature = "json")]
use crate::events::EventLog;
#[cfg(feature = "json")]
use crate::json::Object;
use crate::lines::{Line, Lines};
use crate::row::{BadRow, Fault, LONGEST_NAME, Row};
use crate::source::{ReadError, Source};

/// The time between two results that are made up for an event log unless one is
/// given: how often the daemon probes a check that does not say.
pub const EVENT_INTERVAL: Duration = Duration::from_secs(30);

/// A recorded history, row by row.
///
/// What it is, its first bytes say: plain or gzip (feature `gzip`), CSV, JSON
/// lines or the daemon's event log (feature `json`). Lines end with LF, CRLF or
/// CR; a byte order mark is skipped. Memory does not grow with the number of
/// rows.
///
/// ```
/// use evenkeel_replay::{Entry, History};
///
/// let file = "time,check,status\n60,web,up\n70,web,sideways\n80,web,down\n";
/// let mut history = History::new(file.as_bytes())?;
/// let mut told = Vec::new();
/// while let Some(entry) = history.next()? {
///     told.push(match entry {
///         Entry::Row(row) => format!("{}: {:?}", row.check, row.status.unwrap()),
///         Entry::Bad(bad) => bad.to_string(),
///     });
/// }
/// assert_eq!(told[0], "web: Passing");
/// assert_eq!(told[1], "line 3: `sideways` is no status such as passing, warning, critical, up or down");
/// assert_eq!(told[2], "web: Critical");
/// # Ok::<(), evenkeel_replay::ReadError>(())
/// ```
#[derive(Debug)]
pub struct History<R> {
    lines: Lines<Source<R>>,
    format: Option<Format>,
    name: String,
    event_interval: Duration,
    events: u64,
}

/// What a history consists of.
#[derive(Debug)]
pub enum Entry<'a> {
    /// A result.
    Row(Row<'a>),
    /// A line that is none.
    Bad(BadRow),
}

#[derive(Debug)]
enum Format {
    Csv(Box<Csv>),
    #[cfg(feature = "json")]
    Json(EventLog),
}

/// What a line says; the check's name is kept apart.
#[derive(Debug)]
pub(crate) enum Parsed {
    Result {
        time: Timestamp,
        status: Option<Status>,
    },
    /// Nothing that belongs to a history.
    #[cfg_attr(
        not(feature = "json"),
        expect(dead_code, reason = "only an event log has such lines")
    )]
    Nothing,
}

impl<R: Read> History<R> {
    /// Starts reading.
    ///
    /// # Errors
    ///
    /// The first bytes cannot be read, or show that it is packed or encoded in a
    /// way that is not read here.
    pub fn new(read: R) -> Result<Self, ReadError> {
        Ok(Self {
            lines: Lines::new(Source::new(read)?),
            format: None,
            name: String::new(),
            event_interval: EVENT_INTERVAL,
            events: 0,
        })
    }

    /// Sets how often a check is taken to have been probed between two events of
    /// an event log; [`EVENT_INTERVAL`] if this is not called.
    #[must_use]
    pub fn with_event_interval(mut self, interval: Duration) -> Self {
        self.event_interval = interval;
        self
    }

    /// Lines of an event log so far. If there are any, results were made up from
    /// reported statuses: see the page on the event log.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The next row, or the next line that is none; `None` at the end.
    ///
    /// # Errors
    ///
    /// Reading failed, or the header lacks a column. There is no point in going
    /// on.
    #[expect(
        clippy::should_implement_trait,
        reason = "it lends: a row borrows the name of its check"
    )]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, ReadError> {
        loop {
            #[cfg(feature = "json")]
            if let Some(Format::Json(log)) = &mut self.format
                && let Some((time, status)) = log.pending(&mut self.name)
            {
                return Ok(Some(self.row(time, Some(status))));
            }
            let line = self.lines.next().map_err(|error| ReadError::Io {
                after_line: self.lines.number(),
                error,
            })?;
            let range = match line {
                Some(Line::Whole(range)) => range,
                Some(Line::TooLong) => return Ok(Some(self.bad(Fault::LongLine))),
                None => {
                    #[cfg(feature = "json")]
                    if let Some(Format::Json(log)) = &mut self.format
                        && log.finish()
                    {
                        continue;
                    }
                    return Ok(None);
                }
            };
            let number = self.lines.number();
            let mut bytes = self.lines.bytes(range);
            if number == 1 {
                bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            }
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let format = match &mut self.format {
                Some(format) => format,
                unknown => {
                    let mut format = Format::of(bytes, self.event_interval)?;
                    let header = match &mut format {
                        Format::Csv(csv) => csv.header(bytes, number)?,
                        #[cfg(feature = "json")]
                        Format::Json(_) => false,
                    };
                    let format = unknown.insert(format);
                    if header {
                        continue;
                    }
                    format
                }
            };
            match format.parse(bytes, &mut self.name, &mut self.events) {
                Ok(Parsed::Result { time, status }) => return Ok(Some(self.row(time, status))),
                Ok(Parsed::Nothing) => {}
                Err(fault) => return Ok(Some(self.bad(fault))),
            }
        }
    }

    fn row(&self, time: Timestamp, status: Option<Status>) -> Entry<'_> {
        Entry::Row(Row {
            line: self.lines.number(),
            time,
            check: &self.name,
            status,
        })
    }

    fn bad(&self, fault: Fault) -> Entry<'_> {
        Entry::Bad(BadRow {
            line: self.lines.number(),
            fault,
        })
    }
}

impl Format {
    /// What the first line that is not blank begins with decides.
    fn of(line: &[u8], event_interval: Duration) -> Result<Self, ReadError> {
        let json = line.trim_ascii_start().first() == Some(&b'{');
        if !json {
            return Ok(Self::Csv(Box::new(Csv::new())));
        }
        #[cfg(feature = "json")]
        {
            let millis = u64::try_from(event_interval.as_millis()).unwrap_or(u64::MAX);
            Ok(Self::Json(EventLog::new(millis)))
        }
        #[cfg(not(feature = "json"))]
        {
            let _ = event_interval;
            Err(ReadError::Json)
        }
    }

    #[cfg_attr(
        not(feature = "json"),
        expect(unused_variables, reason = "only an event log has events")
    )]
    fn parse(&mut self, line: &[u8], name: &mut String, events: &mut u64) -> Result<Parsed, Fault> {
        match self {
            Self::Csv(csv) => csv.row(line, name),
            #[cfg(feature = "json")]
            Self::Json(log) => {
                let object = Object::read(line)?;
                if object.event.is_some() {
                    *events += 1;
                    return log.line(&object, name);
                }
                let time = object.time()?;
                object.name(name)?;
                let status = object.status()?;
                Ok(Parsed::Result { time, status })
            }
        }
    }
}

/// Puts the name of a check into `name`, if it is one.
pub(crate) fn take_name(bytes: &[u8], name: &mut String) -> Result<(), Fault> {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() {
        return Err(Fault::NoName);
    }
    if bytes.len() > LONGEST_NAME {
        return Err(Fault::LongName);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Fault::NameNotUtf8)?;
    name.clear();
    name.push_str(text);
    Ok(())
}
