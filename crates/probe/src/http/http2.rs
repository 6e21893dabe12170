//! A request and its answer in HTTP/2.

use std::future::poll_fn;

use bytes::Bytes;
use h2::RecvStream;
use h2::SendStream;
use http::{HeaderMap, HeaderName, HeaderValue, Request as Head, Response, Uri, Version, header};

use super::body_limit;
use super::head::MAX_HEAD;
use super::redirect::Redirect;
use super::request::{Request, push_authority};
use crate::fault::Failure;
use crate::http2::{drive, failure, start};
use crate::progress::{Answer, BodyEnd, HeadBytes, Progress};
use crate::report::Phase;
use crate::transport::Transport;

/// Fields that are about one connection of HTTP/1 (RFC 9113 section 8.2.2).
const OF_A_CONNECTION: [HeaderName; 5] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// One exchange on a connection of its own.
pub(super) async fn exchange(
    request: Request<'_>,
    stream: Box<dyn Transport>,
    progress: &mut Progress,
) -> Result<Option<Redirect>, Failure> {
    let head = head(&request)?;
    let body = Bytes::copy_from_slice(request.hop.body());
    #[expect(clippy::cast_possible_truncation, reason = "64 KiB")]
    let (requests, driver) = start(stream, MAX_HEAD as u32, progress).await?;
    drive(driver, async move {
        let mut requests = requests.ready().await.map_err(|error| failure(&error))?;
        let (response, sending) = requests
            .send_request(head, body.is_empty())
            .map_err(|error| failure(&error))?;
        let response = async { response.await.map_err(|error| failure(&error)) };
        // A server may answer before it has taken all of the body, and then take no more.
        let response = if body.is_empty() {
            response.await?
        } else {
            tokio::select! {
                biased;
                response = response => response?,
                never = send(sending, body) => match never {},
            }
        };
        let check = request.check;
        if check.follow_redirects()
            && let Some(redirect) = redirect(&response)
        {
            return Ok(Some(redirect));
        }
        progress.enter(Phase::Transfer);
        let answer = progress.answer.insert(answer(&request, &response));
        read(response.into_body(), answer, body_limit(check)).await;
        Ok(None)
    })
    .await
}

fn head(request: &Request<'_>) -> Result<Head<()>, Failure> {
    let (hop, url) = (request.hop, request.hop.url());
    let mut authority = String::new();
    match hop.host_header() {
        Some(host) => authority.push_str(host),
        None => push_authority(&mut authority, url),
    }
    let wrong = |error: http::Error| Failure::critical(format!("http2: {authority:?}: {error}"));
    let uri = Uri::builder()
        .scheme(if url.https { "https" } else { "http" })
        .authority(&*authority)
        .path_and_query(&*url.path)
        .build()
        .map_err(wrong)?;
    let mut fields = HeaderMap::new();
    request.fields(&mut |name, value| {
        // They were validated with the check.
        if let Ok(name) = HeaderName::from_bytes(name.as_bytes())
            && let Ok(value) = HeaderValue::from_bytes(value.as_bytes())
            && !OF_A_CONNECTION.contains(&name)
            // The one value that HTTP/2 knows.
            && (name != header::TE || value == "trailers")
        {
            fields.append(name, value);
        }
    });
    let mut head = Head::builder()
        .method(hop.method())
        .uri(uri)
        .version(Version::HTTP_2)
        .body(())
        .map_err(wrong)?;
    *head.headers_mut() = fields;
    Ok(head)
}

/// Sends the body as the server takes it, and then waits for whoever waits for
/// the answer: that it cannot be sent shows there.
async fn send(mut sending: SendStream<Bytes>, mut body: Bytes) -> std::convert::Infallible {
    while !body.is_empty() {
        sending.reserve_capacity(body.len());
        let Some(Ok(capacity)) = poll_fn(|cx| sending.poll_capacity(cx)).await else {
            break;
        };
        let part = body.split_to(capacity.min(body.len()));
        if sending.send_data(part, body.is_empty()).is_err() {
            break;
        }
    }
    std::future::pending().await
}

fn redirect(response: &Response<RecvStream>) -> Option<Redirect> {
    let location = response.headers().get(header::LOCATION)?;
    let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
    Redirect::of(response.status().as_u16(), location)
}

fn answer(request: &Request<'_>, response: &Response<RecvStream>) -> Answer {
    let status = response.status();
    let demands = request.check.demands();
    let keeps_head = demands.is_some_and(|demands| !demands.headers.is_empty());
    let length = response.headers().get(header::CONTENT_LENGTH);
    Answer {
        code: status.as_u16(),
        // There is none in HTTP/2.
        reason: status.canonical_reason().unwrap_or_default().to_owned(),
        head: keeps_head.then(|| Box::new(HeadBytes(lines(response)))),
        length: length.and_then(|length| length.to_str().ok()?.parse().ok()),
        ..Answer::default()
    }
}

/// The head as HTTP/1 has it.
fn lines(response: &Response<RecvStream>) -> Vec<u8> {
    let mut lines = format!("HTTP/2 {}\r\n", response.status().as_u16()).into_bytes();
    for (name, value) in response.headers() {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            lines.extend_from_slice(part);
        }
    }
    lines
}

/// Reads the body until it ends or `limit` bytes of it are kept. What goes
/// wrong here is told in `answer`: the status is decided.
async fn read(mut body: RecvStream, answer: &mut Answer, limit: usize) {
    loop {
        match body.data().await {
            None => {
                answer.end = BodyEnd::Complete;
                return;
            }
            Some(Ok(bytes)) => {
                let room = limit.saturating_sub(answer.body.len());
                answer
                    .body
                    .extend_from_slice(&bytes[..bytes.len().min(room)]);
                let whole = answer.length == Some(answer.body.len() as u64);
                if bytes.len() > room || (answer.body.len() >= limit && !whole) {
                    answer.end = BodyEnd::Full;
                    return;
                }
                // It fails only for a stream that is gone, and then there is no more data.
                let _ = body.flow_control().release_capacity(bytes.len());
            }
            Some(Err(error)) => {
                answer.end = BodyEnd::Broken(failure(&error).text);
                return;
            }
        }
    }
}
