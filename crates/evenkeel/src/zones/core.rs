use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::CheckId;
use evenkeel_threshold::{Status, Timestamp};
use tokio::sync::watch;

use super::pair::Group;
use super::service::Service;
use super::{Instance, PairView, RuleName, RuleSettings, ServiceView};

/// What nobody has asked for in this time is dropped.
const IDLE: Duration = Duration::from_secs(5 * 60);

/// Changes that come within this time of each other are one recalculation.
const GATHER: Duration = Duration::from_millis(100);

/// Time between two steps of weights that change by more than a step.
const STEP: Duration = Duration::from_secs(1);

/// Services and pairs at once, so that whoever asks for made-up names cannot
/// fill the memory.
const MOST_SERVICES: usize = 2_000;
const MOST_PAIRS: usize = 4_000;

/// Too many services or pairs are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many {what} are asked for at once; at most {most} are followed")]
pub struct Full {
    what: &'static str,
    most: usize,
}

/// How much is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Services.
    pub services: usize,
    /// Pairs of a called and a calling service, by rule.
    pub pairs: usize,
    /// How many times the pairs of a called service and a rule were calculated.
    pub recalculations: u64,
}

/// All that is known of services that somebody asks for. Time is an argument.
#[derive(Debug)]
pub struct Zones {
    settings: RuleSettings,
    services: HashMap<Arc<str>, Followed>,
    groups: HashMap<GroupKey, Group>,
    pairs: HashMap<PairKey, Shown<PairView>>,
    /// Released statuses of the checks that the daemon watches, as far as an
    /// instance depends on them.
    statuses: HashMap<CheckId, Status>,
    /// Services whose view is out of date, and when it is renewed.
    changed: HashMap<Arc<str>, Timestamp>,
    /// Groups to be recalculated, and when.
    stale: HashMap<GroupKey, Timestamp>,
    version: u64,
    recalculations: u64,
}

type GroupKey = (Arc<str>, RuleName);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PairKey {
    upstream: Arc<str>,
    callers: Arc<str>,
    rule: RuleName,
}

#[derive(Debug)]
struct Followed {
    service: Service,
    shown: Shown<ServiceView>,
}

/// A view and those who look at it.
#[derive(Debug)]
struct Shown<T> {
    sender: watch::Sender<Arc<T>>,
    asked: Timestamp,
}

impl<T> Shown<T> {
    fn new(view: T, now: Timestamp) -> Self {
        Self {
            sender: watch::Sender::new(Arc::new(view)),
            asked: now,
        }
    }

    fn look(&mut self, now: Timestamp) -> watch::Receiver<Arc<T>> {
        self.asked = now;
        self.sender.subscribe()
    }

    fn view(&self) -> Arc<T> {
        Arc::clone(&self.sender.borrow())
    }

    fn is_idle(&mut self, now: Timestamp) -> bool {
        if self.sender.receiver_count() > 0 {
            self.asked = now;
        }
        now.saturating_since(self.asked) >= IDLE
    }
}

impl Zones {
    /// Nothing is followed. Versions begin at `now`, so that they are not those of
    /// an earlier process.
    pub fn new(settings: RuleSettings, now: Timestamp) -> Self {
        Self {
            settings,
            services: HashMap::new(),
            groups: HashMap::new(),
            pairs: HashMap::new(),
            statuses: HashMap::new(),
            changed: HashMap::new(),
            stale: HashMap::new(),
            version: now.as_millis(),
            recalculations: 0,
        }
    }

    /// The rule of those who name none.
    pub fn default_rule(&self) -> RuleName {
        self.settings.default
    }

    /// Follows a service as long as the receiver is held, and some minutes more.
    ///
    /// # Errors
    ///
    /// [`Full`].
    pub fn service(
        &mut self,
        now: Timestamp,
        name: &Arc<str>,
    ) -> Result<watch::Receiver<Arc<ServiceView>>, Full> {
        let full = self.services.len() >= MOST_SERVICES;
        let followed = match self.services.entry(Arc::clone(name)) {
            Entry::Occupied(followed) => followed.into_mut(),
            Entry::Vacant(_) if full => {
                return Err(Full {
                    what: "services",
                    most: MOST_SERVICES,
                });
            }
            Entry::Vacant(place) => {
                self.version += 1;
                let service = Service::default();
                let shown = Shown::new(service.view(name, self.version), now);
                place.insert(Followed { service, shown })
            }
        };
        Ok(followed.shown.look(now))
    }

