//! Each kind of check against each kind of peer that is broken, means harm, or
//! is something else than it should be.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_probe::{
    Cause, Definition, DnsCheck, DnsOptions, DnsTransport, DockerCheck, GrpcCheck, H2PingCheck,
    HttpTransport, HttpVersion, Phase, Prober, ProberSettings, Report, TlsCheck, TlsOptions,
};

use super::answers::{docker_answers, http_2_answers, http_answers};
use super::case::{Case, Expected, critical, passing, run_all, unprobed};
use super::peer::{Full, Peer};
use crate::http2::frame;
use crate::support::*;

/// A kind of check that talks over a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Http,
    Https,
    Tcp,
    TcpTls,
    Http2,
    Handshake,
    Grpc,
    GrpcTls,
    Ping,
    PingTls,
    Dns,
    Docker,
}
use Kind::{Dns, Docker, Grpc, GrpcTls, Handshake, Http, Http2, Https, Ping, PingTls, Tcp, TcpTls};

impl Kind {
    pub(crate) const ALL: [Self; 12] = [
        Http, Https, Http2, Tcp, TcpTls, Handshake, Grpc, GrpcTls, Ping, PingTls, Dns, Docker,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Http => "HTTP",
            Https => "HTTPS",
            Http2 => "HTTP/2",
            Handshake => "TLS",
            Tcp => "TCP",
            TcpTls => "TCP with TLS",
            Grpc => "gRPC",
            GrpcTls => "gRPC with TLS",
            Ping => "HTTP/2 ping",
            PingTls => "HTTP/2 ping with TLS",
            Dns => "DNS",
            Docker => "Docker",
        }
    }

    /// TLS is the same for all, and shown once.
    fn is_shown(self) -> bool {
        !matches!(self, TcpTls | GrpcTls | PingTls)
    }

    pub(crate) fn definition(self, address: SocketAddr, timeout: Duration) -> Definition {
        let address = address.to_string();
        // What the certificate says is no part of this.
        let tls = TlsOptions {
            skip_verify: true,
            ..TlsOptions::default()
        };
        let grpc = || GrpcCheck::new(&address).unwrap().with_timeout(timeout);
        let ping = || H2PingCheck::new(&address).unwrap().with_timeout(timeout);
        let tcp = || tcp(&address).with_timeout(timeout);
        match self {
            Http => http(format!("http://{address}/"))
                .with_timeout(timeout)
                .into(),
            Https => {
                let check = http(format!("https://{address}/")).with_timeout(timeout);
                check.with_tls(tls).unwrap().into()
            }
            Http2 => {
                let transport = HttpTransport {
                    version: HttpVersion::Http2,
                    ..HttpTransport::default()
                };
                let check = http(format!("http://{address}/")).with_timeout(timeout);
                check.with_transport(transport).unwrap().into()
            }
            Tcp => tcp().into(),
            Handshake => {
                let check = TlsCheck::new(&address).unwrap().with_timeout(timeout);
                check.with_tls(tls).unwrap().into()
            }
            TcpTls => tcp().with_tls(tls).unwrap().into(),
            Grpc => grpc().into(),
            GrpcTls => grpc().with_tls(tls).unwrap().into(),
            Ping => ping().into(),
            PingTls => ping().with_tls(tls).unwrap().into(),
            Dns => {
                let options = DnsOptions {
                    transport: DnsTransport::Tcp,
                    timeout: timeout.min(Duration::from_secs(300)),
                    ..DnsOptions::default()
                };
                DnsCheck::new(&address, "shop.example", options)
                    .unwrap()
                    .into()
            }
            Docker => {
                let check = DockerCheck::new("web", ["/health"]).unwrap();
                check.with_timeout(timeout).into()
            }
        }
    }

    /// Probes what is at `address`; for Docker, this is where its daemon is.
    pub(crate) async fn probe(self, address: SocketAddr, timeout: Duration) -> Report {
        let mut settings = ProberSettings::default();
        settings.docker = Some(format!("tcp://{address}"));
        let prober = Prober::new(settings).unwrap();
        run_with(&prober, self.definition(address, timeout)).await
    }
}

