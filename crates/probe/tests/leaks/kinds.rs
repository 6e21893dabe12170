//! The kinds, and for each the ways in which a probe of it goes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_probe::{
    Definition, DnsCheck, DnsOptions, DnsTransport, Expected, HttpCheck, HttpTransport, Phase,
    Prober, ProberSettings, Resolve, ResolveError, TcpCheck, TlsCheck, TlsOptions, UdpCheck,
};
use evenkeel_testkit::targets::{Conduct, Datagrams, Said, Targets};
use evenkeel_threshold::Status;

use Phase::{Connect, FirstByte, Resolve as Resolving, Tls, Transfer};

const PASSING: Option<Status> = Some(Status::Passing);
const CRITICAL: Option<Status> = Some(Status::Critical);
const UNPROBED: Option<Status> = None;

/// The deadline of probes of targets that hang.
const SHORT: Duration = Duration::from_millis(30);
/// That of the others.
const LONG: Duration = Duration::from_secs(20);

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A kind of check.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) cases: Vec<Case>,
    pub(crate) prober: Box<dyn Fn() -> Prober>,
    /// Whether its probes use threads that block: memory that one thread
    /// allocates and another frees cannot be counted by thread.
    pub(crate) has_threads: bool,
    /// The most probes, where each is dear.
    pub(crate) most: usize,
    /// The most at once.
    pub(crate) at_once: usize,
}

/// One way in which a probe goes.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) definition: Definition,
    pub(crate) end: End,
}

#[derive(Clone, Copy)]
pub(crate) enum End {
    /// It comes to its end, with this status and this phase to blame; without a
    /// status, if it is unprobed.
    At(Option<Status>, Option<Phase>),
    /// Its future is dropped after up to so many polls.
    Dropped(usize),
}

use End::{At, Dropped};

/// Knows two names: one that is looked up without end, and one that there is
/// not.
struct Names;

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, name: &str) -> Result<Vec<std::net::IpAddr>, ResolveError> {
        if name == "none.test" {
            return Err(ResolveError::NotFound);
        }
        std::future::pending().await
    }
}

fn settings() -> ProberSettings {
    let mut settings = ProberSettings::default();
    settings.resolver = Arc::new(Names);
    settings
}

impl Kind {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            cases: Vec::new(),
            prober: Box::new(|| Prober::new(settings()).unwrap()),
            has_threads: false,
            most: usize::MAX,
            at_once: usize::MAX,
        }
    }

    fn with(mut self, name: &'static str, definition: impl Into<Definition>, end: End) -> Self {
        self.cases.push(Case {
            name,
            definition: definition.into(),
            end,
        });
        self
    }

    /// Commands in the containers `web` and `stuck` of an engine.
    #[cfg(feature = "docker")]
    pub(crate) fn docker(host: &str) -> Self {
        use evenkeel_probe::DockerCheck;
        let check = |container, script, timeout| {
            let check = DockerCheck::with_shell(container, "/bin/sh", script).unwrap();
            check.with_timeout(timeout)
        };
        let host = host.to_owned();
        let mut kind = Self::new("docker")
            .with("exit 0", check("web", "echo ok", LONG), At(PASSING, None))
            .with(
                "exit 1",
                check("web", "exit 1", LONG),
                At(Some(Status::Warning), None),
            )
            .with("exit 2", check("web", "exit 2", LONG), At(CRITICAL, None))
            .with(
                "background",
                check("web", "sleep 1 & echo ok", LONG),
                At(PASSING, None),
            )
            .with(
                "no container",
                check("nobody", "exit 0", LONG),
                At(CRITICAL, Some(Connect)),
            )
            // The engine cannot end it, so it is not begun again.
            .with(
                "endless",
                check("stuck", "sleep 3000", Duration::from_secs(2)),
                At(CRITICAL, Some(Connect)),
            )
            .with("dropped", check("web", "exit 0", LONG), Dropped(12));
        kind.prober = Box::new(move || {
            let mut settings = settings();
            settings.docker = Some(host.clone());
            Prober::new(settings).unwrap()
        });
        kind.at_once = 8;
        kind
    }
}

