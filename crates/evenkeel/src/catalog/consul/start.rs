use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_consul::Error;
use evenkeel_consul::Meta as AnswerMeta;
use evenkeel_consul::client::Client;
use evenkeel_consul::request::{Consistency, Query};
use evenkeel_consul::types::CatalogService;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::catalog::consul::checks::{Checks, Incoming, Unknown};
use crate::catalog::consul::definition::Commands;
use crate::catalog::consul::metadata::Metadata;
use crate::catalog::consul::nodes::Nodes;
use crate::catalog::consul::poll::{Next, Poll};
use crate::catalog::consul::services::Instances;
use crate::catalog::consul::{nodes, services};
use crate::catalog::{CatalogFault, CatalogMessage, CatalogSender, CatalogView};
use crate::config::Settings;
use crate::metrics::Metrics;
use crate::thresholds::Resolver;

/// Checks that are missing for a reason we cannot be sure of are asked for again
/// after so long.
const DOUBT: Duration = Duration::from_secs(10);

/// Metadata of a new service or node may be unreadable for so long before its
/// checks are probed without.
const PATIENCE: Duration = Duration::from_secs(5);

/// consul-esm registers itself under this name unless told otherwise.
const OTHER_MONITOR: &str = "consul-esm";

/// How often that registration is looked for.
const OTHER_MONITOR_PERIOD: Duration = Duration::from_secs(300);

/// No list is longer: of one that has no end only so much is kept. A Consul of
/// this size takes seconds for a list.
pub(super) const MOST: usize = 500_000;

/// What the watches share.
pub(super) struct Consul {
    pub(super) client: Client,
    /// The external nodes.
    pub(super) query: Query,
    /// How long Consul may hold a long poll.
    pub(super) wait: Duration,
    metrics: Arc<Metrics>,
    /// Notified when Consul is found to be well: whoever waits after an error
    /// tries again.
    pub(super) well: Arc<Notify>,
    /// What is wrong with metadata, by the list it was found in.
    faults: Mutex<BTreeMap<String, Vec<String>>>,
}

impl Consul {
    /// Takes note of what is wrong in a list of nodes or in a service.
    pub(super) fn found(&self, list: String, faults: Vec<String>) {
        let mut known = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if faults.is_empty() {
            known.remove(&list);
        } else {
            known.insert(list, faults);
        }
    }

    /// Forgets the faults of services that are not in `names`.
    fn keep_faults(&self, names: &[String]) {
        let mut known = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return;
        }
        let listed: HashSet<String> = names
            .iter()
            .map(|name| format!("service {name:?}"))
            .collect();
        known.retain(|list, _| list == "nodes" || listed.contains(list));
    }

    /// All that is wrong with metadata.
    fn faults(&self) -> Vec<CatalogFault> {
        let known = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let text = |(list, faults): (&String, &Vec<String>)| CatalogFault {
            id: None,
            text: format!("{list}: {}", faults.join("; ")),
        };
        known.iter().map(text).collect()
    }

    /// Counts a read of `list`; `meta` is none if it failed.
    pub(super) fn read(&self, list: &'static str, meta: Option<&AnswerMeta>) {
        let seconds = meta.map_or(0.0, |meta| meta.transfer.as_secs_f64());
        self.metrics.catalog_read(list, meta.is_some(), seconds);
    }
}

