//! Envoy's rule against a slow and obvious model of it: host by host, one branch
//! after the other, with fractions. The recorded cases show that the model is
//! Envoy's; this shows that the crate agrees with it elsewhere too.

mod obvious;

use core::num::NonZeroU32;

use evenkeel_zone_weights::envoy::{LocalityBasis, MinClusterSize, Settings, State, decide};
use evenkeel_zone_weights::{Health, Locality, Members, Percent, Upstream};
use obvious::Host;
use proptest::prelude::*;

fn localities() -> impl Strategy<Value = Locality> {
    (0..3_u8, 0..4_u8, 0..8_u8).prop_map(|(region, zone, sub_zone)| {
        let name = |number: u8| ["", "a", "b", "c"][usize::from(number)];
        Locality::new(
            name(region),
            name(zone),
            if sub_zone == 0 { "s" } else { "" },
        )
    })
}

/// Hosts that are alike: locality, health, weight, number.
type Group = (Locality, Health, u32, u64);

/// Hosts with a tendency: mostly well, mixed, or mostly not.
fn groups() -> impl Strategy<Value = Vec<Group>> {
    let tendency = prop_oneof![
        3 => Just([1, 0, 0]),
        2 => Just([6, 1, 1]),
        2 => Just([2, 2, 2]),
        1 => Just([1, 0, 5])
    ];
    (
        tendency,
        any::<bool>(),
        prop::collection::vec(localities(), 1..5),
    )
        .prop_flat_map(|([well, degraded, ill], alike, zones)| {
            let health = prop_oneof![
                well => Just(Health::Healthy),
                degraded => Just(Health::Degraded),
                ill => Just(Health::Unhealthy)
            ];
            let weight = if alike { 1..2_u32 } else { 1..9 };
            let count = prop_oneof![6 => 0..6_u64, 1 => 0..40_u64];
            let zone = prop::sample::select(zones);
            prop::collection::vec((zone, health, weight, count), 0..9)
        })
}

fn settings() -> impl Strategy<Value = Settings> {
    let percent = prop::sample::select(vec![0, 1, 28, 50, 65, 90, 99, 100]);
    let sizes = prop::sample::select(vec![0, 1, 3, 6, 20]);
    let force = prop::option::weighted(0.3, 0..5_u32);
    let factor = prop::sample::select(vec![10, 50, 100, 140, 140, 140, 200]);
    let flags = (any::<bool>(), any::<bool>());
    let enabled = prop_oneof![2 => Just(100), 1 => percent.clone()];
    let panic = prop_oneof![2 => Just(50), 1 => percent];
    (enabled, panic, sizes, force, factor, flags).prop_map(
        |(enabled, panic, size, force, factor, (fail, weight))| Settings {
            routing_enabled: Percent::capped(enabled),
            min_cluster_size: MinClusterSize::Hosts(size),
            force_local_zone: force,
            locality_basis: if weight {
                LocalityBasis::HealthyHostsWeight
            } else {
                LocalityBasis::HealthyHostsNum
            },
            healthy_panic_threshold: Percent::capped(panic),
            fail_traffic_on_panic: fail,
            overprovisioning_factor: NonZeroU32::new(factor).unwrap_or(NonZeroU32::MIN),
        },
    )
}

fn one_by_one(groups: &[Group], priority: usize) -> impl Iterator<Item = Host> + '_ {
    groups
        .iter()
        .flat_map(move |(locality, health, weight, count)| {
            (0..*count).map(move |_| Host {
                priority,
                locality: locality.clone(),
                health: *health,
                weight: *weight,
            })
        })
}

proptest! {
    #[test]
    fn the_rule_is_that_of_the_model(
        settings in settings(),
        callers in groups(),
        first in groups(),
        others in prop_oneof![
            3 => Just(Vec::new()),
            1 => prop::collection::vec(groups(), 1..3)
        ],
        known in prop::bool::weighted(0.95),
        local in prop_oneof![9 => any::<prop::sample::Index>().prop_map(Some), 1 => Just(None)],
        elsewhere in localities(),
    ) {
        // Mostly a zone that there is.
        let zones: Vec<&Locality> = callers.iter().chain(&first).map(|group| &group.0).collect();
        let local = local.map(|index| match zones.len() {
            0 => elsewhere.clone(),
            count => zones[index.index(count)].clone(),
        });
        let (mut members, mut upstream) = (Members::new(), Upstream::new());
        for (locality, health, weight, count) in &callers {
            members.add(locality, *health, *weight, *count).unwrap();
        }
        let mut hosts = Vec::new();
        for (priority, groups) in (0..).zip(core::iter::once(&first).chain(&others)) {
            for (locality, health, weight, count) in groups {
                upstream.add(priority, locality, *health, *weight, *count).unwrap();
            }
            hosts.extend(one_by_one(groups, priority as usize));
        }
        let calling: Vec<Host> = one_by_one(&callers, 0).collect();

        let model = obvious::model(&settings, local.as_ref(), known.then_some(&calling), &hosts);
        let ours = decide(&settings, local.as_ref(), known.then_some(&members), &upstream);

        prop_assert_eq!(ours.gate().map(|gate| gate.name()), model.reason);
        let zones: Vec<Locality> = ours.zones().iter().map(|zone| zone.locality.clone()).collect();
        prop_assert_eq!(zones, model.zones);
        let list = |of: fn(&evenkeel_zone_weights::envoy::Zone) -> u16| -> Vec<u64> {
            ours.zones().iter().map(|zone| of(zone).into()).collect()
        };
        prop_assert_eq!(list(|zone| zone.source), model.source);
        prop_assert_eq!(list(|zone| zone.upstream), model.upstream);
        prop_assert_eq!(list(|zone| zone.residual), model.residual);
        let local_route = match ours.state() {
            State::Residual { local_route } => Some(u64::from(local_route)),
            State::Closed(_) | State::Direct => None,
        };
        prop_assert_eq!(local_route, model.local_route);
        let panic: Vec<bool> = ours.priorities().iter().map(|load| load.panic).collect();
        prop_assert_eq!(panic, model.panic);
        let shares = ours.routes().shares(&upstream).expect("few hosts");
        prop_assert_eq!(shares, model.shares);
    }
}
