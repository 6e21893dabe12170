use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::level::{Level, ONE, Place, level, scaled};
use super::parts::{PARTS, apportion};
use super::transport::transport;
use super::{
    Demand, MAX_ZONES, MAX_ZONES_WITH_COSTS, Part, Plan, PlanError, Problem, Rule, Service, Split,
};
use crate::envoy::{PriorityLoad, Settings, decide, loads};
use crate::{Health, Hosts, Locality, Members};

/// How far above the mean the load of an endpoint may be, for its weight.
///
/// 0 is balance: the traffic between zones that Envoy's rule has where its
/// assumptions hold. For services spread about evenly, 10 % takes two thirds of
/// that away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tolerance(u32);

impl Tolerance {
    /// The largest: 100 times the mean, in parts per 10,000 above it.
    pub const MAX_PER_10_000: u32 = 99 * ONE as u32;

    /// In parts per 10,000 above the mean: 1,000 is 1.1 of it. Cut at
    /// [`MAX_PER_10_000`](Self::MAX_PER_10_000).
    #[must_use]
    pub const fn per_10_000(parts: u32) -> Self {
        if parts > Self::MAX_PER_10_000 {
            Self(Self::MAX_PER_10_000)
        } else {
            Self(parts)
        }
    }

    /// Parts per 10,000 above the mean.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for Tolerance {
    /// A tenth above the mean.
    fn default() -> Self {
        Self(1_000)
    }
}

/// Each calling service by itself: the least traffic between zones with which no
/// endpoint gets more of its requests than the tolerance allows. There is no
/// minimum size; what Envoy's protects from, the tolerance says directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounded {
    /// How far above the mean.
    pub tolerance: Tolerance,
}

/// All calling services of the endpoints together: the least traffic between
/// zones with which no endpoint gets more of *all* requests than the tolerance
/// allows. One service's surplus in a zone fills the room that another leaves
/// there; in each zone all services leave in the same proportion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Joint {
    /// How far above the mean.
    pub tolerance: Tolerance,
}

/// Envoy's rule ([`decide`]), for each service, with the demand as the number of
/// healthy callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EnvoyRule(
    /// Its settings. Panic threshold and overprovisioning factor are the
    /// problem's.
    pub Settings,
);

/// No routing by zone: every endpoint gets requests by its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoundRobin;

impl Rule for Bounded {
    fn name(&self) -> &'static str {
        "bounded"
    }

    fn plan(&self, problem: &Problem<'_>) -> Result<Plan, PlanError> {
        let frame = Frame::new(problem)?;
        let services = problem.services.iter();
        let services = services.map(|demand| frame.service(&[demand], self.tolerance));
        Ok(frame.plan(services.collect()))
    }
}

impl Rule for Joint {
    fn name(&self) -> &'static str {
        "joint"
    }

    fn plan(&self, problem: &Problem<'_>) -> Result<Plan, PlanError> {
        let frame = Frame::new(problem)?;
        let all: Vec<&Demand> = problem.services.iter().collect();
        // The same for each: within a zone it does not matter whose request it is.
        let shared = frame.service(&all, self.tolerance);
        Ok(frame.plan(alloc::vec![shared; problem.services.len()]))
    }
}

impl Rule for RoundRobin {
    fn name(&self) -> &'static str {
        "round_robin"
    }

    fn plan(&self, problem: &Problem<'_>) -> Result<Plan, PlanError> {
        let frame = Frame::new(problem)?;
        let mut parts = Vec::new();
        for class in &frame.classes {
            class.fill(&class.by_capacity(), &mut parts);
        }
        let split = Split::new(parts);
        let service = Service {
            zones: frame
                .zones
                .iter()
                .map(|zone| ((*zone).clone(), split.clone()))
                .collect(),
            elsewhere: split,
        };
        Ok(frame.plan(alloc::vec![service; problem.services.len()]))
    }
}

