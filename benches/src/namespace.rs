//! A network of one's own. Thousands of new connections a second fill the
//! connection tracking of the machine's own network within a minute.

use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::{env, io};

const SETUP: &str = "ip link set lo up && ip route add 198.18.0.0/15 dev lo && exec \"$0\" \"$@\"";

const MARK: &str = "EVENKEEL_BENCH_NAMESPACE";

/// Addresses of nobody (RFC 2544 section 12: for benchmarks). In a network of
/// one's own they lead to loopback and are swallowed there: nothing ever
/// answers, and nothing is refused.
pub const BLACK_HOLE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);

/// Whether this program runs in a network of its own.
pub fn is_own() -> bool {
    env::var_os(MARK).is_some()
}

/// Starts this program again in a new network namespace with loopback and
/// [`BLACK_HOLE`], if that is permitted; returns there, or here if it is not.
/// `false`: the machine's own network is in use.
///
/// # Errors
/// The program's own path is unknown.
pub fn enter() -> io::Result<bool> {
    if is_own() {
        return Ok(true);
    }
    let permitted = Command::new("unshare")
        .args(["-n", "true"])
        .status()
        .is_ok_and(|status| status.success());
    if !permitted {
        return Ok(false);
    }
    let error = Command::new("unshare")
        .args(["-n", "sh", "-c", SETUP])
        .arg(env::current_exe()?)
        .args(env::args_os().skip(1))
        .env(MARK, "1")
        .exec();
    Err(error)
}
