use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_consul::types::FieldFault;
use evenkeel_consul::{Error, Meta as AnswerMeta, Query};
use tokio::sync::mpsc;

use crate::catalog::consul::metadata::{Meta, Name, relevant};
use crate::catalog::consul::poll::Poll;
use crate::catalog::consul::start::{Consul, MOST, Update};

/// Watches the external nodes and their metadata.
pub(super) async fn watch(consul: Arc<Consul>, updates: mpsc::Sender<Update>) {
    let mut poll = Poll::new(consul.wait);
    loop {
        let query = poll.query(&consul.query, &consul.well).await;
        let update = match read(&consul, &query).await {
            Ok((meta, nodes)) => {
                if !poll.answered(&meta).changed {
                    continue;
                }
                Update::Nodes(nodes)
            }
            Err(error) => {
                poll.failed(&error);
                Update::Trouble("nodes", error.to_string())
            }
        };
        if updates.send(update).await.is_err() {
            return;
        }
    }
}

/// Faulty entries of one list that are named.
const MOST_NAMED: usize = 20;

/// Adds the faults of an entry called `name`, unless there are many already.
pub(super) fn note(faults: &mut Vec<String>, name: &str, found: &[FieldFault]) {
    for fault in found {
        if faults.len() < MOST_NAMED {
            faults.push(format!("{name:?}: fields cannot be read: {fault}"));
        }
    }
}

/// The nodes with their metadata, as far as they matter.
pub(super) type Nodes = HashMap<Name, Option<Meta>>;

/// Reads the nodes.
pub(super) async fn read(consul: &Consul, query: &Query) -> Result<(AnswerMeta, Nodes), Error> {
    let mut nodes = Nodes::new();
    let mut faults = Vec::new();
    let result = consul
        .client
        .each_node(query, |node| {
            note(&mut faults, &node.node, &node.faults);
            if nodes.len() < MOST {
                nodes.insert(Name::node(&node.partition, &node.node), relevant(node.meta));
            }
        })
        .await;
    consul.read("nodes", result.as_ref().ok());
    let meta = result?;
    consul.found("nodes".to_owned(), faults);
    Ok((meta, nodes))
}
