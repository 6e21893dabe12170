use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::connect::Connector;
use super::listed::{Listed, listed};
use super::token::TokenSource;
use super::{ConfigError, tls};

use crate::answer::{Meta, retry_after};
use crate::config::{Address, Config};
use crate::decode::{ArraySplitter, DecodeReason};
use crate::error::{EXCERPT, Error, ErrorKind, Excerpt};
use crate::request;

/// Bytes of an answer's header, at most. Consul's are below 1 KiB.
const MAX_HEADER: usize = 64 << 10;

/// How long a connection may be idle before it is closed by us. Load
/// balancers drop theirs without a word, often after 60 s (P017).
const IDLE: Duration = Duration::from_secs(45);

const TOKEN: HeaderName = HeaderName::from_static("x-consul-token");

/// Sends requests: the pool, the permits, what every request carries.
pub(super) struct Transport {
    config: Config,
    http: legacy::Client<Connector, Full<Bytes>>,
    scheme: Scheme,
    authority: Authority,
    prefix: String,
    token: TokenSource,
    auth: Option<HeaderValue>,
    permits: Semaphore,
    /// Long polls take one of these too, so that they never take all permits
    /// and writes always get through.
    waiting: Semaphore,
}

/// A whole answer, whatever its status.
pub(super) struct Whole {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) meta: Meta,
}

/// How long a request may take.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    deadline: Duration,
    waits: bool,
}

impl Transport {
    pub(super) fn new(config: &Config) -> Result<Self, ConfigError> {
        let tls = tls::connector(&config.address, &config.tls)?;
        let scheme = if tls.is_some() {
            Scheme::HTTPS
        } else {
            Scheme::HTTP
        };
        let connector = Connector::new(&config.address, tls, config.connect_timeout)?;
        let (authority, prefix) = match &config.address {
            Address::Tcp {
                authority, prefix, ..
            } => (authority.clone(), prefix.clone()),
            Address::Unix(_) => (Authority::from_static("localhost"), String::new()),
        };
        let auth = match &config.auth {
            Some(auth) => {
                let pair = format!("{}:{}", auth.user, auth.password.reveal());
                let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
                let mut value = HeaderValue::from_str(&format!("Basic {encoded}"))
                    .map_err(|_| ConfigError::Header { what: "password" })?;
                value.set_sensitive(true);
                Some(value)
            }
            None => None,
        };
        if config.max_concurrency < 2 {
            return Err(ConfigError::Concurrency(config.max_concurrency));
        }
        let concurrency = config.max_concurrency.min(100);
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(concurrency)
            .http1_max_buf_size(MAX_HEADER)
            .build(connector);
        Ok(Self {
            token: TokenSource::new(config)?,
            config: config.clone(),
            http,
            scheme,
            authority,
            prefix,
            auth,
            permits: Semaphore::new(concurrency),
            waiting: Semaphore::new((concurrency * 3 / 4).max(1)),
        })
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// The patience for what is neither a list nor waits.
    pub(super) fn prompt(&self) -> Patience {
        Patience {
            deadline: self.config.timeout,
            waits: false,
        }
    }

    /// The patience for a read.
    pub(super) fn patience(&self, query: &request::Query) -> Patience {
        if query.is_blocking() {
            let deadline = crate::blocking::deadline(query.wait);
            Patience {
                deadline,
                waits: true,
            }
        } else {
            Patience {
                deadline: self.config.list_timeout,
                waits: false,
            }
        }
    }

    /// Sends a request and takes the whole answer, of any status.
    pub(super) async fn whole(
        &self,
        request: Request<Bytes>,
        patience: Patience,
    ) -> Result<Whole, Error> {
        let name = request::name_of(&request);
        let limit = self.config.limits.answer;
        self.within(&name, patience, async {
            let (response, started, _permits) = self.send(request, patience.waits).await?;
            let received = Instant::now();
            let (parts, mut body) = response.into_parts();
            let mut bytes = Vec::new();
            while let Some(chunk) = next_chunk(&mut body).await? {
                if bytes.len() + chunk.len() > limit {
                    return Err(ErrorKind::TooLarge {
                        what: "the answer",
                        unit: "bytes",
                        limit: limit as u64,
                    });
                }
                bytes.extend_from_slice(&chunk);
            }
            let meta = timed(&parts.headers, started, received, bytes.len() as u64);
            Ok(Whole {
                status: parts.status,
                headers: parts.headers,
                body: bytes.into(),
                meta,
            })
        })
        .await
    }

    /// Sends a request for a list and hands out its elements as they come in.
    pub(super) async fn each<T: Listed>(
        &self,
        request: Request<Bytes>,
        patience: Patience,
        mut take: impl FnMut(T) + Send,
    ) -> Result<Meta, Error> {
        let name = request::name_of(&request);
        let limits = self.config.limits;
        self.within(&name, patience, async {
            let (response, started, _permits) = self.send(request, patience.waits).await?;
            let received = Instant::now();
            let (parts, mut body) = response.into_parts();
            if !parts.status.is_success() {
                return Err(refused(
                    parts.status,
                    &parts.headers,
                    &excerpt(&mut body).await?,
                ));
            }
            let mut splitter = ArraySplitter::new(limits.element);
            let mut length = 0_u64;
            while let Some(chunk) = next_chunk(&mut body).await? {
                length += chunk.len() as u64;
                if length > limits.list {
                    return Err(ErrorKind::TooLarge {
                        what: "the list",
                        unit: "bytes",
                        limit: limits.list,
                    });
                }
                let one = |json: &[u8]| listed(json).map(&mut take);
                splitter.feed(&chunk, one).map_err(undecodable)?;
                if splitter.elements() > limits.elements {
                    let (what, unit) = ("the list", "elements");
                    return Err(ErrorKind::TooLarge {
                        what,
                        unit,
                        limit: limits.elements,
                    });
                }
            }
            splitter.finish().map_err(undecodable)?;
            Ok(timed(&parts.headers, started, received, length))
        })
        .await
    }

    async fn within<T>(
        &self,
        name: &str,
        patience: Patience,
        work: impl Future<Output = Result<T, ErrorKind>>,
    ) -> Result<T, Error> {
        timeout_at(Instant::now() + patience.deadline, work)
            .await
            .unwrap_or(Err(ErrorKind::Timeout(patience.deadline)))
            .map_err(|kind| Error::new(name, kind))
    }

    async fn send(
        &self,
        mut request: Request<Bytes>,
        waits: bool,
    ) -> Result<(Response<Incoming>, Instant, Permits<'_>), ErrorKind> {
        *request.uri_mut() = self.absolute(request.uri())?;
        let headers = request.headers_mut();
        if let Some(token) = self.token.current() {
            headers.insert(TOKEN, token);
        }
        if let Some(auth) = &self.auth {
            headers.insert(http::header::AUTHORIZATION, auth.clone());
        }
        let user_agent = concat!("evenkeel/", env!("CARGO_PKG_VERSION"));
        headers.insert(
            http::header::USER_AGENT,
            HeaderValue::from_static(user_agent),
        );

        let permits = self.permits(waits).await;
        let started = Instant::now();
        let request = request.map(Full::new);
        // A connection may be closed by the other side at the very moment in
        // which a request goes out on it. A read can be asked again at once;
        // a write cannot, nobody knows whether it has happened.
        let again = (request.method() == Method::GET).then(|| request.clone());
        let mut response = self.http.request(request).await;
        if let (Err(error), Some(again)) = (&response, again)
            && closed_under_way(error)
        {
            response = self.http.request(again).await;
        }
        let response = response.map_err(|error| ErrorKind::Transport(Box::new(Failure(error))))?;
        Ok((response, started, permits))
    }

    async fn permits(&self, waits: bool) -> Permits<'_> {
        // Neither semaphore is ever closed, so that neither can fail.
        let waiting = if waits {
            self.waiting.acquire().await.ok()
        } else {
            None
        };
        Permits {
            _waiting: waiting,
            _request: self.permits.acquire().await.ok(),
        }
    }

