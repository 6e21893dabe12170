//! Better rules, where the assumptions of Envoy's do not hold.
//!
//! Envoy's rule is balanced and sends the least between zones, *if* traffic is
//! proportional to the number of callers, endpoints are alike, one service calls
//! them, and there are at least six of them. [`Rule`] is what decides otherwise:
//!
//! | rule | what it does | when |
//! |---|---|---|
//! | [`Bounded`] | each calling service by itself; no endpoint above 1 + tolerance of the mean | few endpoints; some imbalance is fine |
//! | [`Joint`] | all calling services of the same endpoints together | skews of several callers offset each other |
//! | [`EnvoyRule`], [`RoundRobin`] | for comparison | |
//!
//! They take demand per zone ([`Demand`]), measured if it is known, and the
//! weights of the endpoints as their capacity. The zone is chosen among those that
//! have a host of the health in question, so no request fails while somebody could
//! serve it: degraded hosts are found where they are, and a zone without hosts gets
//! nothing. Priorities above 0 are split by zone too. Which priority and which
//! health a request goes to, and panic, is as in Envoy.
//!
//! What a rule says is a [`Plan`]: for each service and zone, parts of a billion.
//! A [`Publisher`] holds it back until it differs enough, and lets it change by a
//! limited step at a time.

mod costs;
mod demand;
mod level;
mod parts;
mod publish;
mod report;
mod rules;
mod transport;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;

pub use costs::Costs;
pub use demand::Demand;
pub use parts::PARTS;
pub use publish::{Limits, Publisher};
pub use report::Report;
pub use rules::{Bounded, EnvoyRule, Joint, RoundRobin, Tolerance};

use crate::envoy::{PriorityLoad, Settings};
use crate::{Hosts, Locality, Percent, Reason, Route, Routes, Upstream};

/// Why there is no plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// The demands of all services, or the weights of the endpoints of a
    /// priority, add up to more than [`Demand::LIMIT`]: beyond that, sums and
    /// products would not be exact. Which of them is in the text.
    TooLarge(&'static str),
    /// More than [`MAX_ZONES`] zones, or [`MAX_ZONES_WITH_COSTS`] with costs.
    TooManyZones {
        /// How many there are.
        zones: usize,
        /// How many it takes.
        limit: usize,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(what) => write!(f, "{what} adds up to more than {}", Demand::LIMIT),
            Self::TooManyZones { zones, limit } => {
                write!(f, "{zones} zones; a plan takes at most {limit}")
            }
        }
    }
}

impl core::error::Error for PlanError {}

/// The most zones, of callers and endpoints together, that a plan is made for. A
/// plan can have as many parts as there are pairs of zones.
pub const MAX_ZONES: usize = 1_024;

/// The same for a problem with [`costs`](Problem::costs), which takes time in
/// proportion to the third power of the zones.
pub const MAX_ZONES_WITH_COSTS: usize = 128;

/// What a plan is made for.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// The endpoints.
    pub upstream: &'a Upstream,
    /// The services that call them, in some order; a plan names them by their
    /// index.
    pub services: &'a [Demand],
    /// What it costs to leave the zone. `None`: all other zones cost the same, and
    /// of the cheapest plans the most even one is taken.
    pub costs: Option<&'a Costs>,
    /// As in Envoy; see [`Settings::healthy_panic_threshold`].
    pub healthy_panic_threshold: Percent,
    /// As in Envoy; see [`Settings::overprovisioning_factor`].
    pub overprovisioning_factor: NonZeroU32,
}

impl<'a> Problem<'a> {
    /// With Envoy's defaults for panic and health, all other zones equally far.
    #[must_use]
    pub fn new(upstream: &'a Upstream, services: &'a [Demand]) -> Self {
        Self {
            upstream,
            services,
            costs: None,
            healthy_panic_threshold: Settings::ENVOY.healthy_panic_threshold,
            overprovisioning_factor: Settings::ENVOY.overprovisioning_factor,
        }
    }
}

