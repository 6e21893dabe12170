use std::fmt::Write as _;

use super::redirect::Hop;
use crate::definition::HttpCheck;
use crate::prober::Shared;

/// The bytes of a request: head and body in one piece, for one write.
///
/// `User-Agent` and `Accept` have defaults; `Host`, `Content-Length` and
/// `Connection: close` are ours, except that a given `Host` sets the authority
/// and a given `Connection` is taken as it is.
pub(super) fn assemble(check: &HttpCheck, hop: &Hop<'_>, shared: &Shared) -> Vec<u8> {
    let url = hop.url();
    let mut head = String::with_capacity(256 + hop.body().len());
    let mut given = Given::default();
    // Writing to a string cannot fail.
    let _ = write!(head, "{} {} HTTP/1.1\r\nHost: ", hop.method(), url.path);
    match hop.host_header() {
        Some(host) => head.push_str(host),
        None if url.is_default_port() => {
            let _ = write!(head, "{}", url.host);
        }
        None => {
            let _ = write!(head, "{}:{}", url.host, url.port);
        }
    }
    head.push_str("\r\n");
    for (name, value) in check.headers() {
        if given.note(name) || !hop.may_carry(name) {
            continue;
        }
        for part in [name, ": ", value, "\r\n"] {
            head.push_str(part);
        }
    }
    let mut ours = |missing: bool, parts: [&str; 2]| {
        if missing {
            head.push_str(parts[0]);
            head.push_str(parts[1]);
            head.push_str("\r\n");
        }
    };
    ours(!given.user_agent, ["User-Agent: ", &shared.user_agent]);
    ours(!given.accept, ["Accept: ", &shared.accept]);
    if let Some(authorization) = hop.authorization() {
        ours(!given.authorization, ["Authorization: ", authorization]);
    }
    let body = hop.body();
    if !body.is_empty() || matches!(hop.method(), "POST" | "PUT" | "PATCH") {
        ours(true, ["Content-Length: ", &body.len().to_string()]);
    }
    ours(!given.connection, ["Connection: ", "close"]);
    head.push_str("\r\n");
    let mut request = head.into_bytes();
    request.extend_from_slice(body);
    request
}

/// Which of the headers with a default the check has itself.
#[derive(Default)]
struct Given {
    user_agent: bool,
    accept: bool,
    authorization: bool,
    connection: bool,
}

impl Given {
    /// Notes `name`; true if it is not for the check to set.
    fn note(&mut self, name: &str) -> bool {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        self.user_agent |= is("user-agent");
        self.accept |= is("accept");
        self.authorization |= is("authorization");
        self.connection |= is("connection");
        is("host") || is("content-length") || is("transfer-encoding") || is("trailer")
    }
}
