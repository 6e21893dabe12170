use std::fmt;
use std::time::Duration;

use http::StatusCode;

/// A request to Consul that failed: which, how, and whether trying again can
/// help.
#[derive(Debug, thiserror::Error)]
#[error("{request}: {kind}")]
pub struct Error {
    request: String,
    #[source]
    kind: ErrorKind,
}

/// How a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No connection, or it broke before the answer was complete.
    #[error("{0}")]
    Transport(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No complete answer within the deadline.
    #[error("no complete answer within {0:?}")]
    Timeout(Duration),
    /// Consul answered with a status that is not a success.
    #[error("{code}: {text}")]
    Status {
        /// The HTTP status.
        code: StatusCode,
        /// What Consul said, the first [`EXCERPT`] bytes.
        text: Excerpt,
        /// How long to wait before the next try, if the answer says.
        retry_after: Option<Duration>,
    },
    /// The answer is not what was asked for: no JSON, or of another shape.
    #[error("the answer cannot be read at byte {offset}: {reason}")]
    Decode {
        /// Where in the body, in bytes from its start.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// The answer is larger than what is taken.
    #[error("{what} is larger than {limit} {unit}")]
    TooLarge {
        /// What is too large: the answer, a list, or one element of it.
        what: &'static str,
        /// What is counted: bytes or elements.
        unit: &'static str,
        /// The limit, of [`Limits`](crate::config::Limits).
        limit: u64,
    },
    /// The request could not be built, e.g. a name with a character that no
    /// header can carry.
    #[error("the request cannot be built: {0}")]
    Request(String),
}

/// How many bytes of an error's body are kept for the message.
pub const EXCERPT: usize = 512;

/// The beginning of a text that came from outside, safe to print on one line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Excerpt(String);

impl Excerpt {
    /// The first [`EXCERPT`] bytes of `body`; what is no text is replaced and
    /// control characters become spaces.
    pub fn new(body: &[u8]) -> Self {
        let cut = &body[..body.len().min(EXCERPT)];
        let text: String = String::from_utf8_lossy(cut)
            .chars()
            .map(|char| if char.is_control() { ' ' } else { char })
            .collect();
        let text = text.trim();
        let mark = if body.len() > EXCERPT { "…" } else { "" };
        Self(format!("{text}{mark}"))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() {
            "(no text)"
        } else {
            &self.0
        })
    }
}

impl Error {
    /// A failure of `request`, e.g. `GET /v1/status/leader`.
    pub fn new(request: impl Into<String>, kind: ErrorKind) -> Self {
        Self {
            request: request.into(),
            kind,
        }
    }

    /// The request: method and path, without the query.
    pub fn request(&self) -> &str {
        &self.request
    }

    /// How it failed.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The HTTP status, if Consul answered with one.
    pub fn status(&self) -> Option<StatusCode> {
        match &self.kind {
            ErrorKind::Status { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// What Consul said, if it answered with an error.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            ErrorKind::Status { text, .. } => Some(text.as_str()),
            _ => None,
        }
    }

    /// How long Consul asks to wait before the next try (`Retry-After`).
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.kind {
            ErrorKind::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the same request may succeed later without anything else being
    /// changed: the connection, the deadline, a 5xx (no leader, for one), 408,
    /// 429, or an answer that was cut or garbled.
    ///
    /// A 403, a 400, a 404 and a 413 stay until somebody changes something.
    pub fn is_retryable(&self) -> bool {
        match &self.kind {
            ErrorKind::Transport(_) | ErrorKind::Timeout(_) | ErrorKind::Decode { .. } => true,
            ErrorKind::Status { code, .. } => {
                code.is_server_error() && *code != StatusCode::NOT_IMPLEMENTED
                    || *code == StatusCode::TOO_MANY_REQUESTS
                    || *code == StatusCode::REQUEST_TIMEOUT
            }
            ErrorKind::TooLarge { .. } | ErrorKind::Request(_) => false,
        }
    }

    /// Whether Consul says that it has no leader: an election, or too few
    /// servers. Nothing is lost; ask again each second. (P106)
    pub fn is_no_leader(&self) -> bool {
        self.status() == Some(StatusCode::INTERNAL_SERVER_ERROR)
            && self.text().is_some_and(|text| {
                text.contains("No cluster leader") || text.contains("leadership lost")
            })
    }

    /// Whether the token lacks a right (403), or is not known to Consul.
    pub fn is_denied(&self) -> bool {
        self.status() == Some(StatusCode::FORBIDDEN)
            || self.text().is_some_and(|text| {
                text.contains("Permission denied") || text.contains("ACL not found")
            })
    }

    /// The field that the server refuses since it does not know it
    /// (`json: unknown field "ExposedPort"`), as older servers do with fields
    /// of newer ones. (P028)
    pub fn unknown_field(&self) -> Option<&str> {
        if self.status() != Some(StatusCode::BAD_REQUEST) {
            return None;
        }
        let (_, rest) = self.text()?.split_once("unknown field \"")?;
        rest.split_once('"').map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, body: &str) -> Error {
        Error::new(
            "GET /v1/x",
            ErrorKind::Status {
                code: StatusCode::from_u16(code).unwrap(),
                text: Excerpt::new(body.as_bytes()),
                retry_after: None,
            },
        )
    }

    #[test]
    fn what_later_tries_can_mend_is_retryable() {
        for (code, retryable) in [
            (500, true),
            (503, true),
            (429, true),
            (403, false),
            (400, false),
            (404, false),
        ] {
            assert_eq!(status(code, "").is_retryable(), retryable, "{code}");
        }
    }

    #[test]
    fn an_election_is_told_from_other_errors() {
        // P106; texts of Consul 1.8.7
        assert!(status(500, "No cluster leader").is_no_leader());
        assert!(status(500, "rpc error making call: No cluster leader").is_no_leader());
        assert!(!status(500, "rpc error: i/o deadline reached").is_no_leader());
        assert!(!status(400, "No cluster leader").is_no_leader());
    }

    #[test]
    fn the_refused_field_is_named() {
        // P028; text of Consul 1.8.7
        let error = status(
            400,
            "Failed to parse body: json: unknown field \"ExposedPort\"",
        );
        assert_eq!(error.unknown_field(), Some("ExposedPort"));
        assert_eq!(status(400, "bad").unknown_field(), None);
    }

    #[test]
    fn a_hostile_body_is_cut_and_stays_on_one_line() {
        let body = "a\nb\u{1b}[31m".to_owned() + &"x".repeat(10_000);
        let message = status(500, &body).to_string();
        assert!(message.len() < EXCERPT + 80, "{}", message.len());
        assert!(
            message.starts_with("GET /v1/x: 500 Internal Server Error: a b [31m"),
            "{message}"
        );
        assert!(message.ends_with('…'));
    }
}
