//! Reports of users of such systems, as tests.

use std::collections::BTreeMap;

use evenkeel_zone_weights::envoy::{Gate, LocalityBasis, Settings, State, decide, gates};
use evenkeel_zone_weights::{Fraction, Health, Locality, Members, Percent, Shares, Upstream};

fn zone(name: &str) -> Locality {
    Locality::zone_only(name)
}

/// Hosts of weight 1.
fn hosts(zones: &[(&str, Health, u64)]) -> Members {
    weighted(
        &zones
            .iter()
            .map(|(name, health, count)| (*name, *health, 1, *count))
            .collect::<Vec<_>>(),
    )
}

fn weighted(zones: &[(&str, Health, u32, u64)]) -> Members {
    let mut members = Members::new();
    for (name, health, weight, count) in zones {
        members
            .add(&zone(name), *health, *weight, *count)
            .expect("valid hosts");
    }
    members
}

fn healthy(zones: &[(&str, u64)]) -> Members {
    hosts(
        &zones
            .iter()
            .map(|(name, count)| (*name, Health::Healthy, *count))
            .collect::<Vec<_>>(),
    )
}

fn shares(settings: &Settings, local: &str, callers: &Members, upstream: &Members) -> Shares {
    let upstream = Upstream::from(upstream.clone());
    decide(settings, Some(&zone(local)), Some(callers), &upstream)
        .routes()
        .shares(&upstream)
        .expect("few hosts")
}

fn by_name(shares: &Shares) -> BTreeMap<&str, Fraction> {
    shares
        .zones
        .iter()
        .map(|((_, zone), share)| (zone.zone(), *share))
        .collect()
}

// P154
#[test]
fn zones_are_matched_by_name_where_the_sets_differ() {
    let settings = Settings {
        min_cluster_size: evenkeel_zone_weights::envoy::MinClusterSize::Hosts(1),
        ..Settings::ENVOY
    };
    let callers = healthy(&[("a", 2), ("b", 2)]);
    let upstream = healthy(&[("b", 1), ("c", 3)]);
    let from_a = shares(&settings, "a", &callers, &upstream);
    // b has less than its callers need; all the room is in c.
    assert_eq!(by_name(&from_a), BTreeMap::from([("c", Fraction::ONE)]));
    let from_b = shares(&settings, "b", &callers, &upstream);
    let half = Fraction::new(1, 2);
    assert_eq!(by_name(&from_b), BTreeMap::from([("b", half), ("c", half)]));
}

// P155
#[test]
fn weights_count_where_they_are_asked_for() {
    let callers = weighted(&[
        ("1", Health::Healthy, 20, 1),
        ("2", Health::Healthy, 100, 1),
        ("3", Health::Healthy, 100, 1),
    ]);
    let upstream = weighted(&[
        ("1", Health::Healthy, 100, 2),
        ("2", Health::Healthy, 100, 2),
        ("3", Health::Healthy, 100, 2),
    ]);
    let by_weight = Settings {
        locality_basis: LocalityBasis::HealthyHostsWeight,
        ..Settings::ENVOY
    };
    let from_1 = shares(&by_weight, "1", &callers, &upstream);
    assert_eq!(by_name(&from_1), BTreeMap::from([("1", Fraction::ONE)]));
    // And has room for what zone 2 cannot keep.
    let from_2 = shares(&by_weight, "2", &callers, &upstream);
    assert_eq!(
        by_name(&from_2).keys().copied().collect::<Vec<_>>(),
        ["1", "2"]
    );
    // Without weights everything is even.
    let from_2 = shares(&Settings::ENVOY, "2", &callers, &upstream);
    assert_eq!(by_name(&from_2), BTreeMap::from([("2", Fraction::ONE)]));
}

// P156
#[test]
fn five_hosts_have_no_zone_preference_and_six_have() {
    let callers = healthy(&[("a", 2), ("b", 2), ("c", 2)]);
    for settings in [Settings::ENVOY, Settings::SERVICE_CONNECT] {
        let decide = |upstream: &Members| {
            let upstream = Upstream::from(upstream.clone());
            decide(&settings, Some(&zone("a")), Some(&callers), &upstream)
        };
        let five = decide(&healthy(&[("a", 2), ("b", 2), ("c", 1)]));
        assert_eq!(
            five.gate(),
            Some(Gate::ClusterTooSmall {
                healthy: 5,
                needed: 6
            })
        );
        let six = decide(&healthy(&[("a", 2), ("b", 2), ("c", 2)]));
        assert_eq!(six.state(), State::Direct);
    }
}

