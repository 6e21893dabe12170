//! When certificates end.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use evenkeel_probe::{
    Definition, HttpTransport, Prober, ProberSettings, Report, TcpCheck, TlsCheck, TlsOptions,
    WallClock,
};
use evenkeel_threshold::Status::{self, Critical, Passing, Warning};
use rcgen::{CertificateParams, date_time_ymd};
use rustls::ServerConfig;
use tokio::io::AsyncWriteExt as _;
use tokio_rustls::TlsAcceptor;

use crate::certificates::{Authority, chain_config};
use crate::support::*;
use crate::tls::{Ca, Files, https, named, self_signed, server_config, with};

/// When the certificates of these tests end: `date -u -d 2031-03-01 +%s`.
fn the_end() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_930_089_600)
}

fn ending(mut params: CertificateParams) -> CertificateParams {
    params.not_after = date_time_ymd(2031, 3, 1);
    params
}

/// A prober for which it is so many hours before [`the_end`].
fn hours_before(hours: i64) -> Prober {
    let distance = Duration::from_secs(hours.unsigned_abs() * 3600);
    let now = match hours {
        0.. => the_end() - distance,
        _ => the_end() + distance,
    };
    let mut settings = ProberSettings::default();
    settings.clock = WallClock::new(move || now);
    Prober::new(settings).unwrap()
}

fn wanting(files: &Files, ca: &str, warning: Option<u32>, critical: Option<u32>) -> TlsOptions {
    TlsOptions {
        server_name: "shop.example".into(),
        ca_file: files.write("ca.pem", ca),
        warning_days: warning,
        critical_days: critical,
        ..TlsOptions::default()
    }
}

async fn probe(prober: &Prober, definition: impl Into<Definition>) -> (Option<Status>, String) {
    let report = run_with(prober, definition).await;
    (report.status(), report.output)
}

fn days_left(report: &Report) -> Option<i64> {
    Some(report.certificate.as_ref()?.days_left)
}

#[tokio::test]
async fn every_kind_warns_of_a_certificate_that_ends_soon() {
    let files = Files::new();
    let ca = Ca::new("ours");
    let pair = ca.issue(&ending(named("s", &["shop.example"])));
    let (server, _told) = https(server_config(&pair, None)).await;
    let at = server.address.to_string();
    let options = wanting(&files, &ca.pem(), Some(21), Some(7));
    let kinds: [(Definition, String, bool); 3] = [
        (
            with(format!("https://{at}/"), options.clone()).into(),
            format!("HTTP GET https://{at}/: 200 OK{{}} Output: secure"),
            false,
        ),
        (
            tcp(&at).with_tls(options.clone()).unwrap().into(),
            format!("TCP connect {at}: Success (with TLS){{}}"),
            false,
        ),
        (
            TlsCheck::new(&at)
                .unwrap()
                .with_tls(options)
                .unwrap()
                .into(),
            format!("TLS {at}: TLS 1.3{{}}"),
            true,
        ),
    ];
    for (hours, status, words) in [
        (24 * 30, Passing, "ends in 30 days"),
        (24 * 21, Passing, "ends in 21 days"),
        (24 * 21 - 1, Warning, "ends in 20 days"),
        (24 * 7, Warning, "ends in 7 days"),
        (24 * 7 - 1, Critical, "ends in 6 days"),
        (24, Critical, "ends in 1 day"),
        (1, Critical, "ends in less than a day"),
    ] {
        for (definition, text, always) in &kinds {
            let words = format!("certificate of shop.example {words}");
            let words = match (always, status) {
                (true, _) => format!(", {words}"),
                (false, Passing) => String::new(),
                (false, _) => format!(" ({words})"),
            };
            assert_eq!(
                probe(&hours_before(hours), definition.clone()).await,
                (Some(status), text.replace("{}", &words)),
                "{hours}"
            );
        }
    }
}

