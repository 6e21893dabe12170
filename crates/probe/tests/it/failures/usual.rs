//! What goes wrong on any day: HTTP, TCP, TLS and gRPC.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_probe::{
    Cause, Definition, GrpcCheck, HttpCheck, HttpExpect, HttpTransport, Phase, Prober,
    ProberSettings, Report, Resolve, ResolveError, TlsOptions,
};
use rcgen::date_time_ymd;

use super::case::{Case, Expected, critical, unprobed, warning};
use super::peer::Peer;
use crate::support::*;
use crate::tls::{Ca, Files, named, server_config};

/// No name can be looked up.
enum Broken {
    NotFound,
    ServFail,
    Silent,
}

#[async_trait]
impl Resolve for Broken {
    async fn resolve(&self, _: &str) -> Result<Vec<std::net::IpAddr>, ResolveError> {
        match self {
            Self::NotFound => Err(ResolveError::NotFound),
            Self::ServFail => Err(ResolveError::Failed("server misbehaving (SERVFAIL)".into())),
            Self::Silent => std::future::pending().await,
        }
    }
}

fn names() -> Vec<Case> {
    let of = |situation, resolver: Broken, expected: Expected| {
        let run = async move {
            let mut settings = ProberSettings::default();
            settings.resolver = Arc::new(resolver);
            let prober = Prober::new(settings).unwrap();
            let check = http("http://app.example/").with_timeout(expected.timeout());
            run_with(&prober, check).await
        };
        Case::new("HTTP", situation, expected, run)
    };
    let mut cases = vec![
        of(
            "the name does not exist",
            Broken::NotFound,
            critical("no such host").at(Phase::Resolve),
        ),
        of(
            "the name server fails",
            Broken::ServFail,
            unprobed(Cause::Resolver, "SERVFAIL").at(Phase::Resolve),
        ),
        of(
            "the name server does not answer",
            Broken::Silent,
            unprobed(Cause::Resolver, "context deadline exceeded")
                .at(Phase::Resolve)
                .late(),
        ),
    ];
    let refused = unprobed(Cause::TargetRefused, "169.254.169.254").at(Phase::Resolve);
    cases.push(Case::new(
        "HTTP",
        "the target policy forbids the address",
        refused,
        async { run(http("http://169.254.169.254/")).await },
    ));
    let refused = critical("connection refused").at(Phase::Connect);
    cases.push(Case::new("HTTP", "nobody listens", refused, async {
        run(http(format!("http://{}/", closed_port().await))).await
    }));
    cases.push(Case::new(
        "HTTP",
        "nobody listens on any address of the name",
        refused,
        async {
            let port = closed_port().await.port();
            let prober = resolving_to(&["127.0.0.1", "127.0.0.2"]);
            let mut report = run_with(&prober, http(format!("http://app.test:{port}/"))).await;
            report.output = report.output.replace(&port.to_string(), "80");
            report
        },
    ));
    let through = |situation, transport: HttpTransport, expected| {
        let check = http("http://app.example/").with_transport(transport);
        Case::new("HTTP", situation, expected, run(check.unwrap()))
    };
    cases.extend([
        through(
            "the unix socket does not exist",
            HttpTransport {
                unix_socket: Some("/run/nowhere.sock".into()),
                ..HttpTransport::default()
            },
            critical("dial unix /run/nowhere.sock: connect: ").at(Phase::Connect),
        ),
        through(
            "the proxy is away",
            HttpTransport {
                proxy: Some("http://127.0.0.1:1".into()),
                ..HttpTransport::default()
            },
            unprobed(Cause::Proxy, "connection refused").at(Phase::Connect),
        ),
    ]);
    cases.push(Case::new("TCP", "nobody listens", refused, async {
        run(tcp(closed_port().await)).await
    }));
    cases
}

/// A server that answers each request so.
fn answering(
    situation: &'static str,
    answer: &str,
    change: impl FnOnce(HttpCheck) -> HttpCheck + Send + 'static,
    expected: Expected,
) -> Case {
    let peer = Peer::reading().saying(answer);
    Case::new("HTTP", situation, expected, async move {
        let server = peer.serve().await;
        run(change(http(server.url())).with_timeout(expected.timeout())).await
    })
}

