use std::convert::Infallible;

use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde::Serialize;

use crate::admin::{AdminHandle, Stay, zones};
use crate::status::StatusFilter;

pub(super) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The answer to one request. The body of the request is not read.
pub(super) async fn answer<B>(
    handle: &AdminHandle,
    token: Option<&str>,
    stay: &Stay,
    request: &Request<B>,
) -> Answer {
    if token.is_some_and(|token| !carries(request.headers(), token)) {
        let mut answer = text(StatusCode::UNAUTHORIZED, "a token is needed\n");
        answer
            .headers_mut()
            .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return answer;
    }
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
                "there are /live, /ready, /metrics, /stats, /v1/status, /v1/xds and /v1/zones/UPSTREAM\n",
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