/// All kinds, aimed at `targets`.
pub(crate) fn all(targets: &Targets) -> Vec<Kind> {
    vec![
        http(targets),
        https(targets),
        ways(targets),
        tcp(targets),
        tcp_tls(targets),
        tls(targets),
        udp(targets),
        dns(targets),
        #[cfg(feature = "icmp")]
        icmp(),
        #[cfg(feature = "grpc")]
        grpc(targets),
        #[cfg(feature = "h2ping")]
        h2ping(targets),
        #[cfg(feature = "script")]
        script(),
        #[cfg(feature = "docker")]
        docker(targets),
    ]
}

fn answer(bytes: &'static [u8]) -> Conduct {
    Conduct::Answer(bytes.into())
}

fn http(targets: &Targets) -> Kind {
    let check = |at: SocketAddr, timeout| {
        let check = HttpCheck::new(&format!("http://{at}/")).unwrap();
        check.with_timeout(timeout)
    };
    let named = |url| HttpCheck::new(url).unwrap().with_timeout(SHORT);
    let good = targets.tcp(answer(OK));
    let failing = targets.tcp(answer(b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno"));
    let round = targets.tcp(answer(
        b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
    ));
    let reset = targets.tcp(Conduct::Reset);
    let close = targets.tcp(Conduct::Close);
    let garbage = targets.tcp(answer(b"SSH-2.0-OpenSSH_9.6\r\n"));
    let silent = targets.tcp(Conduct::Silent);
    let black_hole = targets.black_hole();
    let endless = targets.tcp(Conduct::Drip {
        start: b"HTTP/1.1 200 OK\r\n",
        byte: b'x',
        pace: Duration::from_millis(5),
    });
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok";
    let stalled = targets.tcp(answer(half));
    let broken = targets.tcp(Conduct::AnswerAndReset(half[..].into()));
    let full = targets.full_backlog();
    Kind::new("http")
        .with("good", check(good, LONG), At(PASSING, None))
        .with("500", check(failing, LONG), At(CRITICAL, None))
        .with(
            "redirects",
            check(round, LONG),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "refused",
            check(targets.closed(), LONG),
            At(CRITICAL, Some(Connect)),
        )
        .with(
            "black hole",
            check(black_hole, SHORT),
            At(CRITICAL, Some(Connect)),
        )
        .with(
            "full backlog",
            check(full, SHORT),
            At(CRITICAL, Some(Connect)),
        )
        .with(
            "silent",
            check(silent, SHORT),
            At(CRITICAL, Some(FirstByte)),
        )
        .with("reset", check(reset, LONG), At(CRITICAL, Some(FirstByte)))
        .with("closed", check(close, LONG), At(CRITICAL, Some(FirstByte)))
        .with(
            "other protocol",
            check(garbage, LONG),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "endless head",
            check(endless, SHORT),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "stalled body",
            check(stalled, SHORT),
            At(PASSING, Some(Transfer)),
        )
        .with(
            "broken body",
            check(broken, LONG),
            At(PASSING, Some(Transfer)),
        )
        .with(
            "no name",
            named("http://none.test/"),
            At(CRITICAL, Some(Resolving)),
        )
        .with(
            "no resolver",
            named("http://slow.test/"),
            At(UNPROBED, Some(Resolving)),
        )
        .with("dropped", check(good, LONG), Dropped(5))
        .with("dropped connecting", check(black_hole, LONG), Dropped(1))
        .with("dropped waiting", check(silent, SHORT), Dropped(3))
        .with("dropped reading", check(endless, SHORT), Dropped(5))
        .with("dropped resolving", named("http://slow.test/"), Dropped(1))
}

fn tls_options(targets: &Targets) -> TlsOptions {
    TlsOptions {
        ca_file: targets.ca_file(),
        ..TlsOptions::default()
    }
}

fn https(targets: &Targets) -> Kind {
    let tls = tls_options(targets);
    // Without files there are no threads.
    let trusting = TlsOptions {
        skip_verify: true,
        ..TlsOptions::default()
    };
    let with = |tls: &TlsOptions, at: SocketAddr, timeout| {
        let check = HttpCheck::new(&format!("https://{at}/")).unwrap();
        check.with_timeout(timeout).with_tls(tls.clone()).unwrap()
    };
    let check = |at, timeout| with(&trusting, at, timeout);
    let good = targets.tls(answer(OK));
    let silent = targets.tcp(Conduct::Silent);
    let garbage = targets.tcp(answer(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    let reset = targets.tcp(Conduct::Reset);
    let mute = targets.tls(Conduct::Silent);
    let cut = targets.tls(Conduct::Reset);
    // The head of a record of 16 KiB, that never ends.
    let slow = targets.tcp(Conduct::Drip {
        start: b"\x16\x03\x03\x40\0\x02\0\x3f\xfc",
        byte: 3,
        pace: Duration::from_millis(5),
    });
    let missing = TlsOptions {
        ca_file: "/no/such/file.pem".into(),
        ..TlsOptions::default()
    };
    let mut kind = Kind::new("https")
        .with("good", check(good, LONG), At(PASSING, None))
        .with("verified", with(&tls, good, LONG), At(PASSING, None))
        .with(
            "not trusted",
            with(&TlsOptions::default(), good, LONG),
            At(CRITICAL, Some(Tls)),
        )
        .with(
            "no file",
            with(&missing, good, LONG),
            At(UNPROBED, Some(Tls)),
        )
        .with("silent", check(silent, SHORT), At(CRITICAL, Some(Tls)))
        .with("slow", check(slow, SHORT), At(CRITICAL, Some(Tls)))
        .with("no TLS", check(garbage, LONG), At(CRITICAL, Some(Tls)))
        .with("reset", check(reset, LONG), At(CRITICAL, Some(Tls)))
        .with(
            "silent in TLS",
            check(mute, Duration::from_millis(300)),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "reset in TLS",
            check(cut, LONG),
            At(CRITICAL, Some(FirstByte)),
        )
        .with("dropped", check(good, LONG), Dropped(8))
        .with("dropped in TLS", check(silent, SHORT), Dropped(4))
        .with("dropped reading files", with(&tls, good, LONG), Dropped(6));
    kind.has_threads = true;
    kind
}

/// HTTP otherwise than over a new connection of TCP and in its first version.
fn ways(targets: &Targets) -> Kind {
    let check = |url: &str, timeout, transport| {
        let check = HttpCheck::new(url).unwrap().with_timeout(timeout);
        let tls = TlsOptions {
            skip_verify: true,
            ..TlsOptions::default()
        };
        check
            .with_tls(tls)
            .unwrap()
            .with_transport(transport)
            .unwrap()
    };
    let url = |scheme: &str, at: SocketAddr| format!("{scheme}://{at}/");
    let reused = || HttpTransport {
        reuse: true,
        ..HttpTransport::default()
    };
    let by = |proxy: SocketAddr| HttpTransport {
        proxy: Some(url("http", proxy)),
        ..HttpTransport::default()
    };
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    targets.unix(&socket, answer(OK));
    let on_socket = HttpTransport {
        unix_socket: Some(socket),
        ..HttpTransport::default()
    };
    let patient = targets.tcp(Conduct::Answers(OK.into()));
    let patient_tls = targets.tls(Conduct::Answers(OK.into()));
    let hasty = targets.tcp(Conduct::AnswerAndClose(OK.into()));
    let silent = targets.tcp(Conduct::Silent);
    let mut kind = Kind::new("http ways")
        .with(
            "reused",
            check(&url("http", patient), LONG, reused()),
            At(PASSING, None),
        )
        .with(
            "reused TLS",
            check(&url("https", patient_tls), LONG, reused()),
            At(PASSING, None),
        )
        .with(
            "closed meanwhile",
            check(&url("http", hasty), LONG, reused()),
            At(PASSING, None),
        )
        .with(
            "by a proxy",
            check("http://web.test/", LONG, by(patient)),
            At(PASSING, None),
        )
        .with(
            "silent proxy",
            check("https://web.test/", SHORT, by(silent)),
            At(CRITICAL, Some(Connect)),
        )
        .with(
            "unix",
            check("http://web.test/", LONG, on_socket.clone()),
            At(PASSING, None),
        )
        .with(
            "dropped reused",
            check(&url("http", patient), LONG, reused()),
            Dropped(5),
        )
        .with(
            "dropped unix",
            check("http://web.test/", LONG, on_socket),
            Dropped(5),
        );
    #[cfg(feature = "http2")]
    {
        use evenkeel_probe::HttpVersion;
        use evenkeel_testkit::targets::Calls;
        let http2 = || HttpTransport {
            version: HttpVersion::Http2,
            ..HttpTransport::default()
        };
        let good = url("https", targets.tls(Conduct::Http2(Calls::Serving)));
        let unanswered = url("https", targets.tls(Conduct::Http2(Calls::Unanswered)));
        kind = kind
            .with("HTTP/2", check(&good, LONG, http2()), At(PASSING, None))
            .with(
                "HTTP/2 unanswered",
                check(&unanswered, Duration::from_millis(300), http2()),
                At(CRITICAL, Some(FirstByte)),
            )
            .with("HTTP/2 dropped", check(&good, LONG, http2()), Dropped(8));
    }
    // The socket's directory lasts as long as the kind.
    kind.prober = Box::new(move || {
        assert!(directory.path().exists());
        Prober::new(settings()).unwrap()
    });
    // Sessions and whatever else TLS keeps by thread.
    kind.has_threads = true;
    kind
}

fn tls(targets: &Targets) -> Kind {
    let check = |at: SocketAddr, timeout, resumption| {
        let tls = TlsOptions {
            skip_verify: true,
            resumption,
            ..TlsOptions::default()
        };
        let check = TlsCheck::new(&at.to_string()).unwrap();
        check.with_timeout(timeout).with_tls(tls).unwrap()
    };
    let good = targets.tls(Conduct::Silent);
    let silent = targets.tcp(Conduct::Silent);
    let reset = targets.tcp(Conduct::Reset);
    Kind::new("tls")
        .with("good", check(good, LONG, false), At(PASSING, None))
        .with("resumed", check(good, LONG, true), At(PASSING, None))
        .with(
            "silent",
            check(silent, SHORT, false),
            At(CRITICAL, Some(Tls)),
        )
        .with("reset", check(reset, LONG, true), At(CRITICAL, Some(Tls)))
        .with(
            "refused",
            check(targets.closed(), LONG, false),
            At(CRITICAL, Some(Connect)),
        )
        .with("dropped", check(good, LONG, false), Dropped(6))
        .with("dropped resumed", check(good, LONG, true), Dropped(6))
}

fn tcp(targets: &Targets) -> Kind {
    let check = |at: SocketAddr, timeout| {
        let check = TcpCheck::new(&at.to_string()).unwrap();
        check.with_timeout(timeout)
    };
    let named = TcpCheck::new("slow.test:80").unwrap().with_timeout(SHORT);
    let good = targets.tcp(Conduct::Silent);
    let rude = check(good, LONG).with_abortive_close(true);
    let black_hole = targets.black_hole();
    Kind::new("tcp")
        .with("good", check(good, LONG), At(PASSING, None))
        .with("abortive close", rude, At(PASSING, None))
        .with(
            "refused",
            check(targets.closed(), LONG),
            At(CRITICAL, Some(Connect)),
        )
        .with(
            "black hole",
            check(black_hole, SHORT),
            At(CRITICAL, Some(Connect)),
        )
        .with(
            "full backlog",
            check(targets.full_backlog(), SHORT),
            At(CRITICAL, Some(Connect)),
        )
        .with("no resolver", named, At(UNPROBED, Some(Resolving)))
        .with("dropped", check(good, LONG), Dropped(2))
        .with("dropped connecting", check(black_hole, SHORT), Dropped(1))
}

fn tcp_tls(targets: &Targets) -> Kind {
    let trusting = TlsOptions {
        skip_verify: true,
        ..TlsOptions::default()
    };
    let with = |tls: &TlsOptions, at: SocketAddr, timeout| {
        let check = TcpCheck::new(&at.to_string()).unwrap();
        check.with_timeout(timeout).with_tls(tls.clone()).unwrap()
    };
    let check = |at, timeout| with(&trusting, at, timeout);
    let good = targets.tls(Conduct::Silent);
    let silent = targets.tcp(Conduct::Silent);
    let garbage = targets.tcp(answer(b"220 mail.example ESMTP\r\n"));
    let reset = targets.tcp(Conduct::Reset);
    // It does not say goodbye; the handshake was good.
    let deaf = targets.tls(Conduct::Deaf(Duration::from_secs(1)));
    let verified = with(&tls_options(targets), good, LONG);
    let mut kind = Kind::new("tcp+tls")
        .with("good", check(good, LONG), At(PASSING, None))
        .with("verified", verified.clone(), At(PASSING, None))
        .with(
            "no goodbye",
            check(deaf, Duration::from_millis(300)),
            At(PASSING, None),
        )
        .with("silent", check(silent, SHORT), At(CRITICAL, Some(Tls)))
        .with("no TLS", check(garbage, LONG), At(CRITICAL, Some(Tls)))
        .with("reset", check(reset, LONG), At(CRITICAL, Some(Tls)))
        .with(
            "refused",
            check(targets.closed(), LONG),
            At(CRITICAL, Some(Connect)),
        )
        .with("dropped", check(good, LONG), Dropped(6))
        .with("dropped in TLS", check(silent, SHORT), Dropped(3))
        .with("dropped reading files", verified, Dropped(6));
    kind.has_threads = true;
    kind
}

fn udp(targets: &Targets) -> Kind {
    let check = |at: SocketAddr, timeout| {
        let check = UdpCheck::new(&at.to_string()).unwrap();
        check.with_timeout(timeout).with_payload(*b"hello").unwrap()
    };
    let good = targets.udp(Datagrams::Echo);
    let silent = targets.udp(Datagrams::Silent);
    let other = check(good, LONG).with_expected(Expected::of(Some("other"), None).unwrap());
    Kind::new("udp")
        .with("good", check(good, LONG), At(PASSING, None))
        .with("another reply", other, At(CRITICAL, Some(FirstByte)))
        .with(
            "silent",
            check(silent, SHORT),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "closed",
            check(targets.closed_udp(), LONG),
            At(CRITICAL, Some(FirstByte)),
        )
        .with("dropped", check(good, LONG), Dropped(1))
        .with("dropped waiting", check(silent, SHORT), Dropped(1))
}

fn dns(targets: &Targets) -> Kind {
    let with = |transport, at: SocketAddr, timeout| {
        let options = DnsOptions {
            transport,
            timeout,
            ..DnsOptions::default()
        };
        DnsCheck::new(&at.to_string(), "www.test", options).unwrap()
    };
    let check = |at, timeout| with(DnsTransport::Udp, at, timeout);
    let over_tcp = |at, timeout| with(DnsTransport::Tcp, at, timeout);
    let good = targets.dns(Said::Address, Said::Address);
    let none = targets.dns(Said::NoSuchName, Said::NoSuchName);
    let garbage = targets.dns(Said::Garbage, Said::Garbage);
    let silent = targets.dns(Said::Nothing, Said::Nothing);
    let long = targets.dns(Said::Truncated, Said::Address);
    let longer = targets.dns(Said::Truncated, Said::Nothing);
    let reset = targets.tcp(Conduct::Reset);
    Kind::new("dns")
        .with("good", check(good, LONG), At(PASSING, None))
        .with("good over TCP", over_tcp(good, LONG), At(PASSING, None))
        .with("good, too long", check(long, LONG), At(PASSING, None))
        .with(
            "no such name",
            check(none, LONG),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "garbage",
            check(garbage, SHORT),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "garbage over TCP",
            over_tcp(garbage, LONG),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "silent",
            check(silent, SHORT),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "silent over TCP",
            over_tcp(silent, SHORT),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "too long, silent",
            check(longer, SHORT),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "reset",
            over_tcp(reset, LONG),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "closed",
            check(targets.closed_udp(), LONG),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "refused",
            over_tcp(targets.closed(), LONG),
            At(CRITICAL, Some(Connect)),
        )
        .with(
            "black hole",
            over_tcp(targets.black_hole(), SHORT),
            At(CRITICAL, Some(Connect)),
        )
        .with("dropped", check(good, LONG), Dropped(1))
        .with("dropped over TCP", over_tcp(silent, SHORT), Dropped(3))
}

#[cfg(feature = "icmp")]
fn icmp() -> Kind {
    use evenkeel_probe::{IcmpCheck, IcmpOptions};
    let check = |target: &str, timeout| {
        let options = IcmpOptions {
            spacing: Duration::from_millis(2),
            timeout,
            ..IcmpOptions::default()
        };
        IcmpCheck::new(target, options).unwrap()
    };
    let kind = Kind::new("icmp")
        .with("good", check("127.0.0.1", LONG), At(PASSING, None))
        .with("dropped", check("127.0.0.1", LONG), Dropped(5));
    if !crate::has_own_network() {
        return kind;
    }
    kind.with("good, IPv6", check("::1", LONG), At(PASSING, None))
        .with(
            "silent",
            check("203.0.113.1", SHORT),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "no route",
            check("198.51.100.1", LONG),
            At(UNPROBED, Some(FirstByte)),
        )
        .with("dropped waiting", check("203.0.113.2", SHORT), Dropped(4))
}

#[cfg(feature = "grpc")]
fn grpc(targets: &Targets) -> Kind {
    use evenkeel_probe::GrpcCheck;
    use evenkeel_testkit::targets::Calls;
    let check = |at: SocketAddr, timeout| {
        let check = GrpcCheck::new(&at.to_string()).unwrap();
        check.with_timeout(timeout)
    };
    let trusting = TlsOptions {
        skip_verify: true,
        ..TlsOptions::default()
    };
    let over_tls = |at, timeout| check(at, timeout).with_tls(trusting.clone()).unwrap();
    let good = targets.tcp(Conduct::Http2(Calls::Serving));
    let not_serving = targets.tcp(Conduct::Http2(Calls::NotServing));
    let unimplemented = targets.tcp(Conduct::Http2(Calls::Unimplemented));
    let unanswered = targets.tcp(Conduct::Http2(Calls::Unanswered));
    let silent = targets.tcp(Conduct::Silent);
    let garbage = targets.tcp(answer(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    let reset = targets.tcp(Conduct::Reset);
    let secure = targets.tls(Conduct::Http2(Calls::Serving));
    Kind::new("grpc")
        .with("good", check(good, LONG), At(PASSING, None))
        .with("good over TLS", over_tls(secure, LONG), At(PASSING, None))
        .with(
            "not serving",
            check(not_serving, LONG),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "unimplemented",
            check(unimplemented, LONG),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "unanswered",
            check(unanswered, SHORT),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "silent",
            check(silent, SHORT),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "silent in TLS",
            over_tls(silent, SHORT),
            At(CRITICAL, Some(Tls)),
        )
        .with(
            "no HTTP/2",
            check(garbage, LONG),
            At(CRITICAL, Some(FirstByte)),
        )
        .with("reset", check(reset, LONG), At(CRITICAL, Some(FirstByte)))
        .with(
            "refused",
            check(targets.closed(), LONG),
            At(CRITICAL, Some(Connect)),
        )
        .with(
            "black hole",
            check(targets.black_hole(), SHORT),
            At(CRITICAL, Some(Connect)),
        )
        .with("dropped", check(good, LONG), Dropped(6))
        .with("dropped waiting", check(unanswered, SHORT), Dropped(6))
}

#[cfg(feature = "h2ping")]
fn h2ping(targets: &Targets) -> Kind {
    use evenkeel_probe::H2PingCheck;
    use evenkeel_testkit::targets::Calls;
    let check = |at: SocketAddr, timeout| {
        let check = H2PingCheck::new(&at.to_string()).unwrap();
        check.with_timeout(timeout)
    };
    let trusting = TlsOptions {
        skip_verify: true,
        ..TlsOptions::default()
    };
    let over_tls = |at, timeout| check(at, timeout).with_tls(trusting.clone()).unwrap();
    let good = targets.tcp(Conduct::Http2(Calls::Serving));
    let secure = targets.tls(Conduct::Http2(Calls::Serving));
    let silent = targets.tcp(Conduct::Silent);
    // An empty SETTINGS frame (RFC 9113 section 6.5).
    let no_pong = targets.tcp(answer(b"\0\0\0\x04\0\0\0\0\0"));
    let garbage = targets.tcp(answer(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    let reset = targets.tcp(Conduct::Reset);
    Kind::new("h2ping")
        .with("good", check(good, LONG), At(PASSING, None))
        .with("good over TLS", over_tls(secure, LONG), At(PASSING, None))
        .with(
            "no pong",
            check(no_pong, SHORT),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "silent",
            check(silent, SHORT),
            At(CRITICAL, Some(FirstByte)),
        )
        .with(
            "silent in TLS",
            over_tls(silent, SHORT),
            At(CRITICAL, Some(Tls)),
        )
        .with(
            "no HTTP/2",
            check(garbage, LONG),
            At(CRITICAL, Some(FirstByte)),
        )
        .with("reset", check(reset, LONG), At(CRITICAL, Some(FirstByte)))
        .with(
            "refused",
            check(targets.closed(), LONG),
            At(CRITICAL, Some(Connect)),
        )
        .with(
            "black hole",
            check(targets.black_hole(), SHORT),
            At(CRITICAL, Some(Connect)),
        )
        .with("dropped", check(good, LONG), Dropped(6))
        .with("dropped waiting", check(no_pong, SHORT), Dropped(6))
}

#[cfg(feature = "script")]
fn script() -> Kind {
    use evenkeel_probe::ScriptCheck;
    let check = |script, timeout| {
        let check = ScriptCheck::with_shell("/bin/sh", script).unwrap();
        check.with_timeout(timeout)
    };
    let none = ScriptCheck::new(["/no/such/program"]).unwrap();
    let loud = "i=0; while [ $i -lt 2000 ]; do echo 0123456789; i=$((i+1)); done";
    // Enough for a shell to start on a busy machine.
    let soon = Duration::from_millis(200);
    let run = Some(Phase::Run);
    let mut kind = Kind::new("script")
        .with("exit 0", check("echo ok", LONG), At(PASSING, None))
        .with(
            "exit 1",
            check("exit 1", LONG),
            At(Some(Status::Warning), None),
        )
        .with("exit 2", check("exit 2", LONG), At(CRITICAL, None))
        .with("loud", check(loud, LONG), At(PASSING, None))
        .with(
            "background",
            check("sleep 1000 & echo ok", LONG),
            At(PASSING, None),
        )
        .with("killed", check("kill -9 $$", LONG), At(CRITICAL, run))
        .with(
            "endless",
            check("sleep 1000 & trap '' TERM; sleep 1000", soon),
            At(CRITICAL, run),
        )
        .with("no program", none, At(UNPROBED, Some(Resolving)))
        .with(
            "dropped",
            check("sleep 1000 & sleep 1000", soon),
            Dropped(3),
        );
    kind.prober = Box::new(|| {
        let mut settings = settings();
        settings.scripts = true;
        Prober::new(settings).unwrap()
    });
    kind.has_threads = true;
    kind
}

/// An engine that is played: it can be made to hang.
#[cfg(feature = "docker")]
fn docker(targets: &Targets) -> Kind {
    use evenkeel_probe::DockerCheck;
    use evenkeel_testkit::targets::Engine;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("engine");
    targets.unix(&path, Conduct::Docker(Engine::Good));
    let check = |container| {
        let check = DockerCheck::new(container, ["true"]).unwrap();
        check.with_timeout(LONG)
    };
    let mut kind = Kind::new("docker")
        .with("good", check("web"), At(PASSING, None))
        .with("dropped", check("other"), Dropped(12));
    kind.prober = Box::new(move || {
        let mut settings = settings();
        let path = directory.path().join("engine");
        settings.docker = Some(format!("unix://{}", path.display()));
        Prober::new(settings).unwrap()
    });
    kind.at_once = 8;
    kind
}
