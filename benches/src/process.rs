//! What the kernel knows of a process.

use std::time::Duration;
use std::{fs, io};

/// Resident memory of a process, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Resident {
    /// Now (`VmRSS`).
    pub now: u64,
    /// The most so far (`VmHWM`).
    pub peak: u64,
}

/// How much memory is resident.
///
/// # Errors
/// The process is gone.
pub fn resident(process: u32) -> io::Result<Resident> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
            .map(|kib| kib * 1024)
            .ok_or_else(|| io::Error::other(format!("no {name} of process {process}")))
    };
    Ok(Resident {
        now: field("VmRSS:")?,
        peak: field("VmHWM:")?,
    })
}

/// CPU time of a process, kernel work and ended threads included, to a
/// hundredth of a second (`utime` and `stime` in `/proc/PID/stat`; Linux
/// divides its account in nanoseconds between the two, so the sum is exact).
///
/// # Errors
/// The process is gone.
pub fn cpu(process: u32) -> io::Result<Duration> {
    ticks(process, 2)
}

/// As [`cpu`], together with that of its children that have ended and been
/// waited for (`cutime`, `cstime`).
///
/// # Errors
/// The process is gone.
pub fn cpu_with_children(process: u32) -> io::Result<Duration> {
    ticks(process, 4)
}

/// Lets this process open as many descriptors as the system permits.
///
/// # Errors
/// The system says no.
pub fn allow_descriptors() -> io::Result<()> {
    rlimit::increase_nofile_limit(u64::MAX).map(drop)
}

/// The sum of the first of `utime`, `stime`, `cutime`, `cstime`.
fn ticks(process: u32, fields: usize) -> io::Result<Duration> {
    // USER_HZ, which is 100 on every architecture that Rust's standard library
    // runs on.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name, in parentheses, may have spaces in it.
    let ticks: Option<u32> = stat.rsplit_once(')').and_then(|(_, all)| {
        let times = all.split_whitespace().skip(11).take(fields);
        times.map(|time| time.parse::<u32>().ok()).sum()
    });
    ticks
        .map(|ticks| TICK * ticks)
        .ok_or_else(|| io::Error::other(format!("no CPU time of process {process}")))
}
