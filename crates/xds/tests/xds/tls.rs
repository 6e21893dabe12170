//! Who is let in, and over what.

use evenkeel_xds::{Peer, Server, Settings, Tls};
use tokio::net::UnixListener;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::support::{Proxy, Running, cluster, only, ports, until};

/// An authority, and certificates that it has signed.
struct Authority {
    issuer: rcgen::CertifiedIssuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        Self {
            issuer: rcgen::CertifiedIssuer::self_signed(parameters, key).unwrap(),
        }
    }

    fn pem(&self) -> String {
        self.issuer.pem()
    }

    fn sign(&self, name: &str) -> (String, String) {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

/// A proxy that trusts `authority` and has been sent the cluster `web`.
async fn served(
    running: &Running,
    authority: &Authority,
    identity: Option<(String, String)>,
) -> Result<Proxy, String> {
    let mut tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(authority.pem()))
        .domain_name("localhost");
    if let Some((certificate, key)) = identity {
        tls = tls.identity(Identity::from_pem(certificate, key));
    }
    let channel = Channel::from_shared(format!("https://{}", running.address)).unwrap();
    let channel = channel.tls_config(tls).unwrap().connect().await;
    let channel = channel.map_err(|error| error.to_string())?;
    let mut proxy = Proxy::over(channel)
        .await
        .map_err(|error| error.to_string())?;
    proxy.subscribe(&["web"], None).await;
    let response = proxy.next().await.map_err(|error| error.to_string())?;
    let response = response.unwrap();
    assert_eq!(ports(&response), [("web".to_owned(), vec![1])]);
    proxy.answer(&response, &["web"], None).await;
    Ok(proxy)
}

#[tokio::test]
async fn certificates_that_are_replaced_hold_for_those_who_come_then() {
    let (old, new) = (Authority::new(), Authority::new());
    let (certificate, key) = old.sign("localhost");
    let tls = Tls::new(certificate.as_bytes(), key.as_bytes(), None).unwrap();
    let running = Running::with(Settings::default(), Some(tls.clone())).await;
    running.server.publish(&only("web", cluster([1]))).unwrap();
    let mut first = served(&running, &old, None).await.unwrap();
    assert!(served(&running, &new, None).await.is_err());

    let (certificate, other) = new.sign("localhost");
    let half = tls.replace(certificate.as_bytes(), key.as_bytes(), None);
    half.unwrap_err();
    drop(served(&running, &old, None).await.unwrap());
    let whole = tls.replace(certificate.as_bytes(), other.as_bytes(), None);
    whole.unwrap();
    drop(served(&running, &new, None).await.unwrap());
    assert!(served(&running, &old, None).await.is_err());

    // Who was there before is still served.
    running.server.publish(&only("web", cluster([2]))).unwrap();
    let response = first.response().await;
    assert_eq!(ports(&response), [("web".to_owned(), vec![2])]);
}

#[tokio::test]
async fn a_unix_socket_serves_as_a_port_does() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("xds.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let server = Server::new(Settings::default(), 1);
    server.publish(&only("web", cluster([1]))).unwrap();
    let serving = server.clone();
    tokio::spawn(async move { serving.serve(listener, None, std::future::pending()).await });
    let channel = Endpoint::try_from(format!("unix:{}", path.display())).unwrap();
    let channel = channel.connect().await.unwrap();
    let mut proxy = Proxy::over(channel).await.unwrap();
    proxy.subscribe(&["web"], None).await;
    let response = proxy.response().await;
    assert_eq!(ports(&response), [("web".to_owned(), vec![1])]);
    let seen = server.subscribers();
    assert_eq!(seen[0].peer, Peer::Unix);
    assert_eq!(seen[0].peer.to_string(), "unix");
}

#[tokio::test]
async fn with_mutual_tls_only_a_certificate_of_the_authority_is_let_in() {
    let authority = Authority::new();
    let (certificate, key) = authority.sign("localhost");
    let tls = Tls::new(
        certificate.as_bytes(),
        key.as_bytes(),
        Some(authority.pem().as_bytes()),
    )
    .unwrap();
    let running = Running::with(Settings::default(), Some(tls)).await;
    running.server.publish(&only("web", cluster([1]))).unwrap();
    let connect = async |identity| served(&running, &authority, identity).await.map(|_| ());
    connect(Some(authority.sign("proxy"))).await.unwrap();
    assert!(connect(None).await.is_err(), "no certificate");
    let stranger = Authority::new();
    assert!(connect(Some(stranger.sign("proxy"))).await.is_err());
    until("both are counted", || {
        (running.server.counters().handshakes_failed >= 2).then_some(())
    })
    .await;
}

#[test]
fn a_key_that_is_not_the_certificates_is_refused() {
    let authority = Authority::new();
    let (certificate, _) = authority.sign("localhost");
    let (_, key) = authority.sign("localhost");
    assert!(Tls::new(certificate.as_bytes(), key.as_bytes(), None).is_err());
    let nothing = Tls::new(b"", key.as_bytes(), None).unwrap_err();
    assert!(nothing.to_string().contains("no certificate"), "{nothing}");
}
