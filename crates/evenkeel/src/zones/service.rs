use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use evenkeel_engine::CheckId;
use evenkeel_threshold::Status;
use evenkeel_zone_weights::{EndpointId, Endpoints, Health, Members, Upstream};

use super::{Endpoint, EndpointList, Instance};

/// A service at one moment: what calls, and what is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceView {
    /// Its name.
    pub name: Arc<str>,
    /// Grows with each change, over all services.
    pub version: u64,
    /// Whether a catalog has said anything of it yet.
    pub known: bool,
    /// Why what is here may be out of date.
    pub degraded: Option<String>,
    /// Those that requests can be sent to, by priority, zone and id.
    pub endpoints: EndpointList,
    /// The same, counted.
    pub upstream: Upstream,
    /// All instances as callers, those without a port too.
    pub callers: Members,
    /// Instances that could not be used, and why.
    pub faults: Vec<String>,
}

/// One endpoint at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointView {
    /// Who and where it is.
    pub endpoint: Arc<Endpoint>,
    /// How well it is.
    pub health: Health,
    /// Its capacity in proportion to others; not 0.
    pub weight: u32,
}

/// The present state of one service.
#[derive(Debug, Default)]
pub(super) struct Service {
    known: bool,
    degraded: Option<String>,
    faults: Vec<String>,
    held: HashMap<Arc<str>, Held>,
    by_check: HashMap<CheckId, Vec<Arc<str>>>,
    endpoints: Endpoints<()>,
    /// What is shown of them.
    shown: EndpointList,
    callers: Members,
}

#[derive(Debug)]
struct Held {
    instance: Instance,
    endpoint: Arc<Endpoint>,
    health: Health,
    weight: u32,
    /// Its place among the endpoints, if requests can be sent to it.
    place: Option<EndpointId>,
}

impl Service {
    /// The list of instances from now on. Whether anything is different.
    pub(super) fn set_instances(
        &mut self,
        instances: Vec<Instance>,
        mut faults: Vec<String>,
        released: impl Fn(&CheckId) -> Option<Status>,
    ) -> bool {
        let mut changed = !self.known || self.degraded.take().is_some();
        self.known = true;
        let mut listed = HashSet::with_capacity(instances.len());
        for instance in instances {
            let id = Arc::clone(&instance.endpoint.id);
            if !listed.insert(Arc::clone(&id)) {
                faults.push(format!("{id}: listed twice; the first one counts"));
                continue;
            }
            match self.held.get(&id) {
                Some(held) if held.instance.endpoint == instance.endpoint => {
                    changed |= self.renew(&id, instance, &released);
                }
                _ => {
                    self.remove(&id);
                    match self.insert(instance, &released) {
                        Ok(()) => changed = true,
                        Err(fault) => faults.push(fault),
                    }
                }
            }
        }
        let gone: Vec<_> = self
            .held
            .keys()
            .filter(|id| !listed.contains(*id))
            .cloned()
            .collect();
        for id in gone {
            changed |= self.remove(&id);
        }
        changed |= self.faults != faults;
        self.faults = faults;
        changed
    }

    /// The list cannot be read; the last one stands. Whether that is news.
    pub(super) fn set_trouble(&mut self, why: String) -> bool {
        if self.degraded.as_ref() == Some(&why) {
            return false;
        }
        self.degraded = Some(why);
        true
    }

    /// The released status of a check has changed, or it is no longer watched.
    /// Whether any instance is better or worse for it.
    pub(super) fn recheck(
        &mut self,
        check: &CheckId,
        released: impl Fn(&CheckId) -> Option<Status>,
    ) -> bool {
        let Some(ids) = self.by_check.get(check).cloned() else {
            return false;
        };
        ids.iter()
            .fold(false, |changed, id| self.refresh(id, &released) | changed)
    }

    /// Whether a catalog has said anything of it yet.
    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    /// Whether the health of any instance depends on a check.
    pub(super) fn depends_on(&self, check: &CheckId) -> bool {
        self.by_check.contains_key(check)
    }

    /// The checks that its health depends on.
    pub(super) fn checks(&self) -> impl Iterator<Item = &CheckId> {
        self.by_check.keys()
    }

