//! One stream's subscription, without I/O: what the proxy asked for, what it
//! has been sent, and what it said to that.
//!
//! One response at a time is under way. What is published meanwhile is not
//! queued: when the proxy has answered, it is sent what is newest then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::assignment::{Assignment, Audience};
use crate::message;
use crate::snapshot::Snapshot;

/// What of a request matters here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) names: Vec<String>,
    pub(crate) nonce: String,
    pub(crate) refused: bool,
}

/// What a request was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A wish, not an answer.
    Wish,
    /// The response under way has been accepted.
    Ack { version: u64 },
    /// The response under way has been refused, with these clusters in it.
    Nack {
        version: u64,
        clusters: BTreeSet<Arc<str>>,
    },
    /// It answers a response that is no longer the latest: not looked at. The
    /// proxy says the same again when it answers the latest one.
    Stale,
}

/// The proxy asked for more names than it may.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooManyNames(pub(crate) usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Names of one subscription.
    pub(crate) names: usize,
    /// Bytes of one response, unless a single resource is larger.
    pub(crate) response: usize,
}

/// A response to be sent.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) version: u64,
    pub(crate) nonce: u64,
    pub(crate) resources: Vec<Bytes>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Wanted {
    #[default]
    Nothing,
    Everything,
    These(BTreeSet<Arc<str>>),
}

#[derive(Debug)]
struct UnderWay {
    version: u64,
    names: Vec<Arc<str>>,
}

/// `Resource::changed` of a resource that has been taken back.
const GONE: u64 = 0;

#[derive(Debug, Default)]
pub(crate) struct Subscription {
    wanted: Wanted,
    /// Set when a request asks for other names than the one before.
    pub(crate) wish_changed: bool,
    /// Once names have been given, an empty list means none, before that all.
    has_named: bool,
    /// What the proxy has, or was offered: name and [`Resource::changed`].
    ///
    /// [`Resource::changed`]: crate::snapshot::Resource
    sent: BTreeMap<Arc<str>, u64>,
    under_way: Option<UnderWay>,
    nonce: u64,
    /// Refused together with others: sent again one by one, so that one that
    /// the proxy cannot take does not keep it from the others.
    alone: BTreeSet<Arc<str>>,
    /// Refused by themselves, and not accepted since.
    refused: BTreeSet<Arc<str>>,
}

impl Subscription {
    pub(crate) fn handle(&mut self, asked: Asked, limits: Limits) -> Result<Heard, TooManyNames> {
        let heard = if asked.nonce.is_empty() {
            Heard::Wish
        } else if asked.nonce != self.nonce.to_string() {
            return Ok(Heard::Stale);
        } else {
            match self.under_way.take() {
                None => Heard::Wish,
                Some(answered) if asked.refused => self.refused(answered),
                Some(answered) => {
                    for name in &answered.names {
                        self.refused.remove(name);
                    }
                    Heard::Ack {
                        version: answered.version,
                    }
                }
            }
        };
        self.want(asked.names, limits)?;
        Ok(heard)
    }

    fn refused(&mut self, answered: UnderWay) -> Heard {
        if answered.names.len() > 1 {
            for name in &answered.names {
                self.sent.remove(name);
                self.alone.insert(Arc::clone(name));
            }
        } else {
            self.refused.extend(answered.names.iter().cloned());
        }
        Heard::Nack {
            version: answered.version,
            clusters: answered.names.into_iter().collect(),
        }
    }

    /// What the proxy refuses as it was sent last.
    pub(crate) fn refuses(&self) -> &BTreeSet<Arc<str>> {
        &self.refused
    }

