//! Servers that misbehave.

use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::support::*;
use crate::tls::{Ca, named, server_config};

/// What a server does on each connection: it may wait for the client to say
/// something, says what it has to say, and leaves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Peer {
    reads: bool,
    says: Vec<u8>,
    again: Vec<u8>,
    pace: Pace,
    end: End,
    /// Speaks past TLS, once that is there.
    raw: bool,
}

#[derive(Debug, Clone, Copy, Default)]
enum Pace {
    #[default]
    Flood,
    /// A byte at a time.
    Drip,
}

#[derive(Debug, Clone, Copy, Default)]
enum End {
    /// Keeps the connection.
    #[default]
    Holds,
    /// Ends its side in order.
    Ends,
    Resets,
}

impl Peer {
    /// Accepts, and is silent.
    pub(crate) fn silent() -> Self {
        Self::default()
    }

    /// Waits for the client's first word.
    pub(crate) fn reading() -> Self {
        Self {
            reads: true,
            ..Self::default()
        }
    }

    pub(crate) fn saying(self, says: impl Into<Vec<u8>>) -> Self {
        Self {
            says: says.into(),
            ..self
        }
    }

    /// Then this again and again, as fast as it is taken.
    pub(crate) fn flooding(self, with: &[u8]) -> Self {
        Self {
            again: with.repeat(1 + 16 * 1024 / with.len()),
            ..self
        }
    }

    /// Then this again and again, a byte at a time.
    pub(crate) fn dripping(self, with: &[u8]) -> Self {
        Self {
            again: with.to_vec(),
            pace: Pace::Drip,
            ..self
        }
    }

    pub(crate) fn ends(self) -> Self {
        Self {
            end: End::Ends,
            ..self
        }
    }

    pub(crate) fn resets(self) -> Self {
        Self {
            end: End::Resets,
            ..self
        }
    }

    pub(crate) fn past_tls(self) -> Self {
        Self { raw: true, ..self }
    }

    pub(crate) fn reads(&self) -> bool {
        self.reads
    }

    pub(crate) fn floods(&self) -> bool {
        !self.again.is_empty() && matches!(self.pace, Pace::Flood)
    }

    async fn talk<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: &mut S) {
        if self.reads {
            let _ = stream.read(&mut [0; 4096]).await;
        }
        let _ = stream.write_all(&self.says).await;
        let _ = stream.flush().await;
        match self.pace {
            _ if self.again.is_empty() => {}
            Pace::Flood => while stream.write_all(&self.again).await.is_ok() {},
            Pace::Drip => {
                let mut beat = tokio::time::interval(SHORT / 20);
                for byte in self.again.iter().cycle() {
                    beat.tick().await;
                    if stream.write_all(&[*byte]).await.is_err() || stream.flush().await.is_err() {
                        break;
                    }
                }
            }
        }
        if matches!(self.end, End::Resets) && !self.says.is_empty() {
            // A reset can throw away what the client has not taken in yet. It says no more.
            let _ = tokio::time::timeout(SHORT / 4, stream.read(&mut [0; 4096])).await;
        }
    }

    async fn leave<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: &mut S) {
        if matches!(self.end, End::Ends) {
            let _ = stream.shutdown().await;
        }
        until_closed(stream).await;
    }

    /// On plain connections.
    pub(crate) async fn serve(self) -> Server {
        Server::start(move |mut stream: TcpStream| {
            let peer = self.clone();
            async move {
                peer.talk(&mut stream).await;
                match peer.end {
                    End::Resets => reset(stream),
                    End::Holds | End::Ends => peer.leave(&mut stream).await,
                }
            }
        })
        .await
    }

    /// Within TLS, with a certificate for this address of a CA that nobody knows.
    pub(crate) async fn serve_in_tls(self) -> Server {
        let pair = Ca::new("nobody's").issue(&named("peer", &["127.0.0.1"]));
        self.serve_with(server_config(&pair, None)).await
    }

    pub(crate) async fn serve_with(self, mut config: ServerConfig) -> Server {
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Server::start(move |stream: TcpStream| {
            let (peer, acceptor) = (self.clone(), acceptor.clone());
            async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                if peer.raw {
                    peer.talk(stream.get_mut().0).await;
                } else {
                    peer.talk(&mut stream).await;
                }
                match peer.end {
                    End::Resets => reset(stream.into_inner().0),
                    End::Holds | End::Ends => peer.leave(&mut stream).await,
                }
            }
        })
        .await
    }
}

/// A listener whose queue is full: nobody accepts, and the system answers no
/// further connection.
pub(crate) struct Full {
    pub(crate) listener: TcpListener,
    _held: Vec<TcpStream>,
}

impl Full {
    pub(crate) async fn new() -> Self {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let (mut held, mut unanswered) = (Vec::new(), 0);
        while unanswered < 2 {
            let connecting = TcpStream::connect(address);
            match tokio::time::timeout(Duration::from_millis(300), connecting).await {
                Ok(stream) => held.push(stream.unwrap()),
                Err(_) => unanswered += 1,
            }
        }
        Self {
            listener,
            _held: held,
        }
    }
}
