use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_consul::Query;
use evenkeel_consul::client::Client;
use evenkeel_consul::types::CheckRef;
use evenkeel_consul::write::{StatusWrite, WriteForm, WriteOutcome};
use evenkeel_engine::{
    CheckId, DeregisterTicket, Deregistered, Write, WriteTicket, Written, output_hash,
};
use evenkeel_threshold::Status;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::catalog::Token;
use crate::metrics::Metrics;

/// Writes to the catalog, and sends what came of it.
#[derive(Debug)]
pub(super) struct Writing {
    target: Target,
    done: mpsc::UnboundedSender<Done>,
    metrics: Arc<Metrics>,
}

/// Where statuses go.
#[derive(Debug)]
pub(super) enum Target {
    /// Into Consul.
    Consul(Client),
    /// Nowhere: a file only defines checks.
    Nowhere,
}

/// What came of something that was sent to the catalog.
#[derive(Debug)]
pub(super) enum Done {
    /// Of a batch of writes.
    Writes {
        outcomes: Vec<(WriteTicket, Written<Token>)>,
        /// The first error, if any write failed or was refused.
        error: Option<String>,
        /// There was an error that a missing leader may be the cause of.
        unavailable: bool,
    },
    /// Of a removal.
    Deregistration {
        ticket: DeregisterTicket,
        result: Deregistered,
        /// Why it was not removed.
        error: Option<String>,
    },
}

impl Writing {
    /// The engine bounds how many batches are on their way, and so the channel.
    pub(super) fn new(
        target: Target,
        metrics: Arc<Metrics>,
    ) -> (Self, mpsc::UnboundedReceiver<Done>) {
        let (done, outcomes) = mpsc::unbounded_channel();
        let writing = Self {
            target,
            done,
            metrics,
        };
        (writing, outcomes)
    }

    /// Sends a batch.
    pub(super) fn write(&self, writes: Vec<Write<Token>>) {
        let done = self.done.clone();
        let client = match &self.target {
            Target::Consul(client) => client.clone(),
            Target::Nowhere => {
                let outcomes = writes
                    .into_iter()
                    .map(|write| (write.ticket, Written::Done(write.token)))
                    .collect();
                let _ = done.send(Done::Writes {
                    outcomes,
                    error: None,
                    unavailable: false,
                });
                return;
            }
        };
        let metrics = Arc::clone(&self.metrics);
        tokio::spawn(async move {
            let (tickets, requests): (Vec<_>, Vec<_>) =
                writes.into_iter().filter_map(request).unzip();
            let outcomes = client.write_statuses(&requests).await;
            let mut counts = BTreeMap::new();
            let mut error = None;
            let mut unavailable = false;
            let outcomes = tickets
                .into_iter()
                .zip(outcomes)
                .map(|(Sent { ticket, epoch, way }, outcome)| {
                    let (written, label) = written(epoch, outcome, |failed| {
                        error.get_or_insert_with(|| failed.to_string());
                        unavailable |= failed.is_retryable();
                    });
                    *counts.entry((way, label)).or_insert(0) += 1;
                    (ticket, written)
                })
                .collect();
            for ((way, label), count) in counts {
                metrics.writes(way, label, count);
            }
            let _ = done.send(Done::Writes {
                outcomes,
                error,
                unavailable,
            });
        });
    }

    /// Removes the service that `id`'s check belongs to, provided that the check
    /// is still as `token` says.
    pub(super) fn deregister(&self, ticket: DeregisterTicket, id: &CheckId, token: &Token) {
        let done = self.done.clone();
        let (Target::Consul(client), Token::Consul { index, .. }) = (&self.target, token) else {
            let _ = done.send(Done::Deregistration {
                ticket,
                result: Deregistered::Refused,
                error: Some("the catalog is a file".into()),
            });
            return;
        };
        let (client, id, index) = (client.clone(), id.clone(), *index);
        tokio::spawn(async move {
            let (result, error) = match remove_service(&client, &id, index).await {
                Ok(()) => (Deregistered::Done, None),
                Err((result, error)) => (result, Some(error)),
            };
            let _ = done.send(Done::Deregistration {
                ticket,
                result,
                error,
            });
        });
    }
}

/// Removes a service in one transaction with a check-and-set of the check that
/// decided it: somebody may have registered the service anew in the meantime.
async fn remove_service(
    client: &Client,
    id: &CheckId,
    index: u64,
) -> Result<(), (Deregistered, String)> {
    let failed = |error: evenkeel_consul::Error| {
        let result = if error.is_retryable() {
            Deregistered::Failed
        } else {
            Deregistered::Refused
        };
        (result, error.to_string())
    };
    let scope = |part: &str| Some(part.to_owned()).filter(|part| !part.is_empty());
    let query = Query {
        namespace: scope(id.namespace()),
        partition: scope(id.partition()),
        ..Query::default()
    };
    // Consul wants the service's name too, for its ACLs.
    let checks = client
        .health_node(id.node(), &query)
        .await
        .map_err(failed)?;
    let Some(check) = checks
        .value
        .into_iter()
        .find(|check| check.check_id == id.check_id() && check.service_id == id.service_id())
    else {
        let why = "the check is not there any more".to_owned();
        return Err((Deregistered::Gone, why));
    };
    let operations = json!([
        {"Check": {"Verb": "delete-cas", "Check": named(id, json!({
            "Node": id.node(), "CheckID": id.check_id(), "ModifyIndex": index,
        }))}},
        {"Service": {"Verb": "delete", "Node": id.node(), "Service": named(id, json!({
            "ID": id.service_id(), "Service": check.service_name,
        }))}},
    ]);
    let query = Query {
        namespace: None,
        ..query
    };
    let reply = client
        .txn(operations.to_string().into(), &query)
        .await
        .map_err(failed)?;
    match reply.errors.first() {
        None => Ok(()),
        Some(refused) if refused.what.contains("Permission denied") => {
            Err((Deregistered::Refused, refused.what.clone()))
        }
        // The check has changed since; the list will say how.
        Some(refused) => Err((Deregistered::Failed, refused.what.clone())),
    }
}

