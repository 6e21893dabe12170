use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use http::uri::{Authority, PathAndQuery, Uri};

/// Where Consul's HTTP API listens.
///
/// ```
/// use evenkeel_consul::config::Address;
///
/// let plain: Address = "127.0.0.1:8500".parse()?;
/// assert_eq!(plain.to_string(), "http://127.0.0.1:8500");
/// let socket: Address = "unix:///run/consul/http.sock".parse()?;
/// assert!(matches!(socket, Address::Unix(_)));
/// # Ok::<(), evenkeel_consul::config::ParseAddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Over TCP.
    Tcp {
        /// Whether to speak TLS.
        https: bool,
        /// Host and, unless it is the scheme's own (80 or 443), port.
        authority: Authority,
        /// A path in front of every request's path, for an API behind a
        /// proxy; empty or with a leading and without a trailing slash.
        prefix: String,
    },
    /// Over a unix socket (on unix systems).
    Unix(PathBuf),
}

impl Address {
    /// Where a Consul agent listens unless told otherwise: port 8500 on loopback.
    pub fn local() -> Self {
        Self::Tcp {
            https: false,
            authority: Authority::from_static("127.0.0.1:8500"),
            prefix: String::new(),
        }
    }

    /// The same address over TLS. A unix socket stays as it is.
    #[must_use]
    pub fn with_tls(self) -> Self {
        match self {
            Self::Tcp {
                authority, prefix, ..
            } => Self::Tcp {
                https: true,
                authority,
                prefix,
            },
            Self::Unix(path) => Self::Unix(path),
        }
    }
}

/// A text is not an address of Consul.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not an address of Consul: {reason} \
     (one is like \"127.0.0.1:8500\", \"https://consul.example:8501\" or \"unix:///run/consul.sock\")"
)]
pub struct ParseAddressError {
    text: String,
    reason: &'static str,
}

impl FromStr for Address {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |reason| ParseAddressError {
            text: text.chars().take(200).collect(),
            reason,
        };
        let trimmed = text.trim();
        let (scheme, rest) = match trimmed.split_once("://") {
            Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
            None => ("http".to_owned(), trimmed),
        };
        if rest.is_empty() {
            return Err(fail("it names no host"));
        }
        let https = match scheme.as_str() {
            "http" | "tcp" => false,
            "https" => true,
            "unix" => return Ok(Self::Unix(rest.into())),
            _ => return Err(fail("the scheme is none of http, https and unix")),
        };
        let uri: Uri = format!("http://{rest}")
            .parse()
            .map_err(|_| fail("it is not of the form host:port"))?;
        let authority = uri
            .authority()
            .cloned()
            .ok_or_else(|| fail("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(fail("a user and password belong into CONSUL_HTTP_AUTH"));
        }
        if authority.host().is_empty() {
            return Err(fail("it names no host"));
        }
        let after_host = authority.as_str().len() > authority.host().len();
        if after_host && authority.port_u16().is_none() {
            return Err(fail("the port is not a number up to 65535"));
        }
        if uri.query().is_some() {
            return Err(fail("it has a query"));
        }
        let prefix = uri
            .path_and_query()
            .map(PathAndQuery::path)
            .unwrap_or_default()
            .trim_end_matches('/')
            .to_owned();
        Ok(Self::Tcp {
            https,
            authority,
            prefix,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp {
                https,
                authority,
                prefix,
            } => {
                let scheme = if *https { "https" } else { "http" };
                write!(f, "{scheme}://{authority}{prefix}")
            }
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}
