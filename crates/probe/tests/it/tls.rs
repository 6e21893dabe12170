//! HTTPS, and TCP with TLS.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use evenkeel_probe::{
    Cause, Definition, HttpCheck, HttpTransport, Phase, Prober, ProberSettings, RedirectPolicy,
    TlsDefaults, TlsOptions,
};
use evenkeel_threshold::Status::{Critical, Passing};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use crate::support::*;

/// A certificate with its key, as PEM and as rustls wants it.
pub(crate) struct Pair {
    pub(crate) certificate: CertificateDer<'static>,
    certificate_pem: String,
    pub(crate) key: PrivateKeyDer<'static>,
    key_pem: String,
}

impl Pair {
    pub(crate) fn new(certificate: &rcgen::Certificate, key: &KeyPair) -> Self {
        Self {
            certificate: certificate.der().clone(),
            certificate_pem: certificate.pem(),
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            key_pem: key.serialize_pem(),
        }
    }

    pub(crate) fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    pub(crate) fn key_pem(&self) -> &str {
        &self.key_pem
    }

    fn certified(&self) -> CertifiedKey {
        let key = ring::sign::any_supported_type(&self.key).unwrap();
        CertifiedKey::new(vec![self.certificate.clone()], key)
    }
}

pub(crate) struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = named(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn issue(&self, params: &CertificateParams) -> Pair {
        let key = KeyPair::generate().unwrap();
        Pair::new(&params.signed_by(&key, &self.0).unwrap(), &key)
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        Arc::new(roots)
    }
}

pub(crate) fn named(name: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

pub(crate) fn self_signed(params: &CertificateParams) -> Pair {
    let key = KeyPair::generate().unwrap();
    Pair::new(&params.self_signed(&key).unwrap(), &key)
}

/// Files of one test.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

pub(crate) fn server_config(pair: &Pair, clients: Option<&Ca>) -> ServerConfig {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(ca) => builder.with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(ca.roots(), provider)
                .build()
                .unwrap(),
        ),
    };
    builder
        .with_single_cert(vec![pair.certificate.clone()], pair.key.clone_key())
        .unwrap()
}

/// Answers each HTTPS request with 200 and `secure`; what each connection said
/// of itself (server name, protocol) and how it ended is told.
pub(crate) async fn https(config: ServerConfig) -> (Server, mpsc::UnboundedReceiver<String>) {
    let (tell, told) = mpsc::unbounded_channel();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = Server::start(move |stream| {
        let (acceptor, tell) = (acceptor.clone(), tell.clone());
        async move {
            let mut stream = match acceptor.accept(stream).await {
                Ok(stream) => stream,
                Err(error) => return drop(tell.send(format!("handshake: {error}"))),
            };
            let session = stream.get_ref().1;
            let alpn =
                String::from_utf8_lossy(session.alpn_protocol().unwrap_or(b"-")).into_owned();
            let name = session.server_name().unwrap_or("-").to_owned();
            let _ = tell.send(format!("{name} {alpn}"));
            let mut sink = [0; 4096];
            loop {
                match stream.read(&mut sink).await {
                    Ok(0) => return drop(tell.send("close_notify".into())),
                    Ok(_) => {
                        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecure";
                        let _ = stream.write_all(answer).await;
                    }
                    Err(error) => return drop(tell.send(format!("{:?}", error.kind()))),
                }
            }
        }
    })
    .await;
    (server, told)
}

pub(crate) fn url(server: &Server) -> String {
    format!("https://{}/", server.address)
}

fn with_ca(server: &Server, ca_file: &Path) -> HttpCheck {
    with(url(server), trusting(ca_file))
}

pub(crate) fn with(url: String, tls: TlsOptions) -> HttpCheck {
    http(url).with_tls(tls).unwrap()
}

pub(crate) fn trusting(ca_file: &Path) -> TlsOptions {
    TlsOptions {
        ca_file: ca_file.to_owned(),
        ..TlsOptions::default()
    }
}

