//! What Consul says of nodes that this daemon does not watch.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_consul::client::Client;
use evenkeel_consul::request::{Consistency, Query};
use evenkeel_consul::types::AclQuestion;
use evenkeel_consul::{Error, types::HealthCheck};
use evenkeel_engine::{CheckId, Finding, Outcome, ProbeTicket};
use evenkeel_threshold::Status;
use tokio::sync::{Semaphore, mpsc};

use crate::catalog::Aliased;
use crate::daemon::aliases::{absent, worst};
use crate::daemon::writing::from_consul;

/// How many of them are asked for at once.
const PLACES: usize = 4;

/// How long an answer may take, the wait for a place included.
const LIMIT: Duration = Duration::from_secs(8);

/// Asks Consul for the targets of aliases, and sends what it says.
#[derive(Debug)]
pub(super) struct Lookups {
    client: Client,
    consistency: Consistency,
    places: Arc<Semaphore>,
    found: mpsc::UnboundedSender<LookedUp>,
}

/// What an alias finds.
#[derive(Debug)]
pub(super) struct LookedUp {
    pub(super) ticket: ProbeTicket,
    pub(super) finding: Finding,
}

impl Lookups {
    /// There is one answer for each question, so the channel holds no more than
    /// there are checks.
    pub(super) fn new(
        client: Client,
        consistency: Consistency,
    ) -> (Self, mpsc::UnboundedReceiver<LookedUp>) {
        let (found, findings) = mpsc::unbounded_channel();
        let lookups = Self {
            client,
            consistency,
            places: Arc::new(Semaphore::new(PLACES)),
            found,
        };
        (lookups, findings)
    }

    /// Asks for the target of `alias`.
    pub(super) fn start(&self, ticket: ProbeTicket, alias: &CheckId, target: &Aliased) {
        let scope = |part: &str| Some(part.to_owned()).filter(|part| !part.is_empty());
        let query = Query {
            namespace: scope(alias.namespace()),
            partition: scope(alias.partition()),
            consistency: self.consistency,
            ..Query::default()
        };
        let (client, places, found) = (
            self.client.clone(),
            Arc::clone(&self.places),
            self.found.clone(),
        );
        let (alias, target) = (alias.clone(), target.clone());
        tokio::spawn(async move {
            let looking = async {
                let _place = places.acquire().await;
                look(&client, &query, &alias, &target).await
            };
            let finding = match tokio::time::timeout(LIMIT, looking).await {
                Ok(Ok(finding)) => finding,
                Ok(Err(error)) => unknown(error.to_string()),
                Err(_) => unknown(format!("node {}: Consul does not answer", target.node)),
            };
            // A closed channel means that the loop has ended.
            let _ = found.send(LookedUp { ticket, finding });
        });
    }
}

async fn look(
    client: &Client,
    query: &Query,
    alias: &CheckId,
    target: &Aliased,
) -> Result<Finding, Error> {
    let checks = client.health_node(&target.node, query).await?.value;
    let service = &*target.service;
    let seen: Vec<&HealthCheck> = checks
        .iter()
        .filter(|check| check.service_id.is_empty() || check.service_id == service)
        .filter(|check| !(check.node == alias.node() && check.check_id == alias.check_id()))
        .collect();
    let mut is_there = seen.iter().any(|check| check.service_id == service);
    if !is_there {
        // Consul's agent passes what is there and has no checks.
        let node = client.catalog_node(&target.node, query).await?.value;
        is_there =
            node.is_some_and(|node| service.is_empty() || node.services.contains_key(service));
    }
    if is_there {
        // As the agent has it, a status that is none of the three is not bad.
        let status = |check: &HealthCheck| check.status().map_or(Status::Passing, from_consul);
        return Ok(worst(
            seen.iter().map(|check| (status(check), &*check.check_id)),
        ));
    }
    // To a token without rights the answers look the same. The service's name,
    // by which rights are given, is not known: all names and the likeliest.
    let mut rights = vec![("node", &*target.node)];
    if !service.is_empty() {
        rights.extend([("service", ""), ("service", service)]);
    }
    let questions: Vec<AclQuestion> = rights
        .into_iter()
        .map(|(resource, name)| AclQuestion {
            // Nodes have none.
            namespace: match resource {
                "node" => String::new(),
                _ => alias.namespace().to_owned(),
            },
            partition: alias.partition().to_owned(),
            ..AclQuestion::new(resource, name, "read")
        })
        .collect();
    let allowed = client.authorize(&questions).await?;
    if allowed.iter().all(|allowed| *allowed) {
        return Ok(absent(target));
    }
    let absent = absent(target).output;
    Ok(unknown(format!("{absent} that the token may read")))
}

fn unknown(output: String) -> Finding {
    Finding {
        outcome: Outcome::Unprobed,
        output,
    }
}