/// What the watches of metadata say.
pub(super) enum Update {
    /// All external nodes.
    Nodes(Nodes),
    /// The names of all services on external nodes.
    Services(Arc<[String]>),
    /// All instances of one service; none if it cannot be read.
    Service(String, Option<Instances>),
    /// Every service has been read once.
    AllServices,
    /// A list cannot be read.
    Trouble(&'static str, String),
}

/// A running watch on Consul; it ends when this is dropped.
#[derive(Debug)]
pub struct ConsulCatalog {
    tasks: JoinSet<()>,
    /// To be notified when Consul is found to be well: watches that wait after
    /// an error try again at once.
    pub well: Arc<Notify>,
}

impl ConsulCatalog {
    /// Ends the watch.
    pub fn stop(&mut self) {
        self.tasks.abort_all();
    }
}

/// Watches Consul and sends what it says. `settings` may change: thresholds are
/// resolved anew then.
pub fn start(
    client: Client,
    settings: watch::Receiver<Arc<Settings>>,
    sender: CatalogSender,
    metrics: Arc<Metrics>,
) -> ConsulCatalog {
    let well = Arc::new(Notify::new());
    let consul = {
        let settings = settings.borrow();
        Arc::new(Consul {
            client,
            query: Query {
                node_meta: settings
                    .consul
                    .external_node_meta
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect(),
                consistency: settings.consul.consistency(),
                ..Query::default()
            },
            wait: settings.consul.wait,
            metrics,
            well: Arc::clone(&well),
            faults: Mutex::default(),
        })
    };
    let mut tasks = JoinSet::new();
    // Room for some services, so that reading them is not slowed down.
    let (tell, updates) = mpsc::channel(64);
    tasks.spawn(nodes::watch(Arc::clone(&consul), tell.clone()));
    tasks.spawn(services::watch(Arc::clone(&consul), tell));
    tasks.spawn(look_for_others(Arc::clone(&consul), sender.clone()));
    let watch = Watch::new(consul, settings, sender);
    tasks.spawn(async move {
        // Ends when nobody takes the lists any more.
        let _ = watch.run(updates).await;
    });
    ConsulCatalog { tasks, well }
}

/// The watch on the checks, where everything comes together.
struct Watch {
    consul: Arc<Consul>,
    settings: watch::Receiver<Arc<Settings>>,
    sender: CatalogSender,
    /// Faults of metadata that the latest view had.
    said: Vec<CatalogFault>,
    resolver: Resolver,
    metadata: Metadata,
    checks: Checks,
    keep: HashSet<evenkeel_engine::CheckId>,
    epoch: u32,
    poll: Poll,
    /// When the list is to be read again although no long poll has answered.
    reread: Option<Instant>,
    /// Since when metadata are missing.
    unknown_since: Option<Instant>,
    /// Lists that could not be read at the latest try, and why.
    troubles: HashMap<&'static str, String>,
    /// Why the latest list is not believed as a whole.
    doubt: Option<String>,
    seen: bool,
}

type Read = (AnswerMeta, Incoming);
type Reading = Pin<Box<dyn Future<Output = Result<Read, Error>> + Send>>;

impl Watch {
    fn new(
        consul: Arc<Consul>,
        settings: watch::Receiver<Arc<Settings>>,
        sender: CatalogSender,
    ) -> Self {
        let resolver = Resolver::new(&settings.borrow());
        let poll = Poll::new(consul.wait);
        Self {
            consul,
            settings,
            sender,
            said: Vec::new(),
            resolver,
            metadata: Metadata::default(),
            checks: Checks::default(),
            keep: HashSet::new(),
            epoch: 0,
            poll,
            reread: None,
            unknown_since: None,
            troubles: HashMap::new(),
            doubt: None,
            seen: false,
        }
    }

    /// Ends with `None` when nobody listens any more.
    async fn run(mut self, mut updates: mpsc::Receiver<Update>) -> Option<()> {
        self.wait_for_metadata(&mut updates).await?;
        let well = Arc::clone(&self.consul.well);
        let mut polling: Option<Reading> = None;
        loop {
            let mut rest = None;
            if polling.is_none() {
                match self.poll.next(&self.consul.query) {
                    Next::Ask(query) => polling = Some(self.read(query)),
                    Next::Rest(until) => rest = Some(until),
                }
            }
            let later = Instant::now() + PATIENCE;
            tokio::select! {
                read = async { polling.as_mut()?.await.into() }, if polling.is_some() => {
                    polling = None;
                    match read {
                        Some(Ok(read)) => self.take_list(read, true).await?,
                        Some(Err(error)) => self.failed(&error).await?,
                        None => {}
                    }
                }
                () = tokio::time::sleep_until(rest.unwrap_or(later)), if rest.is_some() => {}
                () = well.notified() => self.poll.recovered(),
                update = updates.recv() => self.take_update(update?).await?,
                // The long poll goes on in the meantime: Consul would not notice
                // before its end that it was given up. (P160)
                () = tokio::time::sleep_until(self.reread.unwrap_or(later)), if self.reread.is_some() => {
                    self.reread = None;
                    match self.read(self.consul.query.clone()).await {
                        Ok(read) => self.take_list(read, false).await?,
                        Err(error) => {
                            self.reread = Some(Instant::now() + DOUBT);
                            self.trouble("checks", error.to_string()).await?;
                        }
                    }
                }
                changed = self.settings.changed() => {
                    changed.ok()?;
                    self.resolver = Resolver::new(&self.settings.borrow_and_update());
                    self.send_view().await?;
                }
            }
        }
    }