impl Rule for EnvoyRule {
    fn name(&self) -> &'static str {
        "envoy"
    }

    fn plan(&self, problem: &Problem<'_>) -> Result<Plan, PlanError> {
        let frame = Frame::new(problem)?;
        let settings = Settings {
            healthy_panic_threshold: problem.healthy_panic_threshold,
            overprovisioning_factor: problem.overprovisioning_factor,
            ..self.0
        };
        let services = problem.services.iter().map(|demand| {
            let mut callers = Members::new();
            for (zone, amount) in demand.iter() {
                // Within 32 bits: the frame has looked.
                let added = callers.add(zone, Health::Healthy, 1, amount);
                debug_assert!(added.is_ok());
            }
            let split = |local: Option<&Locality>| {
                let decision = decide(&settings, local, Some(&callers), problem.upstream);
                split_of(&decision.routes(), problem)
            };
            Service {
                zones: frame
                    .zones
                    .iter()
                    .map(|zone| ((*zone).clone(), split(Some(zone))))
                    .collect(),
                elsewhere: split(None),
            }
        });
        Ok(frame.plan(services.collect()))
    }
}

/// Routes as parts, those over all zones by the weights there.
fn split_of(routes: &crate::Routes, problem: &Problem<'_>) -> Split {
    let weights: Vec<u128> = routes
        .list()
        .iter()
        .map(|route| route.parts.into())
        .collect();
    let mut parts = Vec::new();
    for (route, total) in routes.list().iter().zip(apportion(PARTS, &weights)) {
        let Some(members) = problem.upstream.priorities().get(route.priority as usize) else {
            continue;
        };
        let place = |(zone, tally)| (zone, route.hosts.weight(tally));
        let places: Vec<(&Locality, u64)> = match &route.zone {
            Some(zone) => members
                .get(zone)
                .map(|tally| place((zone, tally)))
                .into_iter()
                .collect(),
            None => members.iter().map(place).collect(),
        };
        let weights: Vec<u128> = places.iter().map(|(_, weight)| (*weight).into()).collect();
        for ((zone, _), share) in places.iter().zip(apportion(total, &weights)) {
            parts.push(Part {
                priority: route.priority,
                zone: (*zone).clone(),
                hosts: route.hosts,
                parts: share,
            });
        }
    }
    Split::new(parts)
}

/// Hosts that the same part of the requests goes to.
struct Class {
    priority: u32,
    hosts: Hosts,
    /// Of all requests.
    parts: u32,
    /// In the order of the frame's zones.
    capacity: Vec<u64>,
    zones: Vec<Locality>,
}

impl Class {
    fn by_capacity(&self) -> Vec<u32> {
        let weights: Vec<u128> = self
            .capacity
            .iter()
            .map(|weight| (*weight).into())
            .collect();
        apportion(PARTS, &weights)
    }

    /// Adds a row of parts, scaled to the class's part of all requests.
    fn fill(&self, row: &[u32], parts: &mut Vec<Part>) {
        let weights: Vec<u128> = row.iter().map(|parts| (*parts).into()).collect();
        for (zone, share) in self.zones.iter().zip(apportion(self.parts, &weights)) {
            if share > 0 {
                parts.push(Part {
                    priority: self.priority,
                    zone: zone.clone(),
                    hosts: self.hosts,
                    parts: share,
                });
            }
        }
    }
}

/// What all plans of a problem have in common.
struct Frame<'a> {
    zones: Vec<&'a Locality>,
    classes: Vec<Class>,
    priorities: Vec<PriorityLoad>,
    /// From each zone to each, row by row.
    costs: Option<Vec<u32>>,
}

