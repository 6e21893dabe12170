//! gRPC checks of a tonic server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use evenkeel_probe::{Cause, GrpcCheck, Phase, TlsOptions};
use evenkeel_threshold::Status::{Critical, Passing};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::{Service, http};
use tonic::transport::Server as Tonic;
use tonic_health::ServingStatus;
use tonic_health::server::health_reporter;

use crate::support::*;
use crate::tls::{Ca, Files, named, server_config};

/// What a server was asked with.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<BTreeMap<String, String>>>>);

impl tonic::service::Interceptor for Seen {
    fn call(&mut self, request: tonic::Request<()>) -> Result<tonic::Request<()>, tonic::Status> {
        let headers = request.metadata().clone().into_headers();
        let headers = headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        self.0.lock().unwrap().push(headers);
        Ok(request)
    }
}

pub(crate) struct Health {
    pub(crate) address: String,
    seen: Seen,
    task: JoinHandle<()>,
}

impl Drop for Health {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A server with the services `up` (serving), `down` (not serving) and `odd`
/// (unknown).
pub(crate) async fn health(tls: Option<TlsAcceptor>) -> Health {
    let (reporter, service) = health_reporter();
    for (name, status) in [
        ("up", ServingStatus::Serving),
        ("a/b", ServingStatus::Serving),
        ("down", ServingStatus::NotServing),
        ("odd", ServingStatus::Unknown),
    ] {
        reporter.set_service_status(name, status).await;
    }
    let seen = Seen::default();
    let service = tonic::service::interceptor::InterceptedService::new(service, seen.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let task = match tls {
        None => {
            let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
            let serving = Tonic::builder()
                .add_service(service)
                .serve_with_incoming(incoming);
            tokio::spawn(async move { serving.await.unwrap() })
        }
        Some(acceptor) => {
            let (sender, incoming) = tokio::sync::mpsc::channel(1);
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ = sender.send(Ok::<_, std::io::Error>(stream)).await;
                    }
                }
            });
            let incoming = ReceiverStream::new(incoming);
            let serving = Tonic::builder()
                .add_service(service)
                .serve_with_incoming(incoming);
            tokio::spawn(async move { serving.await.unwrap() })
        }
    };
    Health {
        address,
        seen,
        task,
    }
}

fn grpc(target: impl AsRef<str>) -> GrpcCheck {
    GrpcCheck::new(target.as_ref()).unwrap()
}

#[tokio::test]
async fn each_status_of_a_service_has_its_own_text() {
    let server = health(None).await;
    let address = &server.address;
    let report = run(grpc(address)).await;
    assert_status(&report, Passing);
    assert_eq!(report.output, format!("gRPC check {address}: success"));
    assert!(report.phases.connect.is_some() && report.phases.first_byte.is_some());
    for (service, said) in [("up", "success"), ("a/b", "success")] {
        let report = run(grpc(format!("{address}/{service}"))).await;
        assert_status(&report, Passing);
        assert_says(&report, said);
    }
    for (service, said) in [
        ("down", "service \"down\" is NOT_SERVING"),
        ("odd", "the status of service \"odd\" is UNKNOWN"),
        ("none", "service \"none\" is not known to it"),
    ] {
        let report = run(grpc(format!("{address}/{service}"))).await;
        assert_status(&report, Critical);
        assert_eq!(report.failed_phase, Some(Phase::FirstByte));
        assert_says(&report, said);
    }
}

#[tokio::test]
async fn metadata_and_deadline_reach_the_server() {
    let server = health(None).await;
    let check = grpc(&server.address)
        .with_metadata("x-tenant", "blue")
        .and_then(|check| check.with_metadata("user-agent", "watch/1"))
        .unwrap();
    assert_status(&run(check).await, Passing);
    let seen = server.seen.0.lock().unwrap();
    let headers = &seen[0];
    assert_eq!(headers["x-tenant"], "blue");
    assert_eq!(headers["user-agent"], "watch/1");
    assert!(headers.contains_key("grpc-timeout"));
}

