//! HTTP checks in HTTP/2, of a server on the library that hyper uses.

use std::sync::Arc;

use bytes::Bytes;
use evenkeel_probe::{HttpCheck, HttpExpect, HttpTransport, HttpVersion, Phase, TlsOptions};
use evenkeel_threshold::Status::{Critical, Passing, Warning};
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::support::*;
use crate::tls::{Ca, Files, named, server_config};

/// What is done with a request, after its head and body are in `requests`.
type Script = fn(&str, SendResponse<Bytes>);

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, requests: Requests, script: Script) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let requests = requests.clone();
        tokio::spawn(async move {
            let (head, mut body) = request.into_parts();
            let mut bytes = Vec::new();
            while let Some(Ok(part)) = body.data().await {
                bytes.extend_from_slice(&part);
                let _ = body.flow_control().release_capacity(part.len());
            }
            let path = head.uri.path().to_owned();
            requests.push(format!(
                "{:?} {}",
                Request::from_parts(head, ()),
                String::from_utf8(bytes).unwrap()
            ));
            script(&path, respond);
        });
    }
}

async fn server(script: Script) -> (Server, Requests) {
    let requests = Requests::default();
    let kept = requests.clone();
    let server = Server::start(move |stream| serve(stream, kept.clone(), script)).await;
    (server, requests)
}

fn version(url: impl AsRef<str>, version: HttpVersion) -> HttpCheck {
    let transport = HttpTransport {
        version,
        ..HttpTransport::default()
    };
    http(url).with_transport(transport).unwrap()
}

fn http2(url: impl AsRef<str>) -> HttpCheck {
    version(url, HttpVersion::Http2)
}

fn answer(mut respond: SendResponse<Bytes>, code: u16, body: &[u8]) {
    let response = Response::builder()
        .status(code)
        .header("server", "test")
        .header("content-length", body.len())
        .body(())
        .unwrap();
    let mut stream = respond.send_response(response, body.is_empty()).unwrap();
    if !body.is_empty() {
        stream
            .send_data(Bytes::copy_from_slice(body), true)
            .unwrap();
    }
}

#[tokio::test]
async fn the_answer_in_http_2_reads_like_one_in_http_1() {
    let (server, requests) = server(|path, respond| match path {
        "/down" => answer(respond, 503, b"no"),
        "/many" => answer(respond, 429, b""),
        "/long" => answer(respond, 200, &[b'x'; 100_000]),
        _ => answer(respond, 200, b"ok"),
    })
    .await;
    for (path, status, says) in [
        ("", Passing, "200 OK Output: ok"),
        ("down", Critical, "503 Service Unavailable Output: no"),
        ("many", Warning, "429 Too Many Requests Output: "),
        ("long", Passing, "[captured 4096 of 100000 bytes]"),
    ] {
        let report = run(http2(format!("{}{path}", server.url()))).await;
        assert_status(&report, status);
        assert!(
            report
                .output
                .starts_with(&format!("HTTP GET {}{path}: ", server.url()))
        );
        assert_says(&report, says);
        assert_eq!(report.failed_phase, None);
        assert!(report.phases.transfer.is_some());
    }
    let request = &requests.all()[0];
    for part in [
        "version: HTTP/2.0",
        &format!("uri: http://{}/", server.address),
        "\"user-agent\": \"Consul Health Check\"",
        "\"accept\": \"text/plain, text/*, */*\"",
    ] {
        assert!(request.contains(part), "no {part} in {request}");
    }
}

#[tokio::test]
async fn method_headers_and_body_are_sent_without_what_belongs_to_http_1() {
    let (server, requests) = server(|_, respond| answer(respond, 200, b"")).await;
    let body = "x".repeat(200_000);
    let mut check = http2(server.url()).with_method("POST").unwrap();
    for (name, value) in [
        ("Host", "shop.example"),
        ("X-Own", "1"),
        ("Connection", "keep-alive"),
        ("Upgrade", "h2c"),
        ("TE", "gzip"),
    ] {
        check = check.with_header(name, value).unwrap();
    }
    assert_status(&run(check.with_body(&*body)).await, Passing);
    let request = requests.only();
    assert!(request.contains("method: POST") && request.ends_with(&body));
    let head = &request[..request.len() - body.len()];
    assert!(head.contains("uri: http://shop.example/"), "{head}");
    assert!(head.contains("\"x-own\": \"1\""), "{head}");
    assert!(head.contains("\"content-length\": \"200000\""), "{head}");
    for gone in ["host\"", "connection", "upgrade", "\"te\""] {
        assert!(!head.contains(gone), "{gone} in {head}");
    }
}

