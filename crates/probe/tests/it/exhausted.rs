//! What this machine has run out of: descriptors, ports, processes. Every kind
//! of check says so, and nothing of its target.

use std::fs::File;
use std::net::SocketAddr;

use evenkeel_probe::{
    Cause, Definition, DnsCheck, DnsOptions, DnsTransport, DockerCheck, GrpcCheck, H2PingCheck,
    HttpTransport, HttpVersion, IcmpCheck, IcmpOptions, Phase, Prober, ProberSettings, ScriptCheck,
    TlsCheck, TlsOptions, UdpCheck,
};
use evenkeel_threshold::Status::Passing;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::support::*;
use crate::tls::{Ca, Files};
use crate::unprobed::{alone, in_own_network};

/// A prober that may run commands, with its Docker daemon at `address`.
fn prober(address: SocketAddr) -> Prober {
    let mut settings = ProberSettings::default();
    settings.docker = Some(format!("tcp://{address}"));
    settings.scripts = true;
    Prober::new(settings).unwrap()
}

fn any_certificate() -> TlsOptions {
    TlsOptions {
        skip_verify: true,
        ..TlsOptions::default()
    }
}

fn dns(address: SocketAddr, transport: DnsTransport) -> DnsCheck {
    let options = DnsOptions {
        transport,
        ..DnsOptions::default()
    };
    DnsCheck::new(&address.to_string(), "a.example", options).unwrap()
}

fn udp(address: SocketAddr) -> UdpCheck {
    UdpCheck::new(&address.to_string()).unwrap()
}

/// A check of `address` of each kind that makes a TCP connection.
fn connecting(address: SocketAddr) -> Vec<Definition> {
    let text = address.to_string();
    let grpc = GrpcCheck::new(&text).unwrap();
    let ping = H2PingCheck::new(&text).unwrap();
    let by = |transport| {
        let check = http(format!("http://{text}/")).with_transport(transport);
        Definition::from(check.unwrap())
    };
    vec![
        tcp(address).into(),
        tcp(address).with_tls(any_certificate()).unwrap().into(),
        TlsCheck::new(&text)
            .unwrap()
            .with_tls(any_certificate())
            .unwrap()
            .into(),
        by(HttpTransport {
            version: HttpVersion::Http2,
            ..HttpTransport::default()
        }),
        by(HttpTransport {
            proxy: Some(format!("http://{text}")),
            ..HttpTransport::default()
        }),
        by(HttpTransport {
            reuse: true,
            ..HttpTransport::default()
        }),
        http(format!("http://{text}/")).into(),
        http(format!("https://{text}/")).into(),
        http(format!("http://localhost:{}/", address.port())).into(),
        grpc.clone().into(),
        grpc.with_tls(any_certificate()).unwrap().into(),
        ping.clone().into(),
        ping.with_tls(any_certificate()).unwrap().into(),
        dns(address, DnsTransport::Tcp).into(),
        DockerCheck::new("web", ["true"]).unwrap().into(),
    ]
}

fn script() -> ScriptCheck {
    ScriptCheck::new(["true"]).unwrap()
}

/// All descriptors that are left.
fn hold_descriptors() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

// P128
#[test]
fn without_descriptors_nothing_is_said_of_the_target() {
    alone(
        "without_descriptors_nothing_is_said_of_the_target",
        None,
        "ulimit -n 64",
        async {
            let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            let prober = prober(server.address);
            let mut held = hold_descriptors();
            let mut kinds = connecting(server.address);
            kinds.extend([
                udp(server.address).into(),
                dns(server.address, DnsTransport::Udp).into(),
                IcmpCheck::new("127.0.0.1", IcmpOptions::default())
                    .unwrap()
                    .into(),
                script().into(),
            ]);
            for kind in kinds {
                let report = run_with(&prober, kind).await;
                assert_unprobed(&report, Cause::Descriptors);
                assert_says(&report, "too many open files");
            }
            held.truncate(10);
            assert_status(&run_with(&prober, http(server.url())).await, Passing);
        },
    );
}

// P128: the last descriptor is gone at any of the steps of a start.
#[test]
fn with_too_few_descriptors_a_script_says_nothing() {
    alone(
        "with_too_few_descriptors_a_script_says_nothing",
        None,
        "ulimit -n 64",
        async {
            let prober = prober(SocketAddr::from(([127, 0, 0, 1], 9)));
            let mut held = hold_descriptors();
            let mut unprobed = 0;
            loop {
                let report = run_with(&prober, script()).await;
                if report.status() == Some(Passing) {
                    break;
                }
                assert_unprobed(&report, Cause::Descriptors);
                assert_says(&report, "too many open files");
                unprobed += 1;
                assert!(held.pop().is_some(), "not even with all descriptors");
            }
            assert!(unprobed > 3, "{unprobed}");
        },
    );
}

