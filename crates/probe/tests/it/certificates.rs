//! Certificates that ought not to be accepted, or that are hard to accept, and
//! servers that do not come to the end of a handshake.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use evenkeel_probe::{Phase, Report, TlsOptions};
use evenkeel_threshold::Status::{Critical, Passing};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType,
    date_time_ymd,
};
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection};
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::handshake::handshake;
use crate::support::*;
use crate::tls::{Ca, Files, Pair, https, named, self_signed, server_config, trusting, url, with};

/// A certificate authority whose key may sign more than one certificate of
/// itself.
pub(crate) struct Authority {
    params: CertificateParams,
    key: KeyPair,
    pub(crate) certificate: CertificateDer<'static>,
    pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        Self::root(authority(name))
    }

    fn root(params: CertificateParams) -> Self {
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        Self {
            params,
            key,
            certificate: made.der().clone(),
            pem: made.pem(),
        }
    }

    pub(crate) fn pem(&self) -> String {
        self.pem.clone()
    }

    fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::from_params(&self.params, &self.key)
    }

    pub(crate) fn issue(&self, params: &CertificateParams) -> Pair {
        let key = KeyPair::generate().unwrap();
        Pair::new(&params.signed_by(&key, &self.issuer()).unwrap(), &key)
    }

    pub(crate) fn issue_authority(
        &self,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Self {
        let mut params = authority(name);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let made = params.signed_by(&key, &self.issuer()).unwrap();
        Self {
            params,
            key,
            certificate: made.der().clone(),
            pem: made.pem(),
        }
    }

    /// The same name and key, signed by another.
    pub(crate) fn signed_by(
        &self,
        other: &Self,
        change: impl FnOnce(&mut CertificateParams),
    ) -> CertificateDer<'static> {
        let mut params = self.params.clone();
        change(&mut params);
        let made = params.signed_by(&self.key, &other.issuer()).unwrap();
        made.der().clone()
    }
}

fn authority(name: &str) -> CertificateParams {
    let mut params = named(name, &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn expired(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2001, 1, 1);
    params.not_after = date_time_ymd(2002, 1, 1);
}

/// A server that shows what it is told to.
#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// Shows `leaf` and then `others`, whatever they are.
pub(crate) fn chain_config(leaf: &Pair, others: &[&CertificateDer<'static>]) -> ServerConfig {
    let key = ring::sign::any_supported_type(&leaf.key).unwrap();
    let mut chain = vec![leaf.certificate.clone()];
    chain.extend(others.iter().copied().cloned());
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Shown(Arc::new(CertifiedKey::new(chain, key)))))
}

fn leaf() -> CertificateParams {
    named("s", &["127.0.0.1"])
}

async fn judged(config: ServerConfig, ca: &Path) -> (String, Report) {
    let (server, _told) = https(config).await;
    let report = run(handshake(server.address, trusting(ca))).await;
    if report.status() != Some(Passing) {
        assert_eq!(report.failed_phase, Some(Phase::Tls), "{report:#?}");
    }
    (server.address.to_string(), report)
}

