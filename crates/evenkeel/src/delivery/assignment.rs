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

/// The callers themselves, as Envoy takes them: it refuses a local cluster with
/// priorities.
pub(super) fn of_callers(service: &ServiceView) -> Told {
    let mut told = of_service(service);
    let groups = std::mem::take(&mut told.assignment.groups);
    for ((_, locality), group) in groups {
        let all = told.assignment.groups.entry((0, locality)).or_default();
        all.endpoints.extend(group.endpoints);
    }
    told
}

/// Whether its endpoints have different priorities.
pub(super) fn has_priorities(service: &ServiceView) -> bool {
    // They are in order.
    let mut endpoints = service.endpoints.iter();
    let first = endpoints.next().map(|view| view.endpoint.priority);
    let last = endpoints.last().map(|view| view.endpoint.priority);
    last.is_some() && first != last
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenkeel_engine::CheckId;
    use evenkeel_threshold::{Status, Timestamp};
    use proptest::prelude::*;

    use super::*;
    use crate::config::ZoneSettings;
    use crate::zones::{self, Instance, RuleName, Weights, Zones};

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn names() -> impl Strategy<Value = String> {
        prop_oneof![
            Just(String::new()),
            Just("a".to_owned()),
            Just("b".to_owned()),
            Just("\u{0}/\u{202e}\n".to_owned()),
            Just("z".repeat(300)),
        ]
    }

    fn numbers() -> impl Strategy<Value = u32> {
        prop_oneof![4 => 0..3_u32, 1 => Just(u32::MAX), 1 => any::<u32>()]
    }

    fn instances() -> impl Strategy<Value = Vec<Instance>> {
        let addresses = prop_oneof![
            Just("10.0.0.1".to_owned()),
            Just("::1".to_owned()),
            Just("fe80::1%eth0".to_owned()),
            Just("db.example".to_owned()),
            names(),
        ];
        let endpoint = (
            names(),
            addresses,
            any::<u16>(),
            (names(), names(), names()),
            numbers(),
        );
        let weights = (numbers(), numbers());
        let statuses = prop::collection::vec(prop::sample::select(Status::ALL.to_vec()), 0..3);
        let instance = (endpoint, weights, statuses).prop_map(
            |((id, address, port, zone, priority), (passing, warning), statuses)| Instance {
                endpoint: zones::Endpoint {
                    id: id.as_str().into(),
                    address: address.as_str().into(),
                    port: port % 3,
                    locality: zone_weights::Locality::new(&zone.0, &zone.1, &zone.2),
                    priority,
                },
                weights: Weights { passing, warning },
                checks: statuses
                    .into_iter()
                    .zip(0..)
                    .map(|(status, number)| {
                        (CheckId::new("", "", &id, "", &number.to_string()), status)
                    })
                    .collect(),
            },
        );
        prop::collection::vec(instance, 0..12)
    }

    proptest! {
        // Zero endpoints, empty names of zones, numbers near the limits: what comes
        // out is whole, or it is told what is wrong.
        #[test]
        fn whatever_is_in_a_catalog_comes_out_as_an_assignment_or_a_fault(
            called in prop::collection::vec(instances(), 1..4),
            calling in instances(),
        ) {
            let mut zones = Zones::new(ZoneSettings::default().rules(), NOW);
            let (web, shop): (Arc<str>, Arc<str>) = ("web".into(), "shop".into());
            let pairs = RuleName::ALL.map(|rule| zones.pair(NOW, &web, &shop, rule).unwrap());
            let mut now = NOW;
            zones.handle_instances(now, "shop", calling, Vec::new());
            for instances in called {
                zones.handle_instances(now, "web", instances, Vec::new());
                for _ in 0..50 {
                    let Some(due) = zones.poll_timeout() else { break };
                    now = due;
                    zones.handle_timeout(now);
                }
                for pair in &pairs {
                    let pair = Arc::clone(&pair.borrow());
                    let report = zones::report(&pair, None);
                    serde_json::to_string(&report).unwrap();
                    let shown = zones::draw_split(&report, crate::status::Style::Plain);
                    prop_assert!(!shown.contains(char::from(0)));
                    zones::flow_picture(&report);
                    let mut told = vec![of_service(&pair.upstream), of_callers(&pair.callers)];
                    told.extend(pair.zones().iter().map(|zone| of_pair(&pair, zone)));
                    for told in told {
                        // Sums beyond Envoy's limit are found, not sent.
                        if told.assignment.validate().is_ok() {
                            evenkeel_xds::file("web", &told.assignment, 1);
                        }
                        let all = told.assignment.len() + told.names;
                        let most = pair.upstream.endpoints.len().max(pair.callers.endpoints.len());
                        prop_assert!(all <= most);
                    }
                }
            }
        }
    }
}
