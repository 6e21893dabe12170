//! UDP probes.

use std::net::SocketAddr;

use evenkeel_probe::{Cause, Expected, Pattern, Phase, Silence, TargetPolicy, UdpCheck};
use evenkeel_probe::{Prober, ProberSettings};
use evenkeel_threshold::Status::{Critical, Passing, Warning};
use tokio::net::UdpSocket;

use crate::support::*;

fn udp(address: SocketAddr) -> UdpCheck {
    UdpCheck::new(&address.to_string())
        .unwrap()
        .with_payload(*b"ping")
        .unwrap()
}

/// Answers each datagram by what `answer` makes of it.
async fn answering(answer: fn(&[u8]) -> Option<Vec<u8>>) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 2048];
        loop {
            // A probe that has gone says so by ICMP.
            let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
                continue;
            };
            if let Some(answer) = answer(&buffer[..length]) {
                let _ = socket.send_to(&answer, from).await;
            }
        }
    });
    address
}

// P052
#[tokio::test]
async fn a_closed_port_is_critical_whatever_silence_means() {
    let closed = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    for silence in [Silence::Passing, Silence::Warning, Silence::Critical] {
        let report = run(udp(address).with_silence(silence)).await;
        assert_status(&report, Critical);
        assert_says(&report, "connection refused");
        assert_eq!(report.failed_phase, Some(Phase::FirstByte));
    }
}

// P052
#[tokio::test]
async fn silence_means_what_the_check_says() {
    let silent = answering(|_| None).await;
    for (silence, status) in [
        (Silence::Passing, Passing),
        (Silence::Warning, Warning),
        (Silence::Critical, Critical),
    ] {
        let check = udp(silent).with_silence(silence).with_timeout(SHORT / 4);
        let report = run(check).await;
        assert_status(&report, status);
        assert!(report.took >= SHORT / 4, "{report:?}");
    }
}

// P052
#[tokio::test]
async fn the_reply_has_to_be_the_expected_one() {
    let echo = answering(|sent| Some(sent.to_vec())).await;
    let bytes = |bytes: &[u8]| Some(Expected::Bytes(bytes.into()));
    let pattern = |text| Some(Expected::Match(Pattern::new(text).unwrap()));
    for (expected, status) in [
        (None, Passing),
        (bytes(b"ping"), Passing),
        (bytes(b"in"), Passing),
        (bytes(b""), Passing),
        (bytes(b"pong"), Critical),
        (pattern("^p.*g$"), Passing),
        (pattern("^g"), Critical),
    ] {
        let report = run(udp(echo).with_expected(expected.clone())).await;
        assert_status(&report, status);
        if status == Critical {
            assert_says(&report, &expected.unwrap().to_string());
            assert_says(&report, "\"ping\"");
        }
    }
}

#[tokio::test]
async fn a_reply_of_rubbish_is_told_in_one_line() {
    let rubbish = answering(|_| Some([b"\xff\n\x1b[2J".as_slice(), &[0; 60_000]].concat())).await;
    let report = run(udp(rubbish).with_expected(Some(Expected::Bytes((*b"ok").into())))).await;
    assert_status(&report, Critical);
    assert!(report.output.len() < 1000 && !report.output.contains('\u{1b}'));
    assert_says(&report, "the reply has not");
}

#[tokio::test]
async fn a_reply_from_somebody_else_is_none() {
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = target.local_addr().unwrap();
    tokio::spawn(async move {
        let liar = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (_, from) = target.recv_from(&mut [0; 16]).await.unwrap();
        liar.send_to(b"ping", from).await.unwrap();
        std::future::pending::<()>().await;
    });
    let report = run(udp(address).with_timeout(SHORT / 4)).await;
    assert_status(&report, Critical);
    assert_says(&report, "no reply");
}

/// What answers too late answers to a port that is gone.
#[tokio::test]
async fn a_late_reply_is_not_taken_for_that_of_the_next_probe() {
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = target.local_addr().unwrap();
    let check = udp(address).with_timeout(SHORT / 4);
    let first = run(check.clone()).await;
    assert_status(&first, Critical);
    let second = tokio::spawn(async move { run(check).await });
    let (_, first) = target.recv_from(&mut [0; 16]).await.unwrap();
    let (_, second_from) = target.recv_from(&mut [0; 16]).await.unwrap();
    assert_ne!(first, second_from);
    target.send_to(b"ping", first).await.unwrap();
    assert_says(&second.await.unwrap(), "no reply");
}

// P087
#[tokio::test]
async fn a_refused_target_is_not_sent_anything() {
    let mut settings = ProberSettings::default();
    settings.policy = TargetPolicy {
        deny: vec!["127.0.0.0/8".parse().unwrap()],
        ..TargetPolicy::default()
    };
    let prober = Prober::new(settings).unwrap();
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let report = run_with(&prober, udp(target.local_addr().unwrap())).await;
    assert_unprobed(&report, Cause::TargetRefused);
    assert!(target.try_recv(&mut [0; 16]).is_err());
}
