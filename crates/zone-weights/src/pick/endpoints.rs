use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::hosts::ZoneHosts;
use super::picker::Picker;
use crate::{Counters, Health, InputError, Locality, Routes, Upstream};

/// Names an endpoint of [`Endpoints`]. That of a removed endpoint names no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EndpointId {
    slot: u32,
    generation: u32,
}

/// The endpoints of a called service, one by one, each with a value of the
/// caller's (an address, say).
///
/// It keeps [`Upstream`] up to date as they come, go and change, and remembers
/// for each zone what a picker needs. A new [`Picker`] after one change costs the
/// zones and the hosts of the changed zone, not all hosts.
#[derive(Debug)]
pub struct Endpoints<T> {
    upstream: Upstream,
    slots: Vec<Slot<T>>,
    free_slots: Vec<u32>,
    zones: Vec<Zone<T>>,
    free_zones: Vec<u32>,
    index: BTreeMap<(u32, Locality), u32>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    host: Option<Host<T>>,
}

#[derive(Debug)]
struct Host<T> {
    value: T,
    health: Health,
    weight: u32,
    zone: u32,
    /// Where it is in the zone's list.
    position: u32,
}

#[derive(Debug)]
struct Zone<T> {
    priority: u32,
    locality: Locality,
    slots: Vec<u32>,
    /// Dropped when something in the zone changes.
    ready: Option<Arc<ZoneHosts<T>>>,
}

impl<T> Default for Endpoints<T> {
    fn default() -> Self {
        Self {
            upstream: Upstream::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            zones: Vec::new(),
            free_zones: Vec::new(),
            index: BTreeMap::new(),
        }
    }
}

