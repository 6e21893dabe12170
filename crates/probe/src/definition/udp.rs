use std::time::Duration;

use super::connect::{ConnectOptions, given};
use super::target::parse_address;
use super::{DEFAULT_TIMEOUT, DefinitionError, Expected, Host};

/// The most that one datagram carries over IPv4.
const MOST_PAYLOAD: usize = 65_507;

/// A datagram is sent; the reply decides, or that there is none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UdpCheck {
    /// As given, for texts.
    address: Box<str>,
    host: Host,
    port: u16,
    payload: Box<[u8]>,
    expected: Option<Expected>,
    silence: Silence,
    timeout: Duration,
    connect: Option<Box<ConnectOptions>>,
}

/// What it means that no reply has come when the time is up (P052).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Silence {
    /// The target takes datagrams and never answers, or is not there. Only a
    /// port that is known to be closed is critical. So do Consul's UDP checks.
    Passing,
    /// Neither.
    Warning,
    /// The target must answer.
    #[default]
    Critical,
}

impl UdpCheck {
    /// A check of `address`, which is `host:port` or `[ipv6]:port`, by an empty
    /// datagram, with any reply expected.
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
            payload: Box::default(),
            expected: None,
            silence: Silence::default(),
            timeout: Duration::ZERO,
            connect: None,
        })
    }

    /// Sets what is sent.
    ///
    /// # Errors
    /// [`DefinitionError::Option`] if it is more than a datagram carries.
    pub fn with_payload(mut self, payload: impl Into<Box<[u8]>>) -> Result<Self, DefinitionError> {
        self.payload = payload.into();
        if self.payload.len() > MOST_PAYLOAD {
            let reason = format!("a datagram carries at most {MOST_PAYLOAD} bytes");
            return Err(DefinitionError::option("send", reason));
        }
        Ok(self)
    }

    /// Sets what the reply must have in it.
    #[must_use]
    pub fn with_expected(mut self, expected: Option<Expected>) -> Self {
        self.expected = expected;
        self
    }

    /// Sets what silence means.
    #[must_use]
    pub fn with_silence(mut self, silence: Silence) -> Self {
        self.silence = silence;
        self
    }

    /// Sets how long the probe may take over all; zero means
    /// [`DEFAULT_TIMEOUT`].
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
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

    /// What is sent.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// What the reply must have in it; `None` if any will do.
    pub fn expected(&self) -> Option<&Expected> {
        self.expected.as_ref()
    }

    /// What silence means.
    pub fn silence(&self) -> Silence {
        self.silence
    }

    /// How long the probe may take over all.
    pub fn timeout(&self) -> Duration {
        if self.timeout.is_zero() {
            DEFAULT_TIMEOUT
        } else {
            self.timeout
        }
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
