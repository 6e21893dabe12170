//! Faults of this machine. They are made for real, in a process or a network
//! namespace of their own.

use std::process::Command;

use evenkeel_probe::{Cause, Phase};
use evenkeel_threshold::Status::{Critical, Passing};

use crate::support::*;

const MARK: &str = "EVENKEEL_TEST_ALONE";

/// Runs `test`, whose full name is `module::name` of the caller, alone in a
/// new process after `setup` by a shell in it.
fn alone(name: &str, unshare: Option<&str>, setup: &str, test: impl Future<Output = ()>) {
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
fn without_descriptors_nothing_is_said_of_the_target() {
    // P128
    alone(
        "without_descriptors_nothing_is_said_of_the_target",
        None,
        "ulimit -n 64",
        async {
            let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            let url = server.url();
            let mut held = Vec::new();
            while let Ok(file) = std::fs::File::open("/dev/null") {
                held.push(file);
            }
            for report in [
                run(http(&url)).await,
                run(tcp(server.address)).await,
                run(http(format!("http://localhost:{}/", server.address.port()))).await,
                run(udp(server.address)).await,
                run(dns(server.address)).await,
                #[cfg(feature = "icmp")]
                run(evenkeel_probe::IcmpCheck::new("127.0.0.1", Default::default()).unwrap()).await,
            ] {
                assert_unprobed(&report, Cause::Descriptors);
                assert_says(&report, "too many open files");
            }
            held.truncate(10);
            assert_status(&run(http(&url)).await, Passing);
        },
    );
}

#[test]
fn without_source_ports_nothing_is_said_of_the_target() {
    // P128
    in_own_network(
        "without_source_ports_nothing_is_said_of_the_target",
        "echo '40000 40001' > /proc/sys/net/ipv4/ip_local_port_range",
        async {
            let server = Server::start_on("127.0.0.1:8080", |mut stream| async move {
                until_closed(&mut stream).await;
            })
            .await;
            let mut held = Vec::new();
            for _ in 0..2 {
                held.push(
                    tokio::net::TcpStream::connect(server.address)
                        .await
                        .unwrap(),
                );
            }
            let report = run(tcp(server.address)).await;
            assert_unprobed(&report, Cause::SourcePorts);
            assert_says(&report, "cannot assign requested address");
            assert_eq!(report.failed_phase, Some(Phase::Connect));
            // Datagrams have ports of their own.
            let mut datagrams = Vec::new();
            for _ in 0..2 {
                datagrams.push(tokio::net::UdpSocket::bind("0.0.0.0:0").await.unwrap());
            }
            for report in [
                run(udp(server.address)).await,
                run(dns(server.address)).await,
            ] {
                assert_unprobed(&report, Cause::SourcePorts);
                assert_says(&report, "address already in use");
            }
        },
    );
}

fn udp(address: std::net::SocketAddr) -> evenkeel_probe::UdpCheck {
    evenkeel_probe::UdpCheck::new(&address.to_string()).unwrap()
}

fn dns(address: std::net::SocketAddr) -> evenkeel_probe::DnsCheck {
    let options = evenkeel_probe::DnsOptions::default();
    evenkeel_probe::DnsCheck::new(&address.to_string(), "a.example", options).unwrap()
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
