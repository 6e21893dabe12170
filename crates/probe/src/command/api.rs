//! The way to a Docker daemon: a connection for each call, over which no answer
//! is read that is longer than those of a daemon.
//!
//! bollard's own ways take an answer as a whole, however long it is.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, BollardRequest, Docker};
use http::header::{HOST, HeaderValue};
use http::{Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::fault::{describe, resource_cause};
use crate::transport::Transport;

/// The most that is read of an answer, in bytes. What a daemon says of itself
/// or of a command has a few kilobytes.
const MOST: usize = 1024 * 1024;

/// The daemon's own limit, in seconds, on the client; a probe's is shorter.
const CLIENT_TIMEOUT: u64 = 24 * 60 * 60;

/// Where a daemon listens.
#[derive(Debug)]
pub(super) enum Host {
    Unix(String),
    /// Host and port.
    Tcp(String),
}

/// A client of the daemon at `host`. Nothing is connected yet.
pub(super) fn client(host: &Arc<Host>) -> Result<Docker, Error> {
    let host = Arc::clone(host);
    let way = move |request| call(Arc::clone(&host), request);
    Docker::connect_with_custom_transport(
        way,
        Some("http://docker"),
        CLIENT_TIMEOUT,
        API_DEFAULT_VERSION,
    )
}

async fn call(host: Arc<Host>, mut request: BollardRequest) -> Result<Response<Incoming>, Error> {
    let is_output = Arc::new(AtomicBool::new(false));
    let stream = Bounded {
        stream: connect(&host).await?,
        left: MOST,
        is_output: Arc::clone(&is_output),
    };
    let (mut requests, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the call: nobody can send another, or with the output.
    tokio::spawn(connection.with_upgrades());
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map_or_else(Uri::default, Uri::from);
    let name = HeaderValue::from_static("docker");
    request.headers_mut().insert(HOST, name);
    let answer = requests.send_request(request).await?;
    // What a command says is looked at piece by piece, and may be of any length.
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        is_output.store(true, Ordering::Relaxed);
    }
    Ok(answer)
}

async fn connect(host: &Host) -> io::Result<Box<dyn Transport>> {
    let named = |address: &str, error: io::Error| match resource_cause(&error) {
        Some(_) => error,
        None => io::Error::new(error.kind(), format!("{address}: {}", describe(&error))),
    };
    match host {
        #[cfg(unix)]
        Host::Unix(path) => match tokio::net::UnixStream::connect(path).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(named(path, error)),
        },
        #[cfg(not(unix))]
        Host::Unix(path) => Err(named(path, ErrorKind::Unsupported.into())),
        Host::Tcp(address) => match tokio::net::TcpStream::connect(address).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(named(address, error)),
        },
    }
}

/// A stream of which so much is read and no more, until it carries output.
struct Bounded {
    stream: Box<dyn Transport>,
    left: usize,
    is_output: Arc<AtomicBool>,
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, into))?;
        if !self.is_output.load(Ordering::Relaxed) {
            let read = into.filled().len() - before;
            self.left = match self.left.checked_sub(read) {
                Some(left) => left,
                None => {
                    let text = format!("the answer is longer than {MOST} bytes");
                    return Poll::Ready(Err(io::Error::new(ErrorKind::InvalidData, text)));
                }
            };
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
