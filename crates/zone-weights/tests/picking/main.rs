//! Endpoints that come, go and change, and what a picker makes of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_zone_weights::envoy::{Settings, decide};
use evenkeel_zone_weights::{
    Counter, Counters, EndpointId, Endpoints, Health, InputError, Locality, Members, Percent,
    Rotation, Upstream,
};
use proptest::prelude::*;

const ZONES: [&str; 3] = ["a", "b", "c"];

fn zone(name: &str) -> Locality {
    Locality::zone_only(name)
}

/// An endpoint as the model has it.
#[derive(Debug, Clone)]
struct Known {
    id: EndpointId,
    value: u32,
    priority: u32,
    zone: usize,
    health: Health,
    weight: u32,
}

#[derive(Debug, Clone)]
enum Change {
    Insert(u32, usize, Health, u32),
    Remove(prop::sample::Index),
    Health(prop::sample::Index, Health),
    Weight(prop::sample::Index, u32),
}

fn health() -> impl Strategy<Value = Health> {
    prop_oneof![4 => Just(Health::Healthy), 1 => Just(Health::Degraded), 1 => Just(Health::Unhealthy)]
}

fn change() -> impl Strategy<Value = Change> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (0..2_u32, 0..ZONES.len(), health(), 1..4_u32)
            .prop_map(|(priority, zone, health, weight)| Change::Insert(priority, zone, health, weight)),
        1 => index().prop_map(Change::Remove),
        2 => (index(), health()).prop_map(|(index, health)| Change::Health(index, health)),
        1 => (index(), 1..4_u32).prop_map(|(index, weight)| Change::Weight(index, weight)),
    ]
}

fn fresh(known: &[Known]) -> Upstream {
    let mut upstream = Upstream::new();
    for host in known {
        upstream
            .add(
                host.priority,
                &zone(ZONES[host.zone]),
                host.health,
                host.weight,
                1,
            )
            .expect("valid hosts");
    }
    upstream
}

