//! TCP probes without TLS; those with it are in `tls`.

use evenkeel_probe::Phase;
use evenkeel_threshold::Status::{Critical, Passing};
use tokio::io::AsyncReadExt;

use crate::support::*;

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
