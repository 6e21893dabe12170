//! Bad input: the exact rule or a clear error, never a panic or an overflow.

use core::num::NonZeroU32;
use std::sync::Arc;

use evenkeel_zone_weights::envoy::{
    LocalityBasis, MinClusterSize, Runtime, Settings, State, decide,
};
use evenkeel_zone_weights::plan::{
    Bounded, Costs, Demand, EnvoyRule, Joint, Limits, PARTS, Problem, Publisher, RoundRobin, Rule,
    Tolerance,
};
use evenkeel_zone_weights::{
    Endpoints, Fraction, Health, Locality, Members, Percent, Rotation, Upstream,
};
use proptest::prelude::*;

/// Empty, long, odd and equal but for one part.
fn names() -> impl Strategy<Value = Locality> {
    let name = || {
        prop_oneof![
            Just(String::new()),
            Just("a".to_owned()),
            Just("b".to_owned()),
            Just("\u{0}/é\n".to_owned()),
            Just("z".repeat(300)),
        ]
    };
    (name(), name(), name())
        .prop_map(|(region, zone, sub_zone)| Locality::new(&region, &zone, &sub_zone))
}

fn counts() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        1..5_u64,
        Just(u64::from(u32::MAX)),
        Just(u64::MAX / 3),
        Just(u64::MAX),
        any::<u64>()
    ]
}

fn weights() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(1), Just(u32::MAX), any::<u32>()]
}

fn healths() -> impl Strategy<Value = Health> {
    prop_oneof![
        Just(Health::Healthy),
        Just(Health::Degraded),
        Just(Health::Unhealthy)
    ]
}

type Group = (u32, Locality, Health, u32, u64);

fn groups() -> impl Strategy<Value = Vec<Group>> {
    let priority = prop_oneof![4 => Just(0), 1 => 0..130_u32, 1 => Just(u32::MAX)];
    prop::collection::vec((priority, names(), healths(), weights(), counts()), 0..8)
}

fn settings() -> impl Strategy<Value = Settings> {
    let number = || prop_oneof![Just(None), counts().prop_map(Some)];
    let runtime = (number(), number(), number(), number());
    let force = prop_oneof![Just(None), weights().prop_map(Some)];
    (
        (any::<u8>(), any::<u8>(), counts(), any::<bool>()),
        (force, any::<bool>(), any::<bool>(), 1..=u32::MAX),
        runtime,
    )
        .prop_map(
            |((enabled, panic, least, each), (force, weight, fail, factor), runtime)| {
                Settings {
                    routing_enabled: Percent::capped(enabled.into()),
                    min_cluster_size: if each {
                        MinClusterSize::HostsPerLocality(least)
                    } else {
                        MinClusterSize::Hosts(least)
                    },
                    force_local_zone: force,
                    locality_basis: if weight {
                        LocalityBasis::HealthyHostsWeight
                    } else {
                        LocalityBasis::HealthyHostsNum
                    },
                    healthy_panic_threshold: Percent::capped(panic.into()),
                    fail_traffic_on_panic: fail,
                    overprovisioning_factor: NonZeroU32::new(factor).unwrap_or(NonZeroU32::MIN),
                }
                .with_runtime(&Runtime {
                    zone_routing_enabled: runtime.0,
                    min_cluster_size: runtime.1,
                    force_local_zone_min_size: runtime.2,
                    healthy_panic_threshold: runtime.3,
                })
            },
        )
}

fn callers(groups: &[Group]) -> Members {
    let mut members = Members::new();
    for (_, zone, health, weight, count) in groups {
        let _ = members.add(zone, *health, *weight, *count);
    }
    members
}

fn upstream(groups: &[Group]) -> Upstream {
    let mut upstream = Upstream::new();
    for (priority, zone, health, weight, count) in groups {
        let _ = upstream.add(*priority, zone, *health, *weight, *count);
    }
    upstream
}

