use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_replay::{BadRow, Entry, History, ReadError, Replay};

use super::BadRows;
use crate::exit::{Exit, Failure};

/// Where a history, or a part of one, comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Stdin => f.write_str("standard input"),
        }
    }
}

impl Input {
    /// What there is to read, and how many bytes if that is known.
    fn open(&self) -> io::Result<(Box<dyn Read>, Option<u64>)> {
        Ok(match self {
            Self::Stdin => (Box::new(io::stdin().lock()), None),
            Self::File(path) => {
                let file = File::open(path)?;
                let bytes = file
                    .metadata()
                    .ok()
                    .filter(|it| it.is_file())
                    .map(|it| it.len());
                (Box::new(file), bytes)
            }
        })
    }
}

/// How far it is, for somebody who waits at a terminal.
pub struct Progress(Option<Box<dyn Write>>);

impl Progress {
    /// Rows between two lines of it: a few a second.
    const EVERY: u64 = 1 << 18;

    /// Nobody waits.
    pub fn none() -> Self {
        Self(None)
    }

    /// Written to a terminal, over itself.
    pub fn to(terminal: impl Write + 'static) -> Self {
        Self(Some(Box::new(terminal)))
    }

    fn tell(&mut self, results: u64, of_bytes: Option<(u64, u64)>) {
        if !results.is_multiple_of(Self::EVERY) {
            return;
        }
        if let Some(terminal) = &mut self.0 {
            let percent = of_bytes
                .filter(|(_, bytes)| *bytes > 0)
                .map(|(read, bytes)| format!(", {} % of the file", read * 100 / bytes))
                .unwrap_or_default();
            // A terminal that is gone is no reason to stop.
            let _ = write!(terminal, "\r\u{1b}[K{results} results{percent}");
            let _ = terminal.flush();
        }
    }

    pub(super) fn done(&mut self) {
        if let Some(terminal) = &mut self.0 {
            let _ = write!(terminal, "\r\u{1b}[K");
            let _ = terminal.flush();
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.0.is_some()).finish()
    }
}

/// Counts what is read.
struct Counted {
    read: Box<dyn Read>,
    bytes: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.read.read(buffer)?;
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}

/// What has been read so far.
pub(super) struct Reading {
    pub(super) replay: Replay,
    pub(super) bad_rows: BadRows,
    pub(super) events: u64,
    pub(super) event_interval: Duration,
}

impl Reading {
    pub(super) fn read(&mut self, input: &Input, progress: &mut Progress) -> Result<(), Failure> {
        let name: Arc<str> = input.to_string().into();
        let (read, size) = input
            .open()
            .map_err(|error| Failure::new(Exit::Io, format!("{name}: {error}")))?;
        let bytes = Rc::new(Cell::new(0));
        let counted = Counted {
            read,
            bytes: Rc::clone(&bytes),
        };
        let refused = |error: ReadError| {
            let exit = match error {
                ReadError::Io { .. } => Exit::Io,
                _ => Exit::Data,
            };
            Failure::new(exit, format!("{name}: {error}"))
        };
        let mut history = History::new(counted)
            .map_err(refused)?
            .with_event_interval(self.event_interval);
        while let Some(entry) = history.next().map_err(refused)? {
            let bad = match entry {
                Entry::Row(row) => match self.replay.observe(&row) {
                    Ok(()) => {
                        let of_bytes = size.map(|size| (bytes.get(), size));
                        progress.tell(self.replay.results(), of_bytes);
                        continue;
                    }
                    Err(fault) => BadRow {
                        line: row.line,
                        fault,
                    },
                },
                Entry::Bad(bad) => bad,
            };
            self.bad_rows.count(&name, bad);
        }
        self.events += history.events();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use evenkeel_replay::{Candidate, ReplaySettings};

    use super::*;
    use crate::simulate::OnBadRows;

    /// A terminal whose screen can be looked at afterwards.
    #[derive(Clone, Default)]
    struct Screen(Rc<RefCell<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn somebody_at_a_terminal_sees_how_far_it_is() {
        let rows = Progress::EVERY * 2 + 1;
        let text: String = (0..rows).map(|second| format!("{second},a,up\n")).collect();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.csv");
        std::fs::write(&path, text).unwrap();
        let screen = Screen::default();
        let mut progress = Progress::to(screen.clone());
        let candidates = vec![Candidate::parse("raw").unwrap()];
        let mut reading = Reading {
            replay: Replay::new(ReplaySettings::default(), candidates),
            bad_rows: BadRows::new(OnBadRows {
                refuse: false,
                named: 0,
            }),
            events: 0,
            event_interval: Duration::from_secs(30),
        };
        reading.read(&Input::File(path), &mut progress).unwrap();
        progress.done();
        let shown = String::from_utf8(screen.0.borrow().clone()).unwrap();
        let lines: Vec<&str> = shown.split("\r\u{1b}[K").collect();
        assert_eq!(lines.len(), 4, "{shown:?}");
        // What is read ahead counts as read.
        assert!(lines[1].starts_with("262144 results, 5"), "{shown:?}");
        assert_eq!(lines[2], "524288 results, 100 % of the file");
        // The last one is wiped away.
        assert_eq!(lines[3], "");
    }
}
