//! What is sent.

use std::fmt::Write as _;

use super::credentials::Secret;
use super::redirect::Hop;
use crate::definition::{HttpCheck, HttpUrl};
use crate::prober::Shared;

/// One request of a probe.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) check: &'a HttpCheck,
    pub(super) hop: &'a Hop<'a>,
    pub(super) shared: &'a Shared,
    /// For the check's own host.
    secret: Option<&'a Secret<'a>>,
    /// The proxy that is asked by the whole URL (RFC 9112 section 3.2.2).
    proxy: Option<&'a HttpUrl>,
    /// The connection is to be kept.
    keep: bool,
}

impl<'a> Request<'a> {
    pub(super) fn new(
        check: &'a HttpCheck,
        hop: &'a Hop<'a>,
        shared: &'a Shared,
        secret: Option<&'a Secret<'a>>,
    ) -> Self {
        Self {
            check,
            hop,
            shared,
            secret: secret.filter(|_| hop.is_at_home()),
            proxy: None,
            keep: false,
        }
    }

    pub(super) fn with(self, proxy: Option<&'a HttpUrl>, keep: bool) -> Self {
        Self {
            proxy,
            keep,
            ..self
        }
    }

    /// The bytes of a request: head and body in one piece, for one write.
    pub(super) fn assemble(&self) -> Vec<u8> {
        let (hop, url) = (self.hop, self.hop.url());
        let mut head = String::with_capacity(256 + hop.body().len());
        // Writing to a string cannot fail.
        let _ = write!(head, "{} ", hop.method());
        if self.proxy.is_some() {
            head.push_str("http://");
            push_authority(&mut head, url);
        }
        let _ = write!(head, "{} HTTP/1.1\r\nHost: ", url.path);
        match hop.host_header() {
            Some(host) => head.push_str(host),
            None => push_authority(&mut head, url),
        }
        head.push_str("\r\n");
        let mut has_connection = false;
        let mut put = |name: &str, value: &str| {
            has_connection |= name.eq_ignore_ascii_case("connection");
            push_field(&mut head, name, value);
        };
        self.fields(&mut put);
        if let Some(proxy) = self.proxy
            && let Some(authorization) = &proxy.authorization
        {
            put("Proxy-Authorization", authorization);
        }
        if !has_connection && !self.keep {
            push_field(&mut head, "Connection", "close");
        }
        head.push_str("\r\n");
        let mut request = head.into_bytes();
        request.extend_from_slice(hop.body());
        request
    }

    /// The fields, in the order of sending.
    ///
    /// `User-Agent` and `Accept` have defaults; `Host` and `Content-Length` are
    /// ours, except that a given `Host` sets the authority.
    pub(super) fn fields(&self, put: &mut impl FnMut(&str, &str)) {
        let (check, hop, shared) = (self.check, self.hop, self.shared);
        let mut given = Given::default();
        if let Some(Secret { name, value }) = self.secret {
            given.note(name);
            put(name, value);
        }
        for (name, value) in check.headers() {
            let is_secret = |secret: &Secret<'_>| secret.name.eq_ignore_ascii_case(name);
            let overruled = self.secret.is_some_and(is_secret);
            if !given.note(name) && hop.may_carry(name) && !overruled {
                put(name, value);
            }
        }
        if !given.user_agent {
            put("User-Agent", &shared.user_agent);
        }
        if !given.accept {
            put("Accept", &shared.accept);
        }
        if let Some(authorization) = hop.authorization()
            && !given.authorization
        {
            put("Authorization", authorization);
        }
        let body = hop.body();
        if !body.is_empty() || matches!(hop.method(), "POST" | "PUT" | "PATCH") {
            put("Content-Length", &body.len().to_string());
        }
    }
}

/// Asks `proxy` for a tunnel to `target` (RFC 9110 section 9.3.6).
pub(super) fn connect_to(proxy: &HttpUrl, target: &HttpUrl) -> Vec<u8> {
    let authority = target.authority();
    let mut head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
    if let Some(authorization) = &proxy.authorization {
        push_field(&mut head, "Proxy-Authorization", authorization);
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// Host and port, without a port that is the scheme's own.
pub(super) fn push_authority(head: &mut String, url: &HttpUrl) {
    let _ = write!(head, "{}", url.host);
    if !url.is_default_port() {
        let _ = write!(head, ":{}", url.port);
    }
}

fn push_field(head: &mut String, name: &str, value: &str) {
    for part in [name, ": ", value, "\r\n"] {
        head.push_str(part);
    }
}

/// Which of the headers with a default the check has itself.
#[derive(Default)]
struct Given {
    user_agent: bool,
    accept: bool,
    authorization: bool,
}

impl Given {
    /// Notes `name`; true if it is not for the check to set.
    fn note(&mut self, name: &str) -> bool {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        self.user_agent |= is("user-agent");
        self.accept |= is("accept");
        self.authorization |= is("authorization");
        is("host") || is("content-length") || is("transfer-encoding") || is("trailer")
    }
}
