use std::time::Duration;

use super::connect::{ConnectOptions, given};
use super::target::parse_address;
use super::{DEFAULT_TIMEOUT, DefinitionError, Host, TlsOptions};

/// A TCP connection is made and closed; with TLS, a handshake too (P050).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TcpCheck {
    /// As given, for texts.
    address: Box<str>,
    host: Host,
    port: u16,
    abortive_close: bool,
    timeout: Duration,
    connect: Option<Box<ConnectOptions>>,
    tls: Option<Box<TlsOptions>>,
}

impl TcpCheck {
    /// A check of `address`, which is `host:port` or `[ipv6]:port`.
    ///
    /// # Errors
    /// [`DefinitionError::Address`].
    pub fn new(address: &str) -> Result<Self, DefinitionError> {
        let address = address.trim();
        let (host, port) = parse_address(address)?;
        Ok(Self {
            address: address.into(),
            host,
            port,
            abortive_close: false,
            timeout: Duration::ZERO,
            connect: None,
            tls: None,
        })
    }

    /// Sets how long the probe may take over all; zero means
    /// [`DEFAULT_TIMEOUT`].
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Demands a TLS handshake.
    ///
    /// # Errors
    /// [`DefinitionError::ServerName`], [`DefinitionError::ClientCertificate`].
    pub fn with_tls(mut self, tls: TlsOptions) -> Result<Self, DefinitionError> {
        tls.validate()?;
        self.tls = Some(Box::new(tls));
        Ok(self)
    }

    /// Ends the connection by a reset instead of a FIN. That leaves no
    /// TIME_WAIT behind on either side, at the price of an error in the logs
    /// of some servers. Without effect where there is a TLS handshake.
    #[must_use]
    pub fn with_abortive_close(mut self, abortive: bool) -> Self {
        self.abortive_close = abortive;
        self
    }

    /// Sets over which address family the target is connected to, and from
    /// which address.
    ///
    /// # Errors
    /// [`DefinitionError::Option`] for options that contradict each other or
    /// the target.
    pub fn with_connect(mut self, options: ConnectOptions) -> Result<Self, DefinitionError> {
        self.connect = options.settle(&self.host)?;
        Ok(self)
    }

    /// The address as given.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// How long the probe may take over all.
    pub fn timeout(&self) -> Duration {
        if self.timeout.is_zero() {
            DEFAULT_TIMEOUT
        } else {
            self.timeout
        }
    }

    /// How TLS is done; `None` for plain TCP.
    pub fn tls(&self) -> Option<&TlsOptions> {
        self.tls.as_deref()
    }

    /// Whether the connection ends by a reset.
    pub fn abortive_close(&self) -> bool {
        self.abortive_close
    }

    /// How the target is connected to.
    pub fn connect(&self) -> &ConnectOptions {
        given(self.connect.as_deref())
    }

    #[cfg(feature = "serde")]
    pub(super) fn given_timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}