/// No row is made of it: which of two texts there is depends on moments.
const AT_ONCE: &str = "resets the connection at once";

/// Whether the peer speaks at once or within TLS.
#[derive(Clone, Copy)]
enum Layer {
    Plain,
    Tls,
}

fn against<const N: usize>(
    layer: Layer,
    situation: &'static str,
    peer: &Peer,
    outcomes: [(Kind, Expected); N],
) -> Vec<Case> {
    let each = outcomes.into_iter().map(|(kind, expected)| {
        let server = peer.clone();
        let probing = async move {
            let server = match layer {
                Layer::Plain => server.serve().await,
                Layer::Tls => server.serve_in_tls().await,
            };
            kind.probe(server.address, expected.timeout()).await
        };
        let mut case = Case::new(kind.name(), situation, expected, probing);
        case.floods = peer.floods();
        let at_tls = expected.phase == Some(Phase::Tls) && kind != Handshake;
        // Who speaks first may be heard before the call, which has another text then.
        let early = kind == Docker && !peer.reads();
        let is_row = kind.is_shown() && expected.phase.is_some();
        case.shown = is_row && !at_tls && !early && situation != AT_ONCE;
        case
    });
    each.collect()
}

pub(crate) fn plain<const N: usize>(
    situation: &'static str,
    peer: &Peer,
    outcomes: [(Kind, Expected); N],
) -> Vec<Case> {
    against(Layer::Plain, situation, peer, outcomes)
}

/// The same outcome for all kinds that want TLS first.
fn all_tls(expected: Expected) -> [(Kind, Expected); 5] {
    [Handshake, Https, TcpTls, GrpcTls, PingTls].map(|kind| (kind, expected))
}

pub(crate) fn head(says: &'static str) -> Expected {
    critical(says).at(Phase::FirstByte)
}

fn tls(says: &'static str) -> Expected {
    critical(says).at(Phase::Tls)
}

pub(crate) fn docker(says: &'static str) -> Expected {
    unprobed(Cause::Docker, says).at(Phase::Connect)
}

