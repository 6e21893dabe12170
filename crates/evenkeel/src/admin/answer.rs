use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Body;
use serde::Serialize;

use crate::admin::{AdminHandle, Stay, heartbeat, zones};
use crate::status::StatusFilter;

pub(super) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Where requests come from, and with it what they need.
#[derive(Debug, Clone)]
pub(super) enum Access {
    /// A unix socket: its mode has decided.
    Local,
    /// Loopback, to which any user of this machine can connect: to read is free,
    /// to change something needs the token.
    Loopback(Option<Arc<str>>),
    /// Elsewhere: everything needs the token.
    Remote(Option<Arc<str>>),
}

impl Access {
    /// The answer to a request that is not allowed.
    fn refusal(&self, headers: &HeaderMap, changes: bool) -> Option<Answer> {
        let token = match self {
            Self::Local => return None,
            Self::Loopback(_) if !changes => return None,
            Self::Loopback(token) | Self::Remote(token) => token,
        };
        match token {
            Some(token) if carries(headers, token) => None,
            Some(_) => {
                let mut answer = text(StatusCode::UNAUTHORIZED, "a token is needed\n");
                answer
                    .headers_mut()
                    .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                Some(answer)
            }
            None if changes => Some(text(
                StatusCode::FORBIDDEN,
                "to change something here, set admin.token or use the unix socket\n",
            )),
            None => None,
        }
    }
}

/// The answer to one request. Only the body of one that changes something is
/// read.
pub(super) async fn answer<B>(
    handle: &AdminHandle,
    access: &Access,
    stay: &Stay,
    request: Request<B>,
) -> Answer
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static>,
{
    let changes = request.method() == Method::PUT;
    if let Some(refusal) = access.refusal(request.headers(), changes) {
        return refusal;
    }
    if changes && let Some(check) = request.uri().path().strip_prefix("/v1/heartbeat/") {
        let check = check.to_owned();
        return heartbeat::heartbeat(handle, &check, request).await;
    }
    let request = &request;
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
        answer
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    match request.uri().path() {
        "/live" if handle.is_live() => text(StatusCode::OK, "live\n"),
        "/live" => text(StatusCode::SERVICE_UNAVAILABLE, "the loop does not turn\n"),
        "/ready" => {
            let readiness = handle.readiness();
            let code = if readiness.ready {
                StatusCode::OK
            } else {
                StatusCode::SERVICE_UNAVAILABLE
            };
            json(code, &readiness)
        }
        "/metrics" => typed(
            StatusCode::OK,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            handle.metrics().await,
        ),
        "/v1/status" => match StatusFilter::from_query(request.uri().query().unwrap_or("")) {
            Ok(filter) => match handle.status(filter).await {
                Some(report) => json(StatusCode::OK, &report),
                None => text(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "the loop does not answer\n",
                ),
            },
            Err(fault) => text(StatusCode::BAD_REQUEST, fault + "\n"),
        },
        "/v1/xds" => match handle.xds() {
            Some(server) => json(StatusCode::OK, &crate::delivery::report(server)),
            None => text(
                StatusCode::NOT_FOUND,
                "proxies are not served: xds.listen is not set\n",
            ),
        },
        "/stats" => zones::counters(handle).await,
        path => match path.strip_prefix("/v1/zones/") {
            Some(upstream) => zones::zones(handle, stay, upstream, request).await,
            None => text(
                StatusCode::NOT_FOUND,
                "there are /live, /ready, /metrics, /stats, /v1/status, /v1/xds, /v1/zones/UPSTREAM and \
                 PUT /v1/heartbeat/CHECK\n",
            ),
        },
    }
}

/// Whether the request has the token. Takes the same time for any wrong token of
/// the right length.
fn carries(headers: &HeaderMap, token: &str) -> bool {
    let given = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "))
        .unwrap_or_default();
    given.len() == token.len()
        && given
            .iter()
            .zip(token.as_bytes())
            .fold(0, |differing, (a, b)| differing | (a ^ b))
            == 0
}

pub(super) fn json(code: StatusCode, value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(mut body) => {
            body.push(b'\n');
            typed(code, "application/json", body)
        }
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

pub(super) fn text(code: StatusCode, body: impl Into<Bytes>) -> Answer {
    typed(code, "text/plain; charset=utf-8", body)
}

pub(super) fn typed(code: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()).boxed_unsync());
    *answer.status_mut() = code;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