fn answers() -> Vec<Case> {
    let saying = |status: &str, fields: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\n\r\n{body}")
    };
    let as_is = |check: HttpCheck| check;
    let mut cases = vec![
        answering(
            "404",
            &saying("404 Not Found", "", "not here"),
            as_is,
            critical(": 404 Not Found"),
        ),
        answering(
            "503",
            &saying("503 Service Unavailable", "", ""),
            as_is,
            critical(": 503 "),
        ),
        answering(
            "429",
            &saying("429 Too Many Requests", "", "slow down"),
            as_is,
            warning(": 429 "),
        ),
        answering(
            "a redirect that is not followed",
            &saying("302 Found", "Location: /login\r\n", ""),
            |check| check.with_follow_redirects(false),
            critical(": 302 Found"),
        ),
        answering(
            "a redirect to itself",
            &saying("302 Found", "Location: /\r\n", ""),
            as_is,
            critical("stopped after 10 redirects").at(Phase::FirstByte),
        ),
        answering(
            "a redirect to nowhere",
            &saying("302 Found", "Location: http://\r\n", ""),
            as_is,
            critical("redirect to \"http://\"").at(Phase::FirstByte),
        ),
        answering(
            "a redirect to an address that the target policy forbids",
            &saying("302 Found", "Location: http://169.254.169.254/\r\n", ""),
            as_is,
            critical("169.254.169.254").at(Phase::FirstByte),
        ),
    ];
    cases.push({
        let expected = critical("from https to http, which is refused").at(Phase::FirstByte);
        let peer =
            Peer::reading().saying(saying("302 Found", "Location: http://app.example/\r\n", ""));
        Case::new(
            "HTTP",
            "a redirect from https to http",
            expected,
            async move {
                let server = peer.serve_in_tls().await;
                let check = http(format!("https://{}/", server.address));
                let tls = TlsOptions {
                    skip_verify: true,
                    ..TlsOptions::default()
                };
                run(check.with_tls(tls).unwrap()).await
            },
        )
    });
    let json = saying("200 OK", "X-Role: replica\r\n", r#"{"db":"down"}"#);
    let expecting = |situation, expect: HttpExpect, expected| {
        let change = move |check: HttpCheck| check.with_expect(expect).unwrap();
        answering(situation, &json, change, expected)
    };
    let expect = HttpExpect::default;
    let pair = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
    cases.extend([
        expecting(
            "another status than expected",
            HttpExpect {
                status: "401,403".into(),
                ..expect()
            },
            critical("(the status is not of 401,403)"),
        ),
        expecting(
            "the body does not match",
            HttpExpect {
                body: Some("up".into()),
                ..expect()
            },
            critical("(the body does not match \"up\")"),
        ),
        expecting(
            "the body matches what it must not",
            HttpExpect {
                not_body: Some("down".into()),
                ..expect()
            },
            critical("(the body matches \"down\")"),
        ),
        expecting(
            "another value in the JSON",
            HttpExpect {
                json: pair("/db", "up"),
                ..expect()
            },
            critical("(the JSON has \"down\" at /db, not \"up\")"),
        ),
        expecting(
            "no such value in the JSON",
            HttpExpect {
                json: pair("/cache", "up"),
                ..expect()
            },
            critical("(the JSON has nothing at /cache)"),
        ),
        expecting(
            "the header is missing",
            HttpExpect {
                headers: pair("x-shard", "."),
                ..expect()
            },
            critical("(there is no header x-shard)"),
        ),
        expecting(
            "the header does not match",
            HttpExpect {
                headers: pair("x-role", "primary"),
                ..expect()
            },
            critical("(the header x-role does not match \"primary\")"),
        ),
        expecting(
            "slower than the critical limit",
            HttpExpect {
                critical_after: Duration::from_nanos(1),
                ..expect()
            },
            critical("(took longer than 1ns)"),
        ),
        expecting(
            "slower than the warning limit",
            HttpExpect {
                warning_after: Duration::from_nanos(1),
                ..expect()
            },
            warning("(took longer than 1ns)"),
        ),
        answering(
            "the body is no JSON",
            &saying("200 OK", "", "<html>"),
            move |check| {
                check
                    .with_expect(HttpExpect {
                        json: pair("/db", "up"),
                        ..expect()
                    })
                    .unwrap()
            },
            critical("(the body is no JSON)"),
        ),
    ]);
    cases
}

