//! One stream: requests in, frames out.
//!
//! The response is a body that is asked for its next frame when the connection
//! has room for it. Nothing runs ahead of the proxy, so there is no queue that
//! could grow: a proxy that reads slowly gets what is newest when it has read.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use envoy_types::pb::envoy::service::discovery::v3::DiscoveryRequest;
use futures_util::Stream;
use futures_util::stream;
use http::HeaderMap;
use http_body::Frame;
use prost::Message;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::codec::{DecodeBuf, Decoder, Streaming};
use tonic::{Code, Status};

use crate::assignment::Audience;
use crate::message;
use crate::snapshot::Snapshot;
use crate::status::{Entry, Node, count};
use crate::subscription::{Asked, Heard, Limits, Subscription};

/// Reads requests.
#[derive(Debug)]
pub(crate) struct Requests;

impl Decoder for Requests {
    type Item = DiscoveryRequest;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        let bytes = buffer.copy_to_bytes(buffer.remaining());
        DiscoveryRequest::decode(bytes)
            .map(Some)
            .map_err(|error| Status::internal(format!("not a DiscoveryRequest: {error}")))
    }
}

pub(crate) struct Conversation {
    pub(crate) requests: Streaming<DiscoveryRequest>,
    pub(crate) snapshot: watch::Receiver<Arc<Snapshot>>,
    /// True when the server ends.
    pub(crate) ending: watch::Receiver<bool>,
    pub(crate) entry: Entry,
    pub(crate) limits: Limits,
}

struct State {
    conversation: Conversation,
    subscription: Subscription,
    node: Node,
    audience: Audience,
    frames: VecDeque<Bytes>,
    over: bool,
}

impl Conversation {
    /// The frames of the response, to the trailers.
    pub(crate) fn frames(self) -> impl Stream<Item = Result<Frame<Bytes>, Status>> + Send {
        let state = State {
            conversation: self,
            subscription: Subscription::default(),
            node: Node::default(),
            audience: Audience::default(),
            frames: VecDeque::new(),
            over: false,
        };
        stream::unfold(Box::new(state), |mut state| async move {
            if state.over {
                return None;
            }
            let frame = match state.next().await {
                Ok(bytes) => Frame::data(bytes),
                Err(status) => {
                    state.over = true;
                    Frame::trailers(trailers(&status))
                }
            };
            Some((Ok(frame), state))
        })
    }
}

fn trailers(status: &Status) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if status.add_header(&mut headers).is_err() {
        // Its text does not fit into a header; its number always does.
        headers.clear();
        let _ = Status::new(status.code(), "").add_header(&mut headers);
    }
    headers
}

enum Input {
    Request(Result<Option<Box<DiscoveryRequest>>, Status>),
    Published,
    Ending,
}

impl Conversation {
    async fn input(&mut self) -> Input {
        tokio::select! {
            // An answer first: without it nothing new may go out.
            biased;
            request = self.requests.message() => Input::Request(request.map(|request| request.map(Box::new))),
            changed = self.snapshot.changed() => match changed {
                Ok(()) => Input::Published,
                Err(_) => Input::Ending,
            },
            _ = self.ending.wait_for(|ending| *ending) => Input::Ending,
        }
    }
}

impl State {
    /// The next piece to be sent, or how the stream ends.
    async fn next(&mut self) -> Result<Bytes, Status> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Ok(frame);
            }
            if self.respond() {
                continue;
            }
            match self.conversation.input().await {
                Input::Request(Ok(Some(request))) => self.hear(*request)?,
                Input::Request(Ok(None)) => return Err(Status::ok("")),
                Input::Request(Err(status)) => {
                    // A proxy that went away is none that we sent away.
                    if !matches!(status.code(), Code::Cancelled | Code::Unknown) {
                        count(&self.conversation.entry.totals().ended, 1);
                    }
                    return Err(status);
                }
                Input::Published => {}
                Input::Ending => return Err(Status::unavailable("the server is ending")),
            }
        }
    }

    fn hear(&mut self, request: DiscoveryRequest) -> Result<(), Status> {
        let entry = &self.conversation.entry;
        let totals = entry.totals();
        count(&totals.requests, 1);
        entry.alter(|subscriber| subscriber.counters.requests += 1);
        let node = request.node.as_ref().map(Node::from);
        let is_new = node.as_ref().is_some_and(|node| *node != self.node);
        if let Some(node) = node.filter(|_| is_new) {
            self.audience = node.audience();
            self.node = node;
            entry.alter(|subscriber| subscriber.node = self.node.clone());
        }
        if !request.type_url.is_empty() && request.type_url != message::TYPE_URL {
            count(&totals.other_types, 1);
            entry.alter(|subscriber| subscriber.counters.other_types += 1);
            return Ok(());
        }
        let asked = Asked {
            names: request.resource_names,
            nonce: request.response_nonce,
            refused: request.error_detail.is_some(),
        };
        let heard = self
            .subscription
            .handle(asked, self.conversation.limits)
            .map_err(|too_many| {
                count(&totals.ended, 1);
                Status::resource_exhausted(format!(
                    "{} names in one subscription, at most {} are allowed",
                    too_many.0, self.conversation.limits.names
                ))
            })?;
        match heard {
            Heard::Wish => {}
            Heard::Stale => {
                count(&totals.stale, 1);
                entry.alter(|subscriber| subscriber.counters.stale += 1);
            }
            Heard::Ack { version } => {
                count(&totals.acks, 1);
                entry.alter(|subscriber| {
                    subscriber.counters.acks += 1;
                    subscriber.acked = Some(version);
                    subscriber.unanswered = None;
                });
            }
            Heard::Nack { version, clusters } => {
                count(&totals.nacks, 1);
                entry.alter(|subscriber| {
                    subscriber.counters.nacks += 1;
                    subscriber.unanswered = None;
                });
                let text = request.error_detail.map(|error| error.message);
                entry.refused(version, &clusters, &text.unwrap_or_default());
            }
        }
        let refused = self.subscription.refuses();
        entry.alter(|subscriber| {
            if subscriber.refused != *refused {
                subscriber.refused.clone_from(refused);
            }
        });
        let wish_changed = std::mem::take(&mut self.subscription.wish_changed);
        if wish_changed {
            let names = self.subscription.names();
            entry.alter(|subscriber| {
                subscriber.clusters = names.map(|names| names.cloned().collect());
            });
        }
        if is_new || wish_changed {
            entry.interest_changed();
        }
        Ok(())
    }

    /// Whether there is something to send.
    fn respond(&mut self) -> bool {
        let conversation = &mut self.conversation;
        let snapshot = Arc::clone(&conversation.snapshot.borrow_and_update());
        let response = self
            .subscription
            .next(&snapshot, &self.audience, conversation.limits);
        let Some(response) = response else {
            return false;
        };
        self.frames.extend(message::response(
            &response.version.to_string(),
            &response.nonce.to_string(),
            &response.resources,
        ));
        let bytes = self.frames.iter().map(Bytes::len).sum::<usize>() as u64;
        let totals = conversation.entry.totals();
        count(&totals.responses, 1);
        count(&totals.response_bytes, bytes);
        conversation.entry.alter(|subscriber| {
            subscriber.counters.responses += 1;
            subscriber.counters.response_bytes += bytes;
            subscriber.sent = Some(response.version);
            subscriber.unanswered = Some(Instant::now());
        });
        true
    }
}
