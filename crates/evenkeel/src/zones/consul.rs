//! The instances of one service in Consul, by long poll.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_consul::client::Client;
use evenkeel_consul::request::{Consistency, Query};
use evenkeel_consul::types::{AclQuestion, ServiceHealth};
use evenkeel_engine::CheckId;
use evenkeel_threshold::Status;
use tokio::sync::{Notify, mpsc};

use super::task::Update;
use super::{Endpoint, Instance, LocalityKeys, Weights};
use crate::catalog::consul::Poll;
use crate::metrics::Metrics;

/// More instances of one service are not taken.
const MOST: usize = 100_000;

/// An empty list that is not believed is asked for again after so long.
const DOUBT: Duration = Duration::from_secs(10);

/// What all watches share.
#[derive(Debug, Clone)]
pub(super) struct Watcher {
    pub(super) client: Client,
    pub(super) wait: Duration,
    pub(super) consistency: Consistency,
    pub(super) keys: Arc<LocalityKeys>,
    pub(super) metrics: Arc<Metrics>,
    /// Notified when Consul is found to be well again.
    pub(super) well: Arc<Notify>,
}

/// Sends the instances of a service whenever they change, until nobody listens.
pub(super) async fn watch(watcher: Watcher, name: Arc<str>, updates: mpsc::Sender<Update>) {
    let base = Query {
        consistency: watcher.consistency,
        ..Query::default()
    };
    let mut poll = Poll::new(watcher.wait);
    let mut filled = false;
    // The same list after an error is news: it can be read again.
    let mut troubled = false;
    loop {
        let query = poll.query(&base, &watcher.well).await;
        let update = match watcher.client.health_service(&name, &query).await {
            Ok(answer) => {
                let seconds = answer.meta.transfer.as_secs_f64();
                watcher.metrics.catalog_read("health", true, seconds);
                let news = poll.answered(&answer.meta);
                let shrank = answer.value.is_empty() && filled;
                if !news.changed && !shrank && !troubled {
                    continue;
                }
                // A token that loses its rights is told of an empty list.
                if shrank && let Err(why) = may_read(&watcher.client, &name).await {
                    let trouble = Update::Trouble(Arc::clone(&name), why);
                    if updates.send(trouble).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(DOUBT).await;
                    // From the beginning: the index has moved on.
                    poll = Poll::new(watcher.wait);
                    continue;
                }
                filled = !answer.value.is_empty();
                troubled = false;
                let (instances, faults) = instances(answer.value, &watcher.keys);
                Update::Instances(Arc::clone(&name), instances, faults)
            }
            Err(error) => {
                watcher.metrics.catalog_read("health", false, 0.0);
                poll.failed(&error);
                troubled = true;
                Update::Trouble(Arc::clone(&name), error.to_string())
            }
        };
        if updates.send(update).await.is_err() {
            return;
        }
    }
}

/// Whether an empty list means that there is no instance.
async fn may_read(client: &Client, service: &str) -> Result<(), String> {
    let question = AclQuestion::new("service", service, "read");
    match client.authorize(&[question]).await {
        Ok(allowed) if allowed == [true] => Ok(()),
        Ok(_) => Err("the token may not read the service; the last list stands".to_owned()),
        Err(error) => Err(format!(
            "no instance is listed, and it cannot be told whether the token may read them: {error}"
        )),
    }
}

/// What Consul's entries mean, and what is wrong with those that mean nothing.
fn instances(entries: Vec<ServiceHealth>, keys: &LocalityKeys) -> (Vec<Instance>, Vec<String>) {
    let mut faults = Vec::new();
    let over = entries.len().saturating_sub(MOST);
    if over > 0 {
        faults.push(format!(
            "{over} instances beyond the first {MOST} are left out"
        ));
    }
    let instances = entries
        .into_iter()
        .take(MOST)
        .map(|entry| instance(entry, keys, &mut faults))
        .collect();
    (instances, faults)
}

