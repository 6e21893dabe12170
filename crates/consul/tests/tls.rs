//! TLS and unix sockets, on loopback with certificates made here.
#![allow(clippy::unwrap_used, reason = "only tests are compiled with this")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use evenkeel_consul::config::Tls;
use evenkeel_consul::{Client, Config, ConfigError};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

/// An authority with a server's and a client's certificate, as files.
struct Pki {
    directory: TempDir,
}

impl Pki {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(directory.path().join("ca.pem"), ca.pem()).unwrap();
        for (name, subject, purpose) in [
            (
                "server",
                "server.dc1.consul",
                ExtendedKeyUsagePurpose::ServerAuth,
            ),
            ("client", "client", ExtendedKeyUsagePurpose::ClientAuth),
        ] {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(vec![subject.to_owned()]).unwrap();
            params.extended_key_usages = vec![purpose];
            let certificate = params.signed_by(&key, &ca).unwrap();
            let file = |suffix| directory.path().join(format!("{name}.{suffix}"));
            std::fs::write(file("pem"), certificate.pem()).unwrap();
            std::fs::write(file("key"), key.serialize_pem()).unwrap();
        }
        Self { directory }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A server that answers every request on one connection after another;
    /// with `clients`, only those with a certificate of the authority.
    async fn serve(&self, clients: bool) -> Config {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if clients {
            let mut roots = rustls::RootCertStore::empty();
            roots
                .add(CertificateDer::from_pem_file(self.file("ca.pem")).unwrap())
                .unwrap();
            let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
                Arc::new(roots),
                provider,
            );
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let chain = vec![CertificateDer::from_pem_file(self.file("server.pem")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(self.file("server.key")).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key).unwrap()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        answer(stream).await;
                    }
                });
            }
        });
        Config {
            address: format!("https://127.0.0.1:{port}").parse().unwrap(),
            tls: Tls {
                ca_file: Some(self.file("ca.pem")),
                server_name: Some("server.dc1.consul".to_owned()),
                ..Tls::default()
            },
            ..Config::default()
        }
    }
}

/// Answers requests without a body, one after another.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut seen = Vec::new();
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        seen.extend_from_slice(&buffer[..read]);
        if seen.ends_with(b"\r\n\r\n") {
            seen.clear();
            let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\"a:1\"";
            let _ = stream.write_all(reply).await;
        }
    }
}

async fn leader(config: &Config) -> Result<Option<String>, String> {
    Client::new(config)
        .unwrap()
        .leader()
        .await
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_server_is_trusted_by_its_authority_and_its_name() {
    let pki = Pki::new();
    let good = pki.serve(false).await;
    assert_eq!(leader(&good).await.unwrap().unwrap(), "a:1");

    let mut by_path = good.clone();
    by_path.tls.ca_file = None;
    by_path.tls.ca_path = Some(pki.directory.path().to_owned());
    assert!(leader(&by_path).await.is_ok());

    let mut other_name = good.clone();
    other_name.tls.server_name = None;
    let error = leader(&other_name).await.unwrap_err();
    assert!(
        error.contains("TLS") && error.contains("127.0.0.1"),
        "{error}"
    );

    let mut other_authority = good.clone();
    other_authority.tls.ca_file = Some(Pki::new().keep("ca.pem"));
    let error = leader(&other_authority).await.unwrap_err();
    assert!(error.contains("certificate"), "{error}");
    other_authority.tls.verify = false;
    assert!(leader(&other_authority).await.is_ok());

    // Plain HTTP to a port that speaks TLS.
    let text = good.address.to_string().replace("https", "http");
    let plain = Config {
        address: text.parse().unwrap(),
        ..good
    };
    assert!(leader(&plain).await.is_err());
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_gets_ours() {
    let pki = Pki::new();
    let mut config = pki.serve(true).await;
    assert!(leader(&config).await.is_err());
    config.tls.cert_file = Some(pki.file("client.pem"));
    config.tls.key_file = Some(pki.file("client.key"));
    assert!(leader(&config).await.is_ok());
}

#[tokio::test]
async fn what_is_wrong_with_a_file_is_said_with_its_name() {
    let pki = Pki::new();
    let empty = pki.file("empty");
    std::fs::write(&empty, "no certificate").unwrap();
    let directory = pki.file("nothing-in-it");
    std::fs::create_dir(&directory).unwrap();
    let config = |change: &dyn Fn(&mut Config)| {
        let mut config = Config {
            address: "https://127.0.0.1:1".parse().unwrap(),
            tls: Tls {
                ca_file: Some(pki.file("ca.pem")),
                ..Tls::default()
            },
            ..Config::default()
        };
        change(&mut config);
        Client::new(&config).unwrap_err()
    };
    let missing = Path::new("no-such-file");
    type Change<'a> = &'a dyn Fn(&mut Config);
    let faults: [(Change<'_>, &str); 8] = [
        (
            &|c| c.tls.ca_file = Some(missing.into()),
            "cannot read no-such-file",
        ),
        (
            &|c| c.tls.ca_file = Some(empty.clone()),
            "empty holds no usable certificate",
        ),
        (
            &|c| c.tls.ca_path = Some(missing.into()),
            "cannot read no-such-file",
        ),
        (
            &|c| c.tls.ca_path = Some(directory.clone()),
            "nothing-in-it holds no usable",
        ),
        (&|c| c.tls.cert_file = Some(pki.file("client.pem")), "both"),
        (&|c| c.max_concurrency = 1, "max_concurrency is 1"),
        (
            &|c| c.token_file = Some(missing.into()),
            "cannot read no-such-file",
        ),
        (
            &|c| c.tls.server_name = Some("not a name".into()),
            "not a name",
        ),
    ];
    for (change, text) in faults {
        let error = config(change).to_string();
        assert!(error.contains(text), "{text}: {error}");
    }
    let error = config(&|c| {
        c.tls.cert_file = Some(pki.file("client.pem"));
        c.tls.key_file = Some(empty.clone());
    });
    assert!(
        matches!(error, ConfigError::Pem { what: "key", .. }),
        "{error}"
    );
    let error = config(&|c| c.token = Some("a\nb".into()));
    assert!(
        matches!(error, ConfigError::Header { what: "token" }),
        "{error}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_is_an_address() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("consul.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    let address = format!("unix://{}", path.display()).parse().unwrap();
    let config = Config {
        address,
        ..Config::default()
    };
    assert_eq!(leader(&config).await.unwrap().unwrap(), "a:1");
    std::fs::remove_file(&path).unwrap();
    let error = leader(&config).await.unwrap_err();
    assert!(error.contains("consul.sock"), "{error}");
}

impl Pki {
    /// One file of an authority that outlives it.
    fn keep(self, name: &str) -> PathBuf {
        self.directory.keep().join(name)
    }
}
