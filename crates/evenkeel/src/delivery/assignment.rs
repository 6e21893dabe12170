//! Pure: what proxies are told of a service.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use evenkeel_xds::{Assignment, Endpoint, Health, Locality};
use evenkeel_zone_weights as zone_weights;
use evenkeel_zone_weights::plan::PARTS;
use evenkeel_zone_weights::{Fraction, Hosts, Routes};

use crate::zones::{EndpointView, PairView, ServiceView};

/// An assignment, and the endpoints that could not be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) assignment: Assignment,
    /// Endpoints whose address is a name: Envoy takes numbers only.
    pub(super) names: usize,
}

/// For Envoy's own rule: all endpoints with their health.
pub(super) fn of_service(service: &ServiceView) -> Told {
    let mut told = Told::default();
    // Envoy wants priorities without gaps.
    let priorities: BTreeSet<u32> = service
        .endpoints
        .iter()
        .map(|view| view.endpoint.priority)
        .collect();
    let ranks: BTreeMap<u32, u32> = priorities.into_iter().zip(0..).collect();
    for view in &service.endpoints {
        let health = match view.health {
            zone_weights::Health::Healthy => Health::Healthy,
            zone_weights::Health::Degraded => Health::Degraded,
            zone_weights::Health::Unhealthy => Health::Unhealthy,
        };
        let rank = ranks.get(&view.endpoint.priority).copied().unwrap_or(0);
        told.insert(rank, view, health);
    }
    told
}

/// For clusters with `locality_weighted_lb_config`: the endpoints that get
/// requests of callers in `zone`, and the weight of each of their zones. Envoy
/// would lower the weight of a zone with unhealthy endpoints, so those are left
/// out.
pub(super) fn of_pair(pair: &PairView, zone: &zone_weights::Locality) -> Told {
    let Some(routes) = pair.routes(zone) else {
        return by_endpoints(&pair.upstream);
    };
    let Some(shares) = routes.shares(&pair.upstream.upstream) else {
        return by_endpoints(&pair.upstream);
    };
    let mut told = Told::default();
    let mut sums = BTreeMap::<&zone_weights::Locality, u32>::new();
    for ((_, locality), share) in &shares.zones {
        // A zone may get requests of two priorities.
        let sum = sums.entry(locality).or_default();
        *sum = sum.saturating_add(weight(*share));
    }
    for (locality, weight) in sums {
        told.assignment.set_weight(0, &name(locality), weight);
    }
    for view in &pair.upstream.endpoints {
        if gets_any(&routes, view) {
            told.insert(0, view, Health::Healthy);
        }
    }
    // A zone all of whose endpoints have names for addresses.
    told.assignment
        .groups
        .retain(|_, group| !group.endpoints.is_empty());
    told
}

/// Without a plan: each zone by its healthy endpoints.
fn by_endpoints(service: &ServiceView) -> Told {
    let mut told = Told::default();
    for view in &service.endpoints {
        if view.health == zone_weights::Health::Healthy {
            told.insert(0, view, Health::Healthy);
        }
    }
    for group in told.assignment.groups.values_mut() {
        group.weight = Some(u32::try_from(group.endpoints.len()).unwrap_or(u32::MAX));
    }
    told
}

/// Whether a route leads to this endpoint.
fn gets_any(routes: &Routes, view: &EndpointView) -> bool {
    routes.list().iter().any(|route| {
        let here = route
            .zone
            .as_ref()
            .is_none_or(|zone| *zone == view.endpoint.locality);
        let well = match route.hosts {
            Hosts::Healthy => view.health == zone_weights::Health::Healthy,
            Hosts::Degraded => view.health == zone_weights::Health::Degraded,
            Hosts::All => true,
            Hosts::Nobody => false,
        };
        route.priority == view.endpoint.priority && here && well
    })
}

/// A share in billionths, and at least one: all of them fit into Envoy's 32 bits.
fn weight(share: Fraction) -> u32 {
    let parts = share.to_f64() * f64::from(PARTS);
    // Saturates; a share is between 0 and 1.
    (parts.round() as u32).max(1)
}

pub(super) fn name(locality: &zone_weights::Locality) -> Locality {
    Locality::new(locality.region(), locality.zone(), locality.sub_zone())
}

impl Told {
    fn insert(&mut self, priority: u32, view: &EndpointView, health: Health) {
        if view.endpoint.address.parse::<IpAddr>().is_err() {
            self.names += 1;
            return;
        }
        let endpoint = Endpoint {
            address: view.endpoint.address.to_string(),
            port: view.endpoint.port,
            health,
            weight: Some(view.weight),
        };
        self.assignment
            .insert(priority, &name(&view.endpoint.locality), endpoint);
    }
}