#[tokio::test]
async fn each_certificate_that_is_not_accepted_has_its_cause_in_one_line() {
    let files = Files::new();
    let root = Authority::new("root");
    let ca = files.write("ca.pem", &root.pem());
    let between = root.issue_authority("between", |_| {});
    let old = root.issue_authority("old", expired);
    let no_authority = root.issue_authority("shop", |params| params.is_ca = IsCa::ExplicitNoCa);
    let strangers = Authority::new("strangers");

    let mut ended = leaf();
    expired(&mut ended);
    let mut early = leaf();
    early.not_before = date_time_ymd(2999, 1, 1);
    early.not_after = date_time_ymd(3000, 1, 1);
    let mut for_clients = leaf();
    for_clients.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let mut forged = root.issue(&leaf());
    let mut bytes = forged.certificate.to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    forged.certificate = bytes.into();
    let mut garbage = root.issue(&leaf());
    garbage.certificate = b"no certificate".to_vec().into();
    let mut of_another = root.issue(&leaf());
    of_another.key = root.issue(&leaf()).key;

    let sent = [&between.certificate];
    for (config, says) in [
        (
            chain_config(&root.issue(&ended), &[]),
            "certificate has expired or is not yet valid: it ended at 2002-01-01T00:00:00Z",
        ),
        (
            chain_config(&root.issue(&early), &[]),
            "certificate has expired or is not yet valid: it begins at 2999-01-01T00:00:00Z",
        ),
        (
            chain_config(&old.issue(&leaf()), &[&old.certificate]),
            "certificate has expired or is not yet valid: intermediate certificate \"old\" ended at \
             2002-01-01T00:00:00Z",
        ),
        (
            chain_config(&root.issue(&named("s", &["a.test", "10.0.0.1"])), &[]),
            "certificate is valid for a.test, 10.0.0.1, not 127.0.0.1",
        ),
        (
            chain_config(&root.issue(&named("127.0.0.1", &[])), &[]),
            "certificate is not valid for any names, but wanted 127.0.0.1",
        ),
        (
            chain_config(&self_signed(&leaf()), &[]),
            "certificate signed by unknown authority (it is self-signed)",
        ),
        // A missing intermediate certificate.
        (
            chain_config(&between.issue(&leaf()), &[]),
            "certificate signed by unknown authority \"between\", and no intermediate certificate was \
             sent",
        ),
        (
            chain_config(&strangers.issue(&leaf()), &sent),
            "certificate signed by unknown authority \"strangers\"",
        ),
        // The root is sent along, which makes nobody trust it.
        (
            chain_config(&strangers.issue(&leaf()), &[&strangers.certificate]),
            "certificate signed by unknown authority \"strangers\"",
        ),
        (
            chain_config(&no_authority.issue(&leaf()), &[&no_authority.certificate]),
            "an intermediate certificate is not one of an authority",
        ),
        (
            chain_config(&root.issue(&for_clients), &[]),
            "certificate is not meant for servers",
        ),
        (chain_config(&forged, &[]), "a signature is not right"),
        (chain_config(&of_another, &[]), "a signature is not right"),
        (chain_config(&garbage, &[]), "certificate cannot be read"),
    ] {
        let (at, report) = judged(config, &ca).await;
        assert_status(&report, Critical);
        let text = format!("TLS {at}: failed to verify certificate: x509: {says}");
        assert_eq!(report.output, text);
    }
    // The other way: all that is needed.
    let (_, report) = judged(chain_config(&between.issue(&leaf()), &sent), &ca).await;
    assert_status(&report, Passing);
}

#[tokio::test]
async fn a_chain_with_a_way_to_a_trusted_root_is_accepted_whatever_else_is_sent() {
    let files = Files::new();
    let mut past = authority("old root");
    expired(&mut past);
    let (past, root) = (Authority::root(past), Authority::new("root"));
    let between = root.issue_authority("between", |_| {});
    let leaf = between.issue(&leaf());
    // The key of the authority between, signed by the root that has ended.
    let by_past = between.signed_by(&past, |_| {});
    let by_past_ended = between.signed_by(&past, expired);
    // The new root's key, signed by the old one: ends long after it, or has ended.
    let cross = root.signed_by(&past, |_| {});
    let cross_ended = root.signed_by(&past, expired);
    let new_only = files.write("new.pem", &root.pem());
    let both = files.write("both.pem", &(past.pem() + &root.pem()));
    let right = &between.certificate;
    for chain in [
        &[right][..],
        &[right, &by_past],
        &[&by_past, right],
        &[right, &by_past_ended],
        &[&by_past_ended, right],
        &[right, &cross],
        &[right, &cross_ended],
        &[&cross_ended, &by_past_ended, right],
        // With what nobody needs: the root itself, and a certificate twice.
        &[right, &root.certificate],
        &[right, right],
    ] {
        for ca in [&new_only, &both] {
            let (_, report) = judged(chain_config(&leaf, chain), ca).await;
            assert_status(&report, Passing);
        }
    }
    let (_, report) = judged(chain_config(&leaf, &[&by_past_ended]), &both).await;
    assert_status(&report, Critical);
    assert_says(&report, "certificate has expired or is not yet valid");
}

#[tokio::test]
async fn long_chains_and_large_certificates_end_in_a_verdict() {
    let files = Files::new();
    let root = Authority::new("root");
    let ca = files.write("ca.pem", &root.pem());
    let mut chain = vec![root.issue_authority("level 1", |_| {})];
    for level in 2..=20 {
        let next = chain[0].issue_authority(&format!("level {level}"), |_| {});
        chain.insert(0, next);
    }
    let certificates = |chain: &[Authority]| -> Vec<_> {
        chain.iter().map(|one| one.certificate.clone()).collect()
    };
    // Of the twenty, only the last one to three are needed.
    let sent = certificates(&chain);
    let sent: Vec<_> = sent.iter().collect();
    let (_, report) = judged(chain_config(&chain[17].issue(&leaf()), &sent), &ca).await;
    assert_status(&report, Passing);
    // All are.
    let (at, report) = judged(chain_config(&chain[0].issue(&leaf()), &sent), &ca).await;
    assert_status(&report, Critical);
    assert_eq!(
        report.output,
        format!(
            "TLS {at}: failed to verify certificate: x509: the chain of certificates is too long"
        )
    );

    let with_names = |count: usize| {
        let mut params = leaf();
        for number in 0..count {
            let name = format!("{number:0>40}.example").try_into().unwrap();
            params.subject_alt_names.push(SanType::DnsName(name));
        }
        root.issue(&params)
    };
    let large = with_names(1000);
    assert!((40_000..60_000).contains(&large.certificate.len()));
    let (_, report) = judged(chain_config(&large, &[]), &ca).await;
    assert_status(&report, Passing);
    let too_large = with_names(2000);
    assert!(too_large.certificate.len() >= 100_000);
    let (at, report) = judged(chain_config(&too_large, &[]), &ca).await;
    assert_status(&report, Critical);
    assert_eq!(
        report.output,
        format!("TLS {at}: handshake: the server's message is longer than 64 KiB")
    );
}

