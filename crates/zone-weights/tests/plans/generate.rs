//! Small services at random.

use evenkeel_zone_weights::plan::Demand;
use evenkeel_zone_weights::{Health, Locality, Upstream};
use proptest::prelude::*;

pub(crate) const NAMES: [&str; 4] = ["a", "b", "c", "d"];

pub(crate) fn zone(name: &str) -> Locality {
    Locality::zone_only(name)
}

pub(crate) fn demands() -> impl Strategy<Value = Demand> {
    prop::array::uniform4(prop_oneof![1 => Just(0), 3 => 0..10_u64, 1 => 0..1_000_u64]).prop_map(
        |amounts| {
            let mut demand = Demand::new();
            for (name, amount) in NAMES.iter().zip(amounts) {
                demand.add(&zone(name), amount).expect("small");
            }
            demand
        },
    )
}

/// Mostly healthy, sometimes not; mostly of one priority.
pub(crate) fn upstreams() -> impl Strategy<Value = Upstream> {
    let health = prop_oneof![
        8 => Just(Health::Healthy),
        1 => Just(Health::Degraded),
        1 => Just(Health::Unhealthy)
    ];
    let priority = prop_oneof![9 => Just(0), 1 => Just(1_u32)];
    let group = (priority, 0..NAMES.len(), health, 1..4_u32, 1..6_u64);
    prop::collection::vec(group, 0..8).prop_map(|groups| {
        let mut upstream = Upstream::new();
        for (priority, name, health, weight, count) in groups {
            upstream
                .add(priority, &zone(NAMES[name]), health, weight, count)
                .expect("valid hosts");
        }
        upstream
    })
}