fn instance(entry: ServiceHealth, keys: &LocalityKeys, faults: &mut Vec<String>) -> Instance {
    let ServiceHealth {
        node,
        service,
        checks,
        faults: unreadable,
    } = entry;
    let id = match (service.partition.as_str(), service.namespace.as_str()) {
        ("", "") => format!("{}/{}", node.node, service.id),
        (partition, namespace) => {
            format!("{partition}/{namespace}/{}/{}", node.node, service.id)
        }
    };
    faults.extend(unreadable.iter().map(|fault| format!("{id}: {fault}")));
    let port = u16::try_from(service.port).unwrap_or_else(|_| {
        faults.push(format!("{id}: {} is no port", service.port));
        0
    });
    let address = match service.address.as_str() {
        "" => node.address.as_str(),
        own => own,
    };
    let checks = checks
        .iter()
        .map(|check| {
            let id = CheckId::new(
                &check.partition,
                &check.namespace,
                &check.node,
                &check.service_id,
                &check.check_id,
            );
            // One that Consul itself does not name counts as it does for Consul:
            // not passing.
            (id, check.status.parse().unwrap_or(Status::Critical))
        })
        .collect();
    let endpoint = Endpoint {
        id: id.into(),
        address: address.into(),
        port,
        locality: keys.locality(
            (service.locality.as_ref(), &service.meta),
            (node.locality.as_ref(), &node.meta),
        ),
        priority: 0,
    };
    Instance {
        endpoint,
        weights: weights(&service.extra),
        checks,
    }
}

/// `Weights` of a service's registration, which Consul's DNS uses. Absent in
/// some registrations through the catalog.
fn weights(extra: &BTreeMap<String, serde_json::Value>) -> Weights {
    let weight = |name: &str| {
        let number = extra.get("Weights")?.get(name)?.as_u64()?;
        u32::try_from(number).ok()
    };
    match (weight("Passing"), weight("Warning")) {
        // What a catalog registration without weights shows.
        (None | Some(0), None | Some(0)) => Weights::default(),
        (passing, warning) => Weights {
            passing: passing.unwrap_or(1),
            warning: warning.unwrap_or(1),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use evenkeel_consul::Config;
    use evenkeel_testkit::{Reply, Stub};

    use super::*;

    const ONE: &str = r#"[{"Node":{"Node":"n","Address":"10.0.0.1"},
        "Service":{"ID":"api","Service":"api","Port":80,"Weights":{"Passing":7,"Warning":0}},
        "Checks":[]}]"#;

    // A server that is asked too often keeps its index: the list comes back without a
    // change.
    #[tokio::test]
    async fn a_list_that_can_be_read_again_is_told_though_it_is_the_same() {
        let asked = AtomicUsize::new(0);
        let stub = Stub::start(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
            1 => Reply::status(429, "too many"),
            _ => Reply::json(ONE).header("X-Consul-Index", "7"),
        });
        let config = Config {
            address: stub.address().parse().unwrap(),
            ..Config::default()
        };
        let watcher = Watcher {
            client: Client::new(&config).unwrap(),
            wait: Duration::from_secs(1),
            consistency: Consistency::Default,
            keys: Arc::new(LocalityKeys {
                zone: Vec::new(),
                region: Vec::new(),
            }),
            metrics: Arc::new(Metrics::new()),
            well: Arc::default(),
        };
        let (tell, mut updates) = mpsc::channel(1);
        let watch = tokio::spawn(watch(watcher, "api".into(), tell));
        let mut told = Vec::new();
        while told.len() < 3 {
            let limit = Duration::from_secs(60);
            let update = tokio::time::timeout(limit, updates.recv()).await;
            told.push(update.expect("within a minute").unwrap());
        }
        watch.abort();
        let [
            Update::Instances(_, one, _),
            Update::Trouble(..),
            Update::Instances(_, again, _),
        ] = &told[..]
        else {
            panic!("{told:?}");
        };
        assert_eq!(one, again);
        assert_eq!(
            one[0].weights,
            Weights {
                passing: 7,
                warning: 0
            }
        );
    }
}
