//! The HTTP probe.

mod body;
mod credentials;
mod exchange;
mod expect;
mod head;
#[cfg(feature = "http2")]
mod http2;
mod idle;
mod redirect;
mod request;
mod text;
mod way;

use std::time::Duration;

use evenkeel_threshold::Status;
use futures_util::FutureExt as _;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;

pub(crate) use self::credentials::CredentialFiles;
use self::exchange::Reply;
pub(crate) use self::idle::Idle;
use self::redirect::{Hop, Redirect};
use self::request::Request;
use self::text::{answered, failed};
use crate::connect::connect;
use crate::definition::{ConnectOptions, HttpCheck};
use crate::fault::Failure;
use crate::kind::Kind;
use crate::prober::Shared;
use crate::progress::Progress;
use crate::report::{Cause, Phase, Report};
use crate::tls::Alpn;

/// What an answer's status code means.
fn status_of(code: u16) -> Status {
    match code {
        200..=299 => Status::Passing,
        429 => Status::Warning,
        _ => Status::Critical,
    }
}

impl Kind for HttpCheck {
    const TELLS_EXPIRY: bool = true;

    fn timeout(&self) -> Duration {
        self.timeout()
    }

    fn target(&self) -> &str {
        self.url()
    }

    fn connect(&self) -> &ConnectOptions {
        self.connect()
    }

    async fn run(&self, shared: &Shared, progress: &mut Progress) -> Result<Report, Failure> {
        follow(shared, self, progress).await?;
        progress.end(Instant::now());
        match &progress.answer {
            Some(answer) => Ok(answered(self, answer, progress)),
            None => Err(Failure::unprobed(
                Cause::System,
                "the probe ended without an answer",
            )),
        }
    }

    /// A body that is cut off does not take back what the head said.
    fn failed(&self, failure: Failure, progress: &Progress) -> Report {
        match &progress.answer {
            Some(answer) => answered(self, answer, progress),
            None => failed(self, &failure, progress),
        }
    }
}

/// Runs the exchange, redirects included, until an answer is in `progress`.
async fn follow(
    shared: &Shared,
    check: &HttpCheck,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let secret = match check.credentials() {
        Some(credentials) => {
            let reading = shared.credentials.secret(credentials, progress);
            Some(Box::new(Box::pin(reading).await?))
        }
        None => None,
    };
    let policy = check.redirects().unwrap_or(&shared.redirects);
    let mut hop = Hop::first(check);
    loop {
        let request = Request::new(check, &hop, shared, secret.as_deref());
        let result = match check.way() {
            None => one_hop(&request, progress).await,
            // Boxed, so that a plain probe does not carry the room for it.
            Some(way) => Box::pin(way::one_hop(&request, way, progress)).await,
        };
        match result {
            Ok(None) => return Ok(()),
            Ok(Some(redirect)) => {
                hop = hop.follow(&redirect, policy)?;
                progress.redirected_to = Some(hop.url().text().into());
            }
            Err(failure) => return Err(hop.blame(failure)),
        }
    }
}

/// One request, in HTTP/1.1 on a connection of its own.
async fn one_hop(
    request: &Request<'_>,
    progress: &mut Progress,
) -> Result<Option<Redirect>, Failure> {
    let (url, shared) = (request.hop.url(), request.shared);
    let (policy, resolver) = (&shared.policy, &*shared.resolver);
    let mut stream = connect(&url.host, url.port, policy, resolver, progress).await?;
    if !request.hop.url().https {
        return exchange(request, &mut stream, progress).await;
    }
    // Boxed as well.
    Box::pin(async {
        let (host, tls) = (&request.hop.url().host, request.check.tls());
        let handshake = request
            .shared
            .tls
            .handshake(stream, host, tls, Alpn::Http1, progress);
        let mut stream = handshake.await?;
        let result = exchange(request, &mut stream, progress).await;
        // A goodbye, if the socket takes it at once.
        let _ = stream.shutdown().now_or_never();
        result
    })
    .await
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    request: &Request<'_>,
    stream: &mut S,
    progress: &mut Progress,
) -> Result<Option<Redirect>, Failure> {
    progress.enter(Phase::FirstByte);
    let mut reply = Reply::new(request.check);
    reply.head(stream, &request.assemble()).await?;
    Ok(transfer(request, &mut reply, stream, progress).await)
}

/// What comes after the head: the body, unless it is a redirect that is
/// followed.
async fn transfer<S: AsyncRead + Unpin>(
    request: &Request<'_>,
    reply: &mut Reply,
    stream: &mut S,
    progress: &mut Progress,
) -> Option<Redirect> {
    let check = request.check;
    if check.follow_redirects()
        && let Some(redirect) = reply.redirect()
    {
        return Some(redirect);
    }
    progress.enter(Phase::Transfer);
    let answer = progress.answer.insert(reply.answer());
    let to_head_request = request.hop.method() == "HEAD";
    reply
        .body(stream, answer, to_head_request, body_limit(check))
        .await;
    None
}

/// How much of a body is read.
fn body_limit(check: &HttpCheck) -> usize {
    let shown = check.output_max_size() as usize;
    match check.demands() {
        Some(demands) if demands.reads_body() => shown.max(expect::READ_FOR_DEMANDS),
        _ => shown,
    }
}