/// What a server answers to the first flight of a client: all of its own first.
async fn first_flight(stream: &mut TcpStream, config: Arc<ServerConfig>) -> Vec<u8> {
    let mut session = ServerConnection::new(config).unwrap();
    let mut hello = [0; 16 * 1024];
    while !session.wants_write() {
        let read = stream.read(&mut hello).await.unwrap();
        assert_ne!(read, 0);
        session.read_tls(&mut &hello[..read]).unwrap();
        session.process_new_packets().unwrap();
    }
    let mut flight = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut flight).unwrap();
    }
    flight
}

#[tokio::test]
async fn a_server_that_stops_within_the_handshake_is_critical() {
    let pair = self_signed(&leaf());
    for (version, named) in [
        (&rustls::version::TLS12, "1.2"),
        (&rustls::version::TLS13, "1.3"),
    ] {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![pair.certificate.clone()], pair.key.clone_key())
            .unwrap();
        let config = Arc::new(config);
        // Nothing, a part of a record, the ServerHello, a part of the certificate.
        for part in [
            "nothing",
            "a byte",
            "ServerHello",
            "half of the certificate",
        ] {
            for end in ["silence", "close", "reset"] {
                let config = config.clone();
                let server = Server::start(move |mut stream| {
                    let config = config.clone();
                    async move {
                        let flight = first_flight(&mut stream, config).await;
                        // A record's head is 5 bytes, a message's 4, of which 3 are its length.
                        let hello = 5 + 4 + usize::from(u16::from_be_bytes([flight[7], flight[8]]));
                        let sent = match part {
                            "nothing" => 0,
                            "a byte" => 1,
                            "ServerHello" => hello,
                            _ => hello + 200,
                        };
                        assert!(sent < flight.len());
                        stream.write_all(&flight[..sent]).await.unwrap();
                        match end {
                            "silence" => until_closed(&mut stream).await,
                            "close" => {}
                            _ => reset(stream),
                        }
                    }
                })
                .await;
                let options = TlsOptions {
                    skip_verify: true,
                    ..TlsOptions::default()
                };
                // The time runs out in one of them only.
                let check = handshake(server.address, options).with_timeout(SHORT / 4);
                let report = run(check).await;
                assert_status(&report, Critical);
                assert_eq!(report.failed_phase, Some(Phase::Tls));
                let says: &[&str] = match end {
                    "silence" => &["handshake: context deadline exceeded"],
                    "close" => &["handshake: EOF"],
                    // What was sent before it may be read, or not.
                    _ => &["handshake: connection reset by peer"],
                };
                let told = says
                    .iter()
                    .any(|says| report.output == format!("TLS {}: {says}", server.address));
                assert!(told, "{named}, {part}, then {end}: {}", report.output);
            }
        }
    }
}

#[tokio::test]
async fn the_version_that_both_speak_is_told() {
    let files = Files::new();
    let ca = Ca::new("ours");
    let ca_file = files.write("ca.pem", &ca.pem());
    let pair = ca.issue(&leaf());
    for (version, says) in [
        (&rustls::version::TLS12, ": TLS 1.2, certificate of"),
        (&rustls::version::TLS13, ": TLS 1.3, certificate of"),
    ] {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![pair.certificate.clone()], pair.key.clone_key())
            .unwrap();
        let (server, _told) = https(config).await;
        let report = run(handshake(server.address, trusting(&ca_file))).await;
        assert_status(&report, Passing);
        assert_says(&report, says);
        let report = run(with(url(&server), trusting(&ca_file))).await;
        assert_status(&report, Passing);
    }
}

/// `openssl s_server`, which speaks what rustls no longer does.
struct OpenSsl(std::process::Child, String);

