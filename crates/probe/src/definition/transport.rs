use std::fmt;
#[cfg(unix)]
use std::path::PathBuf;

use super::{DefinitionError, HttpUrl};

/// How a request gets to its target. By default over a new TCP connection, in
/// HTTP/1.1.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct HttpTransport {
    /// The version of HTTP that is spoken.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "is_default"))]
    pub version: HttpVersion,
    /// A socket of this machine that is connected to instead of the URL's host.
    /// The URL still says the `Host` header, and what TLS verifies.
    #[cfg(unix)]
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub unix_socket: Option<PathBuf>,
    /// A proxy, `http://[user:password@]host[:port]`. It is asked for `http`
    /// URLs by their absolute form, and for a tunnel (`CONNECT`) to the host of
    /// `https` ones and where HTTP/2 is spoken. Environment variables never
    /// name one.
    ///
    /// The proxy looks names up, so that the target policy is applied to what
    /// the URL says and not to what the name resolves to.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub proxy: Option<String>,
    /// The connection is kept for the next probe of this check. Off by default:
    /// a new one tests the target's accept path, too.
    ///
    /// It is safe to use (P086): a request on a kept connection that ends
    /// before any byte of an answer, or gets none within half of the time that
    /// is left, is sent again on a new one, and only that one's failure counts.
    /// Methods that are not idempotent (RFC 9110 section 9.2.2) always have a
    /// new connection, and so has HTTP/2.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "is_default"))]
    pub reuse: bool,
}

#[cfg(feature = "serde")]
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "1.1"))]
    Http1,
    /// HTTP/2: offered alone with TLS, by prior knowledge without.
    #[cfg(feature = "http2")]
    #[cfg_attr(feature = "serde", serde(rename = "2"))]
    Http2,
    /// What the server chooses of both with TLS (ALPN), HTTP/1.1 without.
    #[cfg(feature = "http2")]
    #[cfg_attr(feature = "serde", serde(rename = "negotiated"))]
    Negotiated,
}

/// The password of a proxy is not shown.
impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("HttpTransport");
        shown.field("version", &self.version);
        #[cfg(unix)]
        shown.field("unix_socket", &self.unix_socket);
        let proxy = self.proxy.as_deref().map(HttpUrl::parse);
        shown
            .field("proxy", &proxy.and_then(Result::ok))
            .field("reuse", &self.reuse)
            .finish()
    }
}

/// [`HttpTransport`], ready for use.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Way {
    pub(crate) given: HttpTransport,
    pub(crate) proxy: Option<HttpUrl>,
}

impl Way {
    pub(super) fn new(given: HttpTransport) -> Result<Self, DefinitionError> {
        let proxy = given.proxy.as_deref().map(proxy).transpose()?;
        #[cfg(unix)]
        if proxy.is_some() && given.unix_socket.is_some() {
            let reason = "does not go together with unix_socket";
            return Err(DefinitionError::option("proxy", reason));
        }
        #[cfg(unix)]
        if given
            .unix_socket
            .as_deref()
            .is_some_and(|path| path.as_os_str().is_empty())
        {
            return Err(DefinitionError::option("unix_socket", "is empty"));
        }
        #[cfg(feature = "http2")]
        if given.version == HttpVersion::Http2 && given.reuse {
            let reason = "is there for HTTP/1.1 only";
            return Err(DefinitionError::option("reuse", reason));
        }
        Ok(Self { given, proxy })
    }

    /// Whether `https` says so or not, the server is expected to speak HTTP/2.
    pub(crate) fn is_http2(&self) -> bool {
        #[cfg(feature = "http2")]
        return self.given.version == HttpVersion::Http2;
        #[cfg(not(feature = "http2"))]
        false
    }
}

fn proxy(text: &str) -> Result<HttpUrl, DefinitionError> {
    let wrong = |reason: String| DefinitionError::option("proxy", reason);
    let url = HttpUrl::parse(text).map_err(|error| wrong(error.to_string()))?;
    if url.https {
        return Err(wrong(format!(
            "{}: only proxies that are spoken to without TLS are supported: http://",
            url.text()
        )));
    }
    if &*url.path != "/" {
        return Err(wrong(format!("{}: a proxy has no path", url.text())));
    }
    Ok(url)
}