#[tokio::test]
async fn a_server_without_the_health_service_is_told() {
    // A tonic server with a service of another name.
    #[derive(Clone)]
    struct Other;
    impl tonic::server::NamedService for Other {
        const NAME: &'static str = "shop.Cart";
    }
    impl<B> Service<http::Request<B>> for Other {
        type Response = http::Response<tonic::body::Body>;
        type Error = std::convert::Infallible;
        type Future = std::future::Ready<Result<Self::Response, Self::Error>>;
        fn poll_ready(
            &mut self,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), Self::Error>> {
            std::task::Poll::Ready(Ok(()))
        }
        fn call(&mut self, _: http::Request<B>) -> Self::Future {
            std::future::ready(Ok(http::Response::new(tonic::body::Body::empty())))
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    let serving = Tonic::builder()
        .add_service(Other)
        .serve_with_incoming(incoming);
    let task = tokio::spawn(async move { serving.await.unwrap() });
    let report = run(grpc(address)).await;
    task.abort();
    assert_status(&report, Critical);
    assert_says(
        &report,
        "the server does not implement grpc.health.v1.Health",
    );
}

// P094
#[tokio::test]
async fn tls_verifies_the_name_and_shows_the_client_certificate() {
    let files = Files::new();
    let ca = Ca::new("test CA");
    let server = ca.issue(&named("server", &["grpc.test"]));
    let client = ca.issue(&named("client", &["client.test"]));
    let mut config = server_config(&server, Some(&ca));
    config.alpn_protocols = vec![b"h2".to_vec()];
    let server = health(Some(TlsAcceptor::from(Arc::new(config)))).await;
    let tls = TlsOptions {
        server_name: "grpc.test".into(),
        ca_file: files.write("ca.pem", &ca.pem()),
        cert_file: files.write("cert.pem", client.certificate_pem()),
        key_file: files.write("key.pem", client.key_pem()),
        ..TlsOptions::default()
    };
    let check = grpc(format!("{}/up", server.address));
    let with = |tls: &TlsOptions| check.clone().with_tls(tls.clone()).unwrap();
    assert_eq!(with(&tls).authority(), "grpc.test");
    let report = run(with(&tls)).await;
    assert_status(&report, Passing);
    assert!(report.phases.tls.is_some());

    let other_name = TlsOptions {
        server_name: "other.test".into(),
        ..tls.clone()
    };
    let report = run(with(&other_name)).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::Tls));
    assert_says(
        &report,
        "certificate is valid for grpc.test, not other.test",
    );

    let nobody = TlsOptions {
        cert_file: "".into(),
        key_file: "".into(),
        ..tls.clone()
    };
    let report = run(with(&nobody)).await;
    assert_status(&report, Critical);
    assert_says(&report, "remote error: tls: certificate required");

    let no_file = TlsOptions {
        ca_file: files.path().join("missing.pem"),
        ..tls
    };
    assert_unprobed(&run(with(&no_file)).await, Cause::TlsFiles);
}

#[tokio::test]
async fn an_http_2_server_that_is_no_grpc_server_is_told_and_sees_the_authority() {
    let server = Server::start(|stream| async move {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            let named = request.uri().authority().map(|name| name.as_str());
            let answer = http::Response::builder()
                .status(404)
                .header("content-type", named.unwrap_or_default())
                .body(())
                .unwrap();
            let _ = respond.send_response(answer, true);
        }
    })
    .await;
    for authority in ["", "shop.example"] {
        let check = grpc(server.address.to_string()).with_authority(authority);
        let report = run(check.unwrap()).await;
        assert_status(&report, Critical);
        let authority = match authority {
            "" => server.address.to_string(),
            given => given.to_owned(),
        };
        let said = format!("the server answered HTTP 404 with {authority}, which is no gRPC");
        assert_says(&report, &said);
    }
}

#[tokio::test]
async fn an_endless_answer_is_refused() {
    let server = Server::start(|stream| async move {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        let mut open = Vec::new();
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            let answer = http::Response::builder()
                .header("content-type", "application/grpc")
                .body(())
                .unwrap();
            let mut body = respond.send_response(answer, false).unwrap();
            // A message of 16 MiB (uncompressed), begun.
            let _ = body.send_data(bytes::Bytes::from_static(&[0, 1, 0, 0, 0, 9, 9]), false);
            let _ = body.send_data(bytes::Bytes::from(vec![0; 1 << 20]), false);
            open.push(body);
        }
    })
    .await;
    let report = run(grpc(server.address.to_string()).with_timeout(SHORT)).await;
    assert_status(&report, Critical);
    assert_says(&report, "code = OutOfRange");
}

#[test]
fn what_cannot_be_asked_is_refused() {
    for target in ["", "a", "a/b", ":1/b", "[::1]/s"] {
        assert!(GrpcCheck::new(target).is_err(), "{target}");
    }
    for (target, service) in [
        ("a:1", ""),
        ("[::1]:1/s", "s"),
        ("a:1/b/c", "b/c"),
        ("a:1/", ""),
    ] {
        assert_eq!(grpc(target).service(), service, "{target}");
    }
    let check = grpc("a:1").with_service("s");
    assert_eq!((check.target(), check.service()), ("a:1/s", "s"));
    for name in ["grpc-timeout", "te", "Content-Type", "a b", ""] {
        assert!(grpc("a:1").with_metadata(name, "x").is_err(), "{name}");
    }
    assert!(grpc("a:1").with_authority("a b").is_err());
    let secret = grpc("a:1")
        .with_metadata("authorization", "hunter2")
        .unwrap();
    assert!(!format!("{secret:?}").contains("hunter2"));
}
