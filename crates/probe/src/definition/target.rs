use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use url::Url;

use super::DefinitionError;

/// Where a connection goes, before names are resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    Ip(IpAddr),
    /// Lower case, ASCII (IDNA).
    Name(Box<str>),
}

impl Host {
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Some(Self::Ip(ip));
        }
        match url::Host::parse(text).ok()? {
            url::Host::Ipv4(ip) => Some(Self::Ip(ip.into())),
            url::Host::Ipv6(ip) => Some(Self::Ip(ip.into())),
            url::Host::Domain(name) if name.is_empty() => None,
            url::Host::Domain(name) => Some(Self::Name(name.into())),
        }
    }
}

/// As it stands in a URL or a `Host` header: IPv6 in brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V4(ip)) => ip.fmt(f),
            Self::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// A validated `http` or `https` URL.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct HttpUrl {
    /// As given, for texts; a password is masked.
    text: Box<str>,
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) https: bool,
    /// Path and query, percent-encoded, starting with `/`.
    pub(crate) path: Box<str>,
    /// The value of an `Authorization` header, from user and password.
    pub(crate) authorization: Option<Box<str>>,
}

impl HttpUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, DefinitionError> {
        match Url::parse(text) {
            Ok(url) => Self::from_url(text, &url),
            // Go reads `localhost:8080/health` as a URL of the scheme `localhost`, so does `Url`.
            Err(error) => Err(DefinitionError::Url {
                url: mask_unparsed(text),
                reason: error.to_string(),
            }),
        }
    }

    pub(crate) fn from_url(text: &str, url: &Url) -> Result<Self, DefinitionError> {
        let https = match url.scheme() {
            "http" => false,
            "https" => true,
            scheme => {
                return Err(DefinitionError::Scheme {
                    url: mask_unparsed(text),
                    scheme: scheme.to_owned(),
                });
            }
        };
        let invalid = |reason: &str| DefinitionError::Url {
            url: mask_unparsed(text),
            reason: reason.to_owned(),
        };
        let host = match url.host() {
            Some(url::Host::Ipv4(ip)) => Host::Ip(ip.into()),
            Some(url::Host::Ipv6(ip)) => Host::Ip(ip.into()),
            Some(url::Host::Domain(name)) => Host::Name(name.into()),
            None => return Err(invalid("no host in URL")),
        };
        let port = url.port().unwrap_or(if https { 443 } else { 80 });
        if port == 0 {
            return Err(invalid("the port is 0"));
        }
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let authorization = (!url.username().is_empty() || url.password().is_some())
            .then(|| basic_authorization(url));
        let text = if url.password().is_some() {
            masked(url)
        } else {
            text.trim().to_owned()
        };
        Ok(Self {
            text: text.into(),
            host,
            port,
            https,
            path: path.into(),
            authorization,
        })
    }

    /// The URL for texts, without its password.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Host and port.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Whether the port is the scheme's own, and is left out of `Host`.
    pub(crate) fn is_default_port(&self) -> bool {
        self.port == if self.https { 443 } else { 80 }
    }
}

impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn basic_authorization(url: &Url) -> Box<str> {
    let decode = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
    let mut pair = decode(url.username());
    pair.push(b':');
    pair.extend(decode(url.password().unwrap_or_default()));
    format!("Basic {}", BASE64_STANDARD.encode(pair)).into()
}

fn masked(url: &Url) -> String {
    let mut url = url.clone();
    // Fails only for a URL that cannot have a password, and this one has.
    let _ = url.set_password(Some("***"));
    url.into()
}

/// Masks what may be a password in a text that is no usable URL.
fn mask_unparsed(text: &str) -> String {
    let (before, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    let authority_len = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..authority_len].rfind('@') {
        Some(at) => format!("{before}***{}", &rest[at..]),
        None => text.to_owned(),
    }
}

