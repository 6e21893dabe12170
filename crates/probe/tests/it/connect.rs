//! Over which family and from which address.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use evenkeel_probe::{
    Cause, ConnectOptions, Definition, DnsCheck, DnsOptions, DnsTransport, Family, HttpTransport,
    Report, TlsCheck, UdpCheck,
};
use evenkeel_threshold::Status::{Critical, Passing};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::Barrier;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::support::*;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn over(family: Family) -> ConnectOptions {
    ConnectOptions {
        family,
        source: None,
    }
}

fn from(source: &str) -> ConnectOptions {
    ConnectOptions {
        family: Family::Any,
        source: Some(source.parse().unwrap()),
    }
}

/// A check of each kind that connects.
fn of_each_kind(
    address: impl std::fmt::Display,
    options: ConnectOptions,
) -> Vec<(&'static str, Definition)> {
    let address = address.to_string();
    let asked = DnsOptions {
        transport: DnsTransport::Tcp,
        ..DnsOptions::default()
    };
    let dns = DnsCheck::new(&address, "a.", asked).unwrap();
    let udp = UdpCheck::new(&address).unwrap();
    let mut all: Vec<Definition> = vec![
        http(format!("http://{address}/"))
            .with_connect(options)
            .unwrap()
            .into(),
        tcp(&address).with_connect(options).unwrap().into(),
        udp.with_connect(options).unwrap().into(),
        dns.with_connect(options).unwrap().into(),
        TlsCheck::new(&address)
            .unwrap()
            .with_connect(options)
            .unwrap()
            .into(),
    ];
    #[cfg(feature = "grpc")]
    all.push({
        let grpc = evenkeel_probe::GrpcCheck::new(&address).unwrap();
        grpc.with_connect(options).unwrap().into()
    });
    #[cfg(feature = "h2ping")]
    all.push({
        let ping = evenkeel_probe::H2PingCheck::new(&address).unwrap();
        ping.with_connect(options).unwrap().into()
    });
    all.into_iter().map(|check| (check.kind(), check)).collect()
}

/// A port on which nobody listens, for both families and both protocols.
async fn shut() -> u16 {
    closed_port().await.port()
}

async fn http_on(address: &str) -> Server {
    Server::start_on(address, |mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(OK.as_bytes()).await;
        until_closed(&mut stream).await;
    })
    .await
}

#[tokio::test]
async fn each_kind_tries_addresses_of_the_family_only() {
    let port = shut().await;
    let prober = resolving_to(&["127.0.0.1", "::1"]);
    for (family, address) in [
        (Family::V4, format!("127.0.0.1:{port}")),
        (Family::V6, format!("[::1]:{port}")),
    ] {
        for host in ["a.example", "localhost"] {
            for (kind, check) in of_each_kind(format!("{host}:{port}"), over(family)) {
                let report = run_with(&prober, check).await;
                assert_status(&report, Critical);
                let shown = match kind {
                    "udp" => format!("udp {address}: connection refused"),
                    _ => format!("dial tcp {address}: connect: connection refused"),
                };
                assert!(report.output.ends_with(&shown), "{kind}: {report:#?}");
            }
        }
    }
}

#[tokio::test]
async fn a_name_without_an_address_of_the_family_is_critical() {
    for (addresses, family, word) in [
        (&["127.0.0.1"][..], Family::V6, "IPv6"),
        (&["::ffff:127.0.0.1"], Family::V6, "IPv6"),
        (&["::1"], Family::V4, "IPv4"),
    ] {
        let prober = resolving_to(addresses);
        for (kind, check) in of_each_kind("a.example:80", over(family)) {
            let report = run_with(&prober, check).await;
            assert_status(&report, Critical);
            let says = format!("lookup a.example: no such host with an {word} address");
            assert!(report.output.ends_with(&says), "{kind}: {report:#?}");
        }
        // That is not passing over the other family, either.
        let check = tcp("a.example:80")
            .with_connect(over(Family::Both))
            .unwrap();
        let report = run_with(&prober, check).await;
        assert_status(&report, Critical);
        assert_says(&report, &format!("{word}: dial tcp: lookup a.example"));
    }
}

