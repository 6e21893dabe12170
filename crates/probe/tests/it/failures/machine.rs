//! Faults of this machine. They are made for real, each in a process of its own,
//! some in a network of its own.

use std::pin::Pin;
use std::process::Command;

use evenkeel_probe::{Cause, IcmpCheck, IcmpOptions, Phase};

use super::case::{Case, Row, critical, run_all, unprobed};
use crate::support::*;

const MARK: &str = "EVENKEEL_TEST_MACHINE";

/// What is run after it has neither root's user nor any capability.
const NOBODY: &str = "set -- setpriv --reuid 65534 --regid 65534 --clear-groups \
     --inh-caps=-all --bounding-set=-all \"$0\" \"$@\"; exec \"$@\"";

type Cases = Pin<Box<dyn Future<Output = Vec<Case>>>>;

struct Group {
    name: &'static str,
    in_own_network: bool,
    setup: &'static str,
    /// Kind and situation of its rows, which are kept as they are where it
    /// cannot be run.
    rows: &'static [(&'static str, &'static str)],
    cases: fn() -> Cases,
}

const DESCRIPTORS: &str = "this machine has no file descriptor left";
const PORTS: &str = "this machine has no local port left";
const NO_ROUTE: &str = "this machine has no route";
const FORBIDDEN: &str = "this machine forbids it (firewall, sandbox)";
const NOT_THERE: &str = "nobody has the address";
const NO_PERMISSION: &str = "no permission for ICMP sockets";
const NO_ECHO: &str = "no answer";

const GROUPS: &[Group] = &[
    Group {
        name: "descriptors",
        in_own_network: false,
        setup: "ulimit -n 64",
        rows: &[
            ("HTTP", DESCRIPTORS),
            ("UDP", DESCRIPTORS),
            ("ICMP", DESCRIPTORS),
        ],
        cases: || Box::pin(descriptors()),
    },
    Group {
        name: "ports",
        in_own_network: true,
        setup: "echo '40000 40000' > /proc/sys/net/ipv4/ip_local_port_range",
        rows: &[("HTTP", PORTS), ("UDP", PORTS)],
        cases: || Box::pin(ports()),
    },
    Group {
        name: "routes",
        in_own_network: true,
        setup: "ip route add prohibit 192.0.2.1/32\nip route add unreachable 192.0.2.2/32",
        rows: &[
            ("HTTP", NO_ROUTE),
            ("HTTP", FORBIDDEN),
            ("HTTP", NOT_THERE),
            ("ICMP", NOT_THERE),
        ],
        cases: || Box::pin(routes()),
    },
    Group {
        name: "echoes",
        in_own_network: true,
        setup: "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all",
        rows: &[("ICMP", NO_ECHO)],
        cases: || Box::pin(echoes()),
    },
    Group {
        name: "nobody",
        in_own_network: true,
        setup: NOBODY,
        rows: &[("ICMP", NO_PERMISSION)],
        cases: || Box::pin(nobody()),
    },
];

fn icmp(target: &str) -> IcmpCheck {
    let options = IcmpOptions {
        timeout: SHORT,
        spacing: SHORT / 100,
        ..IcmpOptions::default()
    };
    IcmpCheck::new(target, options).unwrap()
}

fn udp(target: &str) -> evenkeel_probe::UdpCheck {
    evenkeel_probe::UdpCheck::new(target).unwrap()
}

async fn descriptors() -> Vec<Case> {
    // All that this process has from now on.
    while let Ok(file) = std::fs::File::open("/dev/null") {
        std::mem::forget(file);
    }
    let none = |phase| unprobed(Cause::Descriptors, "too many open files").at(phase);
    vec![
        Case::new(
            "HTTP",
            DESCRIPTORS,
            none(Phase::Connect),
            run(http("http://127.0.0.1:80/")),
        ),
        Case::new(
            "UDP",
            DESCRIPTORS,
            none(Phase::FirstByte),
            run(udp("127.0.0.1:80")),
        ),
        Case::new(
            "ICMP",
            DESCRIPTORS,
            none(Phase::FirstByte),
            run(icmp("127.0.0.1")),
        ),
    ]
}