    fn absolute(&self, relative: &Uri) -> Result<Uri, ErrorKind> {
        let wrong = |error: http::Error| ErrorKind::Request(error.to_string());
        let path = relative.path_and_query().map_or("/", PathAndQuery::as_str);
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(format!("{}{path}", self.prefix))
            .build()
            .map_err(wrong)
    }
}

struct Permits<'a> {
    _waiting: Option<SemaphorePermit<'a>>,
    _request: Option<SemaphorePermit<'a>>,
}

impl Whole {
    /// The answer if its status is a success, else the error that it is.
    pub(super) fn success(self, name: &str) -> Result<Self, Error> {
        if self.status.is_success() {
            Ok(self)
        } else {
            Err(self.into_error(name))
        }
    }

    /// The error that an answer is.
    pub(super) fn into_error(self, name: &str) -> Error {
        Error::new(name, refused(self.status, &self.headers, &self.body))
    }

    /// The body as JSON.
    pub(super) fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| {
            // Bodies of the calls that end here are one line.
            let offset = error.column().saturating_sub(1) as u64;
            Error::new(
                name,
                ErrorKind::Decode {
                    offset,
                    reason: error.to_string(),
                },
            )
        })
    }
}

fn refused(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> ErrorKind {
    ErrorKind::Status {
        code,
        text: Excerpt::new(body),
        retry_after: retry_after(headers),
    }
}

fn undecodable(error: crate::decode::DecodeError) -> ErrorKind {
    match error.reason {
        DecodeReason::ElementTooLarge { limit } => ErrorKind::TooLarge {
            what: "an element of the list",
            unit: "bytes",
            limit: limit as u64,
        },
        reason => ErrorKind::Decode {
            offset: error.offset,
            reason: reason.to_string(),
        },
    }
}

fn timed(headers: &HeaderMap, started: Instant, received: Instant, bytes: u64) -> Meta {
    let now = Instant::now();
    Meta {
        took: now.duration_since(started),
        transfer: now.duration_since(received),
        bytes,
        ..Meta::from_headers(headers)
    }
}

async fn next_chunk(body: &mut Incoming) -> Result<Option<Bytes>, ErrorKind> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ErrorKind::Transport(Box::new(Failure(error))))?;
        // Trailers carry nothing that is needed.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// As much of an error's body as the message will show.
async fn excerpt(body: &mut Incoming) -> Result<Vec<u8>, ErrorKind> {
    let mut bytes = Vec::new();
    while bytes.len() <= EXCERPT {
        let Some(chunk) = next_chunk(body).await? else {
            break;
        };
        let room = EXCERPT + 1 - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    Ok(bytes)
}

/// Whether the connection was closed before anything of an answer had come.
fn closed_under_way(error: &legacy::Error) -> bool {
    std::error::Error::source(error)
        .and_then(|source| source.downcast_ref::<hyper::Error>())
        .is_some_and(hyper::Error::is_incomplete_message)
}

/// An error whose text is that of the whole chain; hyper's own top says only
/// "client error (Connect)".
#[derive(Debug)]
struct Failure<E>(E);

impl<E: std::error::Error> std::fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = self.0.to_string();
        let mut source = self.0.source();
        while let Some(error) = source {
            let part = error.to_string();
            if !text.contains(&part) {
                text.push_str(": ");
                text.push_str(&part);
            }
            source = error.source();
        }
        f.write_str(&text)
    }
}

impl<E: std::error::Error> std::error::Error for Failure<E> {}
