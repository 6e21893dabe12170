//! The HTTP probe.

mod body;
mod exchange;
mod expect;
mod head;
mod redirect;
mod request;
mod text;

use std::time::Duration;

use evenkeel_threshold::Status;
use futures_util::FutureExt as _;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;

use self::exchange::Reply;
use self::redirect::Hop;
use self::text::{answered, failed};
use crate::connect::connect;
use crate::definition::HttpCheck;
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
    fn timeout(&self) -> Duration {
        self.timeout()
    }

    fn target(&self) -> &str {
        self.url()
    }

    async fn run(&self, shared: &Shared, progress: &mut Progress) -> Result<Report, Failure> {
        follow(shared, self, progress).await?;
        progress.end(Instant::now());
        match &progress.answer {
            Some(answer) => Ok(answered(self, answer, progress.elapsed())),
            None => Err(Failure::unprobed(
                Cause::System,
                "the probe ended without an answer",
            )),
        }
    }

    /// A body that is cut off does not take back what the head said.
    fn failed(&self, failure: Failure, progress: &Progress) -> Report {
        match &progress.answer {
            Some(answer) => answered(self, answer, progress.elapsed()),
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
    let mut hop = Hop::first(check);
    loop {
        match one_hop(shared, check, &hop, progress).await {
            Ok(None) => return Ok(()),
            Ok(Some((code, location))) => {
                hop = hop.follow(code, &location, &shared.redirects)?;
                progress.redirected_to = Some(hop.url().text().to_owned());
            }
            Err(failure) => return Err(hop.blame(failure)),
        }
    }
}

/// One request. `Some((code, location))` if the answer is a redirect to be followed.
async fn one_hop(
    shared: &Shared,
    check: &HttpCheck,
    hop: &Hop<'_>,
    progress: &mut Progress,
) -> Result<Option<(u16, String)>, Failure> {
    let url = hop.url();
    let mut stream = connect(
        &url.host,
        url.port,
        &shared.policy,
        &*shared.resolver,
        progress,
    )
    .await?;
    if !url.https {
        return exchange(shared, check, hop, &mut stream, progress).await;
    }
    // Boxed, so that a plain probe does not carry the room for it.
    Box::pin(async {
        let mut stream = shared
            .tls
            .handshake(stream, &url.host, check.tls(), Alpn::Http1, progress)
            .await?;
        let result = exchange(shared, check, hop, &mut stream, progress).await;
        // A goodbye, if the socket takes it at once.
        let _ = stream.shutdown().now_or_never();
        result
    })
    .await
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    shared: &Shared,
    check: &HttpCheck,
    hop: &Hop<'_>,
    stream: &mut S,
    progress: &mut Progress,
) -> Result<Option<(u16, String)>, Failure> {
    progress.enter(Phase::FirstByte);
    let request = request::assemble(check, hop, shared);
    let demands = check.demands();
    let mut reply = Reply::new(demands.is_some_and(|demands| !demands.headers.is_empty()));
    reply.head(stream, &request).await?;
    if check.follow_redirects()
        && let Some(redirect) = reply.redirect()
    {
        return Ok(Some(redirect));
    }
    progress.enter(Phase::Transfer);
    let answer = progress.answer.insert(reply.answer());
    let shown = check.output_max_size() as usize;
    let limit = match demands {
        Some(demands) if demands.reads_body() => shown.max(expect::READ_FOR_DEMANDS),
        _ => shown,
    };
    reply
        .body(stream, answer, hop.method() == "HEAD", limit)
        .await;
    Ok(None)
}
