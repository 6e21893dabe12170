use std::sync::LazyLock;
use std::time::Duration;

use super::connect::{ConnectOptions, given};
use super::target::parse_address;
use super::{DEFAULT_TIMEOUT, DefinitionError, Host, TlsOptions};

/// The most protocols that are offered.
const MAX_PROTOCOLS: usize = 16;

/// A TLS handshake and its certificate; nothing is spoken after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TlsCheck {
    /// As given, for texts.
    address: Box<str>,
    host: Host,
    port: u16,
    timeout: Duration,
    protocols: Box<[Box<str>]>,
    tls: Option<Box<TlsOptions>>,
    connect: Option<Box<ConnectOptions>>,
}

impl TlsCheck {
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
            timeout: Duration::ZERO,
            protocols: Box::default(),
            tls: None,
            connect: None,
        })
    }

    /// Sets how long the probe may take over all; zero means
    /// [`DEFAULT_TIMEOUT`].
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how the handshake is done.
    ///
    /// # Errors
    /// [`DefinitionError::ServerName`], [`DefinitionError::ClientCertificate`],
    /// [`DefinitionError::Option`].
    pub fn with_tls(mut self, tls: TlsOptions) -> Result<Self, DefinitionError> {
        tls.validate()?;
        self.tls = (tls != TlsOptions::default()).then(|| Box::new(tls));
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

    /// Offers these protocols (ALPN, e.g. `h2`), of which the server has to
    /// choose one. With none, none is offered.
    ///
    /// # Errors
    /// [`DefinitionError::Option`] for an empty name, one of more than 255
    /// bytes (RFC 7301 section 3.1), and more than 16 names.
    pub fn with_protocols<I>(mut self, protocols: I) -> Result<Self, DefinitionError>
    where
        I: IntoIterator,
        I::Item: Into<Box<str>>,
    {
        let fault = |reason: &str| Err(DefinitionError::option("alpn", reason));
        self.protocols = protocols.into_iter().map(Into::into).collect();
        if self.protocols.len() > MAX_PROTOCOLS {
            return fault("has more than 16 protocols");
        }
        let fits = |name: &str| (1..=255).contains(&name.len()) && !name.contains(char::is_control);
        if !self.protocols.iter().all(|name| fits(name)) {
            return fault("has a name that is none: 1 to 255 bytes are one");
        }
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

    /// How the handshake is done.
    pub fn tls(&self) -> &TlsOptions {
        static NONE: LazyLock<TlsOptions> = LazyLock::new(TlsOptions::default);
        self.tls.as_deref().unwrap_or(&NONE)
    }

    /// The protocols of which the server has to choose one; empty if none are
    /// offered.
    pub fn protocols(&self) -> &[Box<str>] {
        &self.protocols
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