#[cfg(all(feature = "grpc", feature = "h2ping"))]
#[tokio::test]
async fn so_do_the_kinds_over_http_2() {
    use crate::grpc::health;
    use evenkeel_probe::{GrpcCheck, H2PingCheck};

    let files = Files::new();
    let ca = Ca::new("ours");
    let pair = ca.issue(&ending(named("s", &["shop.example"])));
    let mut config = server_config(&pair, None);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let server = health(Some(TlsAcceptor::from(Arc::new(config)))).await;
    let at = &server.address;
    let options = wanting(&files, &ca.pem(), Some(21), None);
    let ping = H2PingCheck::new(at).unwrap().with_tls(options.clone());
    let asked = |service: &str| {
        let check = GrpcCheck::new(&format!("{at}{service}")).unwrap();
        Definition::from(check.with_tls(options.clone()).unwrap())
    };
    let soon = " (certificate of shop.example ends in 12 days)";
    for (definition, text, status) in [
        (
            ping.unwrap().into(),
            format!("HTTP2 ping {at}: Success{soon}"),
            Warning,
        ),
        (
            asked("/up"),
            format!("gRPC check {at}/up: success{soon}"),
            Warning,
        ),
        // It was worse before.
        (
            asked("/down"),
            format!("gRPC check {at}/down: service \"down\" is NOT_SERVING{soon}"),
            Critical,
        ),
    ] {
        let found = probe(&hours_before(24 * 12 + 5), definition).await;
        assert_eq!(found, (Some(status), text));
    }
}

#[tokio::test]
async fn a_status_is_made_worse_and_never_better() {
    let files = Files::new();
    let ca = Ca::new("ours");
    let pair = ca.issue(&ending(named("s", &["shop.example"])));
    let acceptor = TlsAcceptor::from(Arc::new(server_config(&pair, None)));
    let server = Server::start(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                return;
            };
            let asked = read_request(&mut stream).await;
            let code = &asked["GET /".len()..][..3];
            let head = format!("HTTP/1.1 {code} So\r\nContent-Length: 0\r\n\r\n");
            let _ = stream.write_all(head.as_bytes()).await;
            until_closed(&mut stream).await;
        }
    })
    .await;
    let prober = hours_before(24 * 3);
    for (code, days, status) in [
        ("200", (Some(5), None), Warning),
        ("200", (Some(5), Some(5)), Critical),
        ("200", (None, Some(5)), Critical),
        ("200", (Some(2), None), Passing),
        ("429", (Some(5), None), Warning),
        ("429", (None, Some(5)), Critical),
        ("503", (Some(5), None), Critical),
    ] {
        let options = wanting(&files, &ca.pem(), days.0, days.1);
        let check = with(format!("https://{}/{code}", server.address), options);
        let report = run_with(&prober, check).await;
        assert_status(&report, status);
        // Known in any case.
        let certificate = report.certificate.unwrap();
        assert_eq!(certificate.not_after, the_end());
        assert_eq!(certificate.days_left, 3);
    }
    // Nothing is said of it where there is no certificate.
    let report = run_with(&prober, tcp(server.address)).await;
    assert_eq!(report.certificate, None);
}

/// Serves this chain.
async fn showing(config: ServerConfig) -> (Server, TcpCheck) {
    let (server, _told) = https(config).await;
    let check = tcp(server.address);
    (server, check)
}

#[tokio::test]
async fn an_intermediate_certificate_that_ends_first_counts() {
    let files = Files::new();
    let root = Authority::new("root");
    let between = root.issue_authority("between", |params| *params = ending(params.clone()));
    let leaf = between.issue(&named("s", &["shop.example"]));
    let (_server, check) = showing(chain_config(&leaf, &[&between.certificate])).await;
    let options = wanting(&files, &root.pem(), Some(21), None);
    let check = check.with_tls(options).unwrap();
    let report = run_with(&hours_before(24 * 12), check.clone()).await;
    assert_status(&report, Warning);
    assert_says(
        &report,
        "(intermediate certificate \"between\" of shop.example ends in 12 days)",
    );
    let certificate = report.certificate.unwrap();
    assert_eq!(certificate.chain_not_after, the_end());
    assert!(certificate.not_after > the_end());
    let report = run_with(&hours_before(-25), check).await;
    assert_status(&report, Critical);
    assert_says(
        &report,
        "certificate has expired or is not yet valid: intermediate certificate \"between\" ended at \
         2031-03-01T00:00:00Z",
    );
}

