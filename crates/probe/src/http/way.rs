//! A request that goes another way than over a TCP connection of its own in
//! HTTP/1.1: over a kept connection, a socket of this machine, a proxy, or in
//! HTTP/2.

use futures_util::FutureExt as _;
use http::Method;
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;

use super::exchange::Reply;
use super::redirect::{Hop, Redirect};
use super::request::Request;
use super::transfer;
use crate::connect::connect;
use crate::definition::{Host, HttpCheck, HttpUrl, Way};
use crate::fault::Failure;
use crate::policy::TargetPolicy;
use crate::prober::Shared;
use crate::progress::{Awaited, Progress};
use crate::report::{Cause, Phase};
use crate::tls::Alpn;
use crate::transport::Transport;
#[cfg(unix)]
use crate::transport::connect_to_socket;

/// One request.
pub(super) async fn one_hop(
    request: &Request<'_>,
    way: &Way,
    progress: &mut Progress,
) -> Result<Option<Redirect>, Failure> {
    let Request {
        check, hop, shared, ..
    } = request;
    let idempotent = Method::from_bytes(hop.method().as_bytes()).is_ok_and(|it| it.is_idempotent());
    let keep = way.given.reuse && idempotent;
    let proxy = way.proxy.as_ref().filter(|_| !tunnelled(way, hop));
    let request = request.with(proxy, keep);
    if keep
        && let Some(idle) = check.idle()
        && let Some(mut kept) = idle.take(shared.id, hop.url(), progress.family, shared.tls.now())
    {
        let as_before = match &kept.seen {
            Some(seen) => {
                let made = &seen.made_with;
                let tls = shared
                    .tls
                    .makes_the_same(made, check.tls(), alpn(way), progress);
                tls.await?
            }
            None => true,
        };
        if as_before {
            progress.address = kept.address;
            if let Some(seen) = kept.seen.take() {
                progress.saw_before(*seen);
            }
            if let Some(reply) = on_kept(&request, &mut kept.stream, progress).await? {
                return end(request, reply, kept.stream, keep, progress).await;
            }
        }
    }
    let (stream, is_http2) = open(check, way, hop, shared, progress).await?;
    #[cfg(feature = "http2")]
    if is_http2 {
        return super::http2::exchange(request, stream, progress).await;
    }
    debug_assert!(!is_http2, "nobody asked for it");
    let mut stream = stream;
    progress.enter(Phase::FirstByte);
    let mut reply = Reply::new(check);
    reply.head(&mut stream, &request.assemble()).await?;
    end(request, reply, stream, keep, progress).await
}

/// The head of an answer on a connection that was kept. `None` if the request
/// is to be sent again on a new one: what is wrong may be no more than that
/// the server has given up the connection in the meantime (P086).
async fn on_kept(
    request: &Request<'_>,
    stream: &mut Box<dyn Transport>,
    progress: &mut Progress,
) -> Result<Option<Reply>, Failure> {
    progress.enter(Phase::FirstByte);
    let mut reply = Reply::new(request.check);
    let left = progress.deadline.duration_since(Instant::now());
    let asked = tokio::time::timeout(left / 2, reply.head(stream, &request.assemble())).await;
    match asked {
        Ok(Ok(())) => Ok(Some(reply)),
        Ok(Err(failure)) if reply.has_begun() => Err(failure),
        // A head that comes too slowly is the same on a new connection.
        Ok(Err(_)) | Err(_) => Ok(None),
    }
}

/// Reads the body, and keeps the connection or says goodbye.
async fn end(
    request: Request<'_>,
    mut reply: Reply,
    mut stream: Box<dyn Transport>,
    keep: bool,
    progress: &mut Progress,
) -> Result<Option<Redirect>, Failure> {
    let Request {
        check, hop, shared, ..
    } = request;
    let redirect = transfer(&request, &mut reply, &mut stream, progress).await;
    let idle = check.idle().filter(|_| keep && reply.is_reusable());
    if let Some(idle) = idle {
        idle.keep(shared.id, hop.url(), stream, progress);
    } else {
        // Of TLS, if the socket takes it at once.
        let _ = stream.shutdown().now_or_never();
    }
    Ok(redirect)
}

/// Whether a proxy only passes bytes on.
fn tunnelled(way: &Way, hop: &Hop<'_>) -> bool {
    hop.url().https || way.is_http2()
}

