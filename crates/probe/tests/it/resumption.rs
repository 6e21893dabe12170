//! Sessions that are resumed, and when they must not be.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use evenkeel_probe::{Definition, Phase, Prober, ProberSettings, Report, TlsOptions, WallClock};
use evenkeel_threshold::Status::{Critical, Passing};
use rcgen::date_time_ymd;
use rustls::HandshakeKind::{self, Full, Resumed};
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::{ServerConfig, SupportedProtocolVersion};
use tokio::io::AsyncWriteExt as _;
use tokio_rustls::TlsAcceptor;

use crate::handshake::handshake;
use crate::support::*;
use crate::tls::{Ca, Files, Pair, named, trusting, with};

/// A server whose certificate can be changed without that it forgets sessions.
struct Target {
    config: Arc<Mutex<Arc<ServerConfig>>>,
    server: Server,
    kinds: Arc<Mutex<Vec<HandshakeKind>>>,
}

fn config(pair: &Pair, version: &'static SupportedProtocolVersion) -> ServerConfig {
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![pair.certificate.clone()], pair.key.clone_key())
        .unwrap()
}

const TLS13: &SupportedProtocolVersion = &rustls::version::TLS13;
const TLS12: &SupportedProtocolVersion = &rustls::version::TLS12;

impl Target {
    async fn start(config: impl Into<Arc<ServerConfig>>) -> Self {
        let config = Arc::new(Mutex::new(config.into()));
        let kinds = Arc::new(Mutex::new(Vec::new()));
        let (current, told) = (config.clone(), kinds.clone());
        let server = Server::start(move |stream| {
            let acceptor = TlsAcceptor::from(current.lock().unwrap().clone());
            let told = told.clone();
            async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let kind = stream.get_ref().1.handshake_kind().unwrap();
                told.lock().unwrap().push(kind);
                let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecure";
                // Who asks for nothing has said goodbye already.
                let _ = stream.write_all(answer.as_bytes()).await;
                until_closed(&mut stream).await;
                let _ = stream.shutdown().await;
            }
        })
        .await;
        Self {
            config,
            server,
            kinds,
        }
    }

    /// From now on another certificate; sessions of before go on.
    fn show(&self, pair: &Pair) {
        let mut current = self.config.lock().unwrap();
        let mut next = config(pair, TLS13);
        next.session_storage = current.session_storage.clone();
        *current = Arc::new(next);
    }

    /// The kinds of the handshakes since the last call.
    fn kinds(&self) -> Vec<HandshakeKind> {
        std::mem::take(&mut self.kinds.lock().unwrap())
    }
}

fn resuming(options: TlsOptions) -> TlsOptions {
    TlsOptions {
        resumption: true,
        ..options
    }
}

/// A prober with a clock that is set by the test, in seconds after
/// `date -u -d 2031-03-01 +%s`.
struct Timed {
    prober: Prober,
    seconds: Arc<AtomicU64>,
}

/// The end of certificates of these tests.
const END: u64 = 1_000_000;

impl Timed {
    fn new() -> Self {
        let seconds = Arc::new(AtomicU64::new(END));
        let mut settings = ProberSettings::default();
        let now = seconds.clone();
        settings.clock = WallClock::new(move || {
            let since = 1_930_089_600 - END + now.load(Ordering::Relaxed);
            SystemTime::UNIX_EPOCH + Duration::from_secs(since)
        });
        Self {
            prober: Prober::new(settings).unwrap(),
            seconds,
        }
    }

    async fn run(&self, seconds: u64, definition: &Definition) -> Report {
        self.seconds.store(seconds, Ordering::Relaxed);
        self.prober.run(definition).await
    }
}