#[tokio::test]
async fn a_certificate_of_the_given_ca_is_trusted_and_another_is_not() {
    let files = Files::new();
    let (ca, other) = (Ca::new("ours"), Ca::new("theirs"));
    let (server, mut told) =
        https(server_config(&ca.issue(&named("s", &["127.0.0.1"])), None)).await;
    let ca_file = files.write("ca.pem", &ca.pem());
    let report = run(with_ca(&server, &ca_file)).await;
    assert_status(&report, Passing);
    assert_eq!(
        report.output,
        format!("HTTP GET {}: 200 OK Output: secure", url(&server))
    );
    assert!(report.phases.tls.is_some());
    // No name is sent for an address.
    assert_eq!(told.recv().await.unwrap(), "- -");
    assert_eq!(told.recv().await.unwrap(), "close_notify");

    let other_file = files.write("other.pem", &other.pem());
    let report = run(with_ca(&server, &other_file)).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::Tls));
    assert_eq!(
        report.output,
        format!(
            "Get \"{}\": tls: failed to verify certificate: x509: certificate signed by unknown authority \"ours\", and no intermediate certificate was sent",
            url(&server)
        )
    );
    // A file may hold several.
    let both = files.write("both.pem", &(other.pem() + &ca.pem()));
    assert_status(&run(with_ca(&server, &both)).await, Passing);
}

#[tokio::test]
async fn a_directory_of_cas_is_read() {
    let files = Files::new();
    let ca = Ca::new("ours");
    files.write("a-other.pem", &Ca::new("theirs").pem());
    files.write("b-ours.crt", &ca.pem());
    files.write("README", "no certificate");
    let (server, _told) = https(server_config(&ca.issue(&named("s", &["127.0.0.1"])), None)).await;
    let options = TlsOptions {
        ca_path: files.path().to_owned(),
        ..TlsOptions::default()
    };
    assert_status(&run(with(url(&server), options.clone())).await, Passing);
    std::fs::remove_file(files.path().join("b-ours.crt")).unwrap();
    assert_status(&run(with(url(&server), options)).await, Critical);
}

/// Has a certificate only for those who ask for `a.test`.
#[derive(Debug)]
struct OnlyByName(Arc<CertifiedKey>);

impl ResolvesServerCert for OnlyByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        (hello.server_name() == Some("a.test")).then(|| self.0.clone())
    }
}

#[tokio::test]
async fn the_given_server_name_is_sent_and_verified() {
    // P047
    let files = Files::new();
    let ca = Ca::new("ours");
    let ca_file = files.write("ca.pem", &ca.pem());
    let pair = ca.issue(&named("s", &["a.test"]));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(OnlyByName(Arc::new(pair.certified()))));
    let (server, _told) = https(config).await;
    let named = |name: &str, skip_verify| TlsOptions {
        server_name: name.to_owned(),
        skip_verify,
        ..trusting(&ca_file)
    };
    assert_status(
        &run(with(url(&server), named("a.test", false))).await,
        Passing,
    );
    let report = run(with(url(&server), named("", false))).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::Tls));
    assert_says(&report, "remote error: tls: ");
    assert_status(
        &run(with(url(&server), named("b.test", false))).await,
        Critical,
    );
    // Without verification the name is sent all the same.
    assert_status(
        &run(with(url(&server), named("a.test", true))).await,
        Passing,
    );
    assert_status(&run(with(url(&server), named("", true))).await, Critical);
}

#[tokio::test]
async fn the_name_comes_from_the_url_and_from_nowhere_else() {
    // P091
    let files = Files::new();
    let ca = Ca::new("ours");
    let ca_file = files.write("ca.pem", &ca.pem());
    let mut config = server_config(&ca.issue(&named("s", &["*.domain.tld"])), None);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let (server, mut told) = https(config).await;
    let prober = resolving_to(&["127.0.0.1"]);
    let port = server.address.port();
    let check = with(
        format!("https://node01.domain.tld:{port}/"),
        trusting(&ca_file),
    )
    // The authority is not the name.
    .with_header("Host", "elsewhere.example")
    .unwrap();
    assert_status(&run_with(&prober, check).await, Passing);
    assert_eq!(told.recv().await.unwrap(), "node01.domain.tld http/1.1");
    let check = with(
        format!("https://node01.other.tld:{port}/"),
        trusting(&ca_file),
    );
    let report = run_with(&prober, check).await;
    assert_status(&report, Critical);
    assert_says(
        &report,
        "x509: certificate is valid for *.domain.tld, not node01.other.tld",
    );
}

#[tokio::test]
async fn certificates_out_of_their_time_are_critical() {
    let files = Files::new();
    let ca = Ca::new("ours");
    let ca_file = files.write("ca.pem", &ca.pem());
    let mut expired = named("s", &["127.0.0.1"]);
    expired.not_before = date_time_ymd(2001, 1, 1);
    expired.not_after = date_time_ymd(2002, 1, 1);
    let mut early = named("s", &["127.0.0.1"]);
    early.not_before = date_time_ymd(2999, 1, 1);
    early.not_after = date_time_ymd(3000, 1, 1);
    for params in [expired, early] {
        let (server, _told) = https(server_config(&ca.issue(&params), None)).await;
        let report = run(with_ca(&server, &ca_file)).await;
        assert_status(&report, Critical);
        assert_says(&report, "x509: certificate has expired or is not yet valid");
        let skip = TlsOptions {
            skip_verify: true,
            ..TlsOptions::default()
        };
        assert_status(&run(with(url(&server), skip)).await, Passing);
    }
}