/// The peer is there, and has nothing of the protocol to say.
pub(crate) fn strangers() -> Vec<Case> {
    let silent = Peer::silent();
    let ends = Peer::silent().ends();
    let resets = Peer::silent().resets();
    let hangs_up = Peer::reading().ends();
    let breaks = Peer::reading().resets();
    let ssh = Peer::silent().saying("SSH-2.0-OpenSSH_9.2p1\r\n");
    let mail = Peer::silent().saying("220 mail.example ESMTP\r\n");
    // A fatal alert: protocol version.
    let alert = Peer::reading()
        .saying(*b"\x15\x03\x01\x00\x02\x02\x46")
        .ends();
    let web = Peer::reading()
        .saying("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .ends();
    // Settings, and a goodbye for a protocol error.
    let goodbye = frame(7, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 1]);
    let http_2 = Peer::reading()
        .saying([frame(4, 0, 0, &[]), goodbye].concat())
        .ends();
    let zeros = Peer::silent().flooding(&[0]);
    let text = Peer::silent().flooding(b"x");

    let late = "context deadline exceeded";
    let no_http = "malformed HTTP response";
    let no_http_2 = "the server may not speak HTTP/2 here";
    let no_tls = "first record does not look like a TLS handshake";
    let no_answer = "what came is no answer to the question";
    let gone = "connection reset by peer";
    let table = [
        plain(
            "accepts and says nothing",
            &silent,
            [
                (Http, head(late).late()),
                (Tcp, passing("Success")),
                (Grpc, head(late).late()),
                (Http2, head(late).late()),
                (Ping, head(late).late()),
                (Dns, head("no answer: context deadline exceeded").late()),
                (Docker, docker("does not answer").late()),
            ],
        ),
        plain(
            "accepts and says nothing",
            &silent,
            all_tls(tls(late).late()),
        ),
        plain(
            "ends the connection at once",
            &ends,
            [
                (Http, head("EOF (while awaiting headers)")),
                (Tcp, passing("Success")),
                (Grpc, head("http2: ")),
                (Http2, head("http2: ")),
                (Ping, head("http2: ")),
                (Dns, head("tcp: no answer: EOF")),
                (Docker, docker("")),
            ],
        ),
        plain("ends the connection at once", &ends, all_tls(tls("EOF"))),
        plain(
            AT_ONCE,
            &resets,
            [
                (Http, head(gone).or_in_connecting()),
                (Https, tls(gone).or_in_connecting()),
                (Grpc, head(gone).or_in_connecting()),
                (Http2, head(gone).or_in_connecting()),
                (GrpcTls, tls(gone).or_in_connecting()),
                (Handshake, tls(gone).or_in_connecting()),
                (Ping, head(gone).or_in_connecting()),
                (PingTls, tls(gone).or_in_connecting()),
                (TcpTls, tls(gone).or_in_connecting()),
                (Dns, head(gone).or_in_connecting()),
                (Docker, docker("")),
            ],
        ),
        plain(
            "ends the connection after the request",
            &hangs_up,
            [
                (Http, head("EOF (while awaiting headers)")),
                (Tcp, passing("Success")),
                (Grpc, head("http2: ")),
                (Http2, head("http2: ")),
                (Ping, head("http2: ")),
                (Dns, head("tcp: no answer: EOF")),
                (Docker, docker("")),
            ],
        ),
        plain(
            "ends the connection after the request",
            &hangs_up,
            all_tls(tls("EOF")),
        ),
        plain(
            "resets the connection after the request",
            &breaks,
            [
                (Http, head(gone)),
                (Tcp, passing("Success")),
                (Grpc, head(gone)),
                (Http2, head(gone)),
                (Ping, head(gone)),
                (Dns, head(gone)),
                (Docker, docker("")),
            ],
        ),
        plain(
            "resets the connection after the request",
            &breaks,
            all_tls(tls(gone)),
        ),
        plain(
            "is an SSH server",
            &ssh,
            [
                (Http, head(no_http)),
                (Tcp, passing("Success")),
                (Grpc, head(no_http_2)),
                (Http2, head(no_http_2)),
                (Ping, head(no_http_2)),
                // The length of the answer is that of "SS".
                (Dns, head(late).late()),
                (Docker, docker("")),
            ],
        ),
        plain("is an SSH server", &ssh, all_tls(tls(no_tls))),
        plain(
            "is a mail server",
            &mail,
            [
                (Http, head(no_http)),
                (Tcp, passing("Success")),
                (Grpc, head(no_http_2)),
                (Http2, head(no_http_2)),
                (Ping, head(no_http_2)),
                (Dns, head(late).late()),
                (Docker, docker("")),
            ],
        ),
        plain("is a mail server", &mail, all_tls(tls(no_tls))),
        plain(
            "answers by a TLS alert",
            &alert,
            [
                (Http, head(no_http)),
                (Tcp, passing("Success")),
                (Grpc, head(no_http_2)),
                (Http2, head(no_http_2)),
                (Ping, head(no_http_2)),
                (Dns, head("tcp: no answer: EOF")),
                (Docker, docker("")),
            ],
        ),
        plain(
            "answers by a TLS alert",
            &alert,
            all_tls(tls("remote error: tls: protocol version")),
        ),
        plain(
            "answers by HTTP/1",
            &web,
            [
                (Tcp, passing("Success")),
                (Grpc, head(no_http_2)),
                (Http2, head(no_http_2)),
                (Ping, head(no_http_2)),
                (Dns, head("tcp: no answer: EOF")),
                (Docker, docker("")),
            ],
        ),
        plain("answers by HTTP/1", &web, all_tls(tls(no_tls))),
        plain(
            "answers by HTTP/2",
            &http_2,
            [
                (Http, head(no_http)),
                (Tcp, passing("Success")),
                (Dns, head(no_answer)),
                (Docker, docker("")),
            ],
        ),
        plain("answers by HTTP/2", &http_2, all_tls(tls(no_tls))),
        plain(
            "sends zeros without end",
            &zeros,
            [
                (Http, head(no_http)),
                (Tcp, passing("Success")),
                (Grpc, head(no_http_2)),
                (Http2, head(no_http_2)),
                (Ping, head(no_http_2)),
                (Dns, head(no_answer)),
                (Docker, docker("")),
            ],
        ),
        plain("sends zeros without end", &zeros, all_tls(tls(no_tls))),
        plain(
            "sends a text without end",
            &text,
            [
                (Http, head(no_http)),
                (Tcp, passing("Success")),
                (Grpc, head(no_http_2)),
                (Http2, head(no_http_2)),
                (Ping, head(no_http_2)),
                (Dns, head(no_answer)),
                (Docker, docker("")),
            ],
        ),
        plain("sends a text without end", &text, all_tls(tls(no_tls))),
    ];
    table.into_iter().flatten().collect()
}