    /// Follows the split of the requests of `callers` to `upstream` as long as the
    /// receiver is held, and some minutes more.
    ///
    /// # Errors
    ///
    /// [`Full`].
    pub fn pair(
        &mut self,
        now: Timestamp,
        upstream: &Arc<str>,
        callers: &Arc<str>,
        rule: RuleName,
    ) -> Result<watch::Receiver<Arc<PairView>>, Full> {
        let key = PairKey {
            upstream: Arc::clone(upstream),
            callers: Arc::clone(callers),
            rule,
        };
        if let Some(shown) = self.pairs.get_mut(&key) {
            return Ok(shown.look(now));
        }
        if self.pairs.len() >= MOST_PAIRS {
            return Err(Full {
                what: "pairs of services",
                most: MOST_PAIRS,
            });
        }
        self.service(now, upstream)?;
        self.service(now, callers)?;
        let group_key = (Arc::clone(upstream), rule);
        self.groups
            .entry(group_key.clone())
            .or_insert_with(|| Group::new(rule, &self.settings))
            .add(Arc::clone(callers));
        // At once: there is nothing yet to show to the one who asks.
        self.recalculate(now, &group_key);
        let shown = self.pairs.get_mut(&key);
        shown.map(|shown| shown.look(now)).ok_or(Full {
            what: "pairs of services",
            most: MOST_PAIRS,
        })
    }

    /// The instances of a service from now on, and what is wrong with others.
    pub fn handle_instances(
        &mut self,
        now: Timestamp,
        name: &str,
        instances: Vec<Instance>,
        faults: Vec<String>,
    ) {
        let statuses = &self.statuses;
        let released = |id: &CheckId| statuses.get(id).copied();
        let changed = self
            .services
            .get_mut(name)
            .is_some_and(|followed| followed.service.set_instances(instances, faults, released));
        if changed {
            self.note_change(now, name);
        }
    }

    /// The instances of a service cannot be read; the last ones stand.
    pub fn handle_trouble(&mut self, now: Timestamp, name: &str, why: String) {
        let changed = self
            .services
            .get_mut(name)
            .is_some_and(|followed| followed.service.set_trouble(why));
        if changed {
            self.note_change(now, name);
        }
    }

    /// The released status of a check that the daemon watches; `None` if it
    /// watches it no more.
    pub fn handle_status(&mut self, now: Timestamp, check: &CheckId, status: Option<Status>) {
        // Most checks belong to services that nobody asks for.
        if !self
            .services
            .values()
            .any(|followed| followed.service.depends_on(check))
        {
            return;
        }
        let known = match status {
            Some(status) => self.statuses.insert(check.clone(), status),
            None => self.statuses.remove(check),
        };
        if known == status {
            return;
        }
        let statuses = &self.statuses;
        let released = |id: &CheckId| statuses.get(id).copied();
        let mut changed = Vec::new();
        for (name, followed) in &mut self.services {
            if followed.service.recheck(check, released) {
                changed.push(Arc::clone(name));
            }
        }
        for name in changed {
            self.note_change(now, &name);
        }
    }

    /// The services to be read.
    pub fn wanted(&self) -> impl Iterator<Item = &Arc<str>> {
        self.services.keys()
    }

    /// Those of them of which nothing has been read yet.
    pub fn unread(&self) -> impl Iterator<Item = &Arc<str>> {
        let unread = |(_, followed): &(_, &Followed)| !followed.service.is_known();
        self.services.iter().filter(unread).map(|(name, _)| name)
    }

    /// The checks that the instances of a service depend on.
    pub fn checks_of(&self, service: &str) -> impl Iterator<Item = &CheckId> {
        let followed = self.services.get(service).into_iter();
        followed.flat_map(|followed| followed.service.checks())
    }

    /// The checks that any instance depends on.
    pub fn checks(&self) -> impl Iterator<Item = &CheckId> {
        self.services
            .values()
            .flat_map(|followed| followed.service.checks())
    }