#[tokio::test]
async fn a_cross_signature_that_is_not_needed_does_not_count() {
    let files = Files::new();
    let (old, root) = (Authority::new("old root"), Authority::new("root"));
    let between = root.issue_authority("between", |_| {});
    // So that those who trust the old root only get there.
    let cross = root.signed_by(&old, |params| *params = ending(params.clone()));
    let leaf = between.issue(&named("s", &["shop.example"]));
    let chain = [&between.certificate, &cross];
    let (_server, check) = showing(chain_config(&leaf, &chain)).await;
    let trusting = |ca: &Authority| {
        let options = wanting(&files, &ca.pem(), Some(21), None);
        check.clone().with_tls(options).unwrap()
    };
    for hours in [24 * 12, 1, -1, -24 * 30] {
        let report = run_with(&hours_before(hours), trusting(&root)).await;
        assert_status(&report, Passing);
        assert!(days_left(&report) > Some(1000), "{hours}: {report:?}");
    }
    // Once it has ended, whoever asks: it was not needed.
    let silent = check
        .clone()
        .with_tls(wanting(&files, &root.pem(), None, None));
    let report = run_with(&hours_before(-1), silent.unwrap()).await;
    assert!(days_left(&report) > Some(1000), "{report:?}");
    // It is needed by those who trust nothing else.
    let report = run_with(&hours_before(24 * 12), trusting(&old)).await;
    assert_status(&report, Warning);
    assert_says(&report, "\"root\" of shop.example ends in 12 days");
    // Without verification nobody knows what is needed.
    let blind = TlsOptions {
        skip_verify: true,
        ..wanting(&files, "", Some(21), None)
    };
    let check = check.with_tls(blind).unwrap();
    let report = run_with(&hours_before(-24 * 30 - 1), check).await;
    assert_status(&report, Warning);
    assert_says(&report, "\"root\" of shop.example ended 30 days ago");
}

#[tokio::test]
async fn without_verification_an_end_in_the_past_is_told() {
    let pair = self_signed(&ending(named("s", &["shop.example"])));
    let (_server, check) = showing(server_config(&pair, None)).await;
    let check = |critical_days| {
        let options = TlsOptions {
            skip_verify: true,
            critical_days,
            ..TlsOptions::default()
        };
        check.clone().with_tls(options).unwrap()
    };
    let late = hours_before(-24 * 3 - 1);
    let report = run_with(&late, check(None)).await;
    assert_status(&report, Passing);
    assert_eq!(days_left(&report), Some(-4));
    let report = run_with(&late, check(Some(0))).await;
    assert_status(&report, Critical);
    assert_says(&report, "(certificate of 127.0.0.1 ended 3 days ago)");
    let report = run_with(&hours_before(1), check(Some(0))).await;
    assert_status(&report, Passing);
}

#[tokio::test]
async fn a_certificate_of_which_the_end_cannot_be_read_is_as_bad_as_one_that_ended() {
    let pair = self_signed(&ending(named("s", &["shop.example"])));
    let mut broken = pair.certificate.to_vec();
    let end = b"310301000000Z";
    let at = broken.windows(end.len()).position(|bytes| bytes == end);
    broken[at.unwrap()] = b'x';
    let mut shown = pair;
    shown.certificate = broken.into();
    let (_server, check) = showing(chain_config(&shown, &[])).await;
    for (warning_days, critical_days, status) in [
        (None, None, Passing),
        (Some(1), None, Warning),
        (Some(2), Some(1), Critical),
    ] {
        let options = TlsOptions {
            skip_verify: true,
            warning_days,
            critical_days,
            ..TlsOptions::default()
        };
        let report = run(check.clone().with_tls(options).unwrap()).await;
        assert_status(&report, status);
        assert_eq!(report.certificate, None);
        if status != Passing {
            assert_says(
                &report,
                "when the certificate of 127.0.0.1 ends cannot be read",
            );
        }
    }
}

