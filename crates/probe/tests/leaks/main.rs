//! What probes leave behind: nothing. Thousands of each kind, good ones and ones
//! that fail in every phase, by an answer, at their deadline and by being
//! dropped; then descriptors, tasks, threads, processes and memory are where
//! they were.
//!
//! The figures are printed: `cargo test -p evenkeel-probe --all-features --test
//! leaks -- --include-ignored --nocapture`.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic and print, and its helpers are the shorter by it"
)]

mod kinds;
mod measure;

use std::process::Command;
use std::sync::Mutex;

use evenkeel_testkit::targets::Targets;

use crate::kinds::Kind;

/// Within some seconds.
#[test]
fn some_probes_of_each_kind_leave_nothing_behind() {
    alone("some_probes_of_each_kind_leave_nothing_behind", || {
        let targets = Targets::start();
        measure::all(kinds::all(&targets), 200);
    });
}

#[test]
#[ignore = "minutes: run by .ci/long"]
fn ten_thousand_probes_of_each_kind_leave_nothing_behind() {
    let name = "ten_thousand_probes_of_each_kind_leave_nothing_behind";
    alone(name, || {
        let targets = Targets::start();
        measure::all(kinds::all(&targets), 10_000);
    });
}

#[cfg(feature = "docker")]
#[test]
#[ignore = "starts containers and takes a minute: run by .ci/long"]
fn three_hundred_commands_in_containers_leave_nothing_behind() {
    let name = "three_hundred_commands_in_containers_leave_nothing_behind";
    alone(name, || {
        let Some(docker) = evenkeel_testkit::Docker::start(name) else {
            return;
        };
        docker.container("web");
        docker.container("stuck");
        measure::all(vec![Kind::docker(&docker.host())], 300);
    });
}

/// Runs `test` in a process and a network of its own, by running this very test
/// there, or here where that is not permitted, one at a time.
fn alone(name: &str, test: impl FnOnce()) {
    const MARK: &str = "EVENKEEL_ALONE";
    // Packets to an address of nobody that leads to loopback get no answer.
    const SETUP: &str =
        "ip link set lo up && ip route add 203.0.113.0/24 dev lo && exec \"$0\" \"$@\"";
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    if std::env::var_os(MARK).is_some() {
        return test();
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["-n", "sh", "-c", SETUP]);
        command
    };
    let permitted = unshare().arg("true").status();
    if !permitted.is_ok_and(|status| status.success()) {
        println!("{name}: in the network of this machine, since no other is permitted");
        let _one = ONE_AT_A_TIME.lock();
        return test();
    }
    let status = unshare()
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--include-ignored", "--nocapture"])
        .env(MARK, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{name}: see above");
}

/// Whether the network has what [`alone`] sets up.
fn has_own_network() -> bool {
    std::fs::read_to_string("/proc/net/route").is_ok_and(|routes| routes.contains("007100CB"))
}