    /// Nothing is probed before its thresholds are known.
    async fn wait_for_metadata(&mut self, updates: &mut mpsc::Receiver<Update>) -> Option<()> {
        let (mut nodes, mut services) = (false, false);
        while !(nodes && services) {
            match updates.recv().await? {
                Update::Nodes(list) => {
                    self.metadata.set_nodes(list);
                    self.troubles.remove("nodes");
                    nodes = true;
                }
                Update::AllServices => {
                    self.troubles.remove("services");
                    services = true;
                }
                Update::Services(_) => {}
                Update::Service(name, instances) => {
                    self.metadata.take_service(&name, instances);
                    self.troubles.remove("service");
                }
                Update::Trouble(list, why) => self.trouble(list, why).await?,
            }
        }
        Some(())
    }

    fn read(&self, query: Query) -> Reading {
        let consul = Arc::clone(&self.consul);
        let (default_timeout, minimum_interval, commands) = {
            let settings = self.settings.borrow();
            (
                settings.probe.default_timeout,
                settings.schedule.minimum_interval,
                Commands::from(&settings.probe),
            )
        };
        Box::pin(async move {
            let mut incoming = Incoming::new(default_timeout, minimum_interval, commands);
            let result = consul
                .client
                .each_check(&query, |check| incoming.take(&check))
                .await;
            consul.read("checks", result.as_ref().ok());
            Ok((result?, incoming))
        })
    }

    async fn take_update(&mut self, update: Update) -> Option<()> {
        let changed = match update {
            Update::Nodes(list) => {
                self.healed("nodes").await?;
                let changed = self.metadata.set_nodes(list);
                // A node that got or lost the mark does not wake the checks' long
                // poll.
                if changed && self.seen {
                    self.reread_at(Instant::now());
                }
                changed
            }
            Update::Service(name, instances) => {
                self.healed("service").await?;
                self.metadata.take_service(&name, instances)
            }
            Update::Services(names) => {
                self.healed("services").await?;
                let listed =
                    |name: &str| names.binary_search_by(|other| (**other).cmp(name)).is_ok();
                self.metadata.keep_unreadable(listed);
                self.consul.keep_faults(&names);
                for gone in self.metadata.services_beside(|name| {
                    names.binary_search_by(|other| (**other).cmp(name)).is_ok()
                }) {
                    self.metadata.set_service(&gone, Vec::new());
                }
                false
            }
            Update::AllServices => false,
            Update::Trouble(list, why) => {
                self.trouble(list, why).await?;
                false
            }
        };
        if self.seen && (changed || self.said != self.consul.faults()) {
            self.send_view().await?;
        }
        Some(())
    }

    /// Takes in a whole list, the long poll's or another.
    async fn take_list(&mut self, (meta, incoming): Read, polled: bool) -> Option<()> {
        if polled {
            let news = self.poll.answered(&meta);
            // A server that lags behind goes backwards too; then the newest that
            // is known holds.
            if news.reset && self.consul.query.consistency != Consistency::Stale {
                tracing::warn!("Consul's indexes start anew: it was restored from a backup");
                self.epoch = self.epoch.wrapping_add(1);
            }
            // A token that loses rights gets a shorter list at the same index.
            let shrank = incoming.len() < self.checks.len();
            if !news.changed && self.seen && self.doubt.is_none() && !shrank {
                return self.healed("checks").await;
            }
        } else {
            self.poll.also_read(&meta);
        }
        if incoming.is_too_long() {
            let why = format!("the list has more than {MOST} checks");
            return self.trouble("checks", why).await;
        }
        self.troubles.remove("checks");
        let mut now = incoming.finish(&self.checks);

        let missing = self.checks.missing_in(&now, &self.keep);
        let mut doubt = None;
        self.keep.clear();
        if now.nameless() > 0 && !missing.is_empty() {
            // Any of those missing may be one of those that cannot be read.
            self.keep = missing.kept(&[]);
            doubt = Some(format!(
                "{} checks are missing in Consul's list, and {} of its entries cannot be read",
                missing.len(),
                now.nameless()
            ));
            now.keep(&self.checks, &self.keep);
        } else if !missing.is_empty() {
            match self.consul.client.authorize(&missing.questions()).await {
                Ok(allowed) => {
                    self.keep = missing.kept(&allowed);
                    if !self.keep.is_empty() {
                        doubt = Some(format!(
                            "{} checks are missing in Consul's list, and the token may not read their nodes or services",
                            self.keep.len()
                        ));
                    }
                }
                Err(error) => {
                    self.keep = missing.kept(&[]);
                    doubt = Some(format!(
                        "{} checks are missing in Consul's list, and it cannot be told whether the token may read them: {error}",
                        missing.len()
                    ));
                }
            }
            now.keep(&self.checks, &self.keep);
        }
        if meta.filtered_by_acls && doubt.is_none() && now.len() == 0 {
            doubt = Some("the token may not read any check of an external node".to_owned());
        }
        if doubt.is_some() {
            self.reread_at(Instant::now() + DOUBT);
        }
        self.doubt = doubt;
        self.checks = now;
        self.read_unknown().await;
        self.seen = true;
        self.send_view().await
    }

