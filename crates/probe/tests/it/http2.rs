//! gRPC and HTTP/2 pings: what both do when the peer is not what it should be.

use evenkeel_probe::{Cause, Definition, GrpcCheck, H2PingCheck, Phase, TlsOptions};
use evenkeel_threshold::Status::Critical;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::*;

/// Both kinds of check of one address.
fn both(address: impl ToString, tls: bool) -> [Definition; 2] {
    let address = address.to_string();
    let mut grpc = GrpcCheck::new(&address).unwrap().with_timeout(SHORT);
    let mut ping = H2PingCheck::new(&address).unwrap().with_timeout(SHORT);
    if tls {
        grpc = grpc.with_tls(TlsOptions::default()).unwrap();
        ping = ping.with_tls(TlsOptions::default()).unwrap();
    }
    [grpc.into(), ping.into()]
}

async fn assert_both_critical(address: impl ToString, tls: bool, phase: Phase, says: &str) {
    for definition in both(address, tls) {
        let report = run(definition).await;
        assert_status(&report, Critical);
        assert_eq!(report.failed_phase, Some(phase), "{report:#?}");
        assert_says(&report, says);
        assert!(report.took < 2 * SHORT, "{report:#?}");
    }
}

/// A frame (RFC 9113 section 4.1).
pub(crate) fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags, 0, 0, 0, stream]);
    frame.extend(payload);
    frame
}

/// Says its settings, takes the client's preface, then `then` once, then
/// `again` for as long as it is taken.
async fn speaking(then: Vec<u8>, again: Vec<u8>) -> Server {
    Server::start(move |mut stream: TcpStream| {
        let (then, again) = (then.clone(), again.clone());
        async move {
            let mut preface = [0; 24];
            let _ = stream.read_exact(&mut preface).await;
            let _ = stream.write_all(&frame(4, 0, 0, &[])).await;
            let _ = stream.write_all(&then).await;
            if again.is_empty() {
                return until_closed(&mut stream).await;
            }
            let (mut from, mut to) = stream.split();
            let again = again.repeat(1 + 4096 / again.len());
            let flood = async { while to.write_all(&again).await.is_ok() {} };
            tokio::select! {
                () = flood => {}
                () = until_closed(&mut from) => {}
            }
        }
    })
    .await
}

#[tokio::test]
async fn nobody_listens() {
    let address = closed_port().await;
    assert_both_critical(address, false, Phase::Connect, "connection refused").await;
}

// P096
#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_critical_at_the_timeout() {
    let server = Server::start(|mut stream| async move { until_closed(&mut stream).await }).await;
    let says = "context deadline exceeded";
    assert_both_critical(server.address, false, Phase::FirstByte, says).await;
}

// P094
#[tokio::test]
async fn a_tls_server_that_never_answers_is_critical_at_the_timeout() {
    let server = Server::start(|mut stream| async move { until_closed(&mut stream).await }).await;
    let says = "tls: handshake: context deadline exceeded";
    assert_both_critical(server.address, true, Phase::Tls, says).await;
}

#[tokio::test]
async fn tls_to_a_server_without_it_is_told() {
    let server = Server::start(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        until_closed(&mut stream).await;
    })
    .await;
    let says = "first record does not look like a TLS handshake";
    assert_both_critical(server.address, true, Phase::Tls, says).await;
}

#[tokio::test]
async fn another_protocol_is_told() {
    for answer in [
        &b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"[..],
        b"SSH-2.0-OpenSSH_9.2p1\r\n",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        let server = Server::start(move |mut stream| async move {
            let mut preface = [0; 24];
            let _ = stream.read_exact(&mut preface).await;
            let _ = stream.write_all(answer).await;
            until_closed(&mut stream).await;
        })
        .await;
        let says = "the server may not speak HTTP/2 here";
        assert_both_critical(server.address, false, Phase::FirstByte, says).await;
    }
}

#[tokio::test]
async fn a_connection_that_ends_or_breaks_is_critical_at_once() {
    let closing = Server::start(|mut stream| async move {
        let mut preface = [0; 24];
        let _ = stream.read_exact(&mut preface).await;
        let _ = stream.shutdown().await;
        until_closed(&mut stream).await;
    })
    .await;
    assert_both_critical(closing.address, false, Phase::FirstByte, "http2: ").await;
    let resetting = Server::start(|mut stream| async move {
        let mut preface = [0; 24];
        let _ = stream.read_exact(&mut preface).await;
        reset(stream);
    })
    .await;
    let says = "connection reset by peer";
    assert_both_critical(resetting.address, false, Phase::FirstByte, says).await;
}

#[tokio::test]
async fn a_goodbye_is_told_with_its_reason() {
    // GOAWAY, last stream 0, ENHANCE_YOUR_CALM.
    let goodbye = frame(7, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 0xb]);
    let server = speaking(goodbye, Vec::new()).await;
    for definition in both(server.address, false) {
        let report = run(definition).await;
        assert_status(&report, Critical);
        assert_eq!(report.failed_phase, Some(Phase::FirstByte));
    }
}

#[tokio::test]
async fn endless_frames_end_at_the_timeout_or_before() {
    for again in [
        frame(4, 0, 0, &[]),           // settings
        frame(6, 0, 0, &[1; 8]),       // pings
        frame(6, 1, 0, &[1; 8]),       // answers to pings that were never sent
        frame(8, 0, 0, &[0, 0, 0, 1]), // window updates
        frame(0, 0, 1, &[]),           // empty data
        frame(0xfa, 0, 0, &[0; 100]),  // of an unknown kind
    ] {
        let server = speaking(Vec::new(), again).await;
        for definition in both(server.address, false) {
            let report = run(definition).await;
            assert_status(&report, Critical);
            assert!(report.took < 2 * SHORT, "{report:#?}");
        }
    }
}

#[tokio::test]
async fn one_byte_a_second_ends_at_the_timeout() {
    let server = Server::start(|mut stream| async move {
        let settings = frame(4, 0, 0, &[]);
        for byte in settings.iter().cycle() {
            if stream.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(SHORT).await;
        }
    })
    .await;
    let says = "context deadline exceeded";
    assert_both_critical(server.address, false, Phase::FirstByte, says).await;
}

// P087
#[tokio::test]
async fn the_target_policy_holds() {
    for definition in both("169.254.169.254:80", false) {
        let report = run(definition).await;
        assert_unprobed(&report, Cause::TargetRefused);
    }
}

#[tokio::test]
async fn names_go_through_the_shared_resolver() {
    let server = Server::start(|stream| async move { reset(stream) }).await;
    let prober = resolving_to(&["127.0.0.1"]);
    for definition in both(format!("a.test:{}", server.address.port()), false) {
        let report = run_with(&prober, definition).await;
        assert_status(&report, Critical);
        assert!(report.phases.resolve.is_some());
    }
}