#[tokio::test]
async fn sessions_are_resumed_only_if_that_is_asked_for() {
    let files = Files::new();
    let ca = Ca::new("ours");
    let ca_file = files.write("ca.pem", &ca.pem());
    let pair = ca.issue(&named("s", &["127.0.0.1"]));
    for version in [TLS12, TLS13] {
        let target = Target::start(config(&pair, version)).await;
        let at = target.server.address;
        for (options, expected) in [
            (trusting(&ca_file), [Full, Full, Full]),
            (resuming(trusting(&ca_file)), [Full, Resumed, Resumed]),
            (
                resuming(TlsOptions {
                    skip_verify: true,
                    ..TlsOptions::default()
                }),
                [Full, Resumed, Resumed],
            ),
        ] {
            for definition in [
                Definition::from(with(format!("https://{at}/"), options.clone())),
                tcp(at).with_tls(options.clone()).unwrap().into(),
                handshake(at, options).into(),
            ] {
                let prober = Prober::new(ProberSettings::default()).unwrap();
                for _ in 0..3 {
                    let report = run_with(&prober, definition.clone()).await;
                    assert_status(&report, Passing);
                    // Known from the session.
                    assert!(report.certificate.is_some());
                }
                assert_eq!(target.kinds(), expected, "{definition:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_session_does_not_outlive_the_certificate() {
    let files = Files::new();
    let ca = Ca::new("ours");
    let ca_file = files.write("ca.pem", &ca.pem());
    let mut params = named("s", &["127.0.0.1"]);
    params.not_after = date_time_ymd(2031, 3, 1);
    for version in [TLS12, TLS13] {
        let target = Target::start(config(&ca.issue(&params), version)).await;
        let check = with(
            format!("https://{}/", target.server.address),
            resuming(trusting(&ca_file)),
        );
        let (timed, check) = (Timed::new(), Definition::from(check));
        for seconds in [END - 20, END - 10, END] {
            assert_status(&timed.run(seconds, &check).await, Passing);
        }
        assert_eq!(target.kinds(), [Full, Resumed, Resumed]);
        let report = timed.run(END + 1, &check).await;
        assert_status(&report, Critical);
        assert_eq!(report.failed_phase, Some(Phase::Tls));
        assert_says(&report, "it ended at 2031-03-01T00:00:00Z");
        assert_eq!(target.kinds(), []);
    }
}

#[tokio::test]
async fn a_replaced_certificate_is_seen_when_the_old_one_ends_or_the_session_is_old() {
    let files = Files::new();
    let ca = Ca::new("ours");
    let ca_file = files.write("ca.pem", &ca.pem());
    let mut ends = named("s", &["127.0.0.1"]);
    ends.not_after = date_time_ymd(2031, 3, 1);
    let new = ca.issue(&named("s", &["127.0.0.1"]));
    let target = Target::start(config(&ca.issue(&ends), TLS13)).await;
    let check = handshake(target.server.address, resuming(trusting(&ca_file)));
    let (timed, check) = (Timed::new(), Definition::from(check));
    let days = async |seconds| {
        let report = timed.run(seconds, &check).await;
        assert_status(&report, Passing);
        report.certificate.unwrap().days_left
    };
    assert_eq!(days(END - 100).await, 0);
    target.show(&new);
    // Until then the server goes on with what it has said before.
    assert_eq!(days(END - 1).await, 0);
    assert_eq!(target.kinds(), [Full, Resumed]);
    assert!(days(END + 1).await > 1000);
    assert_eq!(target.kinds(), [Full]);

    // However often the server renews its tickets.
    let begun = END + 1;
    for seconds in [100, 300, 599] {
        days(begun + seconds).await;
    }
    assert_eq!(target.kinds(), [Resumed; 3]);
    let other = Ca::new("theirs");
    target.show(&other.issue(&named("s", &["127.0.0.1"])));
    let report = timed.run(begun + 600, &check).await;
    assert_status(&report, Critical);
    assert_says(
        &report,
        "certificate signed by unknown authority \"theirs\"",
    );
    // Nor is it trusted when the clock is set back.
    target.show(&new);
    days(begun + 700).await;
    days(begun + 699).await;
    days(begun + 699).await;
    assert_eq!(target.kinds(), [Full, Full, Resumed]);
}

#[tokio::test]
async fn a_session_does_not_outlive_the_trust_that_it_began_with() {
    // P048
    let files = Files::new();
    let (ca, other) = (Ca::new("ours"), Ca::new("theirs"));
    let pair = ca.issue(&named("s", &["127.0.0.1"]));
    let target = Target::start(config(&pair, TLS13)).await;
    let ca_file = files.write("ca.pem", &ca.pem());
    let check = handshake(target.server.address, resuming(trusting(&ca_file)));
    let prober = Prober::new(ProberSettings::default()).unwrap();
    for _ in 0..2 {
        assert_status(&run_with(&prober, check.clone()).await, Passing);
    }
    assert_eq!(target.kinds(), [Full, Resumed]);
    files.write("ca.pem", &other.pem());
    let report = run_with(&prober, check.clone()).await;
    assert_status(&report, Critical);
    assert_says(&report, "unknown authority");
    files.write("ca.pem", &(other.pem() + &ca.pem()));
    assert_status(&run_with(&prober, check).await, Passing);
    assert_eq!(target.kinds(), [Full]);
}

#[tokio::test]
async fn a_session_does_not_outlive_the_certificate_of_the_client() {
    // P048
    let files = Files::new();
    let (ca, clients) = (Ca::new("ours"), Ca::new("clients"));
    let pair = ca.issue(&named("s", &["127.0.0.1"]));
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(clients.roots(), provider.clone());
    let demanding = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![pair.certificate.clone()], pair.key.clone_key())
        .unwrap();
    let target = Target::start(demanding).await;
    let ca_file = files.write("trusted.pem", &ca.pem());
    let options = |signer: &Ca| {
        let client = signer.issue(&named("c", &["client.test"]));
        resuming(TlsOptions {
            cert_file: files.write("cert.pem", client.certificate_pem()),
            key_file: files.write("key.pem", client.key_pem()),
            ..trusting(&ca_file)
        })
    };
    let check = handshake(target.server.address, options(&clients));
    let prober = Prober::new(ProberSettings::default()).unwrap();
    for _ in 0..2 {
        assert_status(&run_with(&prober, check.clone()).await, Passing);
    }
    assert_eq!(target.kinds(), [Full, Resumed]);
    // The same files, now by somebody whom the server does not trust.
    options(&Ca::new("strangers"));
    let report = run_with(&prober, check).await;
    assert_status(&report, Critical);
    assert_says(&report, "remote error: tls: unknown certificate authority");
}

#[tokio::test]
async fn a_session_is_of_one_address_and_name() {
    let files = Files::new();
    let ca = Ca::new("ours");
    let ca_file = files.write("ca.pem", &ca.pem());
    let pair = ca.issue(&named("s", &["a.test", "b.test"]));
    // Two servers that know each other's sessions.
    let shared = Arc::new(config(&pair, TLS13));
    let (one, two) = (
        Target::start(shared.clone()).await,
        Target::start(shared).await,
    );
    let prober = Prober::new(ProberSettings::default()).unwrap();
    for (target, name, kind) in [
        (&one, "a.test", Full),
        (&two, "a.test", Full),
        (&one, "b.test", Full),
        (&one, "a.test", Resumed),
        (&two, "a.test", Resumed),
        (&one, "b.test", Resumed),
    ] {
        let options = TlsOptions {
            server_name: name.to_owned(),
            ..resuming(trusting(&ca_file))
        };
        let report = run_with(&prober, handshake(target.server.address, options)).await;
        assert_status(&report, Passing);
        assert_eq!(target.kinds(), [kind], "{name}");
    }
}

#[tokio::test]
async fn a_server_that_has_forgotten_a_session_is_passing_all_the_same() {
    let files = Files::new();
    let ca = Ca::new("ours");
    let ca_file = files.write("ca.pem", &ca.pem());
    let pair = ca.issue(&named("s", &["127.0.0.1"]));
    for version in [TLS12, TLS13] {
        let target = Target::start(config(&pair, version)).await;
        let check = handshake(target.server.address, resuming(trusting(&ca_file)));
        let prober = Prober::new(ProberSettings::default()).unwrap();
        for restarted in [false, true, false] {
            if restarted {
                *target.config.lock().unwrap() = Arc::new(config(&pair, version));
            }
            assert_status(&run_with(&prober, check.clone()).await, Passing);
        }
        assert_eq!(target.kinds(), [Full, Full, Resumed]);
    }
}