proptest! {
    #[test]
    fn many_small_changes_are_like_starting_anew(
        changes in prop::collection::vec(change(), 1..40),
        enabled in prop_oneof![Just(100), Just(50), Just(0)],
    ) {
        let mut endpoints = Endpoints::new();
        let mut known: Vec<Known> = Vec::new();
        let mut gone: Vec<EndpointId> = Vec::new();
        let mut callers = Members::new();
        for name in ZONES {
            callers.add(&zone(name), Health::Healthy, 1, 2).unwrap();
        }
        let settings = Settings { routing_enabled: Percent::capped(enabled), ..Settings::ENVOY };
        for (value, change) in (0..).zip(changes) {
            match change {
                Change::Insert(priority, at, health, weight) => {
                    let id = endpoints
                        .insert(priority, &zone(ZONES[at]), health, weight, value)
                        .unwrap();
                    known.push(Known { id, value, priority, zone: at, health, weight });
                }
                _ if known.is_empty() => continue,
                Change::Remove(index) => {
                    let host = known.swap_remove(index.index(known.len()));
                    prop_assert_eq!(endpoints.remove(host.id), Some(host.value));
                    gone.push(host.id);
                }
                Change::Health(index, health) => {
                    let index = index.index(known.len());
                    let host = &mut known[index];
                    prop_assert_eq!(endpoints.set_health(host.id, health), host.health != health);
                    host.health = health;
                }
                Change::Weight(index, weight) => {
                    let index = index.index(known.len());
                    let host = &mut known[index];
                    prop_assert_eq!(endpoints.set_weight(host.id, weight), Ok(host.weight != weight));
                    host.weight = weight;
                }
            }
            // Now and then, so that zones are remembered from earlier.
            if value % 3 == 0 {
                let routes = decide(&settings, None, None, endpoints.upstream()).routes();
                let _ = endpoints.picker(&routes, Arc::default());
            }
        }

        prop_assert_eq!(endpoints.len(), known.len());
        for id in gone {
            prop_assert!(endpoints.get(id).is_none());
            prop_assert!(!endpoints.set_health(id, Health::Healthy));
            prop_assert!(endpoints.remove(id).is_none());
        }
        // A priority stays when its last host goes; apart from that, the same.
        let upstream = fresh(&known);
        for (priority, members) in endpoints.upstream().priorities().iter().enumerate() {
            let empty = Members::new();
            let anew = upstream.priorities().get(priority).unwrap_or(&empty);
            prop_assert_eq!(members, anew);
        }

        let local = zone("a");
        let decision = decide(&settings, Some(&local), Some(&callers), endpoints.upstream());
        let routes = decision.routes();
        let picker = endpoints.picker(&routes, Arc::default());
        let shares = routes.shares(endpoints.upstream()).expect("few hosts");
        let rotation = Rotation::new();
        let mut counts: BTreeMap<(u32, String), u64> = BTreeMap::new();
        let mut each: BTreeMap<u32, u64> = BTreeMap::new();
        let requests = 700_u64;
        for request in 0..requests {
            let at_random = picker.pick(request.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for choice in [at_random, picker.next(&rotation)].into_iter().flatten() {
                let host = known.iter().find(|host| host.value == *choice.endpoint);
                let host = host.expect("only what is there is picked");
                prop_assert_eq!(&zone(ZONES[host.zone]), choice.locality);
                prop_assert_eq!(host.priority, choice.priority);
            }
        }
        // In turn from some place: as exact as zones, at the endpoints too.
        let rotation = Rotation::starting_at(12_345);
        for _ in 0..requests {
            if let Some(choice) = picker.next(&rotation) {
                *counts.entry((choice.priority, choice.locality.zone().to_owned())).or_default() += 1;
                *each.entry(*choice.endpoint).or_default() += 1;
            }
        }
        for ((priority, zone), share) in &shares.zones {
            let fair = share.to_f64() * requests as f64;
            let count = counts.remove(&(*priority, zone.zone().to_owned())).unwrap_or(0);
            prop_assert!((count as f64 - fair).abs() <= 6.0, "{} of {}", count, fair);
        }
        prop_assert!(counts.is_empty(), "{:?} without a share", counts);
        // Endpoints alike but for their weight get requests in its proportion.
        for one in &known {
            for other in &known {
                let alike = (one.priority, one.zone, one.health) == (other.priority, other.zone, other.health);
                let count = |host: &Known| each.get(&host.value).copied().unwrap_or(0) as f64;
                if alike {
                    let (left, right) = (count(one) * f64::from(other.weight), count(other) * f64::from(one.weight));
                    prop_assert!((left - right).abs() <= 40.0, "{} and {}", left, right);
                }
            }
        }
    }
}

#[test]
fn endpoints_of_a_zone_get_their_weight_at_random_too() {
    let mut endpoints = Endpoints::new();
    for (weight, value) in [(1, 0_usize), (2, 1), (5, 2), (8, 3)] {
        endpoints
            .insert(0, &zone("a"), Health::Healthy, weight, value)
            .unwrap();
    }
    let routes = decide(&Settings::ENVOY, None, None, endpoints.upstream()).routes();
    let picker = endpoints.picker(&routes, Arc::default());
    let mut counts = [0_u32; 4];
    // Evenly spaced numbers: what decides the endpoint must be mixed from them.
    let requests = 160_000_u32;
    for request in 0..requests {
        let random = u64::from(request) * (u64::MAX / u64::from(requests));
        counts[*picker.pick(random).unwrap().endpoint] += 1;
    }
    for (count, weight) in counts.into_iter().zip([1.0, 2.0, 5.0, 8.0]) {
        let share = weight / 16.0;
        let sigma = (f64::from(requests) * share * (1.0 - share)).sqrt();
        let off = (f64::from(count) - f64::from(requests) * share).abs();
        assert!(off < 4.0 * sigma, "{counts:?}");
    }
}

#[test]
fn the_same_number_gives_the_same_endpoint() {
    let mut endpoints = Endpoints::new();
    for value in 0..9_usize {
        endpoints
            .insert(0, &zone(ZONES[value % 3]), Health::Healthy, 1, value)
            .unwrap();
    }
    let routes = decide(&Settings::ENVOY, None, None, endpoints.upstream()).routes();
    let [one, other] = [0, 1].map(|_| endpoints.picker(&routes, Arc::default()));
    for random in [0, 1, 77, 1 << 40, u64::MAX] {
        assert_eq!(one.pick(random), other.pick(random));
    }
}

#[test]
fn threads_count_every_request() {
    let mut endpoints = Endpoints::new();
    let mut callers = Members::new();
    for value in 0..9_usize {
        endpoints
            .insert(0, &zone(ZONES[value % 3]), Health::Healthy, 1, value)
            .unwrap();
        callers
            .add(&zone(ZONES[value % 3]), Health::Healthy, 1, 1)
            .unwrap();
    }
    let routes = decide(
        &Settings::ENVOY,
        Some(&zone("b")),
        Some(&callers),
        endpoints.upstream(),
    )
    .routes();
    let counters = Arc::new(Counters::new());
    let picker = endpoints.picker(&routes, Arc::clone(&counters));
    let rotation = Rotation::new();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (picker, rotation) = (&picker, &rotation);
            scope.spawn(move || {
                for request in 0..5_000 {
                    assert!(picker.pick(thread << 60 | request << 20).is_some());
                    assert!(picker.next(rotation).is_some());
                }
            });
        }
    });
    assert_eq!(counters.get(Counter::ZoneRoutingAllDirectly), 40_000);
    assert_eq!(counters.get(Counter::NoneHealthy), 0);
}

