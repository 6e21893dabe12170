//! What an answer says besides its body.

use std::time::Duration;

use http::{HeaderMap, HeaderName};

/// The headers of an answer that matter, and how long it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Meta {
    /// `X-Consul-Index`: what to wait for next. `None` where the header is
    /// missing or no number. See [`blocking`](crate::blocking) for the rules.
    pub index: Option<u64>,
    /// `X-Consul-KnownLeader`: whether the server that answered knows a leader.
    pub known_leader: Option<bool>,
    /// `X-Consul-LastContact`: how long ago that server heard of the leader.
    pub last_contact: Option<Duration>,
    /// `X-Consul-Results-Filtered-By-ACLs`: whether something was left out
    /// since the token may not see it. Servers before 1.11 never say so.
    pub filtered_by_acls: bool,
    /// From sending the request to the last byte of the body.
    pub took: Duration,
    /// From the header to the last byte of the body.
    pub transfer: Duration,
    /// Length of the body in bytes.
    pub bytes: u64,
}

impl Meta {
    /// Reads the headers; the times and the length are zero.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        const INDEX: HeaderName = HeaderName::from_static("x-consul-index");
        const KNOWN_LEADER: HeaderName = HeaderName::from_static("x-consul-knownleader");
        const LAST_CONTACT: HeaderName = HeaderName::from_static("x-consul-lastcontact");
        const FILTERED: HeaderName = HeaderName::from_static("x-consul-results-filtered-by-acls");
        let text = |name: &HeaderName| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .map(str::trim)
        };
        Self {
            index: text(&INDEX).and_then(|text| text.parse().ok()),
            known_leader: text(&KNOWN_LEADER).and_then(|text| text.parse().ok()),
            last_contact: text(&LAST_CONTACT)
                .and_then(|text| text.parse().ok())
                .map(Duration::from_millis),
            filtered_by_acls: text(&FILTERED) == Some("true"),
            ..Self::default()
        }
    }
}

/// An answer: the value and what the headers say.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<T> {
    /// What was asked for.
    pub value: T,
    /// What the headers say.
    pub meta: Meta,
}

impl<T> Answer<T> {
    /// `X-Consul-Index`; see [`Meta::index`].
    pub fn index(&self) -> Option<u64> {
        self.meta.index
    }

    /// The same answer with its value changed.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        Answer {
            value: change(self.value),
            meta: self.meta,
        }
    }
}

/// How long a `Retry-After` header asks to wait. Only the form in seconds
/// (RFC 9110 section 10.2.3); Consul does not send dates. At most an hour.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?;
    let seconds: u64 = text.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.min(3_600)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    http::HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    #[test]
    fn headers_of_consul_are_read() {
        let meta = Meta::from_headers(&headers(&[
            ("x-consul-index", "42"),
            ("x-consul-knownleader", "true"),
            ("x-consul-lastcontact", "7"),
            ("x-consul-results-filtered-by-acls", "true"),
        ]));
        assert_eq!(meta.index, Some(42));
        assert_eq!(meta.known_leader, Some(true));
        assert_eq!(meta.last_contact, Some(Duration::from_millis(7)));
        assert!(meta.filtered_by_acls);
    }

    #[test]
    fn missing_or_odd_headers_are_unknown() {
        let meta = Meta::from_headers(&headers(&[("x-consul-index", "many")]));
        assert_eq!(meta, Meta::default());
    }

    #[test]
    fn retry_after_in_seconds() {
        assert_eq!(
            retry_after(&headers(&[("retry-after", "3")])),
            Some(Duration::from_secs(3))
        );
        assert_eq!(retry_after(&headers(&[("retry-after", "soon")])), None);
        let long = retry_after(&headers(&[("retry-after", "99999999999")]));
        assert_eq!(long, Some(Duration::from_secs(3_600)));
    }
}
