//! TCP probes without TLS; those with it are in `tls`.

use evenkeel_probe::{Expected, Phase, TcpCheck, TcpStep, TlsOptions};
use evenkeel_threshold::Status::{Critical, Passing};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::support::*;
use crate::tls::{Ca, Files, https, named, server_config};

#[tokio::test]
async fn the_texts_are_those_of_consul_esm() {
    let server = Server::start(|mut stream| async move { until_closed(&mut stream).await }).await;
    let report = run(tcp(server.address)).await;
    assert_status(&report, Passing);
    assert_eq!(
        report.output,
        format!("TCP connect {}: Success", server.address)
    );
    assert_eq!(report.failed_phase, None);
    assert!(report.phases.connect.is_some());
    let closed = closed_port().await;
    let report = run(tcp(closed)).await;
    assert_status(&report, Critical);
    assert_eq!(
        report.output,
        format!("dial tcp {closed}: connect: connection refused")
    );
    assert_eq!(report.failed_phase, Some(Phase::Connect));
}

#[tokio::test]
async fn the_connection_ends_in_order_unless_told_otherwise() {
    for abortive in [false, true] {
        let (tell, mut told) = tokio::sync::mpsc::channel(1);
        let server = Server::start(move |mut stream| {
            let tell = tell.clone();
            async move {
                let mut byte = [0];
                let end = stream.read(&mut byte).await.map_err(|error| error.kind());
                tell.send(end).await.unwrap();
            }
        })
        .await;
        let report = run(tcp(server.address).with_abortive_close(abortive)).await;
        assert_status(&report, Passing);
        let expected = if abortive {
            Err(std::io::ErrorKind::ConnectionReset)
        } else {
            Ok(0)
        };
        assert_eq!(told.recv().await, Some(expected));
    }
}

fn saying(address: impl ToString, steps: &[(&str, Expectation)]) -> TcpCheck {
    let steps = steps.iter().map(|(send, expectation)| TcpStep {
        send: send.as_bytes().into(),
        expected: match expectation {
            Any => None,
            Has(text) => Expected::of(Some(text), None).unwrap(),
            Matches(pattern) => Expected::of(None, Some(pattern)).unwrap(),
        },
    });
    tcp(address).with_dialogue(steps).with_timeout(SHORT)
}

#[derive(Clone, Copy)]
enum Expectation {
    Any,
    Has(&'static str),
    Matches(&'static str),
}

use Expectation::{Any, Has, Matches};

/// Says `banner`, then answers each line.
async fn answering_lines(banner: &'static str, answers: &'static [(&str, &str)]) -> Server {
    Server::start(move |stream| async move {
        let (reader, mut writer) = stream.into_split();
        let _ = writer.write_all(banner.as_bytes()).await;
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let answer = answers.iter().find(|(to, _)| *to == line);
            for byte in answer.map_or("", |(_, answer)| answer).bytes() {
                // As slowly as it can come.
                let _ = writer.write_all(&[byte]).await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn what_a_server_says_decides_if_a_check_has_a_dialogue() {
    let redis = answering_lines("", &[("PING", "+PONG\r\n"), ("AUTH x", "-ERR\r\nno")]).await;
    let mail = answering_lines(
        "220 mail\r\n",
        &[
            ("EHLO me", "250-mail\r\n250 SIZE\r\n"),
            ("QUIT", "221 bye\r\n"),
        ],
    )
    .await;
    for (check, status, says) in [
        (
            saying(redis.address, &[("PING\r\n", Has("+PONG"))]),
            Passing,
            ": Success, answered as expected",
        ),
        (
            saying(
                mail.address,
                &[
                    ("", Matches("^220 ")),
                    ("EHLO me\r\n", Matches("(?m)^250 ")),
                    ("QUIT\r\n", Has("221")),
                ],
            ),
            Passing,
            ": Success, answered as expected",
        ),
        (
            saying(redis.address, &[("PING\r\n", Any)]),
            Passing,
            "Success",
        ),
        (
            saying(redis.address, &[("AUTH x\r\n", Has("+OK"))]),
            Critical,
            "the answer has not \"+OK\": context deadline exceeded, what came is \"-ERR  no\"",
        ),
        (
            saying(redis.address, &[("", Has("220"))]),
            Critical,
            "the answer has not \"220\": context deadline exceeded, nothing came",
        ),
        (
            saying(
                mail.address,
                &[("", Matches("^220 ")), ("", Matches("^220 "))],
            ),
            Critical,
            "the answer has not a match of \"^220 \": context deadline exceeded, nothing came",
        ),
    ] {
        let report = run(check).await;
        assert_status(&report, status);
        assert_says(&report, says);
        assert_eq!(report.failed_phase.is_some(), status == Critical);
        assert!(report.phases.first_byte.is_some());
        assert!(report.took < 2 * SHORT);
    }
}

#[tokio::test]
async fn a_dialogue_is_held_within_tls_if_there_is_tls() {
    let files = Files::new();
    let ca = Ca::new("ours");
    let config = server_config(&ca.issue(&named("s", &["127.0.0.1"])), None);
    let (server, mut told) = https(config).await;
    let tls = TlsOptions {
        ca_file: files.write("ca.pem", &ca.pem()),
        ..TlsOptions::default()
    };
    for (expected, status) in [("secure", Passing), ("plain", Critical)] {
        let check = saying(server.address, &[("hello", Has(expected))]);
        let report = run(check.with_tls(tls.clone()).unwrap()).await;
        assert_status(&report, status);
    }
    assert_eq!(told.recv().await.unwrap(), "- -");
    assert_eq!(told.recv().await.unwrap(), "close_notify");
}

#[tokio::test]
async fn a_dialogue_that_breaks_off_or_never_ends_is_critical() {
    let step = &[("hello\r\n", Has("welcome"))][..];
    let ends = Server::answering("wel").await;
    let closes = Server::start(|mut stream| async move {
        let _ = stream.read(&mut [0; 7]).await;
        let _ = stream.write_all(b"wel").await;
    })
    .await;
    let resets = Server::start(|mut stream| async move {
        let _ = stream.read(&mut [0; 7]).await;
        reset(stream);
    })
    .await;
    let floods =
        Server::start(
            |mut stream| async move { while stream.write_all(&[b'x'; 999]).await.is_ok() {} },
        )
        .await;
    for (server, says) in [
        (&ends, "context deadline exceeded, nothing came"),
        (&closes, "EOF, what came is \"wel\""),
        (&resets, "connection reset by peer"),
        (&floods, "it is longer than 16 KiB"),
    ] {
        let report = run(saying(server.address, step)).await;
        assert_status(&report, Critical);
        assert_says(&report, says);
        assert_eq!(report.failed_phase, Some(Phase::FirstByte));
    }
}

/// A socket that listens nowhere and is bound to a port connects to itself
/// when it dials that port; with an ephemeral port a probe can do the same by
/// chance. Here it is the only port there is.
#[cfg(target_os = "linux")]
#[test]
fn a_connection_to_itself_is_no_success() {
    crate::unprobed::in_own_network(
        "a_connection_to_itself_is_no_success",
        "echo '40000 40000' > /proc/sys/net/ipv4/ip_local_port_range",
        async {
            let report = run(tcp("127.0.0.1:40000")).await;
            assert_status(&report, Critical);
            assert_says(&report, "connection refused");
        },
    );
}
