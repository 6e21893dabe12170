//! Following redirects.

use std::borrow::Cow;

use url::Url;

use crate::definition::{HttpCheck, HttpUrl};
use crate::fault::Failure;
use crate::prober::RedirectPolicy;

/// An answer that leads elsewhere.
#[derive(Debug)]
pub(super) struct Redirect {
    code: u16,
    location: String,
}

impl Redirect {
    /// That an answer with `code` leads to `location` (RFC 9110 section 15.4).
    pub(super) fn of(code: u16, location: String) -> Option<Self> {
        let leads = matches!(code, 301 | 302 | 303 | 307 | 308) && !location.is_empty();
        leads.then_some(Self { code, location })
    }
}

/// One request of a chain.
pub(super) struct Hop<'a> {
    url: Cow<'a, HttpUrl>,
    method: &'a str,
    body: &'a [u8],
    host_header: Option<&'a str>,
    /// Whether headers that may be secrets go along.
    trusted: bool,
    /// Requests before this one.
    followed: u32,
}

impl<'a> Hop<'a> {
    pub(super) fn first(check: &'a HttpCheck) -> Self {
        Self {
            url: Cow::Borrowed(check.target()),
            method: check.method(),
            body: check.body(),
            host_header: check
                .headers()
                .find(|(name, value)| name.eq_ignore_ascii_case("host") && !value.is_empty())
                .map(|(_, value)| value),
            trusted: true,
            followed: 0,
        }
    }

    /// Whether this is the check's own host and port still.
    pub(super) fn is_at_home(&self) -> bool {
        self.trusted
    }

    pub(super) fn url(&self) -> &HttpUrl {
        &self.url
    }

    pub(super) fn method(&self) -> &'a str {
        self.method
    }

    pub(super) fn body(&self) -> &'a [u8] {
        self.body
    }

    pub(super) fn host_header(&self) -> Option<&'a str> {
        self.host_header
    }

    /// Of the user and password of the URL itself.
    pub(super) fn authorization(&self) -> Option<&str> {
        self.url.authorization.as_deref()
    }

    /// Whether the check's header `name` goes to this hop's target.
    pub(super) fn may_carry(&self, name: &str) -> bool {
        let about_the_body = starts_with(name, "content-");
        (self.trusted || !may_be_secret(name))
            && (!self.body.is_empty() || !about_the_body || self.followed == 0)
    }

    /// Whose fault a failure is, after a redirect.
    pub(super) fn blame(&self, mut failure: Failure) -> Failure {
        if self.followed > 0 {
            // What the target sends us to is its own doing: it must not be able to escape a verdict
            // by a redirect to an address that we refuse.
            if failure.cause == Some(crate::report::Cause::TargetRefused) {
                failure.cause = None;
            }
        }
        failure
    }

    /// The request that answers `redirect`.
    pub(super) fn follow(
        &self,
        redirect: &Redirect,
        policy: &RedirectPolicy,
    ) -> Result<Hop<'a>, Failure> {
        let Redirect { code, location } = redirect;
        let shown = crate::capture::excerpt(location);
        let fail = |reason: &str| Failure::critical(format!("redirect to {shown:?}: {reason}"));
        if self.followed >= policy.max {
            return Err(Failure::critical(format!(
                "stopped after {} redirects",
                policy.max
            )));
        }
        let base = Url::parse(&self.absolute()).map_err(|error| fail(&error.to_string()))?;
        let joined = base
            .join(location)
            .map_err(|error| fail(&error.to_string()))?;
        let url = HttpUrl::from_url(joined.as_str(), &joined)
            .map_err(|error| Failure::critical(format!("redirect: {error}")))?;
        if self.url.https && !url.https && !policy.allow_downgrade {
            return Err(fail("from https to http, which is refused"));
        }
        let same_host = self.url.host == url.host;
        if policy.same_host_only && !same_host {
            return Err(fail("to another host, which is refused"));
        }
        let same_port =
            self.url.port == url.port || (self.url.is_default_port() && url.is_default_port());
        let keeps_request = matches!(*code, 307 | 308);
        let method = match (keeps_request, self.method) {
            (true, method) => method,
            (false, "HEAD") => "HEAD",
            (false, _) => "GET",
        };
        let relative = matches!(
            Url::parse(location),
            Err(url::ParseError::RelativeUrlWithoutBase)
        );
        Ok(Hop {
            method,
            body: if keeps_request { self.body } else { &[] },
            // As Go: a given authority holds for a location that names none.
            host_header: self.host_header.filter(|_| relative && same_host),
            trusted: self.trusted && same_host && same_port,
            followed: self.followed + 1,
            url: Cow::Owned(url),
        })
    }

    fn absolute(&self) -> String {
        let url = &self.url;
        let scheme = if url.https { "https" } else { "http" };
        format!("{scheme}://{}:{}{}", url.host, url.port, url.path)
    }
}

/// Headers that carry credentials by name, and those that look like it
/// (`X-Consul-Token`, `X-Api-Key`): sent to the host that they were given for
/// and to no other.
fn may_be_secret(name: &str) -> bool {
    const SIGNS: [&str; 7] = [
        "auth", "cookie", "token", "secret", "key", "password", "session",
    ];
    let name = name.to_ascii_lowercase();
    SIGNS.iter().any(|sign| name.contains(sign))
}

fn starts_with(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
