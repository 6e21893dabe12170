use std::sync::Arc;
use std::time::Duration;

use evenkeel_consul::Error;
use futures_util::StreamExt as _;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::catalog::consul::metadata::{Meta, Name, relevant};
use crate::catalog::consul::nodes::note;
use crate::catalog::consul::poll::Poll;
use crate::catalog::consul::start::{Consul, MOST, Update};

/// A change of a service's metadata is seen within this time of the wake-up,
/// however many services there are; 30 s is promised.
const ROUND: Duration = Duration::from_secs(20);

/// Time between the reads of two services, at most.
const SPACING_MOST: Duration = Duration::from_millis(50);

/// Services read at once at the start.
const AT_ONCE: usize = 8;

/// The instances of a service with their metadata, and their nodes'.
pub(super) type Instances = Vec<(Name, Option<Meta>)>;

/// Reads the instances of one service on external nodes. None for one with a
/// name that Consul's router takes for a path (`a//b`), and redirects.
pub(super) async fn read(consul: &Consul, service: &str) -> Result<Option<Instances>, Error> {
    let mut instances = Instances::new();
    let mut faults = Vec::new();
    let result = consul
        .client
        .each_instance(service, &consul.query, |service| {
            note(&mut faults, &service.node, &service.faults);
            if instances.len() < MOST {
                let name = Name::instance(
                    &service.partition,
                    &service.namespace,
                    &service.node,
                    &service.service_id,
                );
                instances.push((name, relevant(service.service_meta)));
            }
        })
        .await;
    consul.read("service", result.as_ref().ok());
    if let Err(error) = &result
        && error.status().is_some_and(|code| code.is_redirection())
    {
        let text = format!("its metadata cannot be read under this name: {error}");
        consul.found(format!("service {service:?}"), vec![text]);
        return Ok(None);
    }
    result?;
    consul.found(format!("service {service:?}"), faults);
    Ok(Some(instances))
}

/// Watches the services on external nodes: their names by long poll, their
/// instances one after the other whenever that wakes.
pub(super) async fn watch(consul: Arc<Consul>, updates: mpsc::Sender<Update>) {
    let (found, names) = watch::channel(None);
    // Either ends when nobody takes its updates any more.
    tokio::select! {
        () = watch_names(&consul, &found, &updates) => {}
        _ = read_instances(&consul, names, &updates) => {}
    }
}

type Names = Option<Arc<[String]>>;

async fn watch_names(
    consul: &Consul,
    found: &watch::Sender<Names>,
    updates: &mpsc::Sender<Update>,
) {
    let mut poll = Poll::new(consul.wait);
    loop {
        let query = poll.query(&consul.query, &consul.well).await;
        match consul.client.list_services(&query).await {
            Ok(answer) => {
                consul.read("services", Some(&answer.meta));
                if poll.answered(&answer.meta).changed {
                    found.send_replace(Some(answer.value.into_keys().collect()));
                }
            }
            Err(error) => {
                consul.read("services", None);
                poll.failed(&error);
                let trouble = Update::Trouble("services", error.to_string());
                if updates.send(trouble).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Ends with `None` when nobody listens any more.
async fn read_instances(
    consul: &Consul,
    mut names: watch::Receiver<Names>,
    updates: &mpsc::Sender<Update>,
) -> Option<()> {
    let first = loop {
        names.changed().await.ok()?;
        let first = names.borrow_and_update().clone();
        if let Some(first) = first {
            break first;
        }
    };
    read_all(consul, &first, updates).await?;
    updates.send(Update::AllServices).await.ok()?;
    let mut ring = Ring::new(first);
    let mut tick = Instant::now();
    loop {
        tokio::select! {
            changed = names.changed() => {
                changed.ok()?;
                let new = names.borrow_and_update().clone();
                if let Some(new) = new {
                    updates.send(Update::Services(Arc::clone(&new))).await.ok()?;
                    ring.renew(new);
                }
            }
            () = tokio::time::sleep_until(tick), if ring.left > 0 => {
                tick = Instant::now() + ring.spacing();
                if let Some(name) = ring.next() {
                    read_one(consul, name, updates).await?;
                }
            }
        }
    }
}

/// Reads all services, several at once: nothing can be probed before its
/// thresholds are known.
async fn read_all(consul: &Consul, names: &[String], updates: &mpsc::Sender<Update>) -> Option<()> {
    let reads = names
        .iter()
        .cloned()
        .map(|name| async move { read_one(consul, &name, updates).await });
    let mut reads = futures_util::stream::iter(reads).buffer_unordered(AT_ONCE);
    while let Some(sent) = reads.next().await {
        sent?;
    }
    Some(())
}

/// Reads one service until it can be read or the error is one that stays, such
/// as a missing right.
async fn read_one(consul: &Consul, name: &str, updates: &mpsc::Sender<Update>) -> Option<()> {
    // The poll serves for its back-off only: the query never waits.
    let mut poll = Poll::new(consul.wait);
    loop {
        poll.query(&consul.query, &consul.well).await;
        match read(consul, name).await {
            Ok(instances) => {
                let read = Update::Service(name.to_owned(), instances);
                return updates.send(read).await.ok();
            }
            Err(error) => {
                poll.failed(&error);
                let trouble = Update::Trouble("service", error.to_string());
                updates.send(trouble).await.ok()?;
                if !error.is_retryable() {
                    return Some(());
                }
            }
        }
    }
}

/// The names in turn. After a wake-up each is due once, whatever its place.
#[derive(Debug)]
struct Ring {
    names: Arc<[String]>,
    at: usize,
    left: usize,
}

impl Ring {
    fn new(names: Arc<[String]>) -> Self {
        Self {
            names,
            at: 0,
            left: 0,
        }
    }

    /// All of `names` are due from where the ring stands.
    fn renew(&mut self, names: Arc<[String]>) {
        let before = self.names.get(self.at);
        // The next one in order, so that none is put off for ever by renewals.
        self.at = before.map_or(0, |before| names.partition_point(|name| name < before));
        self.left = names.len();
        self.names = names;
    }

    fn next(&mut self) -> Option<&str> {
        self.left = self.left.checked_sub(1)?;
        if self.at >= self.names.len() {
            self.at = 0;
        }
        let name = self.names.get(self.at)?;
        self.at += 1;
        Some(name)
    }

    fn spacing(&self) -> Duration {
        let count = u32::try_from(self.names.len().max(1)).unwrap_or(u32::MAX);
        (ROUND / count).min(SPACING_MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Arc<[String]> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_service_is_read_once_after_a_wake_up() {
        let mut ring = Ring::new(names(&["a", "b", "c"]));
        assert_eq!(ring.next(), None);
        ring.renew(names(&["a", "b", "c"]));
        assert_eq!(ring.next(), Some("a"));
        // Woken again in the middle: those not read since are all due.
        ring.renew(names(&["a", "b", "bb", "c"]));
        let rest: Vec<String> = std::iter::from_fn(|| ring.next().map(str::to_owned)).collect();
        assert_eq!(rest, ["b", "bb", "c", "a"]);
        ring.renew(names(&[]));
        assert_eq!(ring.next(), None);
    }

    #[test]
    fn a_round_takes_no_longer_than_promised() {
        for count in [1_usize, 200, 5000] {
            let list: Vec<String> = (0..count).map(|n| n.to_string()).collect();
            let ring = Ring::new(list.into());
            let round = ring.spacing() * u32::try_from(count).unwrap();
            assert!(round <= ROUND, "{count}: {round:?}");
        }
    }
}