async fn ports() -> Vec<Case> {
    let server = Server::start_on("127.0.0.1:80", |mut stream| async move {
        until_closed(&mut stream).await;
    })
    .await;
    std::mem::forget(
        tokio::net::TcpStream::connect(server.address)
            .await
            .unwrap(),
    );
    std::mem::forget(tokio::net::UdpSocket::bind("0.0.0.0:0").await.unwrap());
    std::mem::forget(server);
    let none = |says, phase| unprobed(Cause::SourcePorts, says).at(phase);
    vec![
        Case::new(
            "HTTP",
            PORTS,
            none("cannot assign requested address", Phase::Connect),
            run(http("http://127.0.0.1:80/")),
        ),
        Case::new(
            "UDP",
            PORTS,
            none("address already in use", Phase::FirstByte),
            run(udp("127.0.0.1:80")),
        ),
    ]
}

async fn routes() -> Vec<Case> {
    let no_route = unprobed(Cause::NoRoute, "network is unreachable").at(Phase::Connect);
    let forbidden = unprobed(Cause::Permission, "permission denied").at(Phase::Connect);
    let not_there = critical("no route to host").at(Phase::Connect);
    let silent = critical("host unreachable").at(Phase::FirstByte);
    vec![
        Case::new("HTTP", NO_ROUTE, no_route, run(http("http://192.0.2.9/"))),
        Case::new("HTTP", FORBIDDEN, forbidden, run(http("http://192.0.2.1/"))),
        Case::new("HTTP", NOT_THERE, not_there, run(http("http://192.0.2.2/"))),
        Case::new("ICMP", NOT_THERE, silent, run(icmp("192.0.2.2"))),
    ]
}

async fn echoes() -> Vec<Case> {
    let silent = critical("0 of 3 answered: context deadline exceeded").at(Phase::FirstByte);
    vec![Case::new("ICMP", NO_ECHO, silent, run(icmp("127.0.0.1")))]
}

async fn nobody() -> Vec<Case> {
    let none = unprobed(Cause::Permission, "CAP_NET_RAW").at(Phase::FirstByte);
    vec![Case::new(
        "ICMP",
        NO_PERMISSION,
        none,
        run(icmp("127.0.0.1")),
    )]
}

/// Whether this process is one of those that [`rows`] starts.
pub(crate) fn is_child() -> bool {
    std::env::var_os(MARK).is_some()
}

/// In such a process: the rows of its group, a line each.
pub(crate) fn print_rows() {
    let name = std::env::var(MARK).unwrap();
    let group = GROUPS.iter().find(|group| group.name == name).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let rows = runtime.block_on(async { run_all((group.cases)().await).await });
    for row in rows {
        let Row {
            kind,
            situation,
            result,
            phase,
            text,
        } = row;
        println!("row\t{kind}\t{situation}\t{result}\t{phase}\t{text}");
    }
}

/// The rows of all groups; without a result where this machine does not permit to
/// make the fault.
pub(crate) fn rows(test: &str) -> Vec<Row> {
    GROUPS
        .iter()
        .flat_map(|group| rows_of(group, test))
        .collect()
}

fn rows_of(group: &Group, test: &str) -> Vec<Row> {
    let mut command = Command::new("sh");
    let mut setup = group.setup.to_owned();
    if group.in_own_network {
        let permitted = Command::new("unshare").args(["-n", "true"]).status();
        if !permitted.is_ok_and(|status| status.success()) {
            assert!(std::env::var_os("CI").is_none(), "no network namespace");
            println!(
                "kept as they are: texts of {}: needs a network namespace",
                group.name
            );
            let absent = |(kind, situation): &(&str, &str)| Row {
                kind: (*kind).to_owned(),
                situation: (*situation).to_owned(),
                result: String::new(),
                phase: String::new(),
                text: String::new(),
            };
            return group.rows.iter().map(absent).collect();
        }
        command = Command::new("unshare");
        command.args(["-n", "sh"]);
        setup = format!("ip link set lo up\n{setup}");
    }
    let output = command
        .args(["-e", "-c", &format!("{setup}\nexec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(MARK, group.name)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<Row> = text
        .lines()
        .filter_map(|line| {
            // The harness may have begun the line.
            let (_, row) = line.split_once("row\t")?;
            let cells: Vec<&str> = row.split('\t').collect();
            let [kind, situation, result, phase, text] = cells[..] else {
                return None;
            };
            Some(Row {
                kind: kind.to_owned(),
                situation: situation.to_owned(),
                result: result.to_owned(),
                phase: phase.to_owned(),
                text: text.to_owned(),
            })
        })
        .collect();
    assert!(
        output.status.success() && rows.len() == group.rows.len(),
        "{}: {text}\n{}",
        group.name,
        String::from_utf8_lossy(&output.stderr)
    );
    rows
}
