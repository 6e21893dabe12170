//! What routing by zone costs: `cargo bench -p evenkeel-benches --bench zone_weights`.
//!
//! A pick is what a proxy pays for each request; a recalculation what it pays
//! when one endpoint changes its health.

use std::hint::black_box;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use evenkeel_zone_weights::envoy::{Settings, decide};
use evenkeel_zone_weights::plan::{Costs, Demand, Joint, Problem, Rule};
use evenkeel_zone_weights::{
    Counters, EndpointId, Endpoints, Health, Locality, Members, Picker, Rotation,
};

fn main() {
    divan::main();
}

/// Zones with names as they are, the callers unevenly among them.
fn service(zones: u32, endpoints: u32) -> (Vec<Locality>, Members, Endpoints<u32>, EndpointId) {
    let localities: Vec<Locality> = (0..zones)
        .map(|zone| Locality::new("eu-central-1", &format!("euc1-az{zone:04}"), ""))
        .collect();
    let (mut callers, mut hosts) = (Members::new(), Endpoints::new());
    let mut last = None;
    for (number, zone) in (0_u64..).zip(&localities) {
        callers
            .add(zone, Health::Healthy, 1, 1 + number % 7)
            .expect("valid hosts");
    }
    for endpoint in 0..endpoints {
        let zone = &localities[(endpoint % zones) as usize];
        let weight = 1 + endpoint % 3;
        let id = hosts.insert(0, zone, Health::Healthy, weight, endpoint);
        last = Some(id.expect("valid hosts"));
    }
    (localities, callers, hosts, last.expect("an endpoint"))
}

fn picker(zones: u32, endpoints: u32) -> Picker<u32> {
    let (localities, callers, mut hosts, _) = service(zones, endpoints);
    // A zone with many callers, so that a part of the requests leaves it.
    let local = &localities[5 % localities.len()];
    let routes = decide(
        &Settings::ENVOY,
        Some(local),
        Some(&callers),
        hosts.upstream(),
    )
    .routes();
    hosts.picker(&routes, Arc::new(Counters::new()))
}

/// Weyl's sequence: cheap, and in no order that a branch predictor could learn.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

const PICKS: u64 = 1_000;

/// A thousand picks; divan shows the rate.
#[divan::bench(args = [(3, 30), (12, 1_200), (1_000, 100_000)], threads = [1, 2])]
fn pick(bencher: Bencher<'_, '_>, (zones, endpoints): (u32, u32)) {
    let picker = black_box(picker(zones, endpoints));
    bencher.counter(ItemsCount::new(PICKS)).bench(|| {
        let mut random = 7_u64;
        for _ in 0..PICKS {
            random = random.wrapping_add(STEP);
            black_box(picker.pick(random));
        }
    });
}

/// A thousand picks in turn, each thread with a rotation of its own.
#[divan::bench(args = [(3, 30), (12, 1_200), (1_000, 100_000)], threads = [1, 2])]
fn pick_in_turn(bencher: Bencher<'_, '_>, (zones, endpoints): (u32, u32)) {
    let picker = black_box(picker(zones, endpoints));
    bencher
        .counter(ItemsCount::new(PICKS))
        .with_inputs(Rotation::new)
        .bench_refs(|rotation| {
            for _ in 0..PICKS {
                black_box(picker.next(rotation));
            }
        });
}

/// 100,000 endpoints in 1,000 zones: one of them flips, new shares of all zones.
#[divan::bench]
fn recalculate_after_one_flip(bencher: Bencher<'_, '_>) {
    let (localities, callers, mut hosts, flipping) = service(1_000, 100_000);
    let mut healthy = true;
    bencher.bench_local(|| {
        healthy = !healthy;
        hosts.set_health(flipping, health(healthy));
        let upstream = hosts.upstream();
        decide(
            &Settings::ENVOY,
            Some(&localities[5]),
            Some(&callers),
            upstream,
        )
    });
}

/// The same, to the new picker.
#[divan::bench]
fn new_picker_after_one_flip(bencher: Bencher<'_, '_>) {
    let (localities, callers, mut hosts, flipping) = service(1_000, 100_000);
    let counters = Arc::new(Counters::new());
    let mut healthy = true;
    bencher.bench_local(|| {
        healthy = !healthy;
        hosts.set_health(flipping, health(healthy));
        let upstream = hosts.upstream();
        let decision = decide(
            &Settings::ENVOY,
            Some(&localities[5]),
            Some(&callers),
            upstream,
        );
        hosts.picker(&decision.routes(), Arc::clone(&counters))
    });
}

/// Ten services call the endpoints of twelve zones, each with a skew of its own:
/// the best plan for all of them together, all zones equally far or not.
#[divan::bench(args = [false, true])]
fn joint_10_services_12_zones(bencher: Bencher<'_, '_>, costly: bool) {
    let (localities, _, hosts, _) = service(12, 1_200);
    let services: Vec<Demand> = (0..10_u64)
        .map(|service| {
            let mut demand = Demand::new();
            for (number, zone) in (0_u64..).zip(&localities) {
                let amount = 1 + (number * 37 + service * 101) % 89;
                demand.add(zone, amount).expect("small");
            }
            demand
        })
        .collect();
    let mut costs = Costs::new(10, 50);
    for (number, from) in (0_u32..).zip(&localities) {
        for (other, to) in (0_u32..).zip(&localities) {
            costs.set(from, to, 1 + (number * 7 + other * 13) % 23);
        }
    }
    let problem = Problem {
        costs: costly.then_some(&costs),
        ..Problem::new(hosts.upstream(), &services)
    };
    bencher.bench_local(|| Joint::default().plan(black_box(&problem)));
}

fn health(healthy: bool) -> Health {
    if healthy {
        Health::Healthy
    } else {
        Health::Unhealthy
    }
}