/// Splits `host:port`, `[ipv6]:port`.
pub(super) fn parse_address(text: &str) -> Result<(Host, u16), DefinitionError> {
    let fail = |reason| DefinitionError::Address {
        address: text.to_owned(),
        reason,
    };
    let (host, port) = text
        .rsplit_once(':')
        .ok_or_else(|| fail("missing port in address"))?;
    let host = if let Some(inner) = host.strip_prefix('[') {
        let inner = inner
            .strip_suffix(']')
            .ok_or_else(|| fail("missing ']' in address"))?;
        if inner.contains('%') {
            return Err(fail("an IPv6 zone is not supported"));
        }
        let ip = inner
            .parse::<Ipv6Addr>()
            .map_err(|_| fail("no IPv6 address between the brackets"))?;
        Host::Ip(ip.into())
    } else if host.contains(':') {
        return Err(fail("too many colons in address: write IPv6 as [::1]:80"));
    } else {
        Host::parse(host).ok_or_else(|| fail("no host name or IP address before the port"))?
    };
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(fail("the port is not a number"));
    }
    match port.parse::<u16>() {
        Ok(0) => Err(fail("the port is 0")),
        Ok(port) => Ok((host, port)),
        Err(_) => Err(fail("the port is above 65535")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_split_into_host_and_port() {
        let ip = |text: &str| Host::Ip(text.parse().expect("address"));
        for (text, host, port) in [
            ("127.0.0.1:80", ip("127.0.0.1"), 80),
            ("[::1]:8080", ip("::1"), 8080),
            ("[::ffff:10.0.0.1]:1", ip("::ffff:10.0.0.1"), 1),
            ("db.Example:65535", Host::Name("db.example".into()), 65535),
            ("my_service:1", Host::Name("my_service".into()), 1),
        ] {
            assert_eq!(parse_address(text), Ok((host, port)), "{text}");
        }
    }

    #[test]
    fn faulty_addresses_say_what_is_wrong() {
        for (text, reason) in [
            ("", "missing port"),
            ("localhost", "missing port"),
            ("::1:80", "too many colons"),
            ("[::1:80", "missing ']'"),
            ("[::1]", "missing ']'"),
            ("[127.0.0.1]:80", "no IPv6"),
            ("[fe80::1%eth0]:80", "zone"),
            (":80", "no host"),
            ("a b:80", "no host"),
            ("a:", "not a number"),
            ("a:http", "not a number"),
            ("a:+80", "not a number"),
            ("a:0", "is 0"),
            ("a:65536", "above 65535"),
        ] {
            let error = parse_address(text).expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn urls_split_into_what_a_connection_needs() {
        let url = HttpUrl::parse("http://127.0.0.1:8080/health?a=b%20c#top").expect("valid");
        assert_eq!(url.text(), "http://127.0.0.1:8080/health?a=b%20c#top");
        assert_eq!(url.host, Host::Ip("127.0.0.1".parse().expect("address")));
        assert_eq!((url.port, url.https), (8080, false));
        assert_eq!(&*url.path, "/health?a=b%20c");
        let url = HttpUrl::parse("https://Node01.Domain.TLD").expect("valid");
        assert_eq!(url.host, Host::Name("node01.domain.tld".into()));
        assert_eq!((url.port, url.https), (443, true));
        assert_eq!(&*url.path, "/");
        let url = HttpUrl::parse("http://[::1]/").expect("valid");
        assert_eq!(url.host.to_string(), "[::1]");
    }

    #[test]
    fn a_password_in_a_url_is_sent_and_never_shown() {
        let url = HttpUrl::parse("http://me:p%40ss@h/").expect("valid");
        assert_eq!(url.text(), "http://me:***@h/");
        assert_eq!(format!("{url:?}"), "http://me:***@h/");
        // `printf 'me:p@ss' | base64`
        assert_eq!(url.authorization.as_deref(), Some("Basic bWU6cEBzcw=="));
        for text in [
            "ftp://me:secret@h/",
            "http://me:secret@h:99999/",
            "http://me:secret@/",
        ] {
            let error = HttpUrl::parse(text).expect_err(text).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn faulty_urls_say_what_is_wrong() {
        for (text, reason) in [
            ("", "relative URL without a base"),
            ("/health", "relative URL without a base"),
            (
                "localhost:8080/health",
                "unsupported protocol scheme \"localhost\"",
            ),
            ("ftp://h/", "unsupported protocol scheme \"ftp\""),
            ("http://", "empty host"),
            ("http://h:0/", "port is 0"),
            ("http://h:65536/", "invalid port"),
        ] {
            let error = HttpUrl::parse(text).expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn an_ip_address_and_port_survive(ip: IpAddr, port in 1..=u16::MAX) {
            let text = std::net::SocketAddr::new(ip, port).to_string();
            prop_assert_eq!(parse_address(&text), Ok((Host::Ip(ip), port)));
        }

        #[test]
        fn any_text_is_an_address_or_a_fault(text in "[\\[\\]a-z0-9:.%]{0,20}|\\PC{0,16}") {
            if let Ok((host, port)) = parse_address(&text) {
                prop_assert_eq!(parse_address(&format!("{host}:{port}")), Ok((host, port)));
            }
        }

        #[test]
        fn any_text_is_a_url_or_a_fault(text in "(https?://)?[\\[\\]a-z0-9:.%@/?#]{0,24}|\\PC{0,16}") {
            if let Ok(url) = HttpUrl::parse(&text) {
                prop_assert!(url.path.starts_with('/'));
                prop_assert!(url.path.bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
}
