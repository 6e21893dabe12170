//! What is kept of a body, and when reading it ends.

use evenkeel_probe::Phase;
use evenkeel_threshold::Status::{Critical, Passing};
use tokio::io::AsyncWriteExt;

use crate::support::*;

fn output(report: &evenkeel_probe::Report) -> &str {
    report.output.split_once("Output: ").expect("an answer").1
}

async fn output_of(answer: impl Into<Vec<u8>>) -> String {
    let server = Server::answering(answer).await;
    let report = run(http(server.url())).await;
    assert_status(&report, Passing);
    assert_eq!(report.failed_phase, None, "{report:#?}");
    output(&report).to_owned()
}

#[tokio::test]
async fn each_framing_ends_the_body() {
    for (answer, body) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, more",
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
            "hello",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7;a=b\r\n, world\r\n0\r\n\r\n",
            "hello, world",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n5\r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
            "hello",
        ),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", ""),
        ("HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "ok"),
        (
            "HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 2\r\n\r\nok",
            "ok",
        ),
    ] {
        assert_eq!(output_of(answer).await, body, "{answer}");
    }
}

#[tokio::test]
async fn a_head_request_and_a_304_have_no_body_whatever_the_head_says() {
    let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n").await;
    let report = run(http(server.url()).with_method("HEAD").unwrap()).await;
    assert_status(&report, Passing);
    assert_eq!((output(&report), report.failed_phase), ("", None));
    let server =
        Server::answering("HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n").await;
    let report = run(http(server.url())).await;
    assert_status(&report, Critical);
    assert_eq!((output(&report), report.failed_phase), ("", None));
}

#[tokio::test]
async fn a_body_without_a_length_ends_with_the_connection() {
    let server = Server::start(|mut stream| async move {
        read_request(&mut stream).await;
        stream
            .write_all(b"HTTP/1.0 200 OK\r\n\r\nto the end")
            .await
            .unwrap();
    })
    .await;
    let report = run(http(server.url())).await;
    assert_status(&report, Passing);
    assert_eq!((output(&report), report.failed_phase), ("to the end", None));
}

#[tokio::test]
async fn a_long_body_is_cut_and_the_cut_is_told() {
    let body = "x".repeat(10_000);
    let shown = "x".repeat(4096);
    assert_eq!(
        output_of(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n{body}"
        ))
        .await,
        format!("{shown} [captured 4096 of 10000 bytes]")
    );
    assert_eq!(
        output_of(format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2710\r\n{body}\r\n0\r\n\r\n"
        ))
        .await,
        format!("{shown} [captured 4096 bytes, the rest was not read]")
    );
    assert_eq!(
        output_of(format!("HTTP/1.1 200 OK\r\n\r\n{body}")).await,
        format!("{shown} [captured 4096 bytes, the rest was not read]")
    );
}

#[tokio::test]
async fn a_body_of_just_the_limit_is_not_cut() {
    let body = "x".repeat(4096);
    assert_eq!(
        output_of(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\n{body}"
        ))
        .await,
        body
    );
    assert_eq!(
        output_of(format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n{body}\r\n0\r\n\r\n"
        ))
        .await,
        body
    );
}

#[tokio::test]
async fn the_limit_is_the_definitions() {
    let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789").await;
    let report = run(http(server.url()).with_output_max_size(4)).await;
    assert_eq!(output(&report), "0123 [captured 4 of 10 bytes]");
    let body = "x".repeat(9000);
    let server = Server::answering(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n{body}"
    ))
    .await;
    let report = run(http(server.url()).with_output_max_size(9000)).await;
    assert_eq!(output(&report), body);
}

#[tokio::test]
async fn a_character_across_the_limit_is_not_torn() {
    // P085
    let body = format!("{}€ and more", "x".repeat(4094));
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert_eq!(
        output_of(answer).await,
        format!(
            "{} [captured 4094 of {} bytes]",
            "x".repeat(4094),
            body.len()
        )
    );
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced() {
    let mut answer = b"HTTP/1.1 200 OK\r\nX: \xff\r\nContent-Length: 4\r\n\r\n".to_vec();
    answer.extend(b"a\xff\xfeb");
    assert_eq!(output_of(answer).await, "a\u{fffd}\u{fffd}b");
}

#[tokio::test]
async fn an_endless_body_does_not_hold_the_probe() {
    // P085
    for head in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
    ] {
        let server = Server::start(move |mut stream| async move {
            read_request(&mut stream).await;
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(&[b'x'; 1024]).await.is_ok() {}
        })
        .await;
        // Were it to wait for the end, the test's own deadline would be over first.
        let report =
            run(http(server.url()).with_timeout(std::time::Duration::from_secs(600))).await;
        assert_status(&report, Passing);
        assert_eq!(report.failed_phase, None);
        assert_says(&report, " [captured 4096");
    }
}

#[tokio::test]
async fn a_body_that_stalls_leaves_the_status_to_the_head() {
    let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").await;
    let report = run(http(server.url()).with_timeout(SHORT)).await;
    assert_status(&report, Passing);
    assert_eq!(report.failed_phase, Some(Phase::Transfer));
    assert_eq!(
        output(&report),
        "half [captured 4 of 100 bytes: context deadline exceeded while reading body]"
    );
    let server =
        Server::answering("HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal").await;
    let report = run(http(server.url()).with_timeout(SHORT)).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::Transfer));
}

#[tokio::test]
async fn a_body_that_breaks_off_leaves_the_status_to_the_head() {
    let server = Server::start(|mut stream| async move {
        read_request(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
        stream.write_all(head).await.unwrap();
    })
    .await;
    let report = run(http(server.url())).await;
    assert_status(&report, Passing);
    assert_eq!(report.failed_phase, Some(Phase::Transfer));
    assert_eq!(
        output(&report),
        "half [captured 4 of 100 bytes: unexpected EOF]"
    );
}

#[tokio::test]
async fn faulty_chunks_leave_the_status_to_the_head() {
    let long = "1;".to_owned() + &"x".repeat(5000);
    for chunks in [
        "xyz\r\nhello",
        "5\r\nhelloworld",
        "ffffffffffffffffff\r\nhello",
        long.as_str(),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        let server = Server::answering(answer).await;
        let report = run(http(server.url())).await;
        assert_status(&report, Passing);
        assert_eq!(report.failed_phase, Some(Phase::Transfer), "{chunks}");
        assert_says(&report, "malformed chunked encoding");
    }
}
