//! Probes of servers made with hyper.

use std::convert::Infallible;

use bytes::Bytes;
use evenkeel_probe::{HttpExpect, Phase};
use evenkeel_threshold::Status::{Critical, Passing};
use http::header::{self, HeaderMap, HeaderValue};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, server};
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::support::*;

type Body = BoxBody<Bytes, Infallible>;

fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed()
}

/// A body of pieces, which hyper sends in chunks, and fields after it.
fn pieces(pieces: &'static [&'static str], trailers: Option<HeaderMap>) -> Body {
    let data = pieces
        .iter()
        .map(|piece| Frame::data(Bytes::from_static(piece.as_bytes())));
    let frames = data.chain(trailers.map(Frame::trailers)).map(Ok);
    let frames = tokio_stream::iter(frames.collect::<Vec<_>>());
    BoxBody::new(StreamBody::new(frames))
}

async fn answer(request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
    let mut response = Response::new(Empty::new().boxed());
    match request.uri().path() {
        "/chunked" => *response.body_mut() = pieces(&["one ", "two ", "", "three"], None),
        "/trailers" => {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sum", HeaderValue::from_static("42"));
            let announced = HeaderValue::from_static("x-sum");
            response.headers_mut().insert(header::TRAILER, announced);
            *response.body_mut() = pieces(&["body"], Some(trailers));
        }
        // hyper says `100 Continue`, if it is waited for, when the body is asked for.
        "/echo" => *response.body_mut() = full(request.into_body().collect().await?.to_bytes()),
        "/unread" => *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE,
        "/upgrade" => {
            *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
            let protocol = HeaderValue::from_static("websocket");
            response.headers_mut().insert(header::UPGRADE, protocol);
        }
        "/switch" => {
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            let protocol = HeaderValue::from_static("echo");
            response.headers_mut().insert(header::UPGRADE, protocol);
        }
        _ => *response.body_mut() = full(format!("{} {:?}", request.method(), request.version())),
    }
    Ok(response)
}

async fn http_1() -> Server {
    Server::start(|stream| async move {
        let connection = server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service_fn(answer))
            .with_upgrades();
        // It ends with whatever the probe makes of it.
        let _ = connection.await;
    })
    .await
}

#[cfg(all(feature = "grpc", feature = "h2ping"))]
async fn http_2() -> Server {
    Server::start(|stream| async move {
        let connection = server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), service_fn(answer));
        let _ = connection.await;
    })
    .await
}

fn url(server: &Server, path: &str) -> String {
    format!("http://{}{path}", server.address)
}

#[tokio::test]
async fn chunks_and_trailers_are_read_to_their_end() {
    let server = http_1().await;
    let framed = |check: evenkeel_probe::HttpCheck| {
        let headers = [("transfer-encoding".to_owned(), "^chunked$".to_owned())];
        let expect = HttpExpect {
            headers: headers.into(),
            ..HttpExpect::default()
        };
        check.with_expect(expect).unwrap()
    };
    for te in [None, Some("trailers")] {
        for (path, said) in [("/chunked", "one two three"), ("/trailers", "body")] {
            let mut check = http(url(&server, path));
            if let Some(te) = te {
                check = check.with_header("TE", te).unwrap();
            }
            let report = run(framed(check)).await;
            assert_status(&report, Passing);
            assert_eq!(report.failed_phase, None);
            assert!(
                report.output.ends_with(&format!(": 200 OK Output: {said}")),
                "{report:#?}"
            );
        }
    }
    let head = http(url(&server, "/chunked")).with_method("HEAD").unwrap();
    let report = run(head).await;
    assert_status(&report, Passing);
    assert!(report.output.ends_with(": 200 OK Output: "), "{report:#?}");
}

#[tokio::test]
async fn a_server_that_is_waited_for_says_continue_first() {
    let server = http_1().await;
    let post = |path: &str, body: Vec<u8>| {
        let check = http(url(&server, path)).with_method("POST").unwrap();
        check
            .with_body(body)
            .with_header("Expect", "100-continue")
            .unwrap()
    };
    let report = run(post("/echo", b"hello".to_vec())).await;
    assert_status(&report, Passing);
    assert!(
        report.output.ends_with(": 200 OK Output: hello"),
        "{report:#?}"
    );
    // It answers before it has read the body, and then ends the connection.
    let report = run(post("/unread", vec![b'x'; 4 << 20])).await;
    assert_status(&report, Critical);
    assert_says(&report, ": 413 Payload Too Large Output: ");
}

#[tokio::test]
async fn an_upgrade_that_is_refused_or_made_is_the_answer() {
    let server = http_1().await;
    for (path, said) in [
        ("/upgrade", ": 426 Upgrade Required Output: "),
        ("/switch", ": 101 Switching Protocols Output: "),
        // A server may go on as if nothing had been asked.
        ("/", ": 200 OK Output: GET HTTP/1.1"),
    ] {
        let check = http(url(&server, path))
            .with_header("Upgrade", "websocket")
            .unwrap();
        let report = run(check.with_header("Connection", "Upgrade").unwrap()).await;
        assert_eq!(report.status() == Some(Passing), path == "/", "{report:#?}");
        assert_eq!(report.failed_phase, None);
        assert_says(&report, said);
    }
}

#[cfg(all(feature = "grpc", feature = "h2ping"))]
#[tokio::test]
async fn a_server_of_http_2_alone_is_pinged_and_is_no_grpc_server() {
    use evenkeel_probe::{GrpcCheck, H2PingCheck};

    let server = http_2().await;
    let address = server.address.to_string();
    assert_status(&run(H2PingCheck::new(&address).unwrap()).await, Passing);
    let report = run(GrpcCheck::new(&address).unwrap()).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::FirstByte));
    assert_says(
        &report,
        "the server answered HTTP 200 with no content type, which is no gRPC",
    );
    // The preface is missed, and the answer is a frame.
    let report = run(http(server.url())).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::FirstByte));
}
