//! Who is served, as `/v1/xds` tells it.

use std::collections::BTreeSet;
use std::sync::Arc;

use evenkeel_xds::{Nack, Server};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// The xDS server and everyone who is connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct XdsReport {
    /// The format, 1.
    pub v: u32,
    /// What is published; none before the catalog has been read.
    pub version: Option<u64>,
    /// Who is connected.
    pub subscribers: Vec<SubscriberReport>,
    /// The last refusals, oldest first, also of those who have gone.
    pub refusals: Vec<NackReport>,
    /// Counts since the start.
    pub counters: std::collections::BTreeMap<String, u64>,
}

/// One stream of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriberReport {
    /// `node.id` of its bootstrap.
    pub node: String,
    /// `node.cluster`.
    pub cluster: String,
    /// Its locality: region/zone/sub-zone.
    pub locality: String,
    /// Program and version.
    pub agent: String,
    /// Where it comes from.
    pub peer: String,
    /// `ads` or `eds`.
    pub protocol: String,
    /// Since when, in milliseconds before now.
    pub connected_ms: u64,
    /// What it asks for; none is everything.
    pub clusters: Option<Vec<String>>,
    /// The version that was sent to it last.
    pub sent: Option<u64>,
    /// The version that it accepted last.
    pub acked: Option<u64>,
    /// For how many milliseconds it has left a response unanswered.
    pub unanswered_ms: Option<u64>,
    /// The clusters that it refuses as they were sent last.
    pub refused: Vec<String>,
    /// Its last refusal.
    pub last_nack: Option<NackReport>,
    /// How often it accepted.
    pub acks: u64,
    /// How often it refused.
    pub nacks: u64,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NackReport {
    /// Who.
    pub node: String,
    /// The version that was refused.
    pub version: u64,
    /// The clusters that were in it. Of several, each was sent again by itself.
    pub clusters: Vec<String>,
    /// The proxy's own words.
    pub text: String,
    /// Milliseconds since.
    pub ago_ms: u64,
}

/// What there is to tell.
pub fn report(server: &Server) -> XdsReport {
    let now = Instant::now();
    let counters = server.counters();
    XdsReport {
        v: 1,
        version: server.version(),
        subscribers: server
            .subscribers()
            .into_iter()
            .map(|subscriber| SubscriberReport {
                refused: names(&subscriber.refused),
                node: subscriber.node.id,
                cluster: subscriber.node.cluster,
                locality: subscriber.node.locality.to_string(),
                agent: subscriber.node.agent,
                peer: subscriber.peer.to_string(),
                protocol: subscriber.protocol.as_str().to_owned(),
                connected_ms: since(now, subscriber.since),
                clusters: subscriber.clusters.as_ref().map(names),
                sent: subscriber.sent,
                acked: subscriber.acked,
                unanswered_ms: subscriber.unanswered.map(|at| since(now, at)),
                last_nack: subscriber.last_nack.map(|nack| refusal(now, nack)),
                acks: subscriber.counters.acks,
                nacks: subscriber.counters.nacks,
            })
            .collect(),
        refusals: server
            .refusals()
            .into_iter()
            .map(|nack| refusal(now, nack))
            .collect(),
        counters: counters
            .iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    }
}

fn names(clusters: &BTreeSet<Arc<str>>) -> Vec<String> {
    clusters.iter().map(ToString::to_string).collect()
}

fn refusal(now: Instant, nack: Nack) -> NackReport {
    NackReport {
        clusters: names(&nack.clusters),
        ago_ms: since(now, nack.at),
        node: nack.node,
        version: nack.version,
        text: nack.text,
    }
}

fn since(now: Instant, then: Instant) -> u64 {
    let passed = now.saturating_duration_since(then).as_millis();
    u64::try_from(passed).unwrap_or(u64::MAX)
}