impl<T> Endpoints<T> {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many there are of each health, per priority and zone.
    #[must_use]
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Adds one.
    ///
    /// # Errors
    /// As [`Upstream::add`], and [`InputError::TooMany`] beyond 2^32 - 1
    /// endpoints. Nothing is changed then.
    pub fn insert(
        &mut self,
        priority: u32,
        locality: &Locality,
        health: Health,
        weight: u32,
        value: T,
    ) -> Result<EndpointId, InputError> {
        // So that a position fits as well.
        let fresh = u32::try_from(self.slots.len())
            .ok()
            .filter(|slot| *slot < u32::MAX)
            .ok_or(InputError::TooMany)?;
        self.upstream.add(priority, locality, health, weight, 1)?;
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                host: None,
            });
            fresh
        });
        let zone = self.zone(priority, locality);
        let entry = &mut self.zones[zone as usize];
        let position = entry.slots.len() as u32;
        entry.slots.push(slot);
        entry.ready = None;
        let place = &mut self.slots[slot as usize];
        place.host = Some(Host {
            value,
            health,
            weight,
            zone,
            position,
        });
        Ok(EndpointId {
            slot,
            generation: place.generation,
        })
    }

    fn zone(&mut self, priority: u32, locality: &Locality) -> u32 {
        let key = (priority, locality.clone());
        if let Some(zone) = self.index.get(&key) {
            return *zone;
        }
        let entry = Zone {
            priority,
            locality: locality.clone(),
            slots: Vec::new(),
            ready: None,
        };
        let zone = if let Some(zone) = self.free_zones.pop() {
            self.zones[zone as usize] = entry;
            zone
        } else {
            self.zones.push(entry);
            // No more zones than endpoints.
            (self.zones.len() - 1) as u32
        };
        self.index.insert(key, zone);
        zone
    }

    fn host(&self, id: EndpointId) -> Option<&Host<T>> {
        let slot = self.slots.get(id.slot as usize)?;
        slot.host
            .as_ref()
            .filter(|_| slot.generation == id.generation)
    }

    /// The value of one, if it is still there.
    #[must_use]
    pub fn get(&self, id: EndpointId) -> Option<&T> {
        self.host(id).map(|host| &host.value)
    }

    /// The health of one, if it is still there.
    #[must_use]
    pub fn health(&self, id: EndpointId) -> Option<Health> {
        self.host(id).map(|host| host.health)
    }

    /// Changes the health of one. Whether that was a change; `false` too if it
    /// is no longer there.
    pub fn set_health(&mut self, id: EndpointId, health: Health) -> bool {
        let Some(host) = self.host(id) else {
            return false;
        };
        let (before, weight, zone) = (host.health, host.weight, host.zone as usize);
        if before == health {
            return false;
        }
        let entry = &mut self.zones[zone];
        let (priority, locality) = (entry.priority, &entry.locality);
        // Away first: then the sum cannot exceed what it was.
        if self
            .upstream
            .remove(priority, locality, before, weight, 1)
            .and_then(|()| self.upstream.add(priority, locality, health, weight, 1))
            .is_err()
        {
            return false;
        }
        entry.ready = None;
        if let Some(host) = &mut self.slots[id.slot as usize].host {
            host.health = health;
        }
        true
    }

    /// Changes the weight of one. Whether that was a change; `false` too if it
    /// is no longer there.
    ///
    /// # Errors
    /// As [`Upstream::add`]. Nothing is changed then.
    pub fn set_weight(&mut self, id: EndpointId, weight: u32) -> Result<bool, InputError> {
        let Some(host) = self.host(id) else {
            return Ok(false);
        };
        let (health, before, zone) = (host.health, host.weight, host.zone as usize);
        if before == weight {
            return Ok(false);
        }
        let entry = &mut self.zones[zone];
        let (priority, locality) = (entry.priority, &entry.locality);
        // Added first: if that is refused, nothing has happened.
        self.upstream.add(priority, locality, health, weight, 1)?;
        self.upstream
            .remove(priority, locality, health, before, 1)?;
        entry.ready = None;
        if let Some(host) = &mut self.slots[id.slot as usize].host {
            host.weight = weight;
        }
        Ok(true)
    }

    /// Removes one and gives its value back, if it was still there.
    pub fn remove(&mut self, id: EndpointId) -> Option<T> {
        self.host(id)?;
        let slot = &mut self.slots[id.slot as usize];
        let host = slot.host.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free_slots.push(id.slot);

        let zone = &mut self.zones[host.zone as usize];
        zone.ready = None;
        zone.slots.swap_remove(host.position as usize);
        if let Some(moved) = zone.slots.get(host.position as usize)
            && let Some(moved) = &mut self.slots[*moved as usize].host
        {
            moved.position = host.position;
        }
        let (priority, locality) = (zone.priority, zone.locality.clone());
        // It was added when the endpoint was, so it is there.
        let removed = self
            .upstream
            .remove(priority, &locality, host.health, host.weight, 1);
        debug_assert!(removed.is_ok());
        if zone.slots.is_empty() {
            self.index.remove(&(priority, locality));
            self.free_zones.push(host.zone);
        }
        Some(host.value)
    }

    /// Number of endpoints.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Clone> Endpoints<T> {
    /// A picker that sends requests along `routes`, which were made from
    /// [`upstream`](Self::upstream) as it is now, and counts in `counters`.
    pub fn picker(&mut self, routes: &Routes, counters: Arc<Counters>) -> Picker<T> {
        let Self {
            slots,
            zones,
            index,
            ..
        } = self;
        let mut ready = |zone: u32| {
            let zone = &mut zones[zone as usize];
            let hosts = zone.slots.iter().filter_map(|slot| {
                let host = slots[*slot as usize].host.as_ref()?;
                Some((&host.value, host.health, host.weight))
            });
            let hosts = zone.ready.get_or_insert_with(|| {
                Arc::new(ZoneHosts::new(zone.priority, zone.locality.clone(), &hosts))
            });
            Arc::clone(hosts)
        };
        Picker::new(
            routes,
            &self.upstream,
            |priority, locality| {
                // A tuple of references cannot be looked up; the clone counts.
                index
                    .get(&(priority, locality.clone()))
                    .map(|zone| ready(*zone))
            },
            counters,
        )
    }
}
