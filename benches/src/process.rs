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
    // USER_HZ, which is 100 on every architecture that Rust's standard library
    // runs on.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name, in parentheses, may have spaces in it.
    let ticks: Option<u32> = stat.rsplit_once(')').and_then(|(_, fields)| {
        let mut fields = fields.split_whitespace().skip(11);
        let user: u32 = fields.next()?.parse().ok()?;
        let system: u32 = fields.next()?.parse().ok()?;
        Some(user + system)
    });
    ticks
        .map(|ticks| TICK * ticks)
        .ok_or_else(|| io::Error::other(format!("no CPU time of process {process}")))
}