    fn want(&mut self, names: Vec<String>, limits: Limits) -> Result<(), TooManyNames> {
        if names.len() > limits.names {
            return Err(TooManyNames(names.len()));
        }
        let everything = names.iter().any(|name| name == "*");
        let wanted = if everything || (names.is_empty() && !self.has_named) {
            Wanted::Everything
        } else if names.is_empty() {
            Wanted::Nothing
        } else {
            Wanted::These(names.into_iter().map(Arc::from).collect())
        };
        self.has_named |= !matches!(wanted, Wanted::Everything) || everything;
        if wanted == self.wanted {
            return Ok(());
        }
        self.wanted = wanted;
        self.wish_changed = true;
        // Whoever asks again later has forgotten it and is to be sent it again.
        let wanted = &self.wanted;
        let still = |name: &Arc<str>| match wanted {
            Wanted::Nothing => false,
            Wanted::Everything => true,
            Wanted::These(names) => names.contains(name),
        };
        self.sent.retain(|name, _| still(name));
        self.alone.retain(still);
        self.refused.retain(still);
        Ok(())
    }

    /// What is to be sent now, if anything is.
    pub(crate) fn next(
        &mut self,
        snapshot: &Snapshot,
        audience: &Audience,
        limits: Limits,
    ) -> Option<Response> {
        if self.under_way.is_some() || snapshot.version == 0 {
            return None;
        }
        let pending = self.pending(snapshot, audience, limits);
        if pending.is_empty() {
            return None;
        }
        self.nonce += 1;
        let mut response = Response {
            version: snapshot.version,
            nonce: self.nonce,
            resources: Vec::with_capacity(pending.len()),
        };
        let mut names = Vec::with_capacity(pending.len());
        for (name, changed, bytes) in pending {
            self.alone.remove(&name);
            self.sent.insert(Arc::clone(&name), changed);
            response.resources.push(bytes);
            names.push(name);
        }
        self.under_way = Some(UnderWay {
            version: snapshot.version,
            names,
        });
        Some(response)
    }

    /// What the proxy lacks, as much of it as fits into one response.
    fn pending(
        &self,
        snapshot: &Snapshot,
        audience: &Audience,
        limits: Limits,
    ) -> Vec<(Arc<str>, u64, Bytes)> {
        let mut together = Vec::new();
        let mut size = 0;
        let mut alone = None;
        for name in self.candidates(snapshot, audience) {
            let (changed, bytes) = match snapshot.get(audience, name) {
                Some(resource) => (resource.changed, resource.bytes.clone()),
                // The proxy has it, and now it is gone: that there is no
                // endpoint is what can be said of that.
                None if self.sent.contains_key(name) => {
                    (GONE, message::resource(name, &Assignment::default()))
                }
                // Not known (yet): an empty one might be wrong.
                None => continue,
            };
            if self.sent.get(name) == Some(&changed) {
                continue;
            }
            let found = (Arc::clone(name), changed, bytes);
            if self.alone.contains(name) {
                alone = alone.or(Some(found));
            } else if together.is_empty() || size + found.2.len() <= limits.response {
                size += found.2.len();
                together.push(found);
            } else {
                break;
            }
        }
        // What was never refused goes first.
        if together.is_empty() {
            together.extend(alone);
        }
        together
    }

    fn candidates<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        audience: &'a Audience,
    ) -> Box<dyn Iterator<Item = &'a Arc<str>> + 'a> {
        match &self.wanted {
            Wanted::Nothing => Box::new(std::iter::empty()),
            Wanted::These(names) => Box::new(names.iter()),
            Wanted::Everything => {
                let gone = self.sent.keys();
                let gone = gone.filter(move |name| snapshot.get(audience, name).is_none());
                Box::new(snapshot.clusters(audience).chain(gone))
            }
        }
    }

    /// The names asked for; `None` is all.
    pub(crate) fn names(&self) -> Option<impl Iterator<Item = &Arc<str>>> {
        match &self.wanted {
            Wanted::Everything => None,
            Wanted::Nothing => Some(None),
            Wanted::These(names) => Some(Some(names)),
        }
        .map(|names| names.into_iter().flatten())
    }
}

#[cfg(test)]
#[path = "subscription_tests.rs"]
mod tests;
