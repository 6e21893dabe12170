use std::time::Duration;

use super::connect::{ConnectOptions, given};
use super::target::parse_address;
use super::{DEFAULT_TIMEOUT, DefinitionError, Expected, Host, TlsOptions};

/// A TCP connection is made and closed; with TLS, a handshake too (P050); with
/// a dialogue, its answers must be as expected.
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
    dialogue: Box<[TcpStep]>,
}

/// One turn of a dialogue: something is said, then something is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TcpStep {
    /// What is sent; empty for nothing, where the server speaks first.
    pub send: Box<[u8]>,
    /// What has to come then, within 16 KiB; `None` if nothing is waited for.
    pub expected: Option<Expected>,
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
            dialogue: Box::default(),
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

    /// Sets what is said on the connection, within TLS if there is TLS. An answer
    /// that does not come is critical.
    ///
    /// ```
    /// use evenkeel_probe::{Expected, TcpCheck, TcpStep};
    ///
    /// # fn main() -> Result<(), evenkeel_probe::DefinitionError> {
    /// let redis = TcpCheck::new("cache.example:6379")?.with_dialogue([TcpStep {
    ///     send: b"PING\r\n"[..].into(),
    ///     expected: Expected::of(Some("+PONG"), None)?,
    /// }]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with_dialogue(mut self, steps: impl IntoIterator<Item = TcpStep>) -> Self {
        self.dialogue = steps.into_iter().collect();
        self
    }

    /// What is said on the connection; empty for nothing.
    pub fn dialogue(&self) -> &[TcpStep] {
        &self.dialogue
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
