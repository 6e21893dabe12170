use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};

use super::connect::given;
use super::{
    ConnectOptions, DEFAULT_OUTPUT_MAX_SIZE, DEFAULT_TIMEOUT, DefinitionError, Demands,
    HttpCredentials, HttpExpect, HttpTransport, HttpUrl, MAX_OUTPUT_MAX_SIZE, TlsOptions, Way,
};
use crate::http::Idle;
use crate::prober::RedirectPolicy;

/// An HTTP or HTTPS request; the answer's status code decides: 2xx is passing,
/// 429 a warning, everything else critical.
///
/// A check of a plain URL takes about 200 bytes; everything beyond that is
/// boxed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HttpCheck {
    url: HttpUrl,
    timeout: Duration,
    output_max_size: u32,
    follow_redirects: bool,
    extras: Option<Box<Extras>>,
}

/// What most checks do not have.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Extras {
    method: Option<Box<str>>,
    headers: Vec<(Box<str>, Box<str>)>,
    body: Box<[u8]>,
    tls: TlsOptions,
    demands: Option<Box<Demands>>,
    connect: Option<Box<ConnectOptions>>,
    redirects: Option<RedirectPolicy>,
    way: Option<Box<Way>>,
    idle: Idle,
    credentials: Option<Box<HttpCredentials>>,
}

impl HttpCheck {
    /// A `GET` of `url`.
    ///
    /// # Errors
    /// [`DefinitionError::Url`], [`DefinitionError::Scheme`].
    pub fn new(url: &str) -> Result<Self, DefinitionError> {
        Ok(Self {
            url: HttpUrl::parse(url)?,
            timeout: Duration::ZERO,
            output_max_size: 0,
            follow_redirects: true,
            extras: None,
        })
    }

    /// Sets the method; an empty one means `GET`. Methods are case-sensitive
    /// and sent as given.
    ///
    /// # Errors
    /// [`DefinitionError::Method`].
    pub fn with_method(mut self, method: &str) -> Result<Self, DefinitionError> {
        let valid = method.is_empty() || Method::from_bytes(method.as_bytes()).is_ok();
        if !valid {
            return Err(DefinitionError::Method(method.to_owned()));
        }
        let get = method.is_empty() || method == "GET";
        if !get || self.extras.is_some() {
            self.extras().method = (!get).then(|| method.into());
        }
        Ok(self)
    }