/// A byte now and then of what could become an answer.
pub(crate) fn drips() -> Vec<Case> {
    const SITUATION: &str = "sends a byte now and then";
    let late = "context deadline exceeded";
    let of = |starts: &[u8], with: &[u8]| Peer::reading().saying(starts).dripping(with);
    let http = of(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x");
    let settings = frame(4, 0, 0, &[]);
    let table = [
        plain(
            SITUATION,
            &http,
            [
                (Http, head(late).late()),
                (Docker, docker("does not answer").late()),
            ],
        ),
        // A record of 16 KiB begins.
        plain(
            SITUATION,
            &of(b"\x16\x03\x03\x40\x00\x02", b"\0"),
            all_tls(tls(late).late()),
        ),
        plain(
            SITUATION,
            &of(b"", &settings),
            [(Grpc, head(late).late()), (Ping, head(late).late())],
        ),
        plain(
            SITUATION,
            &of(b"\xff\xff", b"\0"),
            [(Dns, head(late).late())],
        ),
    ];
    table.into_iter().flatten().collect()
}

/// TLS is there, and what should come in it is not.
pub(crate) fn within_tls() -> Vec<Case> {
    fn in_tls<const N: usize>(
        situation: &'static str,
        peer: &Peer,
        outcomes: [(Kind, Expected); N],
    ) -> Vec<Case> {
        against(Layer::Tls, situation, peer, outcomes)
    }
    let late = "context deadline exceeded";
    let gone = "connection reset by peer";
    let silent = Peer::silent();
    let ends = Peer::reading().ends();
    let resets = Peer::reading().resets();
    let rubbish = Peer::reading()
        .saying(*b"rubbish, and no record")
        .past_tls();
    let ssh = Peer::silent().saying("SSH-2.0-OpenSSH_9.2p1\r\n");
    let table = [
        in_tls(
            "says nothing after the handshake",
            &silent,
            [
                (Https, head(late).late()),
                // What it was asked for is there.
                (TcpTls, passing("Success (with TLS)").late()),
                (GrpcTls, head(late).late()),
                (PingTls, head(late).late()),
            ],
        ),
        in_tls(
            "ends the connection after handshake and request",
            &ends,
            [
                (Https, head("EOF (while awaiting headers)")),
                (TcpTls, passing("Success (with TLS)")),
                (GrpcTls, head("http2: ")),
                (PingTls, head("http2: ")),
            ],
        ),
        in_tls(
            "resets the connection after handshake and request",
            &resets,
            [
                (Https, head(gone)),
                (TcpTls, passing("Success (with TLS)")),
                (GrpcTls, head(gone)),
                (PingTls, head(gone)),
            ],
        ),
        in_tls(
            "sends rubbish after the handshake",
            &rubbish,
            [(Https, head("")), (GrpcTls, head("")), (PingTls, head(""))],
        ),
        in_tls(
            "is an SSH server within TLS",
            &ssh,
            [
                (Https, head("malformed HTTP response")),
                (TcpTls, passing("Success (with TLS)").late()),
                (GrpcTls, head("may not speak HTTP/2")),
                (PingTls, head("may not speak HTTP/2")),
            ],
        ),
    ];
    table.into_iter().flatten().collect()
}

/// The system takes no connection: nobody accepts any more.
pub(crate) fn full_backlog() -> Vec<Case> {
    let cases = Kind::ALL.map(|kind| {
        let expected = match kind {
            Docker => docker("the Docker daemon does not answer"),
            _ => critical("connect: context deadline exceeded").at(Phase::Connect),
        };
        let expected = expected.late();
        let mut case = Case::new(
            kind.name(),
            "the queue of the listener is full",
            expected,
            async move {
                let full = Full::new().await;
                let address = full.listener.local_addr().unwrap();
                kind.probe(address, expected.timeout()).await
            },
        );
        case.shown = kind.is_shown() && !matches!(kind, Https | Http2 | Handshake);
        case
    });
    cases.into()
}

pub(crate) fn all() -> Vec<Case> {
    let groups = [
        strangers(),
        within_tls(),
        drips(),
        full_backlog(),
        http_answers(),
        http_2_answers(),
        docker_answers(),
    ];
    groups.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_of_another_kind_is_told() {
    run_all(strangers()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_byte_now_and_then_does_not_put_the_deadline_off() {
    run_all(drips()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_within_tls_is_judged_as_without() {
    run_all(within_tls()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_of_the_listener_is_a_connection_that_hangs() {
    run_all(full_backlog()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_answers_that_are_too_long_cut_or_odd_end_the_probe() {
    run_all(http_answers()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_answers_that_are_none_end_the_probe() {
    run_all(http_2_answers()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_docker_daemon_that_is_none_says_nothing_of_the_container() {
    run_all(docker_answers()).await;
}

/// What is `name` of this process, in KiB.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|line| line.split_whitespace().nth(1));
    value.unwrap().parse().unwrap()
}

#[test]
fn floods_leave_memory_where_it_was() {
    crate::unprobed::alone("floods_leave_memory_where_it_was", None, "", async {
        // Each floods for as long as the probe lets it; what all have read together is far more.
        let floods = || all().into_iter().filter(|case| case.floods);
        run_all(floods().take(1).collect()).await;
        let cases = floods().collect();
        let before = memory("VmRSS");
        // The peak starts anew (proc(5)).
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        run_all(cases).await;
        let grown = memory("VmHWM").saturating_sub(before);
        assert!(grown < 48 * 1024, "{grown} KiB");
    });
}

/// The other side is gone, and nothing tells: a cable that was pulled.
#[test]
fn a_peer_that_is_gone_without_a_word_is_critical_at_the_deadline() {
    let test = "a_peer_that_is_gone_without_a_word_is_critical_at_the_deadline";
    crate::unprobed::in_own_network(test, "", async {
        for kind in [Http, Grpc, Ping, Dns] {
            let up = |up: &str| {
                let set = std::process::Command::new("ip")
                    .args(["link", "set", "lo", up])
                    .status();
                assert!(set.unwrap().success());
            };
            up("up");
            // Only the connection is made; the network is cut before the answer.
            let (tell, told) = tokio::sync::oneshot::channel();
            let tell = Arc::new(std::sync::Mutex::new(Some(tell)));
            let server = Server::start(move |mut stream| {
                let tell = tell.clone();
                async move {
                    let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 4096]).await;
                    let tell = tell.lock().unwrap().take();
                    let _ = tell.unwrap().send(());
                    std::future::pending::<()>().await;
                }
            })
            .await;
            let probing = tokio::spawn(async move { kind.probe(server.address, 2 * SHORT).await });
            told.await.unwrap();
            up("down");
            let report = probing.await.unwrap();
            assert_status(&report, evenkeel_threshold::Status::Critical);
            assert_eq!(report.failed_phase, Some(Phase::FirstByte), "{report:#?}");
            assert_says(&report, "context deadline exceeded");
            assert!(report.took < 4 * SHORT, "{report:#?}");
        }
    });
}
