//! The task that owns [`Zones`], and what it talks to.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_consul::client::Client;
use evenkeel_consul::request::Consistency;
use evenkeel_engine::CheckId;
use evenkeel_threshold::Status;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::consul::{self, Watcher};
use super::{Full, Instance, LocalityKeys, PairView, RuleName, RuleSettings, ServiceView, Zones};
use crate::clock::Clock;
use crate::metrics::{Metrics, raise_to, set};

/// How often what nobody asks for is forgotten.
const SWEEP: Duration = Duration::from_secs(10);

/// The released status of a check that the daemon watches; none if it watches
/// it no more.
pub type Released = (CheckId, Option<Status>);

/// The instances of all services in a file, by the service's name.
pub type FileServices = HashMap<Arc<str>, Vec<Instance>>;

/// Where instances come from.
#[derive(Debug)]
pub enum Source {
    /// Consul's `health/service/NAME`.
    Consul {
        /// The client.
        client: Client,
        /// How long a long poll may be held.
        wait: Duration,
        /// Which server may answer.
        consistency: Consistency,
        /// Notified when Consul is found to be well again.
        well: Arc<Notify>,
        /// Metadata that says where an instance is.
        keys: Arc<LocalityKeys>,
    },
    /// A file.
    File(watch::Receiver<Arc<FileServices>>),
}

/// What a source says of one service.
#[derive(Debug)]
pub(super) enum Update {
    /// These are its instances, and what is wrong with others.
    Instances(Arc<str>, Vec<Instance>, Vec<String>),
    /// They cannot be read; the last ones stand.
    Trouble(Arc<str>, String),
}

#[derive(Debug)]
enum Request {
    Service {
        name: Arc<str>,
        reply: oneshot::Sender<Result<watch::Receiver<Arc<ServiceView>>, Full>>,
    },
    Pair {
        upstream: Arc<str>,
        callers: Arc<str>,
        rule: Option<RuleName>,
        reply: oneshot::Sender<Result<watch::Receiver<Arc<PairView>>, Full>>,
    },
    Pairs {
        reply: oneshot::Sender<Vec<Arc<PairView>>>,
    },
}

/// Asks the task. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ZonesHandle {
    requests: mpsc::Sender<Request>,
}

/// Why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// Too much is asked for at once.
    #[error(transparent)]
    Full(#[from] Full),
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopped,
}

impl ZonesHandle {
    /// A handle that nobody answers.
    #[cfg(test)]
    pub(crate) fn stopped() -> Self {
        let (requests, _) = mpsc::channel(1);
        Self { requests }
    }

    /// Follows a service, as long as the receiver is held.
    ///
    /// # Errors
    ///
    /// [`Unanswered`].
    pub async fn service(
        &self,
        name: &str,
    ) -> Result<watch::Receiver<Arc<ServiceView>>, Unanswered> {
        let name = Arc::from(name);
        let question = |reply| Request::Service { name, reply };
        Ok(self.ask(question).await??)
    }

    /// Follows the split of the requests of `callers` to `upstream`, by the
    /// configured rule if none is named, as long as the receiver is held.
    ///
    /// # Errors
    ///
    /// [`Unanswered`].
    pub async fn pair(
        &self,
        upstream: &str,
        callers: &str,
        rule: Option<RuleName>,
    ) -> Result<watch::Receiver<Arc<PairView>>, Unanswered> {
        let (upstream, callers) = (Arc::from(upstream), Arc::from(callers));
        let question = |reply| Request::Pair {
            upstream,
            callers,
            rule,
            reply,
        };
        Ok(self.ask(question).await??)
    }

    /// All pairs that are followed.
    ///
    /// # Errors
    ///
    /// [`Unanswered::Stopped`].
    pub async fn pairs(&self) -> Result<Vec<Arc<PairView>>, Unanswered> {
        self.ask(|reply| Request::Pairs { reply }).await
    }

    async fn ask<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<T, Unanswered> {
        let (reply, answer) = oneshot::channel();
        self.requests
            .send(question(reply))
            .await
            .map_err(|_| Unanswered::Stopped)?;
        answer.await.map_err(|_| Unanswered::Stopped)
    }
}

/// The task.
#[derive(Debug)]
pub struct ZonesTask {
    zones: Zones,
    clock: Clock,
    metrics: Arc<Metrics>,
    requests: mpsc::Receiver<Request>,
    /// Statuses, whenever one changes and when they are asked for.
    released: mpsc::UnboundedReceiver<Released>,
    /// Where statuses are asked for; the answer comes through `released`.
    ask: mpsc::Sender<Vec<CheckId>>,
    asked: HashSet<CheckId>,
    source: Source,
    watches: Watches,
    updates: mpsc::Receiver<Update>,
}

/// The watches of services in Consul.
#[derive(Debug)]
struct Watches {
    tasks: JoinSet<()>,
    running: HashMap<Arc<str>, AbortHandle>,
    tell: mpsc::Sender<Update>,
}

impl ZonesTask {
    /// A task that follows nothing yet, and the handle to ask it.
    pub fn new(
        settings: RuleSettings,
        source: Source,
        clock: Clock,
        metrics: Arc<Metrics>,
        released: mpsc::UnboundedReceiver<Released>,
        ask: mpsc::Sender<Vec<CheckId>>,
    ) -> (Self, ZonesHandle) {
        let (requests, asked_for) = mpsc::channel(64);
        let (tell, updates) = mpsc::channel(64);
        let task = Self {
            zones: Zones::new(settings, clock.now()),
            clock,
            metrics,
            requests: asked_for,
            released,
            ask,
            asked: HashSet::new(),
            source,
            watches: Watches {
                tasks: JoinSet::new(),
                running: HashMap::new(),
                tell,
            },
            updates,
        };
        (task, ZonesHandle { requests })
    }

