use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use crate::events::{EventLine, RotatingFile};

/// Lines that may wait for the disk. A disk that hangs must not stop the probes;
/// what does not fit is counted and left out.
const WAITING: usize = 8192;

/// Bytes gathered into one write.
const BATCH: usize = 64 * 1024;

/// Where the event log goes.
#[derive(Debug, Clone)]
pub struct EventLogOptions {
    /// The file; none means no event log.
    pub path: Option<PathBuf>,
    /// The size in bytes at which it is rotated; 0 for never.
    pub max_bytes: u64,
    /// Old files to keep.
    pub keep: u32,
}

/// The event log, written by a thread of its own so that a slow disk delays
/// nothing.
#[derive(Debug)]
pub struct EventLog {
    send: Option<SyncSender<String>>,
    thread: Option<JoinHandle<()>>,
    lost: Arc<AtomicU64>,
}

impl EventLog {
    /// Opens the log. Without a path every event is dropped, which is not
    /// counted as a loss.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened.
    pub fn open(options: &EventLogOptions) -> std::io::Result<Self> {
        let lost = Arc::new(AtomicU64::new(0));
        let Some(path) = options.path.clone() else {
            return Ok(Self {
                send: None,
                thread: None,
                lost,
            });
        };
        let file = RotatingFile::open(&path, options.max_bytes, options.keep)?;
        let (send, receive) = sync_channel(WAITING);
        let sink = Sink {
            path,
            max_bytes: options.max_bytes,
            keep: options.keep,
            file: Some(file),
            lost: Arc::clone(&lost),
        };
        let thread = thread::Builder::new()
            .name("events".into())
            .stack_size(256 * 1024)
            .spawn(move || sink.run(&receive))?;
        Ok(Self {
            send: Some(send),
            thread: Some(thread),
            lost,
        })
    }

    /// Whether anything is written at all.
    pub fn is_on(&self) -> bool {
        self.send.is_some()
    }

    /// Hands one line to the writer. Never waits.
    pub fn write(&self, line: &EventLine) {
        let Some(send) = &self.send else { return };
        let Ok(mut text) = serde_json::to_string(line) else {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        };
        text.push('\n');
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = send.try_send(text) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that could not be written since the start.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes what waits and ends. Blocks until the disk has taken it.
    pub fn close(mut self) {
        self.send = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Sink {
    path: PathBuf,
    max_bytes: u64,
    keep: u32,
    file: Option<RotatingFile>,
    lost: Arc<AtomicU64>,
}

impl Sink {
    fn run(mut self, lines: &Receiver<String>) {
        let mut batch = Vec::new();
        while let Ok(line) = lines.recv() {
            batch.clear();
            batch.extend_from_slice(line.as_bytes());
            let mut count = 1;
            while batch.len() < BATCH {
                let Ok(line) = lines.try_recv() else { break };
                batch.extend_from_slice(line.as_bytes());
                count += 1;
            }
            if let Err(error) = self.write(&batch) {
                // One log line per fault, not per event: the file is dropped here
                // and said again only when it worked in between.
                if self.file.take().is_some() {
                    tracing::error!(path = %self.path.display(), %error, "event log cannot be written");
                }
                self.lost.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    fn write(&mut self, batch: &[u8]) -> std::io::Result<()> {
        if self.file.is_none() {
            self.file = Some(RotatingFile::open(&self.path, self.max_bytes, self.keep)?);
        }
        match &mut self.file {
            Some(file) => file.write(batch),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Kind;

    #[test]
    fn what_was_handed_over_is_in_the_file_after_close() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let log = EventLog::open(&EventLogOptions {
            path: Some(path.clone()),
            max_bytes: 0,
            keep: 0,
        })
        .unwrap();
        for _ in 0..1000 {
            log.write(&EventLine::new(
                "2026-11-30T10:00:00.000Z".into(),
                Kind::Started,
            ));
        }
        log.close();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 1000);
        for line in text.lines() {
            serde_json::from_str::<EventLine>(line).unwrap();
        }
    }

    #[test]
    fn without_a_path_nothing_is_lost() {
        let log = EventLog::open(&EventLogOptions {
            path: None,
            max_bytes: 0,
            keep: 0,
        })
        .unwrap();
        log.write(&EventLine::new(
            "2026-11-30T10:00:00.000Z".into(),
            Kind::Started,
        ));
        assert!(!log.is_on());
        assert_eq!(log.lost(), 0);
        log.close();
    }

    #[test]
    fn a_disk_that_takes_nothing_is_counted_and_the_log_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let log = EventLog::open(&EventLogOptions {
            path: Some(path.clone()),
            max_bytes: 1,
            keep: 1,
        })
        .unwrap();
        log.write(&EventLine::new(
            "2026-11-30T10:00:00.000Z".into(),
            Kind::Started,
        ));
        // A directory in the way of the rotation's target.
        std::fs::create_dir_all(dir.path().join("events.jsonl.1/x")).unwrap();
        while std::fs::metadata(&path).is_ok_and(|meta| meta.len() == 0) {
            std::thread::yield_now();
        }
        log.write(&EventLine::new(
            "2026-11-30T10:00:00.000Z".into(),
            Kind::Stopped,
        ));
        let lost = Arc::clone(&log.lost);
        log.close();
        assert_eq!(lost.load(Ordering::Relaxed), 1);
    }
}