#[tokio::test]
async fn expectations_and_redirects_hold_in_http_2() {
    let (server, requests) = server(|path, mut respond| match path {
        "/" => {
            let response = Response::builder().status(302).header("location", "/there");
            let _ = respond.send_response(response.body(()).unwrap(), true);
        }
        _ => answer(respond, 200, b"{\"db\": \"up\"}"),
    })
    .await;
    let expecting = |server: &str| HttpExpect {
        json: [("/db".to_owned(), "up".to_owned())].into(),
        headers: [("Server".to_owned(), server.to_owned())].into(),
        ..HttpExpect::default()
    };
    let check = http2(server.url())
        .with_expect(expecting("^test$"))
        .unwrap();
    assert_status(&run(check).await, Passing);
    assert_eq!(requests.all().len(), 2);
    let check = http2(server.url()).with_expect(expecting("nginx")).unwrap();
    let report = run(check).await;
    assert_status(&report, Critical);
    assert_says(&report, "the header Server does not match \"nginx\"");
    let report = run(http2(server.url()).with_follow_redirects(false)).await;
    assert_status(&report, Critical);
    assert_says(&report, "302 Found");
}

#[tokio::test]
async fn a_body_that_breaks_or_stalls_does_not_take_back_the_head() {
    let (server, _) = server(|path, mut respond| {
        let response = Response::builder().header("content-length", 10);
        let mut stream = respond
            .send_response(response.body(()).unwrap(), false)
            .unwrap();
        let short = path == "/short";
        stream
            .send_data(Bytes::from_static(b"half"), short)
            .unwrap();
        // Kept, so that the stream stays open.
        std::mem::forget(stream);
    })
    .await;
    for (path, says) in [("short", "http2: "), ("stall", "context deadline exceeded")] {
        let check = http2(format!("{}{path}", server.url())).with_timeout(SHORT);
        let report = run(check).await;
        assert_status(&report, Passing);
        assert_eq!(report.failed_phase, Some(Phase::Transfer));
        assert_says(&report, says);
    }
}

#[tokio::test]
async fn a_server_that_refuses_or_speaks_something_else_is_critical() {
    let (server, _) = server(|_, mut respond| respond.send_reset(h2::Reason::REFUSED_STREAM)).await;
    let report = run(http2(server.url())).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::FirstByte));
    assert_says(&report, "Get \"http://");
    assert_says(&report, "refused");

    let old = Server::start(|mut stream: TcpStream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        until_closed(&mut stream).await;
    })
    .await;
    let report = run(http2(old.url())).await;
    assert_status(&report, Critical);
    assert_says(&report, "may not speak HTTP/2 here");

    let silent = Server::start(|mut stream| async move { until_closed(&mut stream).await }).await;
    let report = run(http2(silent.url()).with_timeout(SHORT)).await;
    assert_status(&report, Critical);
    assert_says(
        &report,
        "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
    );
}

#[tokio::test]
async fn a_head_beyond_the_limit_is_critical() {
    let (server, _) = server(|_, mut respond| {
        let mut response = Response::new(());
        let mut fields = HeaderMap::new();
        for _ in 0..100 {
            fields.append("x-long", "x".repeat(4000).parse().unwrap());
        }
        *response.headers_mut() = fields;
        let _ = respond.send_response(response, true);
    })
    .await;
    let report = run(http2(server.url()).with_timeout(SHORT)).await;
    assert_status(&report, Critical);
    assert!(report.took < SHORT, "{report:#?}");
}

#[tokio::test]
async fn with_tls_the_server_is_offered_what_the_check_says() {
    let files = Files::new();
    let ca = Ca::new("test CA");
    let pair = ca.issue(&named("server", &["h2.test"]));
    let tls = TlsOptions {
        server_name: "h2.test".into(),
        ca_file: files.write("ca.pem", &ca.pem()),
        ..TlsOptions::default()
    };
    for (offers, protocols, spoken) in [
        (HttpVersion::Http2, &["h2", "http/1.1"][..], Some("h2")),
        (HttpVersion::Negotiated, &["h2", "http/1.1"], Some("h2")),
        (HttpVersion::Negotiated, &["http/1.1"], Some("http/1.1")),
        (HttpVersion::Negotiated, &[], Some("http/1.1")),
        (HttpVersion::Http1, &["h2", "http/1.1"], Some("http/1.1")),
        (HttpVersion::Http2, &["http/1.1"], None),
    ] {
        let mut config = server_config(&pair, None);
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let server = Server::start(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    let script: Script = |_, respond| answer(respond, 200, b"h2");
                    return serve(stream, Requests::default(), script).await;
                }
                let _ = read_request(&mut stream).await;
                let old = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhttp/1.1";
                let _ = stream.write_all(old).await;
                until_closed(&mut stream).await;
            }
        })
        .await;
        let url = format!("https://{}/", server.address);
        let report = run(version(url, offers).with_tls(tls.clone()).unwrap()).await;
        match spoken {
            Some(spoken) => {
                assert_status(&report, Passing);
                assert!(
                    report.output.ends_with(&format!("Output: {spoken}")),
                    "{report:#?}"
                );
            }
            None => {
                assert_status(&report, Critical);
                assert_eq!(report.failed_phase, Some(Phase::Tls));
            }
        }
    }
}
