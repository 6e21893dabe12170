use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

/// Where connections come in.
#[derive(Debug)]
#[non_exhaustive]
pub enum Listener {
    /// A TCP port.
    Tcp(TcpListener),
    /// A unix socket, for proxies on this machine: in Envoy's bootstrap a
    /// `pipe` takes the place of the `socket_address`.
    #[cfg(unix)]
    Unix(UnixListener),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

#[cfg(unix)]
impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

/// A connection that came in.
#[derive(Debug)]
pub(crate) enum Accepted {
    Tcp(TcpStream, SocketAddr),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Listener {
    pub(crate) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok(Accepted::Tcp(stream, peer))
            }
            #[cfg(unix)]
            Self::Unix(listener) => Ok(Accepted::Unix(listener.accept().await?.0)),
        }
    }
}
