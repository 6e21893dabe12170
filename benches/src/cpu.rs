//! CPU time of processes.

use std::time::Duration;
use std::{fs, io};

/// CPU time that all threads of a process have used so far; the calling
/// process with `None`. From the scheduler's own account in nanoseconds
/// (`/proc/PID/task/TID/schedstat`), kernel work included. Threads that have
/// ended are not in it.
///
/// # Errors
/// The process is gone, or the kernel keeps no such account.
pub fn used(process: Option<u32>) -> io::Result<Duration> {
    let process = process.map_or_else(|| "self".to_owned(), |id| id.to_string());
    let mut nanos = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let path = thread?.path().join("schedstat");
        let account = fs::read_to_string(&path)?;
        nanos += account
            .split_whitespace()
            .next()
            .and_then(|field| field.parse::<u64>().ok())
            .ok_or_else(|| io::Error::other(format!("no number in {}", path.display())))?;
    }
    Ok(Duration::from_nanos(nanos))
}
