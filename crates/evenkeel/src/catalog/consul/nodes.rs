use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_consul::types::Node;
use tokio::sync::mpsc;

use crate::catalog::consul::metadata::{Meta, Name, relevant};
use crate::catalog::consul::poll::Poll;
use crate::catalog::consul::start::{Consul, Update};

/// Watches the external nodes and their metadata.
pub(super) async fn watch(consul: Arc<Consul>, updates: mpsc::Sender<Update>) {
    let mut poll = Poll::new(consul.wait);
    loop {
        let query = poll.query(&consul.query, &consul.well).await;
        let update = match consul.client.list_nodes(&query).await {
            Ok(answer) => {
                consul.read("nodes", Some(&answer.meta));
                if !poll.answered(&answer.meta).changed {
                    continue;
                }
                Update::Nodes(by_name(answer.value))
            }
            Err(error) => {
                consul.read("nodes", None);
                poll.failed(&error);
                Update::Trouble("nodes", error.to_string())
            }
        };
        if updates.send(update).await.is_err() {
            return;
        }
    }
}

/// The metadata of nodes, as far as they matter.
pub(super) fn by_name(nodes: Vec<Node>) -> HashMap<Name, Option<Meta>> {
    nodes
        .into_iter()
        .map(|node| {
            let name = Name::node(&node.partition, &node.node);
            (name, relevant(node.meta))
        })
        .collect()
}