#[tokio::test]
async fn a_self_signed_certificate_is_trusted_if_it_is_the_given_ca() {
    for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let files = Files::new();
        let mut params = named("self", &["127.0.0.1"]);
        params.is_ca = is_ca;
        let pair = self_signed(&params);
        let (server, _told) = https(server_config(&pair, None)).await;
        let ca_file = files.write("ca.pem", &pair.certificate_pem);
        let report = run(with_ca(&server, &ca_file)).await;
        assert_status(&report, Passing);
        // By name only if it has the name.
        let options = TlsOptions {
            server_name: "a.test".into(),
            ..trusting(&ca_file)
        };
        let report = run(with(url(&server), options)).await;
        assert_status(&report, Critical);
        assert_says(
            &report,
            "x509: certificate is valid for 127.0.0.1, not a.test",
        );
        // Not if another one is given, and not beyond its time.
        let other = files.write("other.pem", &self_signed(&params).certificate_pem);
        assert_status(&run(with_ca(&server, &other)).await, Critical);
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
        let pair = self_signed(&params);
        let (server, _told) = https(server_config(&pair, None)).await;
        let ca_file = files.write("expired.pem", &pair.certificate_pem);
        let report = run(with_ca(&server, &ca_file)).await;
        assert_status(&report, Critical);
        assert_says(&report, "expired");
    }
}

#[tokio::test]
async fn a_client_certificate_is_presented_if_there_is_one() {
    let files = Files::new();
    let (ca, clients) = (Ca::new("ours"), Ca::new("clients"));
    let ca_file = files.write("ca.pem", &ca.pem());
    let pair = ca.issue(&named("s", &["127.0.0.1"]));
    let (server, _told) = https(server_config(&pair, Some(&clients))).await;
    let client = clients.issue(&named("c", &["client.test"]));
    let good = TlsOptions {
        cert_file: files.write("cert.pem", &client.certificate_pem),
        key_file: files.write("key.pem", &client.key_pem),
        ..trusting(&ca_file)
    };
    let stranger = Ca::new("strangers").issue(&named("c", &["client.test"]));
    let bad = TlsOptions {
        cert_file: files.write("bad-cert.pem", &stranger.certificate_pem),
        key_file: files.write("bad-key.pem", &stranger.key_pem),
        ..trusting(&ca_file)
    };
    for (options, status, says) in [
        (good, Passing, ""),
        (bad, Critical, "remote error: tls: "),
        (
            trusting(&ca_file),
            Critical,
            "remote error: tls: certificate required",
        ),
    ] {
        let report = run(with(url(&server), options.clone())).await;
        assert_status(&report, status);
        assert_says(&report, says);
        // In TLS 1.3 the client is done before the server judges its certificate.
        let report = run(tcp(server.address).with_tls(options).unwrap()).await;
        assert_status(&report, status);
        assert_says(&report, says);
    }
}

#[tokio::test]
async fn changed_files_are_used_by_the_next_probe() {
    // P048
    let files = Files::new();
    let (ca, old, new) = (Ca::new("ours"), Ca::new("old"), Ca::new("new"));
    let pair = ca.issue(&named("s", &["127.0.0.1"]));
    let (server, _told) = https(server_config(&pair, Some(&new))).await;
    let before = old.issue(&named("c", &["client.test"]));
    let options = TlsOptions {
        cert_file: files.write("cert.pem", &before.certificate_pem),
        key_file: files.write("key.pem", &before.key_pem),
        ..trusting(&files.write("ca.pem", &old.pem()))
    };
    let prober = Prober::new(ProberSettings::default()).unwrap();
    let check = with(url(&server), options);
    let report = run_with(&prober, check.clone()).await;
    assert_says(&report, "unknown authority");
    files.write("ca.pem", &ca.pem());
    let report = run_with(&prober, check.clone()).await;
    assert_status(&report, Critical);
    assert_says(&report, "remote error: tls: ");
    let after = new.issue(&named("c", &["client.test"]));
    files.write("cert.pem", &after.certificate_pem);
    files.write("key.pem", &after.key_pem);
    assert_status(&run_with(&prober, check.clone()).await, Passing);
    // And again, now that nothing changes.
    assert_status(&run_with(&prober, check).await, Passing);
}

