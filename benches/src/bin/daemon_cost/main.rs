//! What the daemon costs as a process, beside the physical limit in the same
//! run.
//!
//! ```text
//! cargo build --release -p evenkeel
//! cargo run --release -p evenkeel-benches --bin daemon_cost -- [CHECKS [INTERVAL [SECONDS]]]
//! ```
//!
//! CHECKS checks, one per loopback address, each probed every INTERVAL seconds
//! over a new connection: HTTP and TCP from a file, and HTTP from a real Consul
//! where there is one (`EVENKEEL_CONSUL`, or `consul` in `PATH`). Each is
//! measured for SECONDS once all checks have been probed; before and after the
//! daemon, `floor` runs for as long at the same rate over the same addresses.
//! Prints a table and a line of JSON for each.
//!
//! The daemon is `evenkeel` beside this program, or what `EVENKEEL` names. ONLY
//! runs the cases with this in their name.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]
#![allow(
    clippy::disallowed_methods,
    reason = "another process is measured, in the time of the world"
)]

mod definitions;
mod measure;

use std::error::Error;
use std::net::Ipv4Addr;

use evenkeel_benches::daemon::Daemon;
use evenkeel_benches::target::Target;
use evenkeel_benches::{namespace, native};

use crate::measure::Load;

const BASE: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 0);

type Failable<T> = Result<T, Box<dyn Error>>;

fn main() -> Failable<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u32| match arguments.next() {
        Some(text) => text.parse::<u32>(),
        None => Ok(default),
    };
    let load = Load {
        checks: number(5_000)?.max(1),
        interval: number(1)?.max(1),
        seconds: number(20)?.max(1),
    };
    let own_network = namespace::enter()?;
    println!(
        "checks {}, interval {} s, measured for {} s, own network namespace: {own_network}",
        load.checks, load.interval, load.seconds
    );
    measure::say_load()?;
    let directory = tempfile::tempdir()?;
    let floor = native::compile(directory.path(), "floor", native::FLOOR)?;
    let program = native::compile(directory.path(), "target", native::TARGET)?;
    let only = std::env::var("ONLY").unwrap_or_default();
    for (name, kind) in [
        ("http-file", "http"),
        ("http-consul", "http"),
        ("tcp-file", "tcp"),
    ] {
        if !name.contains(&only) {
            continue;
        }
        let target = Target::start(&program, kind, BASE, load.checks)?;
        let state = directory.path().join(name);
        std::fs::create_dir(&state)?;
        // Consul is to outlive the daemon.
        let mut consul = None;
        let catalog = if name.ends_with("consul") {
            if evenkeel_testkit::consul_binary().is_none() {
                println!("{name}: not measured, there is no Consul");
                continue;
            }
            let consul = consul.insert(evenkeel_testkit::Consul::start(name).ok_or("no Consul")?);
            definitions::register(consul, &target, load.checks, load.interval)?;
            ["--consul".to_owned(), consul.address()]
        } else {
            let file = state.join("checks.toml");
            definitions::write(&file, kind, &target, load.checks, load.interval)?;
            let file = file.to_str().ok_or("the path is no text")?;
            ["--file".to_owned(), file.to_owned()]
        };
        let start = || Daemon::start(&state, &catalog);
        measure::measure(name, kind, &floor, &target, start, load)?;
        drop(consul);
    }
    measure::say_load()
}
