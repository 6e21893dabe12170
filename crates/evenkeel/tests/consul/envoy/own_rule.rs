//! Envoy calculates itself, from zones and health.

use evenkeel::zones::RuleName;
use evenkeel_testkit::{Caller, Envoy};

use super::{Counts, NONE, REQUESTS, Town, agrees, ask, has};
use crate::daemon::TestDaemon;

fn compare(town: &Town, envoy: &Envoy, caller: &mut Caller, all: Counts, bad: Counts) {
    town.endpoints(all, bad);
    let (total, critical): (usize, usize) = (all.iter().sum(), bad.iter().sum());
    has(envoy, "web", total as u64, (total - critical) as u64);
    let predicted = town.prediction(RuleName::Envoy, all, bad);
    agrees(&ask(caller, REQUESTS), &predicted);
}

#[test]
#[ignore = "twenty seconds with 32,000 requests: run by .ci/run minutes"]
fn envoy_splits_requests_as_predicted_while_services_come_go_and_fail() {
    let test = "envoy_splits_requests_as_predicted";
    let Some(mut town) = Town::new(test, [4, 1, 1]) else {
        return;
    };
    town.endpoints([3, 3, 3], NONE);
    let _daemon = TestDaemon::start(town.settings());
    let Some(envoy) = town.envoy(test, |bootstrap| bootstrap) else {
        return;
    };
    has(&envoy, "shop", 6, 6);
    has(&envoy, "web", 9, 9);
    let mut caller = Caller::connect(&envoy.listener("out"));
    for (all, critical) in [
        ([3, 3, 3], NONE),
        // More in the zone of the callers, and fewer again.
        ([6, 3, 3], NONE),
        ([3, 3, 3], NONE),
        // A zone fails its checks and passes again.
        ([3, 3, 3], [0, 0, 3]),
        ([3, 3, 3], NONE),
        // Below six endpoints, and up again.
        ([2, 2, 1], NONE),
        ([3, 3, 3], NONE),
    ] {
        compare(&town, &envoy, &mut caller, all, critical);
    }
    let report = town.xds();
    let subscriber = &report.subscribers[0];
    assert_eq!((subscriber.node.as_str(), subscriber.nacks), ("shop-1", 0));
    assert_eq!(subscriber.locality, "r/a/");
    assert_eq!(subscriber.acked, report.version);
    // A zone dies; once Envoy knows, no request fails.
    town.endpoints([3, 3, 3], [0, 0, 3]);
    has(&envoy, "web", 9, 6);
    town.kill("c");
    let predicted = town.prediction(RuleName::Envoy, [3, 3, 3], [0, 0, 3]);
    agrees(&ask(&mut caller, REQUESTS), &predicted);
}