#[tokio::test]
async fn a_kept_connection_is_given_up_when_a_file_has_changed() {
    // P048
    let files = Files::new();
    let (ca, other) = (Ca::new("ours"), Ca::new("theirs"));
    let pair = ca.issue(&named("s", &["127.0.0.1"]));
    let (server, _told) = https(server_config(&pair, None)).await;
    let transport = HttpTransport {
        reuse: true,
        ..HttpTransport::default()
    };
    let check = with_ca(&server, &files.write("ca.pem", &ca.pem()));
    let check = Definition::from(check.with_transport(transport).unwrap());
    let prober = Prober::new(ProberSettings::default()).unwrap();
    let report = prober.run(&check).await;
    assert_status(&report, Passing);
    let report = prober.run(&check).await;
    assert_status(&report, Passing);
    assert_eq!(report.phases.connect, None);
    files.write("ca.pem", &other.pem());
    let report = prober.run(&check).await;
    assert_status(&report, Critical);
    assert_says(&report, "unknown authority");
    files.write("ca.pem", &(other.pem() + &ca.pem()));
    assert_status(&prober.run(&check).await, Passing);
    std::fs::remove_file(files.path().join("ca.pem")).unwrap();
    let report = prober.run(&check).await;
    assert_unprobed(&report, Cause::TlsFiles);
    assert_eq!(report.failed_phase, Some(Phase::Tls));
}

#[tokio::test]
async fn faulty_files_say_nothing_of_the_target() {
    let files = Files::new();
    let ca = Ca::new("ours");
    let (server, _told) = https(server_config(&ca.issue(&named("s", &["127.0.0.1"])), None)).await;
    let pair = self_signed(&named("c", &["client.test"]));
    let other = self_signed(&named("c", &["client.test"]));
    let good_ca = files.write("ca.pem", &ca.pem());
    let empty = files.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let client = |cert_file, key_file| TlsOptions {
        cert_file,
        key_file,
        ..trusting(&good_ca)
    };
    for (options, says) in [
        (
            trusting(&files.path().join("none.pem")),
            "cannot read ca_file",
        ),
        (
            trusting(&files.write("garbage.pem", "garbage")),
            "no certificate in ca_file",
        ),
        (
            trusting(&files.write(
                "broken.pem",
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            )),
            "no certificate in ca_file",
        ),
        (trusting(files.path()), "cannot read ca_file"),
        (
            TlsOptions {
                ca_path: empty,
                ..TlsOptions::default()
            },
            "no certificate in ca_path",
        ),
        (
            client(
                files.path().join("none.pem"),
                files.write("k.pem", &pair.key_pem),
            ),
            "cannot read cert_file",
        ),
        (
            client(
                files.write("c.pem", &pair.certificate_pem),
                files.write("k.pem", "no key"),
            ),
            "cannot read key_file",
        ),
        (
            client(
                files.write("c.pem", &pair.certificate_pem),
                files.write("other.pem", &other.key_pem),
            ),
            "client certificate",
        ),
    ] {
        let report = run(with(url(&server), options)).await;
        assert_unprobed(&report, Cause::TlsFiles);
        assert_eq!(report.failed_phase, Some(Phase::Tls));
        assert_says(&report, says);
    }
}

#[tokio::test]
async fn what_a_check_does_not_say_comes_from_the_defaults() {
    let files = Files::new();
    let (ca, clients) = (Ca::new("ours"), Ca::new("clients"));
    let pair = ca.issue(&named("s", &["127.0.0.1"]));
    let (server, _told) = https(server_config(&pair, Some(&clients))).await;
    let client = clients.issue(&named("c", &["client.test"]));
    let mut settings = ProberSettings::default();
    settings.tls = TlsDefaults {
        ca_file: files.write("ca.pem", &ca.pem()),
        cert_file: files.write("cert.pem", &client.certificate_pem),
        key_file: files.write("key.pem", &client.key_pem),
        ..TlsDefaults::default()
    };
    let prober = Prober::new(settings).unwrap();
    assert_status(&run_with(&prober, http(url(&server))).await, Passing);
    // A check's own CA stands alone.
    let other = files.write("other.pem", &Ca::new("theirs").pem());
    let report = run_with(&prober, with_ca(&server, &other)).await;
    assert_status(&report, Critical);
}