/// `value` with the namespace and partition of `id`, where it has any: a server
/// without them refuses the very fields.
fn named(id: &CheckId, mut value: Value) -> Value {
    for (key, part) in [("Namespace", id.namespace()), ("Partition", id.partition())] {
        if !part.is_empty() {
            value[key] = part.into();
        }
    }
    value
}

struct Sent {
    ticket: WriteTicket,
    epoch: u32,
    way: &'static str,
}

/// The write as the client takes it; none for a token that is not Consul's,
/// which the engine has no way to come by here.
fn request(write: Write<Token>) -> Option<(Sent, StatusWrite)> {
    let Token::Consul { epoch, index, form } = write.token else {
        return None;
    };
    let way = match &form {
        WriteForm::Transaction(_) => "transaction",
        WriteForm::Register => "register",
    };
    let sent = Sent {
        ticket: write.ticket,
        epoch,
        way,
    };
    let request = StatusWrite {
        check: reference(&write.id),
        status: to_consul(write.status),
        output: write.output,
        index,
        form,
    };
    Some((sent, request))
}

fn reference(id: &CheckId) -> CheckRef {
    CheckRef {
        partition: id.partition().to_owned(),
        namespace: id.namespace().to_owned(),
        node: id.node().to_owned(),
        service_id: id.service_id().to_owned(),
        check_id: id.check_id().to_owned(),
    }
}

/// What the engine is told, and the word for the metric.
fn written(
    epoch: u32,
    outcome: WriteOutcome,
    mut failed: impl FnMut(&evenkeel_consul::Error),
) -> (Written<Token>, &'static str) {
    match outcome {
        WriteOutcome::Written { index, form } => (
            Written::Done(Token::Consul { epoch, index, form }),
            "written",
        ),
        WriteOutcome::Stale {
            index,
            form,
            status,
            output,
        } => {
            let stale = Written::Stale {
                token: Token::Consul { epoch, index, form },
                // A status that is none of the three is no good to anybody:
                // critical is what a consumer makes of it.
                status: status.map_or(Status::Critical, from_consul),
                output_hash: output_hash(&output),
            };
            (stale, "stale")
        }
        WriteOutcome::Gone => (Written::Gone, "gone"),
        WriteOutcome::Failed(error) => {
            failed(&error);
            if error.is_retryable() {
                (Written::Failed, "failed")
            } else {
                (Written::Refused, "refused")
            }
        }
    }
}

/// Our word for Consul's status.
pub(crate) fn from_consul(status: evenkeel_consul::types::Status) -> Status {
    match status {
        evenkeel_consul::types::Status::Passing => Status::Passing,
        evenkeel_consul::types::Status::Warning => Status::Warning,
        evenkeel_consul::types::Status::Critical => Status::Critical,
    }
}

fn to_consul(status: Status) -> evenkeel_consul::types::Status {
    match status {
        Status::Passing => evenkeel_consul::types::Status::Passing,
        Status::Warning => evenkeel_consul::types::Status::Warning,
        Status::Critical => evenkeel_consul::types::Status::Critical,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_testkit::Consul;

    // P038, P039; a service that was registered anew must not be removed.
    #[test]
    fn a_service_is_removed_only_if_its_check_is_as_it_was() {
        let Some(consul) = Consul::start("a_service_is_removed_only_if_its_check_is_as_it_was")
        else {
            return;
        };
        let register = |node: &str| {
            consul.register(&json!({
                "Node": node, "Address": "127.0.0.1",
                "Service": {"ID": "web-1", "Service": "web"},
                "Checks": [{"Node": node, "CheckID": "c", "Name": "c", "ServiceID": "web-1",
                    "Status": "critical", "Definition": {"TCP": "127.0.0.1:1"}}],
            }));
            consul.check(node, "c").unwrap()["ModifyIndex"]
                .as_u64()
                .unwrap()
        };
        let index = register("a");
        register("b");
        let client = Client::new(&evenkeel_consul::Config {
            address: consul.address().parse().unwrap(),
            ..evenkeel_consul::Config::default()
        })
        .unwrap();
        let id = CheckId::new("", "", "a", "web-1", "c");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let remove = |index| runtime.block_on(remove_service(&client, &id, index));
        let services = |node: &str| {
            let node = consul.get_json(&format!("/v1/catalog/node/{node}"));
            node["Services"].as_object().unwrap().len()
        };

        let (result, refused) = remove(index - 1).unwrap_err();
        assert_eq!(result, Deregistered::Failed);
        assert!(refused.contains("stale"), "{refused}");
        assert_eq!(services("a"), 1);
        remove(index).unwrap();
        assert_eq!((services("a"), services("b")), (0, 1));
        assert!(consul.check("a", "c").is_none());
        assert_eq!(remove(index).unwrap_err().0, Deregistered::Gone);
    }
}
