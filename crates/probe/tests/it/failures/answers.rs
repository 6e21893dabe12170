//! Answers that are too long, cut or odd: by HTTP/1, by HTTP/2, of a Docker daemon.

use std::io::Write as _;

use evenkeel_probe::{HttpCheck, HttpExpect, Phase};

use super::case::{Case, Expected, critical, passing};
use super::hostile::Kind::{Docker, Grpc, Http, Http2, Ping};
use super::hostile::{docker, head, plain};
use super::peer::Peer;
use crate::http2::frame;
use crate::support::*;

fn gzip_bomb() -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![0; 10 << 20]).unwrap();
    encoder.finish().unwrap()
}

/// Answers by HTTP that are too long, cut or odd.
pub(crate) fn http_answers() -> Vec<Case> {
    const TOO_LONG: &str = "server response headers exceeded 65536 bytes";
    const OK: &str = "HTTP/1.1 200 OK\r\n";
    let answers = |text: &str| Peer::reading().saying(text);
    let of_bytes = |bytes: &[u8]| Peer::reading().saying(bytes);
    let transfer = |says| passing(says).at(Phase::Transfer);
    let ten_megabytes = format!("{OK}X: {}\r\n\r\nok", "x".repeat(10 << 20));
    // Ten thousand times as much in ten megabytes that it announces.
    let packed = |encoding: &str, with: &[u8]| {
        let start = format!("{OK}Content-Encoding: {encoding}\r\nContent-Length: 10485760\r\n\r\n");
        answers(&start).flooding(with)
    };
    let both = |expected| [(Http, expected)];
    let table = [
        plain(
            "header fields without end",
            &answers(OK).flooding(b"X-Y: z\r\n"),
            both(head(TOO_LONG)),
        ),
        plain(
            "a header field without end",
            &answers("HTTP/1.1 200 OK\r\nX: ").flooding(b"y"),
            both(head(TOO_LONG)),
        ),
        plain(
            "a status line without end",
            &answers("HTTP/1.1 200 ").flooding(b"long"),
            both(head(TOO_LONG)),
        ),
        plain(
            "interim answers without end",
            &answers("").flooding(b"HTTP/1.1 100 Continue\r\n\r\n"),
            both(head(TOO_LONG)),
        ),
        plain(
            "a header of 10 MB",
            &answers(&ten_megabytes),
            both(head(TOO_LONG)),
        ),
        plain(
            "the connection ends within the head",
            &answers("HTTP/1.1 200 OK\r\nX").ends(),
            both(head("unexpected EOF")),
        ),
        plain(
            "the connection is reset within the head",
            &answers("HTTP/1.1 200 OK\r\nX").resets(),
            both(head("connection reset by peer")),
        ),
        plain(
            "an answer without a head, as of HTTP/0.9",
            &answers("<html>ok</html>\n").ends(),
            both(head("malformed HTTP response \"<html>ok</html>\"")),
        ),
        plain(
            "two lengths",
            &answers("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok"),
            both(head("bad Content-Length \"2\"")),
        ),
        plain(
            "a body that ends too early",
            &answers("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok").ends(),
            both(transfer("[captured 2 of 9 bytes: unexpected EOF")),
        ),
        plain(
            "a chunked body that ends too early",
            &answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok").ends(),
            both(transfer("[captured 2 bytes: ")),
        ),
        plain(
            "the connection is reset within the body",
            &answers("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok").resets(),
            both(transfer(
                "[captured 2 of 9 bytes: read: connection reset by peer]",
            )),
        ),
        plain(
            "a body that stalls",
            &answers("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"),
            both(
                transfer("[captured 2 of 9 bytes: context deadline exceeded while reading body]")
                    .late(),
            ),
        ),
        plain(
            "a body of a byte now and then",
            &answers("HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n").dripping(b"x"),
            both(transfer("context deadline exceeded while reading body]").late()),
        ),
        plain(
            "chunks that are none",
            &answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nrubbish\r\n"),
            both(transfer("[captured 0 bytes: ")),
        ),
        plain(
            "the size of a chunk without end",
            &answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").flooding(b"0"),
            both(transfer("[captured 0 bytes: ")),
        ),
        plain(
            "a body without end, of a known length",
            &answers("HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n").flooding(b"x"),
            both(passing("[captured 4096 of 10000000000 bytes]")),
        ),
        plain(
            "a body without end, in chunks",
            &answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                .flooding(b"1\r\nx\r\n"),
            both(passing("[captured 4096 bytes, the rest was not read]")),
        ),
        plain(
            "a body without end, up to the end",
            &answers("HTTP/1.1 200 OK\r\n\r\n").flooding(b"x"),
            both(passing("[captured 4096 bytes, the rest was not read]")),
        ),
        plain(
            "a gzip bomb",
            &packed("gzip", &gzip_bomb()),
            both(passing("of 10485760 bytes]")),
        ),
        plain(
            "a Brotli bomb",
            &packed("br", b"\xcf\xff\xff\x7f\xf8\x27\x00\xe2"),
            both(passing("of 10485760 bytes]")),
        ),
        plain(
            "a reason that is no UTF-8",
            &of_bytes(b"HTTP/1.1 200 \xff\xfe\r\nContent-Length: 2\r\n\r\nok"),
            both(passing(" Output: ok")),
        ),
        plain(
            "headers that are no UTF-8",
            &of_bytes(b"HTTP/1.1 200 OK\r\nX: \xff\r\n\xff: x\r\nContent-Length: 2\r\n\r\nok"),
            both(passing("200 OK Output: ok")),
        ),
        plain(
            "a body that is no UTF-8",
            &of_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok\xff\xfe"),
            both(passing("Output: ok\u{fffd}\u{fffd}")),
        ),
    ];
    let mut cases: Vec<Case> = table.into_iter().flatten().collect();
    for case in &mut cases {
        // How much of it has come is a matter of moments.
        case.shown &= case.situation != "a body of a byte now and then";
    }
    // The same with something expected of the body, of which a MiB is read then.
    let wanting = |peer: Peer, situation, expected: Expected| {
        let floods = peer.floods();
        let mut case = Case::new("HTTP", situation, expected, async move {
            let server = peer.serve().await;
            let expect = HttpExpect {
                body: Some("the end".into()),
                ..HttpExpect::default()
            };
            let check: HttpCheck = http(server.url()).with_timeout(expected.timeout());
            run(check.with_expect(expect).unwrap()).await
        });
        case.floods = floods;
        // Bytes that nobody can read.
        case.shown = !situation.contains("bomb");
        case
    };
    cases.extend([
        wanting(
            answers("HTTP/1.1 200 OK\r\n\r\n").flooding(b"x"),
            "a body without end, of which something is expected",
            critical("(the body does not match \"the end\" in its first MiB)"),
        ),
        wanting(
            packed("gzip", &gzip_bomb()),
            "a gzip bomb, of which something is expected",
            critical("(the body does not match \"the end\" in its first MiB)"),
        ),
        wanting(
            answers("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"),
            "a body that stalls, of which something is expected",
            critical("(the body did not come whole)")
                .at(Phase::Transfer)
                .late(),
        ),
    ]);
    cases
}

