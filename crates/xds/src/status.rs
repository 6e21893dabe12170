//! What is going on, as data: who is subscribed, what they have accepted, what
//! they refused and why.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use envoy_types::pb::envoy::config::core::v3 as core;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::assignment::{Audience, Locality};

/// Kept of a text that a proxy sent; the rest is cut off and marked.
const TEXT: usize = 4096;
/// Kept of a name.
const NAME: usize = 256;
/// Refusals that are kept when the proxy has gone.
const REFUSALS: usize = 32;

/// How a proxy asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// `AggregatedDiscoveryService`.
    Ads,
    /// `EndpointDiscoveryService`.
    Eds,
}

impl Protocol {
    /// `ads` or `eds`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ads => "ads",
            Self::Eds => "eds",
        }
    }
}

/// Where a proxy comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Peer {
    /// From there, over TCP.
    Tcp(SocketAddr),
    /// From this machine, over the unix socket.
    Unix,
}

/// An address, or `unix`.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}

/// What a proxy says of itself. Long texts are cut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// `node.id` of its bootstrap.
    pub id: String,
    /// `node.cluster`: the service that it belongs to.
    pub cluster: String,
    /// `node.locality`.
    pub locality: Locality,
    /// Program and version: `envoy 1.40.0`.
    pub agent: String,
}

impl Node {
    pub(crate) fn audience(&self) -> Audience {
        Audience {
            callers: self.cluster.clone(),
            locality: self.locality.clone(),
        }
    }
}

/// A response that a proxy refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nack {
    /// The proxy's `node.id`.
    pub node: String,
    /// The version that it refused. It goes on with what it had before.
    pub version: u64,
    /// The clusters that were in it. If there are several, each is sent again by
    /// itself, to see which of them it was.
    pub clusters: BTreeSet<Arc<str>>,
    /// What it said: Envoy's own text, cut at 4 KiB.
    pub text: String,
    /// When.
    pub at: Instant,
}

/// One stream of one proxy.
#[derive(Debug, Clone)]
pub struct Subscriber {
    /// Its number since the start.
    pub id: u64,
    /// Where it comes from.
    pub peer: Peer,
    /// How it asked.
    pub protocol: Protocol,
    /// Who it is; empty until its first request.
    pub node: Node,
    /// Since when it is connected.
    pub since: Instant,
    /// What it asked for; `None` is everything.
    pub clusters: Option<BTreeSet<Arc<str>>>,
    /// The version that it was sent last.
    pub sent: Option<u64>,
    /// The version that it accepted last.
    pub acked: Option<u64>,
    /// Since when a response is under way to which it has not answered.
    pub unanswered: Option<Instant>,
    /// The clusters that it refuses as they were sent last.
    pub refused: BTreeSet<Arc<str>>,
    /// Its last refusal. Stays when it has accepted what it refused.
    pub last_nack: Option<Nack>,
    /// Of this stream.
    pub counters: Counters,
}

impl Subscriber {
    /// What decides which assignments it sees.
    pub fn audience(&self) -> Audience {
        self.node.audience()
    }

    /// Whether it refuses any cluster as it was sent last.
    pub fn is_refusing(&self) -> bool {
        !self.refused.is_empty()
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts; of all streams, or of one.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Names and values, in a fixed order, for metrics.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }

        #[derive(Debug, Default)]
        pub(crate) struct Totals {
            $(pub(crate) $name: AtomicU64,)*
        }