    pub(super) fn view(&self, name: &Arc<str>, version: u64) -> ServiceView {
        ServiceView {
            name: Arc::clone(name),
            version,
            known: self.known,
            degraded: self.degraded.clone(),
            endpoints: self.shown.clone(),
            upstream: self.endpoints.upstream().clone(),
            callers: self.callers.clone(),
            faults: self.faults.clone(),
        }
    }

    fn insert(
        &mut self,
        instance: Instance,
        released: impl Fn(&CheckId) -> Option<Status>,
    ) -> Result<(), String> {
        let endpoint = Arc::new(instance.endpoint.clone());
        let (health, weight) = instance.health(released);
        let fault = |error| format!("{}: {error}", endpoint.id);
        self.callers
            .add(&endpoint.locality, health, weight, 1)
            .map_err(fault)?;
        let place = if endpoint.is_reachable() {
            let placed =
                self.endpoints
                    .insert(endpoint.priority, &endpoint.locality, health, weight, ());
            match placed {
                Ok(place) => {
                    let view = EndpointView {
                        endpoint: Arc::clone(&endpoint),
                        health,
                        weight,
                    };
                    self.shown.insert(view);
                    Some(place)
                }
                Err(error) => {
                    // It was added a moment ago.
                    let _ = self.callers.remove(&endpoint.locality, health, weight, 1);
                    return Err(fault(error));
                }
            }
        } else {
            None
        };
        let id = Arc::clone(&endpoint.id);
        self.note_checks(&id, &instance);
        let held = Held {
            instance,
            endpoint,
            health,
            weight,
            place,
        };
        self.held.insert(id, held);
        Ok(())
    }

    fn remove(&mut self, id: &Arc<str>) -> bool {
        let Some(held) = self.held.remove(id) else {
            return false;
        };
        self.forget_checks(id, &held.instance);
        let locality = &held.endpoint.locality;
        let removed = self.callers.remove(locality, held.health, held.weight, 1);
        debug_assert!(removed.is_ok(), "it was added with the instance");
        if let Some(place) = held.place {
            self.endpoints.remove(place);
            self.shown.remove(&held.endpoint);
        }
        true
    }

    /// The same endpoint with other weights or checks.
    fn renew(
        &mut self,
        id: &Arc<str>,
        instance: Instance,
        released: impl Fn(&CheckId) -> Option<Status>,
    ) -> bool {
        if let Some(held) = self.held.get_mut(id) {
            let old = std::mem::replace(&mut held.instance, instance);
            let new = held.instance.clone();
            let same = old
                .checks
                .iter()
                .map(|(id, _)| id)
                .eq(new.checks.iter().map(|(id, _)| id));
            if !same {
                self.forget_checks(id, &old);
                self.note_checks(id, &new);
            }
        }
        self.refresh(id, released)
    }

    /// Brings health and weight up to date.
    fn refresh(&mut self, id: &Arc<str>, released: impl Fn(&CheckId) -> Option<Status>) -> bool {
        let Some(held) = self.held.get_mut(id) else {
            return false;
        };
        let (health, weight) = held.instance.health(released);
        if (health, weight) == (held.health, held.weight) {
            return false;
        }
        let locality = &held.endpoint.locality;
        // Sums beyond 64 bits, with weights of 32, take more hosts than there are.
        let moved = self
            .callers
            .remove(locality, held.health, held.weight, 1)
            .and_then(|()| self.callers.add(locality, health, weight, 1));
        debug_assert!(moved.is_ok(), "weights are of 32 bits");
        if let Some(place) = held.place {
            self.endpoints.set_health(place, health);
            let set = self.endpoints.set_weight(place, weight);
            debug_assert!(set.is_ok(), "weights are of 32 bits");
            if let Some(shown) = self.shown.get_mut(&held.endpoint) {
                shown.health = health;
                shown.weight = weight;
            }
        }
        held.health = health;
        held.weight = weight;
        true
    }

    fn note_checks(&mut self, id: &Arc<str>, instance: &Instance) {
        for (check, _) in &instance.checks {
            let ids = self.by_check.entry(check.clone()).or_default();
            ids.push(Arc::clone(id));
        }
    }

    fn forget_checks(&mut self, id: &Arc<str>, instance: &Instance) {
        for (check, _) in &instance.checks {
            if let Some(ids) = self.by_check.get_mut(check) {
                ids.retain(|other| other != id);
                if ids.is_empty() {
                    self.by_check.remove(check);
                }
            }
        }
    }
}
