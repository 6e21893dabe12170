//! The TCP probe.

use std::time::Duration;

use evenkeel_threshold::Status;
use tokio::net::TcpStream;

use crate::connect::connect;
use crate::definition::{ConnectOptions, TcpCheck, TlsOptions};
use crate::dialogue::hold;
use crate::fault::Failure;
use crate::kind::Kind;
use crate::prober::Shared;
use crate::progress::Progress;
use crate::report::Report;
use crate::tls::Alpn;

impl Kind for TcpCheck {
    fn timeout(&self) -> Duration {
        self.timeout()
    }

    fn target(&self) -> &str {
        self.address()
    }

    fn connect(&self) -> &ConnectOptions {
        self.connect()
    }

    async fn run(&self, shared: &Shared, progress: &mut Progress) -> Result<Report, Failure> {
        let mut stream = dial(shared, self, progress).await?;
        if is_connected_to_itself(&stream, progress) {
            // It was chance; the second time will tell. The first must not be left in TIME_WAIT.
            let _ = stream.set_zero_linger();
            drop(stream);
            stream = dial(shared, self, progress).await?;
            if is_connected_to_itself(&stream, progress) {
                return Err(Failure::critical(format!(
                    "dial tcp {}: connect: connection refused",
                    self.address()
                )));
            }
        }
        let mut text = format!("TCP connect {}: Success", self.address());
        if let Some(tls) = self.tls() {
            Box::pin(with_tls(shared, self, tls, stream, progress)).await?;
            text.push_str(" (with TLS)");
        } else {
            if !self.dialogue().is_empty() {
                Box::pin(hold(self.dialogue(), &mut stream, progress)).await?;
            }
            if self.abortive_close() {
                // Fails on a connection that is gone already, which is as good.
                let _ = stream.set_zero_linger();
            }
        }
        if !self.dialogue().is_empty() {
            text.push_str(", answered as expected");
        }
        Ok(Report::observed(Status::Passing, text))
    }
}

async fn dial(
    shared: &Shared,
    check: &TcpCheck,
    progress: &mut Progress,
) -> Result<TcpStream, Failure> {
    connect(
        check.host(),
        check.port(),
        &shared.policy,
        &*shared.resolver,
        progress,
    )
    .await
}

/// TCP's simultaneous open: with nobody listening on an ephemeral port of this
/// machine, a connection from that very port to itself comes about now and
/// then. (Go's dialer looks for it too.)
fn is_connected_to_itself(stream: &TcpStream, progress: &Progress) -> bool {
    stream
        .local_addr()
        .is_ok_and(|local| progress.address == Some(local))
}

async fn with_tls(
    shared: &Shared,
    check: &TcpCheck,
    options: &TlsOptions,
    stream: TcpStream,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let mut stream = shared
        .tls
        .handshake(stream, check.host(), options, Alpn::None, progress)
        .await?;
    if !check.dialogue().is_empty() {
        hold(check.dialogue(), &mut stream, progress).await?;
    }
    crate::tls::farewell(&mut stream, progress.deadline).await
}