#[test]
fn service_connect_wants_two_endpoints_for_each_zone() {
    let names = ["a", "b", "c", "d"];
    let callers = healthy(&names.map(|name| (name, 2)));
    for zones in 2..=4 {
        let needed = 2 * zones as u64;
        for endpoints in zones as u64..3 * zones as u64 {
            let mut spread: Vec<(&str, u64)> =
                names[..zones].iter().map(|name| (*name, 1)).collect();
            spread[0].1 += endpoints - zones as u64;
            let upstream = Upstream::from(healthy(&spread));
            let decision = decide(
                &Settings::SERVICE_CONNECT,
                Some(&zone("a")),
                Some(&callers),
                &upstream,
            );
            assert_eq!(decision.gate().is_none(), endpoints >= needed, "{spread:?}");
        }
    }
}

// P115
#[test]
fn panic_and_zones_and_minimum_size_are_independent() {
    let callers = healthy(&[("a", 2), ("b", 2)]);
    for panic in [false, true] {
        for fail in [false, true] {
            for small in [false, true] {
                for by_zone in [false, true] {
                    let each = if small { 1 } else { 4 };
                    let ill = if panic { 3 * each } else { 0 };
                    let upstream = Upstream::from(hosts(&[
                        ("a", Health::Healthy, each),
                        ("b", Health::Healthy, each),
                        ("b", Health::Unhealthy, ill),
                    ]));
                    let settings = Settings {
                        fail_traffic_on_panic: fail,
                        routing_enabled: Percent::capped(if by_zone { 100 } else { 0 }),
                        ..Settings::ENVOY
                    };
                    let decision = decide(&settings, Some(&zone("a")), Some(&callers), &upstream);
                    let what = format!("{panic} {fail} {small} {by_zone}");
                    assert_eq!(decision.priorities()[0].panic, panic, "{what}");
                    assert_eq!(decision.gate().is_some(), small, "{what}");
                    let shares = decision.routes().shares(&upstream).unwrap();
                    let fails = panic && fail;
                    assert_eq!(shares.no_host == Fraction::ONE, fails, "{what}");
                    let all_local = by_name(&shares) == BTreeMap::from([("a", Fraction::ONE)]);
                    assert_eq!(all_local, !panic && !small && by_zone, "{what}");
                }
            }
        }
    }
}

// P114
#[test]
fn panic_is_a_flag_of_its_own() {
    for (ill, panic) in [(51, true), (50, false)] {
        let upstream = Upstream::from(hosts(&[
            ("a", Health::Healthy, 100 - ill),
            ("a", Health::Unhealthy, ill),
        ]));
        let decision = decide(&Settings::ENVOY, None, None, &upstream);
        assert_eq!(decision.priorities()[0].panic, panic);
    }
}

// envoy #8616: no way to see why it is off.
#[test]
fn each_gate_says_what_closes_it_and_what_would_open_it() {
    let callers = healthy(&[("a", 2)]);
    let upstream = Upstream::from(healthy(&[("a", 1), ("b", 2)]));
    let said: Vec<(&str, bool, String, String)> = gates(
        &Settings::ENVOY,
        Some(&zone("b")),
        Some(&callers),
        &upstream,
    )
    .into_iter()
    .map(|check| {
        let gate = check.gate;
        (
            gate.name(),
            check.closed,
            gate.to_string(),
            gate.remedy().to_string(),
        )
    })
    .collect();
    let closed: Vec<&str> = said
        .iter()
        .filter(|gate| gate.1)
        .map(|gate| gate.0)
        .collect();
    assert_eq!(
        closed,
        [
            "source_fewer_than_two_zones",
            "no_source_host_in_local_zone",
            "cluster_too_small"
        ]
    );
    assert_eq!(said[2].2, "callers in 1 of the 2 zones that it takes");
    assert!(said[2].3.contains("force_local_zone"));
    assert_eq!(said[4].2, "3 of the 6 healthy endpoints that it takes");
    assert!(said[4].3.contains("missing: 3;"));

    // With the callers unknown that is what closes, whatever else does.
    let unknown = gates(&Settings::ENVOY, Some(&zone("b")), None, &upstream);
    let first = unknown.into_iter().find(|check| check.closed);
    assert_eq!(first.map(|check| check.gate), Some(Gate::NoLocalCluster));
}