/// Splits the requests of services among zones.
pub trait Rule {
    /// A short name that stays the same.
    fn name(&self) -> &'static str;

    /// The plan.
    ///
    /// # Errors
    /// The numbers are too large for an exact plan, or the zones too many.
    fn plan(&self, problem: &Problem<'_>) -> Result<Plan, PlanError>;
}

/// A part of the requests of a zone, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// The priority.
    pub priority: u32,
    /// The zone of the endpoints.
    pub zone: Locality,
    /// Which of the endpoints there.
    pub hosts: Hosts,
    /// Parts of [`PARTS`]; not 0.
    pub parts: u32,
}

/// Where the requests of one service in one zone go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Split {
    parts: Vec<Part>,
}

impl Split {
    /// The parts, each zone of each priority and health once, in order. They add
    /// up to [`PARTS`]; to less if there is no host for the rest, which fails.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Of parts in any order, the same place several times perhaps.
    fn new(mut all: Vec<Part>) -> Self {
        all.sort_unstable();
        let mut parts: Vec<Part> = Vec::with_capacity(all.len());
        for part in all {
            match parts.last_mut() {
                Some(last) if last.place() == part.place() => last.parts += part.parts,
                _ if part.parts == 0 => {}
                _ => parts.push(part),
            }
        }
        Self { parts }
    }
}

impl Part {
    fn place(&self) -> (u32, &Locality, Hosts) {
        (self.priority, &self.zone, self.hosts)
    }
}

/// The splits of one service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Service {
    zones: BTreeMap<Locality, Split>,
    /// For callers in a zone that nobody knew of.
    elsewhere: Split,
}

/// What a rule says about a [`Problem`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    services: Vec<Service>,
    priorities: Vec<PriorityLoad>,
}

impl Plan {
    /// Where the requests of a service go that are made in a zone. A zone that
    /// is in neither the demand nor the endpoints has a split as well. `None` if
    /// there is no such service.
    #[must_use]
    pub fn split(&self, service: usize, zone: &Locality) -> Option<&Split> {
        let service = self.services.get(service)?;
        Some(service.zones.get(zone).unwrap_or(&service.elsewhere))
    }

    /// The zones of a service for which there is a split of their own, in order.
    pub fn splits(&self, service: usize) -> impl Iterator<Item = (&Locality, &Split)> {
        self.services
            .get(service)
            .into_iter()
            .flat_map(|service| &service.zones)
    }

    /// Number of services.
    #[must_use]
    pub fn services(&self) -> usize {
        self.services.len()
    }

    /// Load and panic of each priority.
    #[must_use]
    pub fn priorities(&self) -> &[PriorityLoad] {
        &self.priorities
    }

    /// The same for a [`Picker`](crate::Picker). What stays in the zone counts as
    /// `lb_zone_routing_all_directly` if everything does, else as `_sampled`.
    #[must_use]
    pub fn routes(&self, service: usize, zone: &Locality) -> Option<Routes> {
        let split = self.split(service, zone)?;
        let all_local = split.parts.iter().all(|part| part.zone == *zone);
        let mut rest = PARTS;
        let mut list: Vec<Route> = split
            .parts
            .iter()
            .map(|part| {
                rest -= part.parts;
                Route {
                    parts: part.parts.into(),
                    priority: part.priority,
                    zone: Some(part.zone.clone()),
                    hosts: part.hosts,
                    reason: match part.hosts {
                        Hosts::All => Reason::Panic,
                        _ if part.zone != *zone => Reason::CrossZone,
                        _ if all_local => Reason::AllLocal,
                        _ => Reason::Sampled,
                    },
                }
            })
            .collect();
        if rest > 0 {
            list.push(Route {
                parts: rest.into(),
                priority: 0,
                zone: None,
                hosts: Hosts::Nobody,
                reason: Reason::Ordinary,
            });
        }
        Some(Routes::new(list))
    }
}
