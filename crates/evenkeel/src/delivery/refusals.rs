//! Refusals, for the log.

use std::collections::HashMap;

use evenkeel_xds::{Nack, Server};
use tokio::sync::watch;

/// Proxies whose last refusal is known; beyond that all are forgotten.
const MOST: usize = 4_096;

/// What proxies refuse, each once: one that is sent the same again says the same
/// again.
#[derive(Debug)]
pub(super) struct Refusals {
    server: Server,
    count: watch::Receiver<u64>,
    logged: u64,
    said: HashMap<String, String>,
}

impl Refusals {
    pub(super) fn of(server: &Server) -> Self {
        Self {
            server: server.clone(),
            count: server.refusal_changes(),
            logged: 0,
            said: HashMap::new(),
        }
    }

    /// Logs those that come, until it is dropped.
    pub(super) async fn log(mut self) {
        while self.count.changed().await.is_ok() {
            for nack in self.news() {
                tracing::warn!(
                    proxy = nack.node,
                    version = nack.version,
                    clusters = ?nack.clusters,
                    text = nack.text,
                    "a proxy refuses what it was sent and goes on with what it had"
                );
            }
        }
    }

    fn news(&mut self) -> Vec<Nack> {
        let count = *self.count.borrow_and_update();
        let new = usize::try_from(count - self.logged).unwrap_or(usize::MAX);
        self.logged = count;
        // The server keeps some; if more came at once, the others are in its counter.
        let kept = self.server.refusals();
        let known = kept.len().saturating_sub(new);
        let mut news = Vec::new();
        for nack in kept.into_iter().skip(known) {
            if self.said.len() >= MOST {
                self.said.clear();
            }
            let before = self.said.insert(nack.node.clone(), nack.text.clone());
            if before.as_ref() != Some(&nack.text) {
                news.push(nack);
            }
        }
        news
    }
}