impl<'a> Frame<'a> {
    fn new(problem: &Problem<'a>) -> Result<Self, PlanError> {
        let mut demand = 0_u64;
        for service in problem.services {
            demand = demand.saturating_add(service.total());
        }
        if demand > Demand::LIMIT {
            return Err(PlanError::TooLarge("demand"));
        }
        let mut zones = BTreeSet::new();
        for members in problem.upstream.priorities() {
            if members.total().all_weight() > Demand::LIMIT {
                return Err(PlanError::TooLarge("the weight of the endpoints"));
            }
            zones.extend(members.iter().map(|(zone, _)| zone));
        }
        for service in problem.services {
            zones.extend(service.iter().map(|(zone, _)| zone));
        }
        let limit = match problem.costs {
            Some(_) => MAX_ZONES_WITH_COSTS,
            None => MAX_ZONES,
        };
        if zones.len() > limit {
            return Err(PlanError::TooManyZones {
                zones: zones.len(),
                limit,
            });
        }
        let zones: Vec<&Locality> = zones.into_iter().collect();
        let costs = problem.costs.map(|costs| {
            let from = zones.iter();
            from.flat_map(|from| zones.iter().map(|to| costs.get(from, to)))
                .collect()
        });

        let members = problem.upstream.priorities();
        let priorities = loads(
            members,
            problem.healthy_panic_threshold,
            problem.overprovisioning_factor,
        );
        let mut classes = Vec::new();
        for ((priority, load), members) in (0..).zip(&priorities).zip(members) {
            for (hosts, percent) in [
                (Hosts::Healthy, load.healthy),
                (Hosts::Degraded, load.degraded),
            ] {
                let hosts = if load.panic { Hosts::All } else { hosts };
                let weight =
                    |zone: &&Locality| members.get(zone).map_or(0, |tally| hosts.weight(tally));
                let capacity: Vec<u64> = zones.iter().map(weight).collect();
                if percent > 0 && capacity.iter().any(|weight| *weight > 0) {
                    classes.push(Class {
                        priority,
                        hosts,
                        parts: PARTS / 100 * u32::from(percent),
                        capacity,
                        zones: zones.iter().map(|zone| (*zone).clone()).collect(),
                    });
                }
            }
        }
        Ok(Self {
            zones,
            classes,
            priorities,
            costs,
        })
    }

    fn plan(&self, services: Vec<Service>) -> Plan {
        Plan {
            services,
            priorities: self.priorities.clone(),
        }
    }

    /// One split for these services together.
    fn service(&self, demands: &[&Demand], tolerance: Tolerance) -> Service {
        let demand = |zone: &&Locality| demands.iter().map(|demand| demand.get(zone)).sum();
        let demand: Vec<u64> = self.zones.iter().map(demand).collect();
        let mut rows: Vec<Vec<Part>> = self.zones.iter().map(|_| Vec::new()).collect();
        let mut elsewhere = Vec::new();
        for class in &self.classes {
            let places: Vec<Place> = demand
                .iter()
                .zip(&class.capacity)
                .map(|(demand, capacity)| Place {
                    demand: *demand,
                    capacity: *capacity,
                })
                .collect();
            let level = level(&places, tolerance.get());
            let shipped = self.shipped(&places, tolerance);
            for (zone, parts) in rows.iter_mut().enumerate() {
                let row = match &shipped {
                    Some(flow) if demand[zone] > 0 => apportion(PARTS, &flow[zone]),
                    Some(_) => self.nearest(zone, class, &level),
                    None => level.row(zone),
                };
                class.fill(&row, parts);
            }
            class.fill(&level.elsewhere(PARTS), &mut elsewhere);
        }
        Service {
            zones: self
                .zones
                .iter()
                .zip(rows)
                .map(|(zone, parts)| ((*zone).clone(), Split::new(parts)))
                .collect(),
            elsewhere: Split::new(elsewhere),
        }
    }

    /// The cheapest way, where zones are not all equally far.
    fn shipped(&self, places: &[Place], tolerance: Tolerance) -> Option<Vec<Vec<u128>>> {
        let costs = self.costs.as_ref()?;
        let (wants, limits) = scaled(places, tolerance.get());
        // The limits together are at least what is wanted.
        transport(&wants, &limits, |from, to| costs[from * places.len() + to])
    }

    /// For a zone from which nothing was to be shipped: where it is cheapest.
    fn nearest(&self, zone: usize, class: &Class, level: &Level) -> Vec<u32> {
        let Some(costs) = &self.costs else {
            return level.row(zone);
        };
        let places = class.capacity.len();
        let costs = &costs[zone * places..(zone + 1) * places];
        let with_hosts = costs.iter().zip(&class.capacity);
        let least = with_hosts
            .filter(|(_, weight)| **weight > 0)
            .map(|(cost, _)| *cost)
            .min();
        let weights: Vec<u128> = costs
            .iter()
            .zip(&class.capacity)
            .map(|(cost, weight)| {
                if Some(*cost) == least {
                    u128::from(*weight)
                } else {
                    0
                }
            })
            .collect();
        apportion(PARTS, &weights)
    }
}
