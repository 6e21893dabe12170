use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::config::Address;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The name cannot be resolved or nobody listens.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Where to.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// The TLS handshake failed.
    #[error("TLS with {address} failed: {source}")]
    Tls {
        /// Whom with.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// Not within the deadline.
    #[error("no connection to {address} within {after:?}")]
    Timeout {
        /// Where to.
        address: String,
        /// The deadline.
        after: Duration,
    },
}

/// Makes connections to the one address of a client.
#[derive(Clone)]
pub(super) struct Connector {
    target: Arc<Target>,
    timeout: Duration,
}

enum Target {
    Plain {
        host: String,
        port: u16,
    },
    Tls {
        host: String,
        port: u16,
        name: ServerName<'static>,
        tls: TlsConnector,
    },
    #[cfg(unix)]
    Unix(std::path::PathBuf),
}

impl Connector {
    pub(super) fn new(
        address: &Address,
        tls: Option<(TlsConnector, ServerName<'static>)>,
        timeout: Duration,
    ) -> Result<Self, super::ConfigError> {
        let target = match address {
            Address::Tcp {
                https, authority, ..
            } => {
                // The brackets of an IPv6 address belong to the URI only.
                let host = authority.host().trim_matches(['[', ']']).to_owned();
                let port = authority
                    .port_u16()
                    .unwrap_or(if *https { 443 } else { 80 });
                match tls {
                    Some((tls, name)) => Target::Tls {
                        host,
                        port,
                        name,
                        tls,
                    },
                    None => Target::Plain { host, port },
                }
            }
            #[cfg(unix)]
            Address::Unix(path) => Target::Unix(path.clone()),
            #[cfg(not(unix))]
            Address::Unix(_) => return Err(super::ConfigError::NoUnixSockets),
        };
        Ok(Self {
            target: Arc::new(target),
            timeout,
        })
    }
}

impl Target {
    fn address(&self) -> String {
        match self {
            Self::Plain { host, port } | Self::Tls { host, port, .. } => format!("{host}:{port}"),
            #[cfg(unix)]
            Self::Unix(path) => path.display().to_string(),
        }
    }

    async fn connect(&self) -> Result<Stream, ConnectError> {
        let failed = |source| ConnectError::Connect {
            address: self.address(),
            source,
        };
        match self {
            Self::Plain { host, port } => {
                let stream = tcp(host, *port).await.map_err(failed)?;
                Ok(Stream::Tcp(TokioIo::new(stream)))
            }
            Self::Tls {
                host,
                port,
                name,
                tls,
            } => {
                let stream = tcp(host, *port).await.map_err(failed)?;
                let stream = tls.connect(name.clone(), stream).await.map_err(|source| {
                    ConnectError::Tls {
                        address: self.address(),
                        source,
                    }
                })?;
                Ok(Stream::Tls(Box::new(TokioIo::new(stream))))
            }
            #[cfg(unix)]
            Self::Unix(path) => {
                let stream = tokio::net::UnixStream::connect(path)
                    .await
                    .map_err(failed)?;
                Ok(Stream::Unix(TokioIo::new(stream)))
            }
        }
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    // A request goes out in one piece; waiting for more only delays it.
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl tower_service::Service<Uri> for Connector {
    type Response = Stream;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { target, timeout } = self.clone();
        Box::pin(async move {
            tokio::time::timeout(timeout, target.connect())
                .await
                .unwrap_or_else(|_| {
                    Err(ConnectError::Timeout {
                        address: target.address(),
                        after: timeout,
                    })
                })
        })
    }
}

/// A connection of one of the three kinds.
pub(super) enum Stream {
    Tcp(TokioIo<TcpStream>),
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
    #[cfg(unix)]
    Unix(TokioIo<tokio::net::UnixStream>),
}

macro_rules! each_kind {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream {
            Stream::Tcp($inner) => $call,
            Stream::Tls($inner) => $call,
            #[cfg(unix)]
            Stream::Unix($inner) => $call,
        }
    };
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        each_kind!(self.get_mut(), inner => Pin::new(inner).poll_read(cx, buffer))
    }
}

impl Write for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        each_kind!(self.get_mut(), inner => Pin::new(inner).poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each_kind!(self.get_mut(), inner => Pin::new(inner).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each_kind!(self.get_mut(), inner => Pin::new(inner).poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        each_kind!(self, inner => inner.is_write_vectored())
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each_kind!(self.get_mut(), inner => Pin::new(inner).poll_write_vectored(cx, buffers))
    }
}
