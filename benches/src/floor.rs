//! The physical limit, run as a program.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// CPU microseconds per probe of `probes` probes at `rate` a second, in turn
/// over `addresses` addresses from `first` on. `mode` is one of those at the head
/// of the source.
///
/// # Errors
/// It does not run, or a probe fails.
pub fn cost(
    program: &Path,
    mode: &str,
    first: SocketAddr,
    addresses: u32,
    probes: u32,
    rate: u32,
) -> io::Result<f64> {
    let output = Command::new(program)
        .args([mode, &first.ip().to_string(), &addresses.to_string()])
        .args([first.port().into(), probes, rate].map(|number: u32| number.to_string()))
        .output()?;
    let result: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    if result["failures"] != 0 {
        return Err(io::Error::other(format!("floor: {result}")));
    }
    result["cpu_us_per_probe"]
        .as_f64()
        .ok_or_else(|| io::Error::other("floor: no figure"))
}
