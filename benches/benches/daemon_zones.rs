//! What a change of health costs in the daemon's own view of zones:
//! `cargo bench -p evenkeel-benches --bench daemon_zones`.
//!
//! 100,000 endpoints in 1,000 zones; the status of one flips, and all that the
//! daemon shows of it is renewed: the endpoints, the pair, the counters.

use std::time::Duration;

use divan::Bencher;
use evenkeel::config::ZoneSettings;
use evenkeel::zones::{Endpoint, Instance, RuleName, Weights, Zones};
use evenkeel_engine::CheckId;
use evenkeel_threshold::{Status, Timestamp};
use evenkeel_zone_weights::Locality;

fn main() {
    divan::main();
}

const GATHER: Duration = Duration::from_millis(100);

fn instances(service: &str, zones: u32, number: u32) -> Vec<Instance> {
    let localities: Vec<_> = (0..zones)
        .map(|zone| Locality::new("eu-central-1", &format!("euc1-az{zone:04}"), ""))
        .collect();
    (0..number)
        .map(|number| {
            let id = format!("{service}-{number}");
            Instance {
                endpoint: Endpoint {
                    id: id.as_str().into(),
                    address: format!(
                        "10.{}.{}.{}",
                        number >> 16,
                        (number >> 8) & 255,
                        number & 255
                    )
                    .as_str()
                    .into(),
                    port: 80,
                    locality: localities[(number % zones) as usize].clone(),
                    priority: 0,
                },
                weights: Weights::default(),
                checks: vec![(check(&id), Status::Passing)],
            }
        })
        .collect()
}

fn check(instance: &str) -> CheckId {
    CheckId::new("", "", "node", instance, "http")
}

#[divan::bench(args = [(1_000, 100_000), (3, 100_000), (12, 1_200)])]
fn one_flip(bencher: Bencher<'_, '_>, (places, endpoints): (u32, u32)) {
    let mut now = Timestamp::from_millis(1_700_000_000_000);
    let mut zones = Zones::new(ZoneSettings::default().rules(), now);
    let (api, shop) = ("api".into(), "shop".into());
    let pair = zones
        .pair(now, &api, &shop, RuleName::ServiceConnect)
        .expect("room for a pair");
    zones.handle_instances(now, "api", instances("api", places, endpoints), Vec::new());
    zones.handle_instances(
        now,
        "shop",
        instances("shop", places, 4 * places),
        Vec::new(),
    );
    now = now.saturating_add(GATHER);
    zones.handle_timeout(now);
    let flipping = check("api-17");
    let mut status = Status::Passing;
    bencher.bench_local(|| {
        status = match status {
            Status::Passing => Status::Critical,
            _ => Status::Passing,
        };
        zones.handle_status(now, &flipping, Some(status));
        now = now.saturating_add(GATHER);
        zones.handle_timeout(now);
        pair.borrow().version
    });
}