    /// Reads the metadata of new services and nodes now, for their thresholds
    /// must be known before they are probed.
    async fn read_unknown(&mut self) {
        let unknown = self.checks.unknown(&self.metadata);
        if unknown.is_empty() {
            self.unknown_since = None;
            return;
        }
        let Unknown { services, nodes } = unknown;
        if nodes && let Ok((_, nodes)) = nodes::read(&self.consul, &self.consul.query).await {
            self.metadata.set_nodes(nodes);
        }
        for service in services {
            match services::read(&self.consul, &service).await {
                Ok(instances) => {
                    self.metadata.take_service(&service, instances);
                }
                // The rest would fail as well; the list is read again soon.
                Err(_) => break,
            }
        }
        if self.checks.unknown(&self.metadata).is_empty() {
            self.unknown_since = None;
        } else {
            self.unknown_since.get_or_insert_with(Instant::now);
            self.reread_at(Instant::now() + Duration::from_secs(1));
        }
    }

    /// Whether checks without metadata are held back.
    fn is_patient(&self) -> bool {
        self.unknown_since
            .is_some_and(|since| since.elapsed() < PATIENCE)
    }

    async fn send_view(&mut self) -> Option<()> {
        let degraded = self.doubt.clone().or_else(|| self.troubled());
        let mut view: CatalogView = self
            .checks
            .view(
                &self.metadata,
                &mut self.resolver,
                self.epoch,
                &self.keep,
                degraded,
            )
            .await;
        self.said = self.consul.faults();
        view.faults.extend(self.said.iter().cloned());
        if self.is_patient() {
            view.checks
                .retain(|watched| self.checks.is_known(&watched.check.id, &self.metadata));
        }
        self.sender.send(CatalogMessage::View(view)).await.ok()
    }

    async fn failed(&mut self, error: &Error) -> Option<()> {
        self.poll.failed(error);
        self.trouble("checks", error.to_string()).await
    }

    async fn trouble(&mut self, list: &'static str, why: String) -> Option<()> {
        self.troubles.insert(list, why);
        let text = self.troubled().unwrap_or_default();
        self.sender.send(CatalogMessage::Trouble(text)).await.ok()
    }

    /// A list can be read again.
    async fn healed(&mut self, list: &'static str) -> Option<()> {
        if self.troubles.remove(list).is_some() && self.seen {
            self.send_view().await?;
        }
        Some(())
    }

    fn troubled(&self) -> Option<String> {
        // In a stable order, so that the text changes only with the trouble.
        ["checks", "nodes", "services", "service"]
            .iter()
            .find_map(|list| self.troubles.get(list).cloned())
    }

    fn reread_at(&mut self, at: Instant) {
        let at = at.max(self.poll.rested_at());
        self.reread = Some(self.reread.map_or(at, |planned| planned.min(at)));
    }
}

/// Says whether consul-esm is registered in the same Consul: two monitors that
/// write the same checks undo each other's work.
async fn look_for_others(consul: Arc<Consul>, sender: CatalogSender) {
    loop {
        let found = consul
            .client
            .catalog_service(OTHER_MONITOR, &Query::default())
            .await;
        // An error says nothing about it: what was said last holds.
        if let Ok(answer) = found
            && sender
                .send(CatalogMessage::OtherMonitor(other_monitor(&answer.value)))
                .await
                .is_err()
        {
            return;
        }
        tokio::time::sleep(OTHER_MONITOR_PERIOD).await;
    }
}

fn other_monitor(instances: &[CatalogService]) -> Option<String> {
    let CatalogService {
        service_id, node, ..
    } = instances.first()?;
    Some(format!(
        "{OTHER_MONITOR} is registered in this Consul ({service_id} on node {node}): if it watches the same nodes, both write the same checks"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_monitor_is_there_while_it_is_registered() {
        let instance = CatalogService {
            service_id: "consul-esm:1".to_owned(),
            node: "agent".to_owned(),
            ..CatalogService::default()
        };
        let said = other_monitor(&[instance]).unwrap();
        assert!(said.contains("(consul-esm:1 on node agent)"), "{said}");
        assert_eq!(other_monitor(&[]), None);
    }
}