/// A new connection, and whether HTTP/2 is spoken on it.
async fn open(
    check: &HttpCheck,
    way: &Way,
    hop: &Hop<'_>,
    shared: &Shared,
    progress: &mut Progress,
) -> Result<(Box<dyn Transport>, bool), Failure> {
    let url = hop.url();
    let stream = carrier(way, hop, shared, progress).await?;
    if !url.https {
        return Ok((stream, way.is_http2()));
    }
    let stream = shared
        .tls
        .handshake(stream, &url.host, check.tls(), alpn(way), progress)
        .await?;
    let chosen = stream.get_ref().1.alpn_protocol();
    let is_http2 = match chosen {
        // A server that does not know ALPN may know HTTP/2 all the same.
        None => way.is_http2(),
        Some(protocol) => protocol == b"h2",
    };
    Ok((Box::new(stream), is_http2))
}

fn alpn(way: &Way) -> Alpn {
    #[cfg(feature = "http2")]
    match way.given.version {
        crate::definition::HttpVersion::Http1 => {}
        crate::definition::HttpVersion::Http2 => return Alpn::Http2,
        crate::definition::HttpVersion::Negotiated => return Alpn::Http1Or2,
    }
    #[cfg(not(feature = "http2"))]
    let _ = way;
    Alpn::Http1
}

/// What the exchange, or TLS before it, goes over.
async fn carrier(
    way: &Way,
    hop: &Hop<'_>,
    shared: &Shared,
    progress: &mut Progress,
) -> Result<Box<dyn Transport>, Failure> {
    let url = hop.url();
    #[cfg(unix)]
    if let Some(path) = &way.given.unix_socket {
        if !hop.is_at_home() {
            return Err(Failure::critical(
                "to another server than that of the unix socket",
            ));
        }
        return Ok(Box::new(connect_to_socket(path, progress).await?));
    }
    let Some(proxy) = &way.proxy else {
        let (policy, resolver) = (&shared.policy, &*shared.resolver);
        let stream = connect(&url.host, url.port, policy, resolver, progress).await?;
        return Ok(Box::new(stream));
    };
    if let Host::Ip(ip) = url.host {
        let permitted = shared.policy.check(ip);
        permitted
            .map_err(|refused| Failure::unprobed(Cause::TargetRefused, refused.to_string()))?;
    }
    by_proxy(proxy, url, tunnelled(way, hop), shared, progress).await
}

/// That a proxy is not there, or does not let us through, says nothing of the
/// target.
async fn by_proxy(
    proxy: &HttpUrl,
    target: &HttpUrl,
    tunnel: bool,
    shared: &Shared,
    progress: &mut Progress,
) -> Result<Box<dyn Transport>, Failure> {
    // It is the operator's own, and no target.
    let anywhere = TargetPolicy {
        allow_metadata: true,
        ..TargetPolicy::default()
    };
    let ours = |text: String| (Cause::Proxy, format!("proxy {}: {text}", proxy.authority()));
    progress.own_fault = Some(ours("context deadline exceeded".to_owned()));
    let stream = connect(
        &proxy.host,
        proxy.port,
        &anywhere,
        &*shared.resolver,
        progress,
    )
    .await;
    let mut stream = stream.map_err(|failure| {
        let (cause, text) = ours(failure.text);
        Failure::unprobed(failure.cause.unwrap_or(cause), text)
    })?;
    progress.own_fault = None;
    if !tunnel {
        return Ok(Box::new(stream));
    }
    // From here on the proxy may be waiting for the target.
    progress.waiting_for = Some(Awaited::Tunnel);
    let mut reply = Reply::default();
    let request = super::request::connect_to(proxy, target);
    let head = reply.head(&mut stream, &request).await;
    head.map_err(|failure| {
        let (cause, text) = ours(failure.text);
        Failure::unprobed(failure.cause.unwrap_or(cause), text)
    })?;
    progress.waiting_for = None;
    let (code, reason) = reply.status_line();
    let said = format!("CONNECT: {code} {reason}");
    match code {
        200..=299 if reply.is_drained() => Ok(Box::new(stream)),
        200..=299 => {
            let (cause, text) = ours("CONNECT: more than an answer came".to_owned());
            Err(Failure::unprobed(cause, text))
        }
        // It could not get through to the target.
        502..=504 => Err(Failure::critical(ours(said).1)),
        _ => {
            let (cause, text) = ours(said);
            Err(Failure::unprobed(cause, text))
        }
    }
}