impl OpenSsl {
    fn start(files: &Files, pair: &Pair, arguments: &[&str]) -> Option<Self> {
        let mut child = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0", "-naccept", "100"])
            .arg("-cert")
            .arg(files.write("s.pem", pair.certificate_pem()))
            .arg("-key")
            .arg(files.write("s-key.pem", pair.key_pem()))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut lines = BufReader::new(child.stdout.take()?);
        let mut line = String::new();
        while lines.read_line(&mut line).ok()? > 0 {
            if let Some(address) = line.trim().strip_prefix("ACCEPT ") {
                let address = address.to_owned();
                // So that it never waits for somebody to read.
                std::thread::spawn(move || lines.read_to_end(&mut Vec::new()));
                return Some(Self(child, address));
            }
            line.clear();
        }
        let _ = child.kill();
        let _ = child.wait();
        None
    }
}

impl Drop for OpenSsl {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_server_of_a_version_of_old_is_told_as_such() {
    let files = Files::new();
    let pair = self_signed(&leaf());
    let skip = TlsOptions {
        skip_verify: true,
        ..TlsOptions::default()
    };
    // Its answer is TLS 1.0 whatever it was asked for: a ServerHello, cut where it does not matter.
    let server = Server::start(|mut stream| async move {
        let mut hello = [0; 4096];
        let _ = stream.read(&mut hello).await;
        let mut answer = vec![22, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1];
        answer.extend([7; 32]);
        answer.extend([0, 0xc0, 0x13, 0]);
        let _ = stream.write_all(&answer).await;
        until_closed(&mut stream).await;
    })
    .await;
    let report = run(handshake(server.address, skip.clone())).await;
    assert_status(&report, Critical);
    assert_eq!(
        report.output,
        format!(
            "TLS {}: handshake: the server speaks a version of TLS before 1.2",
            server.address
        )
    );
    let old = ["-tls1", "-cipher", "ALL:@SECLEVEL=0"];
    let Some(server) = OpenSsl::start(&files, &pair, &old) else {
        println!("skipped: there is no openssl that speaks TLS 1.0");
        return;
    };
    let report = run(handshake(&server.1, skip.clone())).await;
    assert_status(&report, Critical);
    let refused = format!(
        "TLS {}: remote error: tls: protocol version not supported",
        server.1
    );
    assert_eq!(report.output, refused);
    // The same server with what we speak: what it was refused for is the version.
    let server = OpenSsl::start(&files, &pair, &["-tls1_2"]).unwrap();
    let report = run(handshake(&server.1, skip)).await;
    assert_status(&report, Passing);
    assert_says(&report, "TLS 1.2");
}

#[tokio::test]
async fn what_is_no_tls_is_told_as_such() {
    let options = TlsOptions {
        skip_verify: true,
        ..TlsOptions::default()
    };
    for banner in [
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "220 mail.test ESMTP\r\n",
        "\0\0\0\0\0",
    ] {
        let server = Server::start(move |mut stream| async move {
            let _ = stream.write_all(banner.as_bytes()).await;
            until_closed(&mut stream).await;
        })
        .await;
        let report = run(handshake(server.address, options.clone())).await;
        assert_status(&report, Critical);
        assert_eq!(report.failed_phase, Some(Phase::Tls));
        assert_eq!(
            report.output,
            format!(
                "TLS {}: handshake: first record does not look like a TLS handshake",
                server.address
            )
        );
    }
}

#[tokio::test]
async fn a_client_certificate_is_judged_after_the_handshake_and_that_is_waited_for() {
    let files = Files::new();
    let (ca, clients) = (Ca::new("ours"), Ca::new("clients"));
    let ca_file = files.write("ca.pem", &ca.pem());
    let (server, _told) = https(server_config(&ca.issue(&leaf()), Some(&clients))).await;
    let client = |name: &str, pair: &Pair| TlsOptions {
        cert_file: files.write(&format!("{name}.pem"), pair.certificate_pem()),
        key_file: files.write(&format!("{name}-key.pem"), pair.key_pem()),
        ..trusting(&ca_file)
    };
    let right = client("right", &clients.issue(&named("c", &["client.test"])));
    let wrong = client("wrong", &self_signed(&named("c", &["client.test"])));
    let mut late = named("c", &["client.test"]);
    expired(&mut late);
    let late = client("late", &clients.issue(&late));
    for (options, says) in [
        (right, None),
        (trusting(&ca_file), Some("certificate required")),
        (wrong, Some("unknown certificate authority")),
        (late, Some("expired certificate")),
    ] {
        let report = run(handshake(server.address, options)).await;
        match says {
            None => assert_status(&report, Passing),
            Some(says) => {
                assert_status(&report, Critical);
                assert_eq!(
                    report.output,
                    format!("TLS {}: remote error: tls: {says}", server.address)
                );
            }
        }
    }
}