// P128, P048: there is one for the connection, and none for the files.
#[test]
fn without_a_descriptor_for_its_files_tls_says_nothing_of_the_target() {
    alone(
        "without_a_descriptor_for_its_files_tls_says_nothing_of_the_target",
        None,
        "ulimit -n 64",
        async {
            let files = Files::new();
            let tls = TlsOptions {
                ca_file: files.write("ca.pem", &Ca::new("test CA").pem()),
                ..TlsOptions::default()
            };
            // The system takes connections for it, and it none.
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let text = address.to_string();
            let prober = prober(address);
            let kinds: [Definition; 4] = [
                tcp(address).with_tls(tls.clone()).unwrap().into(),
                http(format!("https://{text}/"))
                    .with_tls(tls.clone())
                    .unwrap()
                    .into(),
                GrpcCheck::new(&text)
                    .unwrap()
                    .with_tls(tls.clone())
                    .unwrap()
                    .into(),
                H2PingCheck::new(&text)
                    .unwrap()
                    .with_tls(tls)
                    .unwrap()
                    .into(),
            ];
            let mut held = hold_descriptors();
            held.pop();
            for kind in kinds {
                let report = run_with(&prober, kind).await;
                assert_unprobed(&report, Cause::TlsFiles);
                assert_eq!(report.failed_phase, Some(Phase::Tls));
                assert_says(&report, "cannot read ca_file");
            }
        },
    );
}

// P128: what could not be read for want of a descriptor is read again.
#[test]
fn a_resolver_that_could_not_read_its_files_reads_them_when_it_can() {
    let setup = "mount -t tmpfs tmpfs /mnt\nip link set lo up\n\
         echo 'nameserver 127.0.0.1' > /mnt/resolv.conf\necho '127.0.0.1 listed.example' > /mnt/hosts\n\
         mount --bind /mnt/resolv.conf /etc/resolv.conf\nmount --bind /mnt/hosts /etc/hosts\n\
         ulimit -n 64";
    alone(
        "a_resolver_that_could_not_read_its_files_reads_them_when_it_can",
        Some("-nm"),
        setup,
        async {
            let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            let check = http(format!("http://listed.example:{}/", server.address.port()));
            let prober = prober(server.address);
            let mut held = hold_descriptors();
            assert_unprobed(&run_with(&prober, check.clone()).await, Cause::Resolver);
            held.truncate(10);
            assert_status(&run_with(&prober, check).await, Passing);
        },
    );
}

// P128
#[test]
fn without_source_ports_nothing_is_said_of_the_target() {
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
                let stream = tokio::net::TcpStream::connect(server.address);
                held.push(stream.await.unwrap());
            }
            let prober = prober(server.address);
            for kind in connecting(server.address) {
                let report = run_with(&prober, kind).await;
                assert_unprobed(&report, Cause::SourcePorts);
                assert_says(&report, "cannot assign requested address");
                assert_eq!(report.failed_phase, Some(Phase::Connect));
            }
            // Datagrams have ports of their own.
            let mut datagrams = Vec::new();
            for _ in 0..2 {
                datagrams.push(tokio::net::UdpSocket::bind("0.0.0.0:0").await.unwrap());
            }
            for kind in [
                Definition::from(udp(server.address)),
                dns(server.address, DnsTransport::Udp).into(),
            ] {
                let report = run_with(&prober, kind).await;
                assert_unprobed(&report, Cause::SourcePorts);
                assert_says(&report, "address already in use");
            }
        },
    );
}

/// A user who is nobody else's here, and has no rights.
const ALONE: &str = "prlimit --nproc=100 --pid $$\nset -- setpriv --reuid 61234 --regid 61234 --clear-groups \
     --inh-caps=-all --bounding-set=-all \"$0\" \"$@\"; exec \"$@\"";

// P128
#[test]
fn without_processes_nothing_is_said_of_the_target() {
    in_own_network(
        "without_processes_nothing_is_said_of_the_target",
        ALONE,
        async {
            let files = Files::new();
            let tls = TlsOptions {
                ca_file: files.write("ca.pem", &Ca::new("test CA").pem()),
                ..TlsOptions::default()
            };
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let secure = TlsCheck::new(&address.to_string()).unwrap();
            let prober = prober(address);
            let at_most = |count: u64| {
                let limit = Rlimit {
                    current: Some(count),
                    maximum: Some(100),
                };
                setrlimit(Resource::Nproc, limit).unwrap();
            };
            at_most(1);
            let report = run_with(&prober, secure.with_tls(tls).unwrap()).await;
            assert_unprobed(&report, Cause::TlsFiles);
            assert_says(&report, "resource temporarily unavailable");
            // Threads count too: with each one more, the start comes to another step.
            let mut unprobed = 0;
            for count in 1..10 {
                at_most(count);
                let report = run_with(&prober, script()).await;
                if report.status() == Some(Passing) {
                    break;
                }
                assert_unprobed(&report, Cause::Processes);
                assert_says(&report, "resource temporarily unavailable");
                unprobed += 1;
            }
            assert!((2..9).contains(&unprobed), "{unprobed}");
        },
    );
}
