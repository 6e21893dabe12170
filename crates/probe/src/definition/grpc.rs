use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};

use super::connect::{ConnectOptions, given};
use super::target::parse_address;
use super::{DEFAULT_TIMEOUT, DefinitionError, Host, TlsOptions};

/// A question to the standard health service of gRPC, `grpc.health.v1.Health`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GrpcCheck {
    /// As given, for texts.
    target: Box<str>,
    host: Host,
    port: u16,
    timeout: Duration,
    tls: Option<Box<TlsOptions>>,
    question: Box<Question>,
}

/// What is asked. Apart, so that a check of another kind, which takes the same
/// room, is small.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    service: Box<str>,
    authority: Option<Box<str>>,
    /// Scheme and authority, from the three that decide on them.
    origin: Uri,
    metadata: Vec<(HeaderName, HeaderValue)>,
    connect: Option<Box<ConnectOptions>>,
}

impl GrpcCheck {
    /// A check of `target`, which is `host:port` or `[ipv6]:port`, for the
    /// server as a whole, or `host:port/service` for one of its services: all
    /// that follows the first slash is the service's name, as in Consul.
    ///
    /// # Errors
    /// [`DefinitionError::Address`].
    pub fn new(target: &str) -> Result<Self, DefinitionError> {
        let target = target.trim();
        let (address, service) = target.split_once('/').unwrap_or((target, ""));
        let (host, port) = parse_address(address)?;
        Ok(Self {
            question: Box::new(Question {
                service: service.into(),
                authority: None,
                origin: origin("http", address)?,
                metadata: Vec::new(),
                connect: None,
            }),
            target: target.into(),
            host,
            port,
            timeout: Duration::ZERO,
            tls: None,
        })
    }

    /// Asks for this service instead of the one in the target; empty for the
    /// server as a whole.
    #[must_use]
    pub fn with_service(mut self, service: &str) -> Self {
        let (address, _) = self.target.split_once('/').unwrap_or((&self.target, ""));
        self.target = match service {
            "" => address.into(),
            service => format!("{address}/{service}").into(),
        };
        self.question.service = service.into();
        self
    }

    /// Sets the `:authority`, the name that a proxy or a server with several
    /// routes by. Without it: the server name of TLS if there is one, else the
    /// address (P094).
    ///
    /// # Errors
    /// [`DefinitionError::Authority`].
    pub fn with_authority(mut self, authority: &str) -> Result<Self, DefinitionError> {
        self.question.authority = (!authority.is_empty()).then(|| authority.into());
        self.settle()?;
        Ok(self)
    }

    /// Adds metadata. Names are written in lower case; the value of a name that
    /// ends in `-bin` is given in base64, as it goes over the wire. What gRPC
    /// sets itself cannot be set (`grpc-…`, `te`, `content-type`).
    ///
    /// # Errors
    /// [`DefinitionError::HeaderName`], [`DefinitionError::HeaderValue`].
    pub fn with_metadata(mut self, name: &str, value: &str) -> Result<Self, DefinitionError> {
        let bad_name = || DefinitionError::HeaderName(name.to_owned());
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad_name())?;
        let text = key.as_str();
        if text.starts_with("grpc-")
            || matches!(text, "te" | "content-type" | "host" | "connection")
        {
            return Err(bad_name());
        }
        let mut value = HeaderValue::from_str(value)
            .ok()
            .filter(|value| value.to_str().is_ok())
            .ok_or_else(|| DefinitionError::HeaderValue(name.to_owned()))?;
        value.set_sensitive(true);
        self.question.metadata.push((key, value));
        Ok(self)
    }

    /// Sets how long the probe may take over all; zero means
    /// [`DEFAULT_TIMEOUT`].
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Speaks TLS.
    ///
    /// # Errors
    /// [`DefinitionError::ServerName`], [`DefinitionError::ClientCertificate`],
    /// [`DefinitionError::Authority`] if the server name cannot be one.
    pub fn with_tls(mut self, tls: TlsOptions) -> Result<Self, DefinitionError> {
        tls.validate()?;
        self.tls = Some(Box::new(tls));
        self.settle()?;
        Ok(self)
    }

    /// Sets over which address family the target is connected to, and from
    /// which address.
    ///
    /// # Errors
    /// [`DefinitionError::Option`] for options that contradict each other or
    /// the target.
    pub fn with_connect(mut self, options: ConnectOptions) -> Result<Self, DefinitionError> {
        self.question.connect = options.settle(&self.host)?;
        Ok(self)
    }

    fn settle(&mut self) -> Result<(), DefinitionError> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let of_tls = self.tls.as_ref().map(|tls| tls.server_name.as_str());
        let authority = match (&self.question.authority, of_tls) {
            (Some(authority), _) => authority,
            (None, Some(name)) if !name.is_empty() => name,
            _ => self.target.split('/').next().unwrap_or_default(),
        };
        self.question.origin = origin(scheme, authority)?;
        Ok(())
    }

    /// Address and service as given.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The service that is asked for; empty for the server as a whole.
    pub fn service(&self) -> &str {
        &self.question.service
    }

    /// The `:authority` that is sent.
    pub fn authority(&self) -> &str {
        self.question
            .origin
            .authority()
            .map_or("", |name| name.as_str())
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

    /// The metadata, in order.
    pub fn metadata(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.question
            .metadata
            .iter()
            .map(|(name, value)| (name, value))
    }

    /// How the target is connected to.
    pub fn connect(&self) -> &ConnectOptions {
        given(self.question.connect.as_deref())
    }

    #[cfg(feature = "serde")]
    pub(super) fn given_timeout(&self) -> Duration {
        self.timeout
    }

    #[cfg(feature = "serde")]
    pub(super) fn given_authority(&self) -> &str {
        self.question.authority.as_deref().unwrap_or_default()
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn origin(&self) -> &Uri {
        &self.question.origin
    }
}

fn origin(scheme: &str, authority: &str) -> Result<Uri, DefinitionError> {
    Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query("/")
        .build()
        .map_err(|_| DefinitionError::Authority(authority.to_owned()))
}