/// Answers by HTTP/2 that are none.
pub(crate) fn http_2_answers() -> Vec<Case> {
    let late = "context deadline exceeded";
    let settings = frame(4, 0, 0, &[]);
    let says = |frames: &[Vec<u8>]| {
        let frames = [&settings[..], &frames.concat()].concat();
        Peer::reading().saying(frames)
    };
    let each = |call, ping| [(Grpc, call), (Http2, call), (Ping, ping)];
    // ENHANCE_YOUR_CALM, REFUSED_STREAM.
    let goodbye = frame(7, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 0xb]);
    let refused = frame(3, 0, 1, &[0, 0, 0, 7]);
    let other_pong = frame(6, 1, 0, &[7; 8]);
    // A literal field that is not indexed: "x: y".
    let field = b"\x00\x01x\x01y".repeat(100);
    let endless_head = says(&[frame(1, 0, 1, &field)]).flooding(&frame(9, 0, 1, &field));
    let table = [
        plain(
            "speaks HTTP/2 and never answers",
            &says(&[]),
            each(head(late).late(), head(late).late()),
        ),
        plain(
            "says goodbye by HTTP/2",
            &says(&[goodbye]),
            each(head("http2: "), head("http2: ")),
        ),
        plain(
            "refuses the call's stream",
            &says(std::slice::from_ref(&refused)),
            [(Grpc, head("http2: ")), (Http2, head("http2: "))],
        ),
        plain(
            "answers the ping with other bytes",
            &says(&[other_pong]),
            [(Ping, head(late).late())],
        ),
        plain(
            "announces a frame of 16 MB",
            &says(&[b"\xff\xff\xff\x00\x00\x00\x00\x00\x01".to_vec()]).flooding(&[0]),
            each(head("http2: "), head("http2: ")),
        ),
        plain(
            "sends header fields by HTTP/2 without end",
            &endless_head,
            [(Grpc, head("http2: ")), (Http2, head("http2: "))],
        ),
    ];
    let mut cases: Vec<Case> = table.into_iter().flatten().collect();
    for case in &mut cases {
        // The stream may not be there yet when this comes, which has another text then.
        case.shown &= !matches!(
            case.situation,
            "refuses the call's stream" | "sends header fields by HTTP/2 without end"
        );
    }
    cases
}

/// A Docker daemon that is none.
pub(crate) fn docker_answers() -> Vec<Case> {
    let says = |text: &str| Peer::reading().saying(text);
    let only = |expected| [(Docker, expected)];
    let table = [
        plain(
            "header fields without end",
            &says("HTTP/1.1 200 OK\r\n").flooding(b"X-Y: z\r\n"),
            only(docker("connect: ")),
        ),
        plain(
            "an answer without end",
            &says("HTTP/1.1 200 OK\r\n\r\n").flooding(b"[1,"),
            only(docker("connect: the answer is longer than 1048576 bytes")),
        ),
        plain(
            "a refusal without end",
            &says("HTTP/1.1 500 Oops\r\n\r\n").flooding(b"[1,"),
            only(docker("connect: the answer is longer than 1048576 bytes")),
        ),
        plain(
            "an answer that is no JSON",
            &says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            only(docker("connect: ")),
        ),
        plain(
            "an answer that is not Docker's",
            &says("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
            only(docker("connect: ")),
        ),
    ];
    table.into_iter().flatten().collect()
}