        impl Totals {
            pub(crate) fn get(&self) -> Counters {
                Counters { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Streams that were opened.
    streams,
    /// Requests that were read.
    requests,
    /// Responses that were sent.
    responses,
    /// Bytes of them, as encoded.
    response_bytes,
    /// Responses that were accepted.
    acks,
    /// Responses that were refused.
    nacks,
    /// Requests with the number of an older response, which are not looked at.
    stale,
    /// Requests for other things than endpoint assignments, left unanswered.
    other_types,
    /// Streams that we ended: too many names, an unreadable request.
    ended,
    /// Connections that were closed since there are too many.
    connections_refused,
    /// TLS handshakes that failed or took too long.
    handshakes_failed,
}

pub(crate) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// All streams.
#[derive(Debug)]
pub(crate) struct Registry {
    subscribers: Mutex<BTreeMap<u64, Subscriber>>,
    refusals: Mutex<VecDeque<Nack>>,
    next: AtomicU64,
    pub(crate) totals: Totals,
    interest: watch::Sender<u64>,
    refused: watch::Sender<u64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Values are replaced as wholes; one that a panic left behind is whole too.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            subscribers: Mutex::default(),
            refusals: Mutex::default(),
            next: AtomicU64::new(1),
            totals: Totals::default(),
            interest: watch::Sender::new(0),
            refused: watch::Sender::new(0),
        }
    }
}

impl Registry {
    pub(crate) fn enter(self: &Arc<Self>, peer: Peer, protocol: Protocol) -> Entry {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        count(&self.totals.streams, 1);
        let subscriber = Subscriber {
            id,
            peer,
            protocol,
            node: Node::default(),
            since: Instant::now(),
            clusters: Some(BTreeSet::new()),
            sent: None,
            acked: None,
            unanswered: None,
            refused: BTreeSet::new(),
            last_nack: None,
            counters: Counters::default(),
        };
        lock(&self.subscribers).insert(id, subscriber);
        Entry {
            registry: Arc::clone(self),
            id,
        }
    }

    pub(crate) fn subscribers(&self) -> Vec<Subscriber> {
        lock(&self.subscribers).values().cloned().collect()
    }

    pub(crate) fn refusals(&self) -> Vec<Nack> {
        lock(&self.refusals).iter().cloned().collect()
    }

    pub(crate) fn interest(&self) -> watch::Receiver<u64> {
        self.interest.subscribe()
    }

    pub(crate) fn refused(&self) -> watch::Receiver<u64> {
        self.refused.subscribe()
    }
}

/// A stream's place in the registry; it goes with the stream.
#[derive(Debug)]
pub(crate) struct Entry {
    registry: Arc<Registry>,
    id: u64,
}

impl Entry {
    pub(crate) fn totals(&self) -> &Totals {
        &self.registry.totals
    }

    pub(crate) fn alter(&self, change: impl FnOnce(&mut Subscriber)) {
        if let Some(subscriber) = lock(&self.registry.subscribers).get_mut(&self.id) {
            change(subscriber);
        }
    }

    /// What is asked for, or by whom, is new.
    pub(crate) fn interest_changed(&self) {
        self.registry.interest.send_modify(|number| *number += 1);
    }

    pub(crate) fn refused(&self, version: u64, clusters: &BTreeSet<Arc<str>>, text: &str) {
        self.alter(|subscriber| {
            let nack = Nack {
                node: subscriber.node.id.clone(),
                version,
                clusters: clusters.clone(),
                text: cut(text, TEXT),
                at: Instant::now(),
            };
            subscriber.last_nack = Some(nack.clone());
            let mut refusals = lock(&self.registry.refusals);
            if refusals.len() == REFUSALS {
                refusals.pop_front();
            }
            refusals.push_back(nack);
        });
        self.registry.refused.send_modify(|number| *number += 1);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        lock(&self.registry.subscribers).remove(&self.id);
        self.interest_changed();
    }
}

/// The whole text, or its beginning with a mark.
fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = (0..=limit)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    format!("{}…", &text[..end])
}

impl From<&core::Node> for Node {
    fn from(node: &core::Node) -> Self {
        use core::node::UserAgentVersionType::{UserAgentBuildVersion, UserAgentVersion};
        let version = match &node.user_agent_version_type {
            Some(UserAgentVersion(version)) => version.clone(),
            Some(UserAgentBuildVersion(build)) => {
                build.version.as_ref().map_or_else(String::new, |it| {
                    format!("{}.{}.{}", it.major_number, it.minor_number, it.patch)
                })
            }
            None => String::new(),
        };
        let agent = format!("{} {version}", node.user_agent_name);
        let locality = node.locality.as_ref().map_or_else(Locality::default, |it| {
            Locality::new(
                cut(&it.region, NAME),
                cut(&it.zone, NAME),
                cut(&it.sub_zone, NAME),
            )
        });
        Self {
            id: cut(&node.id, NAME),
            cluster: cut(&node.cluster, NAME),
            locality,
            agent: cut(agent.trim(), NAME),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_marked() {
        assert_eq!(cut("grün", 4), "grü…");
        assert_eq!(cut("grün", 3), "gr…");
        assert_eq!(cut("grün", 5), "grün");
    }
}