    /// Adds a header. A name may come several times; all values are sent, in
    /// this order. The names are sorted, since a catalog has them in a map
    /// without an order. The first `Host` sets the authority. `Content-Length`,
    /// `Transfer-Encoding` and `Trailer` are the prober's own and left out, as
    /// in Go.
    ///
    /// # Errors
    /// [`DefinitionError::HeaderName`], [`DefinitionError::HeaderValue`].
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, DefinitionError> {
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(DefinitionError::HeaderName(name.to_owned()));
        }
        let value = value.trim();
        if HeaderValue::from_bytes(value.as_bytes()).is_err() {
            return Err(DefinitionError::HeaderValue(name.to_owned()));
        }
        let headers = &mut self.extras().headers;
        let at = headers.partition_point(|(other, _)| **other <= *name);
        headers.insert(at, (name.into(), value.into()));
        Ok(self)
    }

    /// Sets what is sent as the request's body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        if !body.is_empty() || self.extras.is_some() {
            self.extras().body = body.into();
        }
        self
    }

    /// Sets how long the probe may take over all; zero means
    /// [`DEFAULT_TIMEOUT`].
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how TLS is done, for an `https` URL and for redirects to one.
    ///
    /// # Errors
    /// [`DefinitionError::ServerName`], [`DefinitionError::ClientCertificate`].
    pub fn with_tls(mut self, tls: TlsOptions) -> Result<Self, DefinitionError> {
        tls.validate()?;
        if tls != TlsOptions::default() || self.extras.is_some() {
            self.extras().tls = tls;
        }
        Ok(self)
    }

    /// Sets whether redirects are followed (by default they are). If not, a
    /// 3xx is the answer, and critical.
    #[must_use]
    pub fn with_follow_redirects(mut self, follow: bool) -> Self {
        self.follow_redirects = follow;
        self
    }

    /// Sets how many bytes of the body are kept; zero means
    /// [`DEFAULT_OUTPUT_MAX_SIZE`], and no more than [`MAX_OUTPUT_MAX_SIZE`]
    /// are.
    #[must_use]
    pub fn with_output_max_size(mut self, bytes: u32) -> Self {
        self.output_max_size = bytes;
        self
    }

    /// Sets what the answer must be like.
    ///
    /// # Errors
    /// [`DefinitionError::Option`], [`DefinitionError::HeaderName`].
    pub fn with_expect(mut self, expect: HttpExpect) -> Result<Self, DefinitionError> {
        let is_any = expect != HttpExpect::default();
        if is_any || self.extras.is_some() {
            let demands = Demands::new(expect)?;
            self.extras().demands = is_any.then(|| Box::new(demands));
        }
        Ok(self)
    }

    /// Sets over which address family connections are made, and from which
    /// address; those that redirects lead to, too.
    ///
    /// # Errors
    /// [`DefinitionError::Option`] for options that contradict each other or
    /// the target.
    pub fn with_connect(mut self, options: ConnectOptions) -> Result<Self, DefinitionError> {
        let connect = options.settle(&self.url.host)?;
        if connect.is_some() || self.extras.is_some() {
            self.extras().connect = connect;
        }
        self.validate_socket()?;
        Ok(self)
    }

    /// A unix socket has neither.
    fn validate_socket(&self) -> Result<(), DefinitionError> {
        #[cfg(unix)]
        if *self.connect() != ConnectOptions::NONE
            && self
                .transport()
                .is_some_and(|way| way.unix_socket.is_some())
        {
            let reason = "has neither an address family nor a source address";
            return Err(DefinitionError::option("unix_socket", reason));
        }
        Ok(())
    }

    /// What the answer must be like, if the check says.
    pub fn expect(&self) -> Option<&HttpExpect> {
        self.demands().map(|demands| &demands.given)
    }

    pub(crate) fn demands(&self) -> Option<&Demands> {
        self.extras.as_deref()?.demands.as_deref()
    }

    /// How connections are made.
    pub fn connect(&self) -> &ConnectOptions {
        let extras = self.extras.as_deref();
        given(extras.and_then(|extras| extras.connect.as_deref()))
    }

    /// Sets how redirects are followed, instead of as the prober's settings
    /// say.
    #[must_use]
    pub fn with_redirects(mut self, policy: RedirectPolicy) -> Self {
        self.extras().redirects = Some(policy);
        self
    }

    /// How redirects are followed, if the check says.
    pub fn redirects(&self) -> Option<&RedirectPolicy> {
        self.extras.as_deref()?.redirects.as_ref()
    }

    /// Sets how the request gets to its target.
    ///
    /// # Errors
    /// [`DefinitionError::Option`].
    pub fn with_transport(mut self, transport: HttpTransport) -> Result<Self, DefinitionError> {
        let is_any = transport != HttpTransport::default();
        if is_any || self.extras.is_some() {
            let way = Way::new(transport)?;
            self.extras().way = is_any.then(|| Box::new(way));
        }
        self.validate_socket()?;
        Ok(self)
    }

    /// How the request gets to its target, if not as by default.
    pub fn transport(&self) -> Option<&HttpTransport> {
        self.way().map(|way| &way.given)
    }

    pub(crate) fn way(&self) -> Option<&Way> {
        self.extras.as_deref()?.way.as_deref()
    }

    /// The connection that is kept for the next probe.
    pub(crate) fn idle(&self) -> Option<&Idle> {
        self.extras.as_deref().map(|extras| &extras.idle)
    }

    /// Sets what the request proves itself by.
    ///
    /// # Errors
    /// [`DefinitionError::Option`], [`DefinitionError::HeaderName`].
    pub fn with_credentials(
        mut self,
        credentials: HttpCredentials,
    ) -> Result<Self, DefinitionError> {
        credentials.validate()?;
        self.extras().credentials = Some(Box::new(credentials));
        Ok(self)
    }

    /// What the request proves itself by, beside its headers and URL.
    pub fn credentials(&self) -> Option<&HttpCredentials> {
        self.extras.as_deref()?.credentials.as_deref()
    }

    /// The URL as given; a password in it is masked.
    pub fn url(&self) -> &str {
        self.url.text()
    }

    /// The method.
    pub fn method(&self) -> &str {
        self.extras
            .as_deref()
            .and_then(|extras| extras.method.as_deref())
            .unwrap_or("GET")
    }

    /// The headers, sorted by name; the values of a name in the order given.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.extras
            .iter()
            .flat_map(|extras| &extras.headers)
            .map(|(name, value)| (&**name, &**value))
    }

    /// The body; empty for none.
    pub fn body(&self) -> &[u8] {
        self.extras.as_deref().map_or(&[], |extras| &extras.body)
    }

    /// How long the probe may take over all.
    pub fn timeout(&self) -> Duration {
        if self.timeout.is_zero() {
            DEFAULT_TIMEOUT
        } else {
            self.timeout
        }
    }

    /// How TLS is done.
    pub fn tls(&self) -> &TlsOptions {
        static NONE: LazyLock<TlsOptions> = LazyLock::new(TlsOptions::default);
        self.extras.as_deref().map_or(&NONE, |extras| &extras.tls)
    }

    /// Whether redirects are followed.
    pub fn follow_redirects(&self) -> bool {
        self.follow_redirects
    }

    /// How many bytes of the body are kept.
    pub fn output_max_size(&self) -> u32 {
        match self.output_max_size {
            0 => DEFAULT_OUTPUT_MAX_SIZE,
            bytes => bytes.min(MAX_OUTPUT_MAX_SIZE),
        }
    }

    #[cfg(feature = "serde")]
    pub(super) fn given_timeout(&self) -> Duration {
        self.timeout
    }

    #[cfg(feature = "serde")]
    pub(super) fn given_output_max_size(&self) -> u32 {
        self.output_max_size
    }

    pub(crate) fn target(&self) -> &HttpUrl {
        &self.url
    }

    fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }
}

/// Without header values and the body, which may be secrets.
impl fmt::Debug for HttpCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers().map(|(name, _)| name).collect();
        f.debug_struct("HttpCheck")
            .field("method", &self.method())
            .field("url", &self.url)
            .field("headers", &names)
            .field("body_bytes", &self.body().len())
            .field("timeout", &self.timeout())
            .field("follow_redirects", &self.follow_redirects)
            .field("output_max_size", &self.output_max_size())
            .field("tls", self.tls())
            .field("expect", &self.expect())
            .field("connect", self.connect())
            .field("redirects", &self.redirects())
            .field("transport", &self.transport())
            .field("credentials", &self.credentials())
            .finish()
    }
}
