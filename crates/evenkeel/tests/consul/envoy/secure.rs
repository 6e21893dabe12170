//! Over a unix socket, and over TLS with certificates that change.

use std::fs;
use std::path::Path;

use evenkeel_testkit::{Envoy, Wire, eventually};

use super::files::Listed;
use super::{bootstrap, free_port, has, replaced, xds};
use crate::daemon::TestDaemon;

#[test]
fn envoy_is_served_over_a_unix_socket() {
    let listed = Listed::new();
    listed.write([2, 2, 2], "");
    let socket = listed.dir.path().join("xds.sock");
    let mut settings = listed.settings();
    settings.xds.listen = vec![format!("unix:{}", socket.display()).parse().unwrap()];
    let _daemon = TestDaemon::start(settings);
    let text = replaced(
        &bootstrap(18_000),
        "socket_address: {address: 127.0.0.1, port_value: 18000}",
        &format!("pipe: {{path: {}}}", socket.display()),
    );
    let Some(envoy) = Envoy::start("envoy_is_served_over_a_unix_socket", &text, 1) else {
        return;
    };
    has(&envoy, "web", 6, 6);
    let report = xds(listed.dir.path());
    assert_eq!(report.subscribers[0].peer, "unix");
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
}

/// An authority, and certificates that it has signed.
struct Authority(rcgen::CertifiedIssuer<'static, rcgen::KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        let name = &mut parameters.distinguished_name;
        name.push(rcgen::DnType::CommonName, "authority");
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        Self(rcgen::CertifiedIssuer::self_signed(parameters, key).unwrap())
    }

    /// Writes a new certificate and its key, each as a whole.
    fn sign(&self, certificate: &Path, key: &Path) {
        let pair = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        let signed = parameters.signed_by(&pair, &self.0).unwrap();
        for (path, text) in [(certificate, signed.pem()), (key, pair.serialize_pem())] {
            let new = path.with_extension("new");
            fs::write(&new, text).unwrap();
            fs::rename(new, path).unwrap();
        }
    }
}

#[test]
fn envoy_is_served_over_mutual_tls_with_certificates_that_change() {
    let listed = Listed::new();
    listed.write([2, 2, 2], "");
    let path = |name: &str| listed.dir.path().join(name);
    let (authority, stranger) = (Authority::new(), Authority::new());
    fs::write(path("ca.pem"), authority.0.pem()).unwrap();
    authority.sign(&path("server.crt"), &path("server.key"));
    authority.sign(&path("envoy.crt"), &path("envoy.key"));
    let port = free_port();
    let mut settings = listed.settings();
    settings.xds.listen = vec![format!("127.0.0.1:{port}").parse().unwrap()];
    settings.xds.cert_file = Some(path("server.crt"));
    settings.xds.key_file = Some(path("server.key"));
    settings.xds.client_ca_file = Some(path("ca.pem"));
    let daemon = TestDaemon::start(settings);
    let wire = Wire::to(([127, 0, 0, 1], port).into());
    // As docs/zones.md has it.
    let tls = format!(
        "- name: evenkeel
      transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
          sni: localhost
          common_tls_context:
            validation_context:
              trusted_ca: {{filename: {ca}}}
              match_typed_subject_alt_names: [{{san_type: DNS, matcher: {{exact: localhost}}}}]
            tls_certificates:
              - certificate_chain: {{filename: {certificate}}}
                private_key: {{filename: {key}}}",
        ca = path("ca.pem").display(),
        certificate = path("envoy.crt").display(),
        key = path("envoy.key").display(),
    );
    let text = replaced(&bootstrap(wire.address().port()), "- name: evenkeel", &tls);
    let Some(envoy) = Envoy::start("envoy_is_served_over_mutual_tls", &text, 1) else {
        return;
    };
    has(&envoy, "web", 6, 6);
    let connected = || envoy.stat("control_plane.connected_state");
    let refused = || daemon.metric("evenkeel_xds_handshakes_failed_total");
    assert_eq!(refused(), 0.0);

    // A certificate that Envoy does not trust: it stays away.
    stranger.sign(&path("server.crt"), &path("server.key"));
    eventually("the new one is shown", || {
        wire.cut();
        wire.mend();
        (refused() >= 3.0 && connected() == 0).then_some(())
    });
    // And one that it does.
    authority.sign(&path("server.crt"), &path("server.key"));
    eventually("it is back", || (connected() == 1).then_some(()));
    listed.write([3, 3, 3], "");
    has(&envoy, "web", 9, 9);
}