#[test]
fn without_a_host_there_is_no_endpoint_and_it_is_counted() {
    let mut endpoints: Endpoints<()> = Endpoints::new();
    let routes = decide(&Settings::ENVOY, None, None, endpoints.upstream()).routes();
    let picker = endpoints.picker(&routes, Arc::default());
    assert!(picker.pick(5).is_none());
    assert!(picker.next(&Rotation::new()).is_none());
    assert_eq!(picker.counters().get(Counter::NoneHealthy), 2);
    assert_eq!(picker.counters().get(Counter::HealthyPanic), 2);
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut endpoints = Endpoints::new();
    let id = endpoints
        .insert(0, &zone("a"), Health::Healthy, 7, ())
        .unwrap();
    let before = endpoints.upstream().clone();
    let refused = endpoints.insert(0, &zone("b"), Health::Healthy, 0, ());
    assert_eq!(refused, Err(InputError::ZeroWeight));
    let refused = endpoints.insert(500, &zone("b"), Health::Healthy, 1, ());
    assert_eq!(refused, Err(InputError::Priority(500)));
    assert_eq!(endpoints.set_weight(id, 0), Err(InputError::ZeroWeight));
    assert_eq!(endpoints.upstream(), &before);
    assert_eq!(endpoints.len(), 1);
}

/// The number that decides the zone must not decide the endpoint in it as well.
#[test]
fn endpoints_of_a_zone_that_gets_a_part_are_picked_alike() {
    let mut endpoints = Endpoints::new();
    let mut callers = Members::new();
    for value in 0..9_usize {
        let at = zone(ZONES[value % 3]);
        endpoints.insert(0, &at, Health::Healthy, 1, value).unwrap();
        callers
            .add(&at, Health::Healthy, 1, [7, 1, 1][value % 3])
            .unwrap();
    }
    let upstream = endpoints.upstream();
    let routes = decide(&Settings::ENVOY, Some(&zone("a")), Some(&callers), upstream).routes();
    let picker = endpoints.picker(&routes, Arc::default());
    let mut counts = [0_u32; 9];
    for request in 0..90_000_u64 {
        let random = request.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        counts[*picker.pick(random).unwrap().endpoint] += 1;
    }
    for zone in 0..3 {
        let here = [zone, zone + 3, zone + 6].map(|value| counts[value]);
        let fair = f64::from(here.iter().sum::<u32>()) / 3.0;
        for count in here {
            let off = (f64::from(count) - fair).abs();
            assert!(off < 4.0 * fair.sqrt(), "{counts:?}");
        }
    }
}
