//! HTTP/2 on a connection of a probe's own.
//!
//! The connection is driven within the probe's future and not by a task, so
//! that nothing of it outlives the probe, whatever the peer does.

use std::io;
use std::pin::pin;

use bytes::Bytes;
use futures_util::FutureExt as _;
use h2::client::{Builder, Connection, SendRequest};

use crate::connect::connect;
use crate::definition::{Host, TlsOptions};
use crate::fault::{Failure, describe, resource_cause};
use crate::prober::Shared;
use crate::progress::Progress;
use crate::report::Phase;
use crate::tls::Alpn;
use crate::transport::Transport;

/// The most that the fields of an answer's head, or of its trailers, may take.
#[cfg(any(feature = "grpc", feature = "h2ping"))]
const MAX_HEADERS: u32 = 16 * 1024;

pub(crate) type Driver = Connection<Box<dyn Transport>, Bytes>;

/// Connects, and says the client's preface. Leaves the probe in
/// [`Phase::FirstByte`].
#[cfg(any(feature = "grpc", feature = "h2ping"))]
pub(crate) async fn open(
    shared: &Shared,
    (host, port): (&Host, u16),
    tls: Option<&TlsOptions>,
    progress: &mut Progress,
) -> Result<(SendRequest<Bytes>, Driver), Failure> {
    let stream = connect(host, port, &shared.policy, &*shared.resolver, progress).await?;
    let stream: Box<dyn Transport> = match tls {
        None => Box::new(stream),
        Some(options) => {
            let handshake = shared
                .tls
                .handshake(stream, host, options, Alpn::Http2, progress);
            Box::new(handshake.await?)
        }
    };
    start(stream, MAX_HEADERS, progress).await
}

/// Says the client's preface on a connection. The fields of a head, or of
/// trailers, may take up to `max_headers` bytes.
pub(crate) async fn start(
    stream: Box<dyn Transport>,
    max_headers: u32,
    progress: &mut Progress,
) -> Result<(SendRequest<Bytes>, Driver), Failure> {
    progress.enter(Phase::FirstByte);
    Builder::new()
        .enable_push(false)
        .max_header_list_size(max_headers)
        .handshake(stream)
        .await
        .map_err(|error| failure(&error))
}

/// Does `work` on the connection, and drives it meanwhile. If the connection
/// ends first, that is the failure, unless `work` has its result by then.
pub(crate) async fn drive<T>(
    driver: Driver,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut work = pin!(work);
    // The connection is gone when this has ended, and all its streams know.
    let ended = tokio::select! {
        biased;
        result = &mut work => return result,
        ended = driver => ended,
    };
    match (work.now_or_never(), ended) {
        (Some(Ok(result)), _) => Ok(result),
        (_, Err(error)) => Err(failure(&error)),
        (Some(Err(failure)), Ok(())) => Err(failure),
        (None, Ok(())) => Err(Failure::critical("http2: the server closed the connection")),
    }
}

/// What an error of the library means.
pub(crate) fn failure(error: &h2::Error) -> Failure {
    if let Some(error) = error.get_io() {
        return Failure {
            cause: resource_cause(error),
            text: io_text(error),
        };
    }
    let mut text = format!("http2: {error}");
    // Ours is the error, theirs the fault: what came was no frame, or none that may come here.
    if error.is_library() {
        text.push_str(": the server may not speak HTTP/2 here");
    }
    Failure::critical(text)
}

/// The library keeps of an error of the stream its kind and its text only.
fn io_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.strip_prefix("received fatal alert: ") {
        Some(alert) => crate::tls::alert(alert),
        None if error.kind() == io::ErrorKind::ConnectionReset => {
            "http2: connection reset by peer".to_owned()
        }
        // The library's own word for the end of the connection.
        None if text.starts_with("stream closed because of a broken pipe") => {
            "http2: the server closed the connection".to_owned()
        }
        None => format!("http2: {}", describe(error)),
    }
}