/// Each of the two servers answers when the other one has been asked.
#[tokio::test]
async fn both_families_are_probed_at_the_same_time() {
    let meeting = Arc::new(Barrier::new(2));
    let script = |meeting: &Arc<Barrier>| {
        let meeting = meeting.clone();
        move |mut stream: tokio::net::TcpStream| {
            let meeting = meeting.clone();
            async move {
                read_request(&mut stream).await;
                meeting.wait().await;
                let _ = stream.write_all(OK.as_bytes()).await;
                until_closed(&mut stream).await;
            }
        }
    };
    let v4 = Server::start_on("127.0.0.1:0", script(&meeting)).await;
    let port = v4.address.port();
    let _v6 = Server::start_on(&format!("[::1]:{port}"), script(&meeting)).await;
    let check = http(format!("http://localhost:{port}/"));
    let report = run(check.with_connect(over(Family::Both)).unwrap()).await;
    assert_status(&report, Passing);
    assert_says(&report, "IPv4 and IPv6: HTTP GET ");
    assert!(report.phases.first_byte.is_some());
}

#[tokio::test]
async fn of_both_families_the_one_that_fails_is_named() {
    for (listens, fails) in [
        ("127.0.0.1:0", "IPv6: Get \"http://localhost:"),
        ("[::1]:0", "IPv4: Get \"http://localhost:"),
    ] {
        let server = http_on(listens).await;
        let check = http(format!("http://localhost:{}/", server.address.port()));
        assert_status(&run(check.clone()).await, Passing);
        let report = run(check.with_connect(over(Family::Both)).unwrap()).await;
        assert_status(&report, Critical);
        assert!(report.output.starts_with(fails), "{report:#?}");
        assert_says(&report, "connection refused");
    }
    let port = shut().await;
    for (kind, check) in of_each_kind(format!("localhost:{port}"), over(Family::Both)) {
        let report = run(check).await;
        assert_status(&report, Critical);
        assert!(report.output.starts_with("IPv4: "), "{kind}: {report:#?}");
        assert!(report.output.contains("; IPv6: "), "{kind}: {report:#?}");
    }
}

/// A check keeps one connection: that of the one family is none of the other.
#[tokio::test]
async fn a_connection_that_is_kept_is_used_over_its_own_family() {
    let keeping = |served: &UnboundedSender<&'static str>, name: &'static str| {
        let served = served.clone();
        move |mut stream: tokio::net::TcpStream| {
            let served = served.clone();
            async move {
                while !read_request(&mut stream).await.is_empty() {
                    served.send(name).unwrap();
                    let _ = stream.write_all(OK.as_bytes()).await;
                }
            }
        }
    };
    let (served, mut requests) = unbounded_channel();
    let v4 = Server::start_on("127.0.0.1:0", keeping(&served, "IPv4")).await;
    let port = v4.address.port();
    let _v6 = Server::start_on(&format!("[::1]:{port}"), keeping(&served, "IPv6")).await;
    let reuse = HttpTransport {
        reuse: true,
        ..HttpTransport::default()
    };
    let check = http(format!("http://localhost:{port}/"))
        .with_transport(reuse)
        .unwrap()
        .with_connect(over(Family::Both))
        .unwrap();
    let (prober, check) = (resolving_to(&[]), Definition::from(check));
    for _ in 0..4 {
        assert_status(&prober.run(&check).await, Passing);
        let mut came = [
            requests.recv().await.unwrap(),
            requests.recv().await.unwrap(),
        ];
        came.sort_unstable();
        assert_eq!(came, ["IPv4", "IPv6"]);
    }
}

#[cfg(unix)]
#[test]
fn a_unix_socket_has_no_family() {
    let socket = HttpTransport {
        unix_socket: Some("/run/a.sock".into()),
        ..HttpTransport::default()
    };
    let check = || http("http://a.example/");
    let first = check().with_transport(socket.clone()).unwrap();
    assert!(first.with_connect(over(Family::Both)).is_err());
    let first = check().with_connect(over(Family::Both)).unwrap();
    assert!(first.with_transport(socket).is_err());
}

#[tokio::test]
async fn a_redirect_does_not_lead_to_the_other_family() {
    let v6 = http_on("[::1]:0").await;
    let port = v6.address.port();
    for (location, says) in [
        (v6.url(), "dial tcp ::1: not an IPv4 address"),
        (format!("http://localhost:{port}/"), "dial tcp 127.0.0.1:"),
    ] {
        let head =
            format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
        let first = Server::answering(head).await;
        assert_status(&run(http(first.url())).await, Passing);
        let check = http(first.url()).with_connect(over(Family::V4)).unwrap();
        let report = run(check).await;
        assert_status(&report, Critical);
        assert_says(&report, says);
    }
}

