use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use super::hosts::ZoneHosts;
use super::table::{Table, mix};
use super::wheel::Wheel;
use crate::{Counter, Counters, Hosts, Locality, Reason, Routes, Upstream};

/// Picks the endpoint for each request.
///
/// It does not change; when weights do, make another with
/// [`Endpoints::picker`](crate::Endpoints::picker) and put it in its place as a
/// whole. The counters go on. Any number of threads may pick at the same time.
#[derive(Debug)]
pub struct Picker<T> {
    ways: Box<[Way<T>]>,
    table: Table,
    wheel: Wheel,
    counters: Arc<Counters>,
}

/// Where a part of the requests goes.
#[derive(Debug)]
struct Way<T> {
    priority: u32,
    hosts: Hosts,
    reason: Reason,
    place: Place<T>,
}

#[derive(Debug)]
enum Place<T> {
    Nowhere,
    Zone(Arc<ZoneHosts<T>>),
    Zones(Arc<Zones<T>>),
}

/// All zones of a priority together.
#[derive(Debug)]
struct Zones<T> {
    zones: Box<[Arc<ZoneHosts<T>>]>,
    table: Table,
    wheel: Wheel,
}

/// Some hosts of all zones of a priority, if there are any.
type Together<T> = ((u32, Hosts), Option<Arc<Zones<T>>>);

/// Which endpoint, and how it came to that.
#[derive(Debug, PartialEq, Eq)]
pub struct Choice<'a, T> {
    /// The value of the endpoint.
    pub endpoint: &'a T,
    /// Its locality.
    pub locality: &'a Locality,
    /// Its priority.
    pub priority: u32,
    /// Why it is in that locality.
    pub reason: Reason,
}

/// The place of a proxy, or of one of its threads, in the exact rotation.
///
/// With it, zones and endpoints get their requests in turn instead of at random:
/// after any number of requests a zone is off its share by about one request.
/// Threads may share one. It survives a change of pickers.
#[derive(Debug, Default)]
pub struct Rotation(AtomicU64);

impl Rotation {
    /// At the beginning.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// At some place. Proxies that begin at different ones do not move in step.
    #[must_use]
    pub fn starting_at(place: u64) -> Self {
        Self(AtomicU64::new(place))
    }

    fn turn(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

impl<T> Picker<T> {
    pub(super) fn new(
        routes: &Routes,
        upstream: &Upstream,
        mut hosts_of: impl FnMut(u32, &Locality) -> Option<Arc<ZoneHosts<T>>>,
        counters: Arc<Counters>,
    ) -> Self {
        // A part of the requests that finds all zones is the same for several
        // routes.
        let mut together: Vec<Together<T>> = Vec::new();
        let mut ways = Vec::with_capacity(routes.list().len());
        for route in routes.list() {
            let place = match &route.zone {
                _ if route.hosts == Hosts::Nobody => Place::Nowhere,
                Some(zone) => hosts_of(route.priority, zone).map_or(Place::Nowhere, Place::Zone),
                None => {
                    let key = (route.priority, route.hosts);
                    let known = together.iter().find(|(known, _)| *known == key);
                    let zones = if let Some((_, zones)) = known {
                        zones.clone()
                    } else {
                        let zones = Zones::new(key, upstream, &mut hosts_of).map(Arc::new);
                        together.push((key, zones.clone()));
                        zones
                    };
                    zones.map_or(Place::Nowhere, Place::Zones)
                }
            };
            ways.push(Way {
                priority: route.priority,
                hosts: route.hosts,
                reason: route.reason,
                place,
            });
        }
        let parts = routes.list().iter().map(|route| route.parts);
        let built = Table::new(parts.clone()).zip(Wheel::new(parts));
        // Routes are never empty; if they were, no request would find a host.
        let (table, wheel) = built.unwrap_or_else(|| {
            ways = alloc::vec![Way {
                priority: 0,
                hosts: Hosts::Nobody,
                reason: Reason::Ordinary,
                place: Place::Nowhere,
            }];
            Self::nowhere()
        });
        Self {
            ways: ways.into(),
            table,
            wheel,
            counters,
        }
    }

    fn nowhere() -> (Table, Wheel) {
        let one = || core::iter::once(1);
        match Table::new(one()).zip(Wheel::new(one())) {
            Some(built) => built,
            None => unreachable!("of one item there is a table"),
        }
    }

    /// The counters that it counts in.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The endpoint of a request, by a random number that is even over all 64
    /// bits; the same number gives the same endpoint. `None` if there is no host
    /// for it, which is to be answered with 503. Counts the request.
    #[inline]
    pub fn pick(&self, random: u64) -> Option<Choice<'_, T>> {
        let way = &self.ways[self.table.draw(random)];
        let found = match &way.place {
            Place::Nowhere => None,
            Place::Zone(zone) => zone.draw(way.hosts, random).map(|host| (zone, host)),
            Place::Zones(all) => {
                let random = mix(random);
                let zone = &all.zones[all.table.draw(random)];
                zone.draw(way.hosts, random).map(|host| (zone, host))
            }
        };
        self.counted(way, found)
    }

    /// The endpoint of a request, in turn. `None` if there is no host for it.
    /// Counts the request.
    #[inline]
    pub fn next(&self, rotation: &Rotation) -> Option<Choice<'_, T>> {
        let (way, turn) = self.wheel.turn(rotation.turn());
        let way = &self.ways[way];
        let found = match &way.place {
            Place::Nowhere => None,
            Place::Zone(zone) => zone.turn(way.hosts, turn).map(|host| (zone, host)),
            Place::Zones(all) => {
                let (zone, turn) = all.wheel.turn(turn);
                let zone = &all.zones[zone];
                zone.turn(way.hosts, turn).map(|host| (zone, host))
            }
        };
        self.counted(way, found)
    }

    #[inline]
    fn counted<'a>(
        &'a self,
        way: &Way<T>,
        found: Option<(&'a Arc<ZoneHosts<T>>, &'a T)>,
    ) -> Option<Choice<'a, T>> {
        for counter in way.reason.counters() {
            self.counters.add(*counter, 1);
        }
        let Some((zone, endpoint)) = found else {
            self.counters.add(Counter::NoneHealthy, 1);
            return None;
        };
        debug_assert_eq!(zone.priority, way.priority);
        Some(Choice {
            endpoint,
            locality: &zone.locality,
            priority: way.priority,
            reason: way.reason,
        })
    }
}

impl<T> Zones<T> {
    fn new(
        (priority, hosts): (u32, Hosts),
        upstream: &Upstream,
        mut hosts_of: impl FnMut(u32, &Locality) -> Option<Arc<ZoneHosts<T>>>,
    ) -> Option<Self> {
        let members = upstream.priorities().get(priority as usize)?;
        let (mut zones, mut weights) = (Vec::new(), Vec::new());
        for (locality, tally) in members.iter() {
            let weight = hosts.weight(tally);
            if weight > 0
                && let Some(zone) = hosts_of(priority, locality)
            {
                zones.push(zone);
                weights.push(weight);
            }
        }
        let weights = weights.iter().copied();
        Some(Self {
            zones: zones.into(),
            table: Table::new(weights.clone())?,
            wheel: Wheel::new(weights)?,
        })
    }
}