/// A server with a certificate that `issue` makes of the CA, and a check with
/// the options that `options` makes of the CA's file.
fn with_certificate(
    situation: &'static str,
    expected: Expected,
    issue: impl FnOnce(&mut rcgen::CertificateParams) + Send + 'static,
    options: impl FnOnce(TlsOptions) -> TlsOptions + Send + 'static,
    wants_client: bool,
) -> Case {
    Case::new("HTTPS", situation, expected, async move {
        let files = Files::new();
        let ca = Ca::new("test CA");
        let mut params = named("server", &["127.0.0.1", "shop.example"]);
        issue(&mut params);
        let config = server_config(&ca.issue(&params), wants_client.then_some(&ca));
        let server = Peer::reading()
            .saying("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .serve_with(config)
            .await;
        let tls = options(TlsOptions {
            ca_file: files.write("ca.pem", &ca.pem()),
            ..TlsOptions::default()
        });
        let check = http(format!("https://{}/", server.address));
        run(check.with_tls(tls).unwrap()).await
    })
}

fn certificates() -> Vec<Case> {
    let tls = |says| critical(says).at(Phase::Tls);
    let dated = |from, to| {
        move |params: &mut rcgen::CertificateParams| {
            params.not_before = date_time_ymd(from, 1, 1);
            params.not_after = date_time_ymd(to, 1, 1);
        }
    };
    let as_is = |options| options;
    vec![
        with_certificate(
            "a certificate of an unknown authority",
            tls("x509: certificate signed by unknown authority"),
            |_| (),
            |_| TlsOptions::default(),
            false,
        ),
        with_certificate(
            "an expired certificate",
            tls("x509: certificate has expired"),
            dated(2001, 2002),
            as_is,
            false,
        ),
        with_certificate(
            "a certificate that is not yet valid",
            tls("not yet valid"),
            dated(2999, 3000),
            as_is,
            false,
        ),
        with_certificate(
            "a certificate for another name",
            tls("x509: certificate is valid for "),
            |_| (),
            |options| TlsOptions {
                server_name: "db.example".into(),
                ..options
            },
            false,
        ),
        with_certificate(
            "the server wants a client certificate, and there is none",
            critical("remote error: tls: certificate required").at(Phase::FirstByte),
            |_| (),
            as_is,
            true,
        ),
        with_certificate(
            "a CA file is missing",
            unprobed(Cause::TlsFiles, "missing.pem").at(Phase::Tls),
            |_| (),
            |options| TlsOptions {
                ca_file: options.ca_file.with_file_name("missing.pem"),
                ..options
            },
            false,
        ),
        with_certificate(
            "a client certificate file is missing",
            unprobed(Cause::TlsFiles, "client.pem").at(Phase::Tls),
            |_| (),
            |options| TlsOptions {
                cert_file: options.ca_file.with_file_name("client.pem"),
                key_file: options.ca_file.with_file_name("client.key"),
                ..options
            },
            false,
        ),
    ]
}

/// A server that refuses each call with this status of gRPC.
async fn refusing(code: &'static str, message: &'static str) -> Server {
    Server::start(move |stream| async move {
        let Ok(mut connection) = h2::server::handshake(stream).await else {
            return;
        };
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            let answer = http::Response::builder()
                .header("content-type", "application/grpc")
                .header("grpc-status", code)
                .header("grpc-message", message)
                .body(())
                .unwrap();
            let _ = respond.send_response(answer, true);
        }
    })
    .await
}