proptest! {
    #[test]
    fn envoys_rule_takes_anything(
        settings in settings(),
        calling in groups(),
        called in groups(),
        local in prop::option::of(names()),
        known in any::<bool>(),
    ) {
        let (callers, upstream) = (callers(&calling), upstream(&called));
        let decision = decide(&settings, local.as_ref(), known.then_some(&callers), &upstream);
        let load: u32 = decision
            .priorities()
            .iter()
            .map(|load| u32::from(load.healthy) + u32::from(load.degraded))
            .sum();
        prop_assert_eq!(load, 100);
        let (source, endpoints) = decision.zones().iter().fold((0_u32, 0_u32), |sums, zone| {
            (sums.0 + u32::from(zone.source), sums.1 + u32::from(zone.upstream))
        });
        prop_assert!(source <= 10_000 && endpoints <= 10_000);
        if let State::Residual { local_route } = decision.state() {
            prop_assert!(local_route < 10_000);
        }
        let routes = decision.routes();
        let parts: u128 = routes.list().iter().map(|route| u128::from(route.parts)).sum();
        prop_assert_eq!(parts, u128::from(routes.parts()));
        prop_assert!(parts > 0);
        // Everything goes somewhere, exactly, where the terms fit.
        if let Some(shares) = routes.shares(&upstream) {
            let sum = shares.zones.values().try_fold(shares.no_host, |sum, share| sum.checked_add(*share));
            if let Some(sum) = sum {
                prop_assert_eq!(sum, Fraction::ONE);
            }
        }
    }

    #[test]
    fn plans_take_anything_or_say_what_is_too_much(
        calling in prop::collection::vec(groups(), 0..3),
        called in groups(),
        tolerance in any::<u32>(),
        costs in prop::option::of((any::<u32>(), any::<u32>())),
        limits in (any::<u32>(), any::<u32>()),
    ) {
        let services: Vec<Demand> = calling
            .iter()
            .map(|groups| Demand::of_callers(&callers(groups)))
            .collect();
        let upstream = upstream(&called);
        let costs = costs.map(|(near, far)| Costs::new(near, far));
        let problem = Problem { costs: costs.as_ref(), ..Problem::new(&upstream, &services) };
        let tolerance = Tolerance::per_10_000(tolerance);
        let rules: [&dyn Rule; 4] = [
            &Bounded { tolerance },
            &Joint { tolerance },
            &EnvoyRule::default(),
            &RoundRobin,
        ];
        let mut publisher = Publisher::new(Limits { least_change: limits.0, largest_step: limits.1 });
        for rule in rules {
            let plan = match rule.plan(&problem) {
                Ok(plan) => plan,
                Err(error) => {
                    prop_assert!(!error.to_string().is_empty());
                    continue;
                }
            };
            for service in 0..services.len() {
                for (_, split) in plan.splits(service) {
                    let sum: u64 = split.parts().iter().map(|part| u64::from(part.parts)).sum();
                    prop_assert!(sum <= u64::from(PARTS));
                }
            }
            let _ = plan.report(&problem);
            publisher.offer(&plan, &problem);
        }
    }

    #[test]
    fn a_picker_is_made_of_anything(
        settings in settings(),
        calling in groups(),
        called in groups(),
        local in prop::option::of(names()),
        numbers in prop::collection::vec(any::<u64>(), 1..20),
    ) {
        let callers = callers(&calling);
        let mut endpoints = Endpoints::new();
        for (priority, zone, health, weight, count) in called {
            for host in 0..count.min(3) {
                let _ = endpoints.insert(priority, &zone, health, weight, host);
            }
        }
        let decision = decide(&settings, local.as_ref(), Some(&callers), endpoints.upstream());
        let picker = endpoints.picker(&decision.routes(), Arc::default());
        for number in numbers {
            let _ = picker.pick(number);
            let _ = picker.next(&Rotation::starting_at(number));
        }
    }
}

#[test]
fn ten_thousand_zones() {
    let (mut callers, mut upstream) = (Members::new(), Upstream::new());
    for number in 0..10_000_u64 {
        let zone = Locality::zone_only(&number.to_string());
        callers
            .add(&zone, Health::Healthy, 1, 1 + number % 2)
            .unwrap();
        upstream.add(0, &zone, Health::Healthy, 1, 1).unwrap();
    }
    let local = Locality::zone_only("17");
    let decision = decide(&Settings::ENVOY, Some(&local), Some(&callers), &upstream);
    // One endpoint is one part of 10,000, a caller two thirds of one: all cut to
    // the same.
    assert_eq!(decision.state(), State::Direct);
    let services = [Demand::of_callers(&callers)];
    let error = Joint::default().plan(&Problem::new(&upstream, &services));
    assert!(error.is_err());
}

#[test]
fn nobody_at_all() {
    let upstream = Upstream::new();
    let callers = Members::new();
    let decision = decide(&Settings::ENVOY, None, Some(&callers), &upstream);
    assert!(decision.gate().is_some());
    let shares = decision.routes().shares(&upstream).unwrap();
    assert_eq!(shares.no_host, Fraction::ONE);
    let services = [Demand::of_callers(&callers)];
    let problem = Problem::new(&upstream, &services);
    let plan = Joint::default().plan(&problem).unwrap();
    assert!(
        plan.split(0, &Locality::zone_only("a"))
            .unwrap()
            .parts()
            .is_empty()
    );
    assert!(plan.split(1, &Locality::zone_only("a")).is_none());
}
