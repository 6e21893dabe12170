//! The TCP probe.

use std::time::Duration;

use evenkeel_threshold::Status;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::connect::connect;
use crate::definition::{TcpCheck, TlsOptions};
use crate::fault::Failure;
use crate::kind::Kind;
use crate::prober::Shared;
use crate::progress::Progress;
use crate::report::Report;
use crate::tls::Alpn;

/// How long a server is given to object to the handshake or to end the
/// connection in order.
const FAREWELL: Duration = Duration::from_secs(1);

impl Kind for TcpCheck {
    fn timeout(&self) -> Duration {
        self.timeout()
    }

    fn target(&self) -> &str {
        self.address()
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
        } else if self.abortive_close() {
            // Fails on a connection that is gone already, which is as good.
            let _ = stream.set_zero_linger();
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
    match tokio::time::timeout(FAREWELL, farewell(&mut stream)).await {
        Ok(result) => result,
        Err(_) => Ok(()),
    }
}

/// Says goodbye and listens to the end. In TLS 1.3 the server judges the
/// client's certificate after the client has ended its part of the handshake:
/// only now does an alert tell that it was refused.
async fn farewell(stream: &mut TlsStream<TcpStream>) -> Result<(), Failure> {
    // An error here shows again below.
    let _ = stream.shutdown().await;
    let mut sink = [0; 1024];
    loop {
        match stream.read(&mut sink).await {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) => {
                let alert = error
                    .get_ref()
                    .and_then(|inner| inner.downcast_ref::<rustls::Error>());
                return match alert {
                    Some(rustls::Error::AlertReceived(_)) => {
                        Err(Failure::critical(crate::tls::describe(&error, "tls")))
                    }
                    // Reset or no close_notify: rude, but the handshake was done.
                    _ => Ok(()),
                };
            }
        }
    }
}
