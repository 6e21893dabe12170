//! What carries bytes: a connection, with TLS or without, or a socket of this
//! machine.

#[cfg(unix)]
use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

#[cfg(unix)]
use crate::fault::{Failure, describe, resource_cause};
#[cfg(unix)]
use crate::progress::Progress;
#[cfg(unix)]
use crate::report::{Cause, Phase};

/// A stream whose kind no longer matters.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// Connects to a socket of this machine.
#[cfg(unix)]
pub(crate) async fn connect_to_socket(
    path: &std::path::Path,
    progress: &mut Progress,
) -> Result<tokio::net::UnixStream, Failure> {
    progress.enter(Phase::Connect);
    let connected = tokio::net::UnixStream::connect(path).await;
    connected.map_err(|error| Failure {
        cause: match error.kind() {
            // Nobody has made it, or nobody listens (any more).
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => None,
            // The queue of those that wait to be accepted is full.
            io::ErrorKind::WouldBlock => None,
            io::ErrorKind::PermissionDenied => Some(Cause::Permission),
            _ => Some(resource_cause(&error).unwrap_or(Cause::System)),
        },
        text: format!(
            "dial unix {}: connect: {}",
            path.display(),
            describe(&error)
        ),
    })
}
