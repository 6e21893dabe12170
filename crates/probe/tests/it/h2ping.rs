//! HTTP/2 pings of a server on the library that tonic and hyper use.

use std::sync::Arc;

use evenkeel_probe::{H2PingCheck, TlsOptions};
use evenkeel_threshold::Status::{Critical, Passing};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use crate::support::*;
use crate::tls::{Ca, Files, named, server_config};

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin) {
    if let Ok(mut connection) = h2::server::handshake(stream).await {
        while let Some(Ok(_)) = connection.accept().await {}
    }
}

// P096
#[tokio::test]
async fn a_ping_that_is_answered_is_passing() {
    let server = Server::start(serve).await;
    let check = H2PingCheck::new(&server.address.to_string()).unwrap();
    let report = run(check).await;
    assert_status(&report, Passing);
    assert_eq!(
        report.output,
        format!("HTTP2 ping {}: Success", server.address)
    );
    assert!(report.phases.connect.is_some() && report.phases.first_byte.is_some());
}

// P096
#[tokio::test]
async fn over_tls_h2_is_the_protocol_asked_for() {
    let files = Files::new();
    let ca = Ca::new("test CA");
    let pair = ca.issue(&named("server", &["h2.test"]));
    let tls = TlsOptions {
        server_name: "h2.test".into(),
        ca_file: files.write("ca.pem", &ca.pem()),
        ..TlsOptions::default()
    };
    for (protocol, passes) in [("h2", true), ("http/1.1", false)] {
        let mut config = server_config(&pair, None);
        config.alpn_protocols = vec![protocol.into()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let server = Server::start(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(stream).await;
                }
            }
        })
        .await;
        let check = H2PingCheck::new(&server.address.to_string()).unwrap();
        let report = run(check.with_tls(tls.clone()).unwrap()).await;
        if passes {
            assert_status(&report, Passing);
            assert!(report.phases.tls.is_some());
        } else {
            assert_status(&report, Critical);
            assert_says(&report, "remote error: tls: no application protocol");
        }
    }
}