/// A server that answers with these bytes as the message, and no more.
async fn answering_with(status: u16, kind: &'static str, message: Vec<u8>, end: bool) -> Server {
    Server::start(move |stream| {
        let message = bytes::Bytes::from(message.clone());
        async move {
            let Ok(mut connection) = h2::server::handshake(stream).await else {
                return;
            };
            let mut open = Vec::new();
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                let answer = http::Response::builder()
                    .status(status)
                    .header("content-type", kind)
                    .body(())
                    .unwrap();
                let mut body = respond.send_response(answer, false).unwrap();
                let _ = body.send_data(message.clone(), end);
                open.push(body);
            }
        }
    })
    .await
}

async fn ask(address: impl ToString, service: &str, timeout: Duration) -> Report {
    let check = GrpcCheck::new(&address.to_string()).unwrap();
    run(Definition::from(
        check.with_service(service).with_timeout(timeout),
    ))
    .await
}

fn grpc() -> Vec<Case> {
    let head = |says| critical(says).at(Phase::FirstByte);
    let forever = 600 * SHORT;
    let health = |situation, service: &'static str, says| {
        let asking = async move {
            let server = crate::grpc::health(None).await;
            ask(&server.address, service, forever).await
        };
        Case::new("gRPC", situation, head(says), asking)
    };
    let mut cases = vec![
        Case::new(
            "gRPC",
            "nobody listens",
            critical("connection refused").at(Phase::Connect),
            async move { ask(closed_port().await, "", forever).await },
        ),
        health(
            "the service is not serving",
            "down",
            "service \"down\" is NOT_SERVING",
        ),
        health("the status of the service is unknown", "odd", "is UNKNOWN"),
        health("the service is not known", "none", "is not known to it"),
    ];
    cases.extend([
        refused_by(
            "the server has no health service",
            "12",
            "unknown service",
            "does not implement grpc.health.v1.Health",
        ),
        refused_by(
            "the server refuses the caller",
            "7",
            "no",
            "code = PermissionDenied",
        ),
        refused_by(
            "the server is overloaded",
            "8",
            "too many",
            "code = ResourceExhausted",
        ),
        refused_by(
            "a message that is not one line",
            "14",
            "one%0Atwo",
            "code = Unavailable",
        ),
    ]);
    let odd = |situation, status, kind, message: Vec<u8>, end, expected: Expected| {
        Case::new("gRPC", situation, expected, async move {
            let server = answering_with(status, kind, message, end).await;
            ask(server.address, "", expected.timeout()).await
        })
    };
    const GRPC: &str = "application/grpc";
    cases.extend([
        odd(
            "a web page",
            404,
            "text/html",
            b"<html>".to_vec(),
            true,
            head("HTTP 404 with text/html, which is no gRPC"),
        ),
        odd(
            "a message that is announced with 4 GB",
            200,
            GRPC,
            b"\0\xff\xff\xff\xff".to_vec(),
            false,
            head("code = "),
        ),
        odd(
            "a compressed message",
            200,
            GRPC,
            b"\x01\0\0\0\x04\x1f\x8b\x08\0".to_vec(),
            true,
            head("code = "),
        ),
        odd(
            "a message that is none",
            200,
            GRPC,
            b"\0\0\0\0\x02\xff\xff".to_vec(),
            true,
            head("code = "),
        ),
        odd(
            "an answer that ends too early",
            200,
            GRPC,
            b"\0\0\0".to_vec(),
            true,
            head("code = "),
        ),
        odd(
            "an answer that does not come to its end",
            200,
            GRPC,
            b"\0\0\0\0\x02\x08".to_vec(),
            false,
            head("context deadline exceeded").late(),
        ),
    ]);
    cases
}

fn refused_by(
    situation: &'static str,
    code: &'static str,
    message: &'static str,
    says: &'static str,
) -> Case {
    let expected = critical(says).at(Phase::FirstByte);
    Case::new("gRPC", situation, expected, async move {
        let server = refusing(code, message).await;
        ask(server.address, "shop", 600 * SHORT).await
    })
}

pub(crate) fn all() -> Vec<Case> {
    let groups = [names(), answers(), certificates(), grpc()];
    groups.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_usual_faults_are_told_by_cause_and_phase() {
    super::run_all(all()).await;
}
