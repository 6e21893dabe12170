//! The connection that a check keeps between its probes.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use rustls_pki_types::UnixTime;
use tokio::io::AsyncReadExt as _;
use tokio::time::Instant;

use crate::definition::{Family, Host, HttpUrl};
use crate::progress::{Progress, Seen};
use crate::transport::Transport;

/// A connection that has been idle for longer is not used (Go's client, and so
/// Consul's users: `IdleConnTimeout`).
const MAX_IDLE: Duration = Duration::from_secs(90);

/// A connection that is ready for the next request.
pub(crate) struct Kept {
    pub(super) stream: Box<dyn Transport>,
    pub(super) address: Option<SocketAddr>,
    /// What the server showed when the connection was made.
    pub(super) seen: Option<Box<Seen>>,
    origin: Origin,
    since: Instant,
}

/// What a connection is good for: the same server, and the same prober, whose
/// settings decided how it was made.
#[derive(PartialEq, Eq)]
struct Origin {
    prober: u64,
    https: bool,
    host: Host,
    port: u16,
}

impl Origin {
    fn of(prober: u64, url: &HttpUrl) -> Self {
        Self {
            prober,
            https: url.https,
            host: url.host.clone(),
            port: url.port,
        }
    }
}

/// Where a check keeps its connection. It goes when the check goes, and is not
/// part of what the check *is*: a copy has none, and all are equal.
#[derive(Default)]
pub(crate) struct Idle(Mutex<Option<Kept>>);

impl Idle {
    /// The kept connection to `url`'s server, if there is one and it is still
    /// there as far as can be seen. One to another server, or to an address of
    /// another family, stays. One on which there is something new to be said of
    /// the certificate goes: on a new connection it is looked at anew.
    pub(super) fn take(
        &self,
        prober: u64,
        url: &HttpUrl,
        family: Family,
        now: UnixTime,
    ) -> Option<Kept> {
        let origin = Origin::of(prober, url);
        let serves = |kept: &mut Kept| {
            kept.origin == origin && kept.address.is_none_or(|at| family.takes(at.ip()))
        };
        let mut kept = self.lock().take_if(serves)?;
        let current = kept.seen.as_ref().is_none_or(|seen| seen.is_current(now));
        let fresh = current && kept.since.elapsed() <= MAX_IDLE;
        // A server says nothing unasked: an end, a reset, or a stray byte.
        let quiet = fresh && kept.stream.read(&mut [0]).now_or_never().is_none();
        quiet.then_some(kept)
    }

    pub(super) fn keep(
        &self,
        prober: u64,
        url: &HttpUrl,
        stream: Box<dyn Transport>,
        progress: &Progress,
    ) {
        *self.lock() = Some(Kept {
            stream,
            address: progress.address,
            seen: progress.seen.clone(),
            origin: Origin::of(prober, url),
            since: Instant::now(),
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for Idle {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Idle {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Idle {}

impl Hash for Idle {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Idle")
    }
}