#[tokio::test]
async fn what_a_check_does_not_say_of_days_comes_from_the_defaults() {
    let pair = self_signed(&ending(named("s", &["shop.example"])));
    let (_server, check) = showing(server_config(&pair, None)).await;
    let mut settings = ProberSettings::default();
    let now = the_end() - Duration::from_secs(12 * 24 * 3600);
    settings.clock = WallClock::new(move || now);
    settings.tls.warning_days = Some(21);
    settings.tls.critical_days = Some(14);
    let prober = Prober::new(settings.clone()).unwrap();
    for (warning_days, critical_days, status) in [
        (None, None, Critical),
        (Some(13), None, Warning),
        (None, Some(7), Passing),
        (Some(0), None, Passing),
    ] {
        let options = TlsOptions {
            skip_verify: true,
            warning_days,
            critical_days,
            ..TlsOptions::default()
        };
        let report = run_with(&prober, check.clone().with_tls(options).unwrap()).await;
        assert_status(&report, status);
    }
    settings.tls.warning_days = Some(13);
    let refused = Prober::new(settings).err().unwrap().to_string();
    assert!(refused.contains("a warning would never come"), "{refused}");
}

#[test]
fn a_warning_that_would_never_come_is_refused() {
    let options = |warning_days, critical_days| TlsOptions {
        warning_days,
        critical_days,
        ..TlsOptions::default()
    };
    let refused = tcp("a.test:1").with_tls(options(Some(7), Some(8)));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "critical_days: is above warning_days, so that a warning would never come"
    );
    for (warning, critical) in [(Some(7), Some(7)), (None, Some(8)), (Some(1), None)] {
        assert!(tcp("a.test:1").with_tls(options(warning, critical)).is_ok());
    }
}

/// A kept connection would otherwise hide for as long as it is kept that the
/// certificate ends.
#[tokio::test]
async fn on_a_kept_connection_the_end_is_seen_as_on_a_new_one() {
    let files = Files::new();
    let ca = Ca::new("ours");
    let pair = ca.issue(&ending(named("s", &["shop.example"])));
    let (server, _told) = https(server_config(&pair, None)).await;
    let hours = Arc::new(AtomicI64::new(24 * 12 + 5));
    let mut settings = ProberSettings::default();
    let left = hours.clone();
    settings.clock = WallClock::new(move || {
        let left = left.load(Ordering::Relaxed) * 3600;
        let now = 1_930_089_600 - left;
        SystemTime::UNIX_EPOCH + Duration::from_secs(now.unsigned_abs())
    });
    let prober = Prober::new(settings).unwrap();
    let options = wanting(&files, &ca.pem(), Some(11), None);
    let transport = HttpTransport {
        reuse: true,
        ..HttpTransport::default()
    };
    let check = with(format!("https://{}/", server.address), options);
    let definition = Definition::from(check.with_transport(transport).unwrap());
    let mut seen = Vec::new();
    for left in [
        24 * 12 + 5,
        24 * 12 + 4,
        24 * 12 + 1,
        24 * 10 + 1,
        24 * 10,
        -1,
    ] {
        hours.store(left, Ordering::Relaxed);
        let report = prober.run(&definition).await;
        seen.push((report.status().unwrap(), report.phases.tls.is_some()));
    }
    let (anew, kept) = (true, false);
    assert_eq!(
        seen,
        [
            (Passing, anew),
            (Passing, kept),
            (Passing, kept),
            (Warning, anew),
            (Warning, kept),
            (Critical, anew)
        ]
    );
}
