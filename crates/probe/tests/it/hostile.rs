//! Peers that mean harm or are broken. The probe ends, says what it saw, and
//! keeps its memory bounded.

use evenkeel_probe::Phase;
use evenkeel_threshold::Status::{Critical, Passing};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::*;

/// Sends `start`, then `again` for as long as it is taken.
async fn flood(start: &'static [u8], again: &'static [u8]) -> Server {
    Server::start(move |mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(start).await;
        let again = again.repeat(4096 / again.len());
        while stream.write_all(&again).await.is_ok() {}
    })
    .await
}

#[tokio::test]
async fn endless_heads_end_the_probe() {
    for (start, again) in [
        (&b"HTTP/1.1 200 OK\r\n"[..], &b"X-Y: z\r\n"[..]),
        (b"HTTP/1.1 200 OK\r\nX: ", b"y"),
        (b"HTTP/1.1 200 ", b"long"),
        (
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n",
        ),
        (b"HTTP/1.1 200 OK\r\nX: y\r\n", b" folded\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"\0"),
    ] {
        let server = flood(start, again).await;
        let report = run(http(server.url())).await;
        assert_status(&report, Critical);
        assert_eq!(report.failed_phase, Some(Phase::FirstByte));
        assert_says(&report, "server response headers exceeded 65536 bytes");
    }
}

#[tokio::test]
async fn a_header_of_ten_megabytes_is_refused() {
    let head = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\nok", "x".repeat(10 << 20));
    let server = Server::answering(head).await;
    let report = run(http(server.url())).await;
    assert_status(&report, Critical);
    assert_says(&report, "exceeded 65536 bytes");
}

#[tokio::test]
async fn a_head_with_thousands_of_fields_is_read() {
    let fields = "a:\r\n".repeat(10_000);
    let server = Server::answering(format!(
        "HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok"
    ))
    .await;
    let report = run(http(server.url())).await;
    assert_status(&report, Passing);
    assert_says(&report, "Output: ok");
}

#[tokio::test]
async fn another_protocol_is_told_at_once() {
    for (greeting, shown) in [
        (
            &b"SSH-2.0-OpenSSH_9.6\r\n"[..],
            "malformed HTTP response \"SSH-2.0-OpenSSH_9.6\"",
        ),
        (
            b"220 mail.example ESMTP\r\n",
            "malformed HTTP response \"220 mail.example ESMTP\"",
        ),
        (
            b"\x15\x03\x01\x00\x02\x02\x46",
            "malformed HTTP response \"\\u{15}\\u{3}\\u{1}",
        ),
        (
            b"HTTP/2 200\r\n\r\n",
            "malformed HTTP response \"HTTP/2 200\"",
        ),
        (b"<html>\n", "malformed HTTP response \"<html>\""),
        (
            b"\r\nHTTP/1.1 200 OK\r\n\r\n",
            "malformed HTTP response \"\"",
        ),
        (
            b"HTTP/1.1 2x0 OK\r\n\r\n",
            "malformed HTTP response \"HTTP/1.1 2x0 OK\"",
        ),
        (
            b"HTTP/1.1 20 OK\r\n\r\n",
            "malformed HTTP response \"HTTP/1.1 20 OK\"",
        ),
        (
            b"HTTP/1.9 200 OK\r\n\r\n",
            "malformed HTTP response \"HTTP/1.9 200 OK\"",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok",
            "bad Content-Length \"2\"",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok",
            "bad Content-Length \"-1\"",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok",
            "bad Content-Length \"999",
        ),
    ] {
        // It says no more, and keeps the connection: nothing is to wait for the timeout.
        let server = Server::answering(greeting).await;
        let report =
            run(http(server.url()).with_timeout(std::time::Duration::from_secs(600))).await;
        assert_status(&report, Critical);
        assert_eq!(report.failed_phase, Some(Phase::FirstByte));
        assert_says(&report, shown);
    }
}

#[tokio::test]
async fn one_byte_at_a_time_is_cut_off_at_the_timeout() {
    let server = Server::start(|mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        let mut beat = tokio::time::interval(SHORT / 10);
        while stream.write_all(b"x").await.is_ok() {
            beat.tick().await;
        }
    })
    .await;
    let report = run(http(server.url()).with_timeout(SHORT)).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::FirstByte));
    assert_says(&report, "context deadline exceeded");
}

