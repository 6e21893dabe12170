//! The shell that sends the requests: hyper over tokio, TLS by rustls.

mod calls;
mod connect;
mod files;
mod listed;
mod register;
mod tls;
mod token;
mod transport;
mod writes;

pub use calls::UnfitServer;
pub use connect::ConnectError;
pub use writes::WriteCounters;

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::Config;
use transport::Transport;

/// A client of one Consul: a bounded pool of connections that are kept alive.
/// Cheap to clone; clones share the pool.
///
/// All calls need a tokio runtime with time and I/O enabled.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    transport: Transport,
    writes: writes::State,
}

impl Client {
    /// A client. Reads the files that `config` names; does not connect.
    ///
    /// # Errors
    /// A file that cannot be read or holds nothing usable, a certificate
    /// without its key, a token that no header can carry, or a unix socket
    /// where there are none.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            inner: Arc::new(Inner {
                transport: Transport::new(config)?,
                writes: writes::State::default(),
            }),
        })
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("config", self.inner.transport.config())
            .finish()
    }
}

/// A client cannot be made of its configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file or directory cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file that should hold a certificate or key does not.
    #[error("{} holds no usable {what}: {reason}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What should be in it.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// One of certificate and key is configured without the other.
    #[error("a client certificate needs both a certificate file and a key file")]
    HalfCertificate,
    /// No certificate authority is configured, and the system has none.
    #[error("no certificate authority to trust: the system has none, and none is configured")]
    NothingToTrust,
    /// TLS refuses the settings.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// `max_concurrency` leaves no room for anything besides a long poll, and
    /// every other request would wait for its end.
    #[error("max_concurrency is {0}: at least 2 are needed, one of them for a long poll")]
    Concurrency(usize),
    /// The token or the password holds characters that no header can carry.
    #[error("the {what} holds characters that cannot be sent")]
    Header {
        /// Which.
        what: &'static str,
    },
    /// A unix socket on a system without them.
    #[error("unix sockets are not supported on this system")]
    NoUnixSockets,
}
