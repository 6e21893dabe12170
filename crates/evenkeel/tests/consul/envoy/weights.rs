//! The daemon calculates, and Envoy goes by the weights of the zones.

use std::collections::BTreeMap;
use std::path::Path;

use evenkeel::delivery::Mode;
use evenkeel::zones::RuleName;
use evenkeel_testkit::{Caller, Envoy, eventually};

use super::{Counts, NONE, REQUESTS, Town, ZONES, agrees, ask, has, predicted, weighted};
use crate::daemon::TestDaemon;
use crate::zones::Admin;

/// What the daemon says that callers in `a` should do.
fn told(dir: &Path) -> BTreeMap<String, f64> {
    let report = Admin::of(dir).report("web", "shop", "r/a/");
    let weights = report.zones[0].weights.iter();
    weights
        .map(|weight| {
            let (part, all) = weight.share.split_once('/').unwrap_or((&weight.share, "1"));
            let number = |text: &str| text.parse::<f64>().unwrap();
            (weight.zone.zone.clone(), number(part) / number(all))
        })
        .filter(|(_, share)| *share > 0.0)
        .collect()
}

/// Waits until the daemon has come to the weights that the rule gives, and Envoy has
/// acknowledged them.
fn settled(town: &Town, envoy: &Envoy, predicted: &BTreeMap<String, f64>, healthy: Counts) {
    let endpoints: usize = ZONES
        .iter()
        .zip(healthy)
        .filter(|(zone, _)| predicted.contains_key(**zone))
        .map(|(_, healthy)| healthy)
        .sum();
    eventually(&format!("weights {predicted:?}"), || {
        let weights = told(town.dir.path());
        let near = weights.keys().eq(predicted.keys())
            && weights
                .iter()
                .all(|(zone, share)| (share - predicted[zone]).abs() < 1e-6);
        let report = town.xds();
        let acked = report.subscribers.first()?.acked == report.version;
        let total = envoy.stat("cluster.web.membership_total");
        (near && acked && total == endpoints as u64).then_some(())
    });
}

/// Callers of `shop`, mostly in `a`; those of `mall` mostly in `c`, which `joint`
/// makes use of.
const SHOP: [u64; 3] = [4, 1, 1];
const MALL: [u64; 3] = [1, 1, 4];

fn follows(test: &str, rule: RuleName) {
    let Some(mut town) = Town::new(test, SHOP) else {
        return;
    };
    town.callers_of("mall", 14, MALL);
    let services = match rule {
        RuleName::Joint => vec![SHOP, MALL],
        _ => vec![SHOP],
    };
    let mut table = vec![
        ([3, 3, 3], NONE),
        // More in the zone of the callers, and fewer again.
        ([6, 3, 3], NONE),
        ([3, 3, 3], NONE),
        // A zone fails its checks and passes again.
        ([3, 3, 3], [0, 0, 3]),
        ([3, 3, 3], [0, 2, 0]),
        ([3, 3, 3], NONE),
        // Below six endpoints, where Envoy's rule gives up, and up again.
        ([2, 1, 1], NONE),
        ([2, 2, 1], NONE),
        ([3, 3, 3], NONE),
    ]
    .into_iter();
    let (all, critical) = table.next().unwrap();
    town.endpoints(all, critical);
    let mut settings = town.settings();
    settings.xds.mode = Mode::Weights;
    settings.zones.rule = rule;
    // So that each step of the table is seen, however small.
    settings.zones.least_change = 0;
    let _daemon = TestDaemon::start(settings);
    // From now on its requests are known of, for some minutes.
    Admin::of(town.dir.path()).report("web", "mall", "r/a/");
    let Some(envoy) = town.envoy(test, |bootstrap| weighted(&bootstrap)) else {
        return;
    };
    has(&envoy, "shop", 6, 6);
    let mut caller = Caller::connect(&envoy.listener("out"));
    for (all, critical) in [(all, critical)].into_iter().chain(table) {
        town.endpoints(all, critical);
        let healthy = [0, 1, 2].map(|zone| all[zone] - critical[zone]);
        let predicted = predicted(rule, &services, all, critical);
        settled(&town, &envoy, &predicted, healthy);
        agrees(&ask(&mut caller, REQUESTS), &predicted);
    }
    // A zone dies; once Envoy has acknowledged that, no request fails.
    let predicted = predicted(rule, &services, [3, 3, 3], [0, 0, 3]);
    town.endpoints([3, 3, 3], [0, 0, 3]);
    settled(&town, &envoy, &predicted, [3, 3, 0]);
    town.kill("c");
    agrees(&ask(&mut caller, REQUESTS), &predicted);
    assert_eq!(town.xds().subscribers[0].nacks, 0);
}

#[test]
#[ignore = "half a minute with 40,000 requests: run by .ci/run minutes"]
fn envoy_follows_bounded_while_services_come_go_and_fail() {
    follows("envoy_follows_bounded", RuleName::Bounded);
}

#[test]
#[ignore = "half a minute with 40,000 requests: run by .ci/run minutes"]
fn envoy_follows_joint_while_services_come_go_and_fail() {
    follows("envoy_follows_joint", RuleName::Joint);
}