    /// When there is something to do although nothing comes in.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let due = self.changed.values().chain(self.stale.values());
        due.min().copied()
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        for name in take_due(&mut self.changed, now) {
            self.show(now, &name);
        }
        for key in take_due(&mut self.stale, now) {
            self.recalculate(now, &key);
        }
    }

    /// Forgets what nobody has asked for for some minutes. Whether a service was
    /// among it.
    pub fn forget_idle(&mut self, now: Timestamp) -> bool {
        let idle: Vec<_> = self
            .pairs
            .iter_mut()
            .filter_map(|(key, shown)| shown.is_idle(now).then(|| key.clone()))
            .collect();
        for key in idle {
            self.pairs.remove(&key);
            let group_key = (Arc::clone(&key.upstream), key.rule);
            if let Some(group) = self.groups.get_mut(&group_key) {
                group.remove(&key.callers, &self.settings);
                if group.is_empty() {
                    self.groups.remove(&group_key);
                    self.stale.remove(&group_key);
                } else {
                    self.recalculate_at(now, group_key);
                }
            }
        }
        let used: HashSet<Arc<str>> = self
            .pairs
            .keys()
            .flat_map(|key| [&key.upstream, &key.callers])
            .cloned()
            .collect();
        let before = self.services.len();
        self.services
            .retain(|name, followed| used.contains(name) || !followed.shown.is_idle(now));
        let forgotten = self.services.len() != before;
        if forgotten {
            let needed: HashSet<CheckId> = self.checks().cloned().collect();
            self.statuses.retain(|id, _| needed.contains(id));
        }
        forgotten
    }

    /// The views of all pairs, in the order of their names.
    pub fn pairs(&self) -> Vec<Arc<PairView>> {
        let mut pairs: Vec<_> = self.pairs.values().map(Shown::view).collect();
        pairs.sort_unstable_by(|a, b| {
            let key = |pair: &PairView| {
                (
                    Arc::clone(&pair.upstream.name),
                    Arc::clone(&pair.callers.name),
                    pair.rule,
                )
            };
            key(a).cmp(&key(b))
        });
        pairs
    }

    /// How much is followed.
    pub fn counts(&self) -> Counts {
        Counts {
            services: self.services.len(),
            pairs: self.pairs.len(),
            recalculations: self.recalculations,
        }
    }

    /// Shows the present state of a service, and has its pairs recalculated, now.
    fn show(&mut self, now: Timestamp, name: &str) {
        self.version += 1;
        if let Some((name, followed)) = self.services.get_key_value(name) {
            let view = followed.service.view(name, self.version);
            followed.shown.sender.send_replace(Arc::new(view));
        }
        let touched: Vec<_> = self
            .groups
            .iter()
            .filter(|((upstream, _), group)| **upstream == *name || group.calls(name))
            .map(|(key, _)| key.clone())
            .collect();
        for key in touched {
            self.recalculate_at(now, key);
        }
    }

    /// Has the view of a service renewed, with whatever else changes soon.
    fn note_change(&mut self, now: Timestamp, name: &str) {
        if !self.changed.contains_key(name) {
            let due = now.saturating_add(GATHER);
            self.changed.insert(name.into(), due);
        }
    }

    fn recalculate_at(&mut self, at: Timestamp, key: GroupKey) {
        let due = self.stale.entry(key).or_insert(at);
        *due = at.min(*due);
    }

    /// Recalculates a group and shows what comes out.
    fn recalculate(&mut self, now: Timestamp, key: &GroupKey) {
        let Some(upstream) = self.view(&key.0) else {
            return;
        };
        self.version += 1;
        self.recalculations += 1;
        let services = &self.services;
        let view = |name: &str| {
            let shown = services.get(name).map(|followed| &followed.shown);
            // The services of a pair are kept as long as the pair is.
            shown.map_or_else(|| Arc::clone(&upstream), Shown::view)
        };
        let Some(group) = self.groups.get_mut(key) else {
            return;
        };
        let views = group.recalculate(&self.settings, &upstream, view, self.version);
        if group.under_way() {
            self.recalculate_at(now.saturating_add(STEP), key.clone());
        }
        for (callers, view) in views {
            let key = PairKey {
                upstream: Arc::clone(&key.0),
                callers,
                rule: key.1,
            };
            match self.pairs.get(&key) {
                Some(shown) => drop(shown.sender.send_replace(Arc::new(view))),
                None => drop(self.pairs.insert(key, Shown::new(view, now))),
            }
        }
    }

    fn view(&self, name: &Arc<str>) -> Option<Arc<ServiceView>> {
        Some(self.services.get(name)?.shown.view())
    }
}

/// Takes out what is due.
fn take_due<K: Clone + Eq + std::hash::Hash>(
    planned: &mut HashMap<K, Timestamp>,
    now: Timestamp,
) -> Vec<K> {
    let due = planned.extract_if(|_, due| *due <= now);
    due.map(|(key, _)| key).collect()
}
