use std::time::Duration;

use super::connect::{ConnectOptions, given};
use super::target::parse_address;
use super::{DEFAULT_TIMEOUT, DefinitionError, Host, TlsOptions};

/// An HTTP/2 connection, with TLS or by prior knowledge, and a ping that has to
/// be answered (P096).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct H2PingCheck {
    /// As given, for texts.
    address: Box<str>,
    host: Host,
    port: u16,
    timeout: Duration,
    connect: Option<Box<ConnectOptions>>,
    tls: Option<Box<TlsOptions>>,
}

impl H2PingCheck {
    /// A check of `address`, which is `host:port` or `[ipv6]:port`, without
    /// TLS.
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

    /// Speaks TLS, with `h2` as the protocol wanted (ALPN).
    ///
    /// # Errors
    /// [`DefinitionError::ServerName`], [`DefinitionError::ClientCertificate`].
    pub fn with_tls(mut self, tls: TlsOptions) -> Result<Self, DefinitionError> {
        tls.validate()?;
        self.tls = Some(Box::new(tls));
        Ok(self)
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

    /// How TLS is done; `None` for plain HTTP/2.
    pub fn tls(&self) -> Option<&TlsOptions> {
        self.tls.as_deref()
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
