//! Faults of this machine. They are made for real, in a process or a network
//! namespace of their own.

use std::process::Command;

use evenkeel_probe::Cause;
use evenkeel_threshold::Status::Critical;

use crate::support::*;

const MARK: &str = "EVENKEEL_TEST_ALONE";

/// Runs `test`, whose full name is `module::name` of the caller, alone in a
/// new process after `setup` by a shell in it.
pub(crate) fn alone(
    name: &str,
    unshare: Option<&str>,
    setup: &str,
    test: impl Future<Output = ()>,
) {
    if std::env::var_os(MARK).is_some() {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(test);
        return;
    }
    let mut command = if let Some(what) = unshare {
        let permitted = Command::new("unshare").args([what, "true"]).status();
        if !permitted.is_ok_and(|status| status.success()) {
            assert!(std::env::var_os("CI").is_none(), "no network namespace");
            return println!("skipped: {name}: needs the right to make a network namespace");
        }
        let mut command = Command::new("unshare");
        command.args([what, "sh"]);
        command
    } else {
        Command::new("sh")
    };
    let output = command
        .args(["-e", "-c", &format!("{setup}\nexec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args([name, "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Runs `test` in a network namespace with loopback up, after `setup`.
pub(crate) fn in_own_network(name: &str, setup: &str, test: impl Future<Output = ()>) {
    alone(
        name,
        Some("-n"),
        &format!("ip link set lo up\n{setup}"),
        test,
    );
}

/// As `in_own_network`, with these as the system's `resolv.conf` and `hosts`.
pub(crate) fn with_resolver_files(
    name: &str,
    resolv_conf: &str,
    hosts: &str,
    test: impl Future<Output = ()>,
) {
    let setup = format!(
        "ip link set lo up\nmount -t tmpfs tmpfs /mnt\n\
         printf '{resolv_conf}' > /mnt/resolv.conf\nprintf '{hosts}' > /mnt/hosts\n\
         mount --bind /mnt/resolv.conf /etc/resolv.conf\nmount --bind /mnt/hosts /etc/hosts"
    );
    alone(name, Some("-nm"), &setup, test);
}

#[test]
fn without_a_route_nothing_is_said_of_the_target() {
    in_own_network(
        "without_a_route_nothing_is_said_of_the_target",
        "ip route add prohibit 192.0.2.1/32\nip route add unreachable 192.0.2.2/32",
        async {
            let report = run(http("http://192.0.2.9/")).await;
            assert_unprobed(&report, Cause::NoRoute);
            assert_says(&report, "network is unreachable");
            let report = run(http("http://[2001:db8::1]/")).await;
            assert_unprobed(&report, Cause::NoRoute);
            let report = run(tcp("192.0.2.1:80")).await;
            assert_unprobed(&report, Cause::Permission);
            // Somebody set this up, or the target's own network says so: it cannot be reached.
            let report = run(tcp("192.0.2.2:80")).await;
            assert_status(&report, Critical);
            assert_says(&report, "no route to host");
        },
    );
}

#[test]
fn a_machine_without_ipv6_still_judges_by_the_ipv4_address() {
    in_own_network(
        "a_machine_without_ipv6_still_judges_by_the_ipv4_address",
        "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6",
        async {
            let closed = closed_port().await;
            let report = run(tcp(format!("localhost:{}", closed.port()))).await;
            assert_status(&report, Critical);
            assert_says(&report, "connection refused");
            let prober = resolving_to(&["2001:db8::1", "127.0.0.1"]);
            let report = run_with(&prober, tcp(format!("both.example:{}", closed.port()))).await;
            assert_status(&report, Critical);
            assert_says(&report, "dial tcp 127.0.0.1:");
            let prober = resolving_to(&["2001:db8::1", "2001:db8::2"]);
            let report = run_with(&prober, tcp("six.example:80")).await;
            assert!(report.status().is_none(), "{report:#?}");
            let report = run(tcp(format!("[::1]:{}", closed.port()))).await;
            assert!(report.status().is_none(), "{report:#?}");
        },
    );
}