#[tokio::test]
async fn a_handshake_that_is_never_answered_is_critical_at_the_timeout() {
    let server = Server::start(|mut stream| async move { until_closed(&mut stream).await }).await;
    let check = http(url(&server)).with_timeout(SHORT).with_tls(TlsOptions {
        skip_verify: true,
        ..TlsOptions::default()
    });
    let report = run(check.unwrap()).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::Tls));
    assert_says(&report, "tls: handshake: context deadline exceeded");
}

#[tokio::test]
async fn tls_and_plain_text_do_not_mix() {
    let skip = TlsOptions {
        skip_verify: true,
        ..TlsOptions::default()
    };
    let plain = Server::answering("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
    let talks_first = Server::start(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        until_closed(&mut stream).await;
    })
    .await;
    let report = run(with(url(&talks_first), skip.clone())).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::Tls));
    assert_says(&report, "first record does not look like a TLS handshake");
    // P050
    for server in [&talks_first, &plain] {
        let check = tcp(server.address).with_tls(skip.clone()).unwrap();
        let report = run(check.with_timeout(SHORT)).await;
        assert_status(&report, Critical);
        assert_eq!(report.failed_phase, Some(Phase::Tls));
    }
    let pair = self_signed(&named("s", &["127.0.0.1"]));
    let (server, _told) = https(server_config(&pair, None)).await;
    let report = run(http(format!("http://{}/", server.address))).await;
    assert_status(&report, Critical);
    assert_says(&report, "malformed HTTP response");
}

#[tokio::test]
async fn tcp_with_tls_does_the_handshake_and_says_goodbye() {
    // P050, P095
    let files = Files::new();
    let ca = Ca::new("ours");
    let ca_file = files.write("ca.pem", &ca.pem());
    let (server, mut told) =
        https(server_config(&ca.issue(&named("s", &["127.0.0.1"])), None)).await;
    let report = run(tcp(server.address).with_tls(trusting(&ca_file)).unwrap()).await;
    assert_status(&report, Passing);
    assert_eq!(
        report.output,
        format!("TCP connect {}: Success (with TLS)", server.address)
    );
    assert_eq!(told.recv().await.unwrap(), "- -");
    assert_eq!(told.recv().await.unwrap(), "close_notify");
    let wrong = files.write("wrong.pem", &Ca::new("theirs").pem());
    let report = run(tcp(server.address).with_tls(trusting(&wrong)).unwrap()).await;
    assert_status(&report, Critical);
    assert_says(&report, "unknown authority");
}

#[tokio::test]
async fn a_redirect_from_https_to_http_is_refused_unless_allowed() {
    // P087
    let files = Files::new();
    let ca = Ca::new("ours");
    let ca_file = files.write("ca.pem", &ca.pem());
    let plain = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let acceptor = TlsAcceptor::from(Arc::new(server_config(
        &ca.issue(&named("s", &["127.0.0.1"])),
        None,
    )));
    let location = Arc::new(Mutex::new(plain.url()));
    let to = location.clone();
    let server = Server::start(move |stream| {
        let (acceptor, to) = (acceptor.clone(), to.clone());
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                return;
            };
            read_request(&mut stream).await;
            let to = to.lock().unwrap().clone();
            let head = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\n\r\n");
            let _ = stream.write_all(head.as_bytes()).await;
            until_closed(&mut stream).await;
        }
    })
    .await;
    let report = run(with_ca(&server, &ca_file)).await;
    assert_status(&report, Critical);
    assert_says(&report, "from https to http, which is refused");
    let mut settings = ProberSettings::default();
    settings.redirects = RedirectPolicy {
        allow_downgrade: true,
        ..RedirectPolicy::default()
    };
    let prober = Prober::new(settings).unwrap();
    assert_status(
        &run_with(&prober, with_ca(&server, &ca_file)).await,
        Passing,
    );
    // From https to https the check's own CA holds on.
    let pair = ca.issue(&named("s", &["127.0.0.1"]));
    let (secure, _told) = https(server_config(&pair, None)).await;
    *location.lock().unwrap() = url(&secure);
    let report = run(with_ca(&server, &ca_file)).await;
    assert_status(&report, Passing);
    assert_says(&report, "Output: secure");
}

#[tokio::test]
async fn a_reset_within_the_handshake_is_critical() {
    let server = Server::start(|mut stream| async move {
        let mut byte = [0];
        let _ = stream.read(&mut byte).await;
        reset(stream);
    })
    .await;
    let check = http(url(&server)).with_tls(TlsOptions {
        skip_verify: true,
        ..TlsOptions::default()
    });
    let report = run(check.unwrap()).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::Tls));
    assert_says(&report, "connection reset by peer");
}