/// A server for TCP and UDP on one port that tells who came.
async fn visited(address: &str) -> (SocketAddr, UnboundedReceiver<IpAddr>) {
    let (by_tcp, seen) = unbounded_channel();
    let by_udp = by_tcp.clone();
    let (listener, socket) = loop {
        let listener = TcpListener::bind(address).await.unwrap();
        if let Ok(socket) = UdpSocket::bind(listener.local_addr().unwrap()).await {
            break (listener, socket);
        }
    };
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((_, from)) = listener.accept().await {
            by_tcp.send(from.ip()).unwrap();
        }
    });
    tokio::spawn(async move {
        while let Ok((_, from)) = socket.recv_from(&mut [0; 100]).await {
            by_udp.send(from.ip()).unwrap();
            let _ = socket.send_to(b"?", from).await;
        }
    });
    (address, seen)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn each_kind_connects_from_the_address_that_is_asked_for() {
    let (address, mut seen) = visited("127.0.0.1:0").await;
    let port = address.port();
    // All of 127/8 are this machine's. One in the clothes of IPv6 is of IPv4.
    let prober = resolving_to(&["::1", "::ffff:127.0.0.1", "127.0.0.1"]);
    for source in ["127.0.0.9", "127.8.7.6", "::ffff:127.0.0.8"] {
        let wanted = source.parse::<IpAddr>().unwrap().to_canonical();
        for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "a.example"] {
            for (kind, check) in of_each_kind(format!("{host}:{port}"), from(source)) {
                let report = run_with(&prober, check).await;
                assert!(report.status().is_some(), "{kind}: {report:#?}");
                let came = seen.recv().await;
                assert_eq!(came, Some(wanted), "{kind} to {host}");
                assert!(seen.is_empty(), "{kind} to {host}");
            }
        }
    }
    // And where a redirect leads.
    let location = format!("http://localhost:{port}/");
    let head = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
    let first = Server::answering(head).await;
    run(http(first.url()).with_connect(from("127.0.0.7")).unwrap()).await;
    assert_eq!(seen.recv().await, Some("127.0.0.7".parse().unwrap()));
}

#[tokio::test]
async fn addresses_of_another_family_than_the_source_are_left_out() {
    let prober = resolving_to(&["::1"]);
    for (kind, check) in of_each_kind("a.example:80", from("127.0.0.1")) {
        let report = run_with(&prober, check).await;
        assert_status(&report, Critical);
        let says = "lookup a.example: no such host with an IPv4 address";
        assert!(report.output.ends_with(says), "{kind}: {report:#?}");
    }
}

#[tokio::test]
async fn an_address_of_another_machine_as_source_says_nothing_of_the_target() {
    let prober = resolving_to(&["127.0.0.1", "127.0.0.2", "::1"]);
    for (source, hosts) in [
        ("192.0.2.1", ["127.0.0.1", "a.example"]),
        ("2001:db8::1", ["[::1]", "a.example"]),
    ] {
        for host in hosts {
            for (kind, check) in of_each_kind(format!("{host}:80"), from(source)) {
                let report: Report = run_with(&prober, check).await;
                assert_unprobed(&report, Cause::SourceAddress);
                let says = format!(
                    "bind {source}: no address of this machine: \
                     correct the check's source address, or give it to an interface"
                );
                assert!(report.output.ends_with(&says), "{kind}: {report:#?}");
            }
        }
    }
}

/// There are two ports, and more connections: to one target each, so that two
/// may have the same port.
#[cfg(target_os = "linux")]
#[test]
fn a_source_address_does_not_use_up_the_ports() {
    crate::unprobed::in_own_network(
        "connect::a_source_address_does_not_use_up_the_ports",
        "echo '40000 40001' > /proc/sys/net/ipv4/ip_local_port_range",
        async {
            const CONNECTIONS: usize = 6;
            let meeting = Arc::new(Barrier::new(CONNECTIONS));
            let mut servers = Vec::new();
            let mut probes = Vec::new();
            for host in 1..=CONNECTIONS {
                let meeting = meeting.clone();
                let address = format!("127.0.1.{host}:8080");
                let script = move |mut stream: tokio::net::TcpStream| {
                    let meeting = meeting.clone();
                    async move {
                        read_request(&mut stream).await;
                        meeting.wait().await;
                        let _ = stream.write_all(OK.as_bytes()).await;
                        until_closed(&mut stream).await;
                    }
                };
                servers.push(Server::start_on(&address, script).await);
                let check = http(format!("http://{address}/"));
                probes.push(run(check.with_connect(from("127.0.0.9")).unwrap()));
            }
            for report in futures_util::future::join_all(probes).await {
                assert_status(&report, Passing);
            }
        },
    );
}
