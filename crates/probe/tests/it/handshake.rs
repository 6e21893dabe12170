//! The kind that shakes hands and says no more.

use evenkeel_probe::{Phase, TlsCheck, TlsOptions};
use evenkeel_threshold::Status::{Critical, Passing};

use crate::support::*;
use crate::tls::{Ca, Files, https, named, server_config, trusting};

pub(crate) fn handshake(address: impl ToString, options: TlsOptions) -> TlsCheck {
    let check = TlsCheck::new(&address.to_string()).unwrap();
    check.with_tls(options).unwrap()
}

// P095
#[tokio::test]
async fn the_handshake_is_done_whole_and_ended_in_order() {
    let files = Files::new();
    let ca = Ca::new("ours");
    let pair = ca.issue(&named("s", &["127.0.0.1"]));
    let (server, mut told) = https(server_config(&pair, None)).await;
    let ca_file = files.write("ca.pem", &ca.pem());
    let report = run(handshake(server.address, trusting(&ca_file))).await;
    assert_status(&report, Passing);
    let text = format!(
        "TLS {}: TLS 1.3, certificate of 127.0.0.1 ends in ",
        server.address
    );
    assert!(report.output.starts_with(&text), "{}", report.output);
    assert!(report.phases.connect.is_some() && report.phases.tls.is_some());
    assert_eq!(report.phases.first_byte, None);
    assert_eq!(told.recv().await.unwrap(), "- -");
    assert_eq!(told.recv().await.unwrap(), "close_notify");
}

#[tokio::test]
async fn one_of_the_protocols_has_to_be_chosen() {
    let files = Files::new();
    let ca = Ca::new("ours");
    let ca_file = files.write("ca.pem", &ca.pem());
    let pair = ca.issue(&named("s", &["127.0.0.1"]));
    for (spoken, says) in [
        (&["h2", "http/1.1"][..], Ok(", ALPN h2, ")),
        (&["http/1.1"], Ok(", ALPN http/1.1, ")),
        (
            &[],
            Err("the server chose none of the protocols http/1.1, h2 (ALPN)"),
        ),
        (&["imap"], Err("remote error: tls: no application protocol")),
    ] {
        let mut config = server_config(&pair, None);
        config.alpn_protocols = spoken.iter().map(|name| name.as_bytes().to_vec()).collect();
        let (server, _told) = https(config).await;
        let check = handshake(server.address, trusting(&ca_file));
        let report = run(check.with_protocols(["http/1.1", "h2"]).unwrap()).await;
        match says {
            Ok(says) => {
                assert_status(&report, Passing);
                assert_says(&report, says);
            }
            Err(says) => {
                assert_status(&report, Critical);
                assert_eq!(report.failed_phase, Some(Phase::Tls));
                assert_eq!(report.output, format!("TLS {}: {says}", server.address));
            }
        }
        // Who asks for nothing is served by all.
        let report = run(handshake(server.address, trusting(&ca_file))).await;
        assert_status(&report, Passing);
        assert!(!report.output.contains("ALPN"), "{}", report.output);
    }
}

#[test]
fn protocols_that_cannot_be_offered_are_refused() {
    let check = || TlsCheck::new("a.test:443").unwrap();
    assert!(check().with_protocols(["h2"; 16]).is_ok());
    for protocols in [
        vec![""],
        vec!["h2"; 17],
        vec!["a\nb"],
        vec![&*"x".repeat(256)],
    ] {
        let refused = check().with_protocols(protocols.clone());
        assert!(refused.is_err(), "{protocols:?}");
    }
    assert!(TlsCheck::new("a.test").is_err());
}