    /// Runs until the daemon's loop has ended.
    pub async fn run(mut self) {
        let mut sweep = tokio::time::interval(SWEEP);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut statuses = Vec::new();
        loop {
            let due = self.zones.poll_timeout();
            let wake = due.map(|due| self.clock.instant(due));
            let later = tokio::time::Instant::now() + SWEEP;
            tokio::select! {
                count = self.released.recv_many(&mut statuses, 1024) => {
                    if count == 0 {
                        return;
                    }
                    let now = self.clock.now();
                    for (check, status) in statuses.drain(..) {
                        self.zones.handle_status(now, &check, status);
                    }
                }
                Some(request) = self.requests.recv() => self.take_request(request).await,
                Some(update) = self.updates.recv() => self.take_update(update).await,
                services = changed(&mut self.source) => {
                    let wanted = self.zones.wanted().cloned().collect();
                    self.take_file(&services, wanted).await;
                }
                () = tokio::time::sleep_until(wake.unwrap_or(later)), if wake.is_some() => {
                    self.zones.handle_timeout(self.clock.now());
                }
                _ = sweep.tick() => self.sweep(),
                Some(ended) = self.watches.tasks.join_next() => {
                    if let Err(error) = ended && error.is_panic() {
                        tracing::error!(%error, "the watch of a service has failed");
                    }
                }
            }
        }
    }

    async fn take_request(&mut self, request: Request) {
        let now = self.clock.now();
        match request {
            // One that has given up needs no answer.
            Request::Service { name, reply } => {
                drop(reply.send(self.zones.service(now, &name)));
            }
            Request::Pair {
                upstream,
                callers,
                rule,
                reply,
            } => {
                let rule = rule.unwrap_or(self.zones.default_rule());
                drop(reply.send(self.zones.pair(now, &upstream, &callers, rule)));
            }
            Request::Pairs { reply } => {
                drop(reply.send(self.zones.pairs()));
                return;
            }
        }
        self.read_wanted().await;
    }

    async fn take_update(&mut self, update: Update) {
        let now = self.clock.now();
        match update {
            Update::Instances(name, instances, faults) => {
                self.zones.handle_instances(now, &name, instances, faults);
                self.ask_for_statuses(&name).await;
            }
            Update::Trouble(name, why) => self.zones.handle_trouble(now, &name, why),
        }
    }

    /// Reads what is wanted and not read yet.
    async fn read_wanted(&mut self) {
        match &self.source {
            Source::Consul {
                client,
                wait,
                consistency,
                well,
                keys,
            } => {
                let watcher = || Watcher {
                    client: client.clone(),
                    wait: *wait,
                    consistency: *consistency,
                    keys: Arc::clone(keys),
                    metrics: Arc::clone(&self.metrics),
                    well: Arc::clone(well),
                };
                self.watches.keep(self.zones.wanted(), watcher);
            }
            Source::File(services) => {
                let services = Arc::clone(&services.borrow());
                let unread = self.zones.unread().cloned().collect();
                self.take_file(&services, unread).await;
            }
        }
    }

    /// Takes these services as the file has them.
    async fn take_file(&mut self, services: &FileServices, names: Vec<Arc<str>>) {
        let now = self.clock.now();
        for name in names {
            let instances = services.get(&name).cloned().unwrap_or_default();
            self.zones
                .handle_instances(now, &name, instances, Vec::new());
            self.ask_for_statuses(&name).await;
        }
    }

    /// Asks for the statuses of checks that were not known of before. The loop
    /// tells of later changes by itself.
    async fn ask_for_statuses(&mut self, service: &str) {
        let new: Vec<_> = self
            .zones
            .checks_of(service)
            .filter(|check| !self.asked.contains(*check))
            .cloned()
            .collect();
        if new.is_empty() {
            return;
        }
        self.asked.extend(new.iter().cloned());
        // A loop that has ended knows no status any more.
        let _ = self.ask.send(new).await;
    }

    fn sweep(&mut self) {
        if self.zones.forget_idle(self.clock.now()) {
            let needed: HashSet<CheckId> = self.zones.checks().cloned().collect();
            self.asked.retain(|check| needed.contains(check));
            self.watches.keep_only(self.zones.wanted());
        }
        let counts = self.zones.counts();
        set(&self.metrics.zone_services, counts.services as u64);
        set(&self.metrics.zone_pairs, counts.pairs as u64);
        raise_to(&self.metrics.zone_recalculations, counts.recalculations);
    }
}

impl Watches {
    /// Starts the watches that are missing.
    fn keep<'a>(
        &mut self,
        wanted: impl Iterator<Item = &'a Arc<str>>,
        watcher: impl Fn() -> Watcher,
    ) {
        for name in wanted {
            if !self.running.contains_key(name) {
                let watch = consul::watch(watcher(), Arc::clone(name), self.tell.clone());
                let task = self.tasks.spawn(watch);
                self.running.insert(Arc::clone(name), task);
            }
        }
    }

    /// Ends those that nobody wants.
    fn keep_only<'a>(&mut self, wanted: impl Iterator<Item = &'a Arc<str>>) {
        let wanted: HashSet<&Arc<str>> = wanted.collect();
        self.running.retain(|name, task| {
            let keep = wanted.contains(name);
            if !keep {
                task.abort();
            }
            keep
        });
    }
}

/// The services in the file, when they have changed; never with Consul.
async fn changed(source: &mut Source) -> Arc<FileServices> {
    if let Source::File(services) = source
        && services.changed().await.is_ok()
    {
        return Arc::clone(&services.borrow_and_update());
    }
    std::future::pending().await
}