#[tokio::test]
async fn an_answer_in_pieces_is_put_together() {
    let server = Server::start(|mut stream| async move {
        stream.set_nodelay(true).unwrap();
        read_request(&mut stream).await;
        for byte in b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" {
            stream.write_all(&[*byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        until_closed(&mut stream).await;
    })
    .await;
    let report = run(http(server.url())).await;
    assert_status(&report, Passing);
    assert!(report.output.ends_with("Output: ok"), "{report:#?}");
}

#[tokio::test]
async fn a_reset_is_told_at_each_stage() {
    type Stage = (&'static [u8], bool, Phase, &'static str);
    let stages: [Stage; 3] = [
        (b"", true, Phase::FirstByte, "connection reset by peer"),
        (
            b"HTTP/1.1 200 OK\r\nX",
            true,
            Phase::FirstByte,
            "connection reset by peer",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx",
            true,
            Phase::Transfer,
            "",
        ),
    ];
    for (sent, read_first, phase, says) in stages {
        let server = Server::start(move |mut stream: TcpStream| async move {
            if read_first {
                read_request(&mut stream).await;
            }
            let _ = stream.write_all(sent).await;
            // The client has taken in what was sent once it has seen the head or waits for more of
            // it; a reset throws away what it has not.
            let mut byte = [0];
            let waiting = stream.read(&mut byte);
            let _ = tokio::time::timeout(SHORT, waiting).await;
            reset(stream);
        })
        .await;
        let report = run(http(server.url())).await;
        let status = if phase == Phase::Transfer {
            Passing
        } else {
            Critical
        };
        assert_status(&report, status);
        assert_eq!(report.failed_phase, Some(phase), "{report:#?}");
        assert_says(&report, says);
    }
}

#[tokio::test]
async fn a_reset_in_place_of_reading_is_critical() {
    let server = Server::start(|stream| async move { reset(stream) }).await;
    let report = run(http(server.url())).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::FirstByte), "{report:#?}");
}

#[tokio::test]
async fn an_orderly_end_before_the_answer_is_an_eof() {
    let server = Server::start(|mut stream| async move {
        read_request(&mut stream).await;
    })
    .await;
    let report = run(http(server.url())).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::FirstByte));
    assert_says(&report, "\": EOF");
    let server = Server::start(|mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 O").await;
    })
    .await;
    assert_says(&run(http(server.url())).await, "unexpected EOF");
}

#[tokio::test]
async fn a_half_open_peer_is_cut_off_at_the_timeout() {
    // It takes the connection and ends its own side, but never reads or closes.
    let server = Server::start(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: y\r\n").await;
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let report = run(http(server.url()).with_timeout(SHORT)).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::FirstByte));
}

#[tokio::test]
async fn a_probe_that_is_dropped_closes_its_connection() {
    let (tell, mut told) = tokio::sync::mpsc::channel(2);
    let server = Server::start(move |mut stream| {
        let tell = tell.clone();
        async move {
            read_request(&mut stream).await;
            tell.send("asked").await.unwrap();
            until_closed(&mut stream).await;
            tell.send("closed").await.unwrap();
        }
    })
    .await;
    let url = server.url();
    let check = http(url).with_timeout(std::time::Duration::from_secs(600));
    let probe = tokio::spawn(async move { run(check).await });
    assert_eq!(told.recv().await, Some("asked"));
    probe.abort();
    let closed = tokio::time::timeout(std::time::Duration::from_secs(30), told.recv()).await;
    assert_eq!(closed, Ok(Some("closed")));
}
