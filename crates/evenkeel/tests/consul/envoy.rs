//! A real Envoy, fed by the daemon from a real Consul.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use evenkeel::config::Settings;
use evenkeel::delivery::{Mode, XdsReport};
use evenkeel::zones::RuleName;
use evenkeel_testkit::{Caller, Consul, Envoy, Origin, eventually, filled, wait_for};
use evenkeel_zone_weights::envoy::{self, decide};
use evenkeel_zone_weights::{Health, Locality, Members, Upstream};
use serde_json::json;

use crate::catalog::{external, http};
use crate::daemon::{TestDaemon, settings};
use crate::targets::{self, Targets};
use crate::zones::Admin;

const BOOTSTRAP: &str = include_str!("../../../../docs/envoy/bootstrap.yaml");
const ZONES: [&str; 3] = ["a", "b", "c"];

/// Requests per comparison.
const REQUESTS: u32 = 4000;

/// A Consul, servers in three zones, and where the daemon serves proxies.
struct Town {
    consul: Consul,
    origins: BTreeMap<&'static str, Vec<Origin>>,
    callers: [u64; 3],
    dir: tempfile::TempDir,
    port: u16,
}

impl Town {
    fn new(test: &str, callers: [u64; 3]) -> Option<Self> {
        let consul = Consul::start(test)?;
        let origins = ZONES.iter().zip(11..).map(|(zone, host)| {
            let origins = (0..6).map(|_| Origin::start(zone, host)).collect();
            (*zone, origins)
        });
        let town = Self {
            consul,
            origins: origins.collect(),
            callers,
            dir: tempfile::tempdir().unwrap(),
            port: TcpListener::bind("127.0.0.1:0")
                .and_then(|listener| listener.local_addr())
                .unwrap()
                .port(),
        };
        for (index, zone) in ZONES.iter().enumerate() {
            for number in 0..callers[index] {
                // Envoy takes two hosts of one address for one.
                let address = format!("127.0.1.{}", 11 + index);
                let port = u16::try_from(number + 1).unwrap();
                town.put("shop", zone, number, &address, port, "passing");
            }
        }
        Some(town)
    }

    fn put(&self, service: &str, zone: &str, number: u64, address: &str, port: u16, status: &str) {
        let node = format!("{service}-{zone}{number}");
        self.consul.register(&json!({
            "Node": node,
            "Address": address,
            "NodeMeta": {"zone": zone, "region": "r"},
            "Service": {"ID": node, "Service": service, "Port": port},
            "Check": {"CheckID": format!("{node}-check"), "Name": "c", "Status": status, "ServiceID": node},
        }));
    }

    /// From now on so many endpoints in each zone, of which so many are critical.
    fn endpoints(&self, all: [usize; 3], critical: [usize; 3]) {
        for (index, zone) in ZONES.iter().enumerate() {
            for (number, origin) in self.origins[zone].iter().enumerate() {
                let node = format!("web-{zone}{number}");
                if number < all[index] {
                    let status = if number < critical[index] {
                        "critical"
                    } else {
                        "passing"
                    };
                    let address = origin.address();
                    let ip = address.ip().to_string();
                    self.put("web", zone, number as u64, &ip, address.port(), status);
                } else if self.consul.check(&node, &format!("{node}-check")).is_some() {
                    self.consul.deregister(&json!({"Node": node}));
                }
            }
        }
    }

    fn settings(&self) -> Settings {
        let mut settings = settings(&self.consul.address(), self.dir.path());
        settings.xds.listen = vec![format!("127.0.0.1:{}", self.port).parse().unwrap()];
        settings
    }

    fn envoy(&self, test: &str, alter: impl FnOnce(String) -> String) -> Option<Envoy> {
        let bootstrap = filled(
            BOOTSTRAP,
            &[
                ("<shop-1>", "shop-1"),
                ("<shop>", "shop"),
                ("<web>", "web"),
                ("<eu>", "r"),
                ("<eu-a>", "a"),
                ("port_value: 10000", "port_value: 0"),
                ("port_value: 9901", "port_value: 0"),
                ("port_value: 18000", &format!("port_value: {}", self.port)),
            ],
        );
        Envoy::start(test, &alter(bootstrap), 2)
    }

    /// The share of each zone of the requests of a caller in `a`, by Envoy's rule.
    fn prediction(&self, all: [usize; 3], critical: [usize; 3]) -> BTreeMap<String, f64> {
        let place = |zone: &str| Locality::new("r", zone, "");
        let (mut upstream, mut callers) = (Upstream::new(), Members::new());
        for (index, zone) in ZONES.iter().enumerate() {
            let (bad, all) = (critical[index] as u64, all[index] as u64);
            let mut add = |health, count| upstream.add(0, &place(zone), health, 1, count).unwrap();
            add(Health::Healthy, all - bad);
            add(Health::Unhealthy, bad);
            callers
                .add(&place(zone), Health::Healthy, 1, self.callers[index])
                .unwrap();
        }
        let settings = envoy::Settings::ENVOY;
        let decision = decide(&settings, Some(&place("a")), Some(&callers), &upstream);
        let shares = decision.routes().shares(&upstream).unwrap();
        let zones = shares.zones.into_iter();
        zones
            .map(|((_, zone), share)| (zone.zone().to_owned(), share.to_f64()))
            .collect()
    }

    fn xds(&self) -> XdsReport {
        let (code, body) = Admin::of(self.dir.path()).get("/v1/xds");
        assert_eq!(code, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }
}

/// Waits until Envoy has so many endpoints, so many of them healthy.
fn has(envoy: &Envoy, cluster: &str, all: u64, healthy: u64) {
    eventually(
        &format!("{healthy} of {all} endpoints of {cluster}"),
        || {
            let seen = |name: &str| envoy.stat(&format!("cluster.{cluster}.membership_{name}"));
            (seen("total") == all && seen("healthy") == healthy).then_some(())
        },
    );
}

fn ask(caller: &mut Caller, requests: u32) -> BTreeMap<String, u32> {
    let mut seen = BTreeMap::new();
    for _ in 0..requests {
        let (status, zone) = caller.get("/");
        let what = if status == 200 {
            zone
        } else {
            status.to_string()
        };
        *seen.entry(what).or_default() += 1;
    }
    seen
}

/// Within four standard deviations, and nothing else than what is predicted.
fn agrees(seen: &BTreeMap<String, u32>, predicted: &BTreeMap<String, f64>) {
    for what in seen.keys() {
        assert!(
            predicted.contains_key(what),
            "{seen:?} is not {predicted:?}"
        );
    }
    let number = f64::from(REQUESTS);
    for (zone, share) in predicted {
        let count = f64::from(seen.get(zone).copied().unwrap_or(0));
        let sigma = (number * share * (1.0 - share)).sqrt();
        assert!(
            (count - number * share).abs() <= 4.0 * sigma + 0.5,
            "{zone}: {count} of {number} is not {share}: {seen:?}"
        );
    }
}

fn compare(town: &Town, envoy: &Envoy, caller: &mut Caller, all: [usize; 3], bad: [usize; 3]) {
    town.endpoints(all, bad);
    let (total, critical): (usize, usize) = (all.iter().sum(), bad.iter().sum());
    has(envoy, "web", total as u64, (total - critical) as u64);
    let predicted = town.prediction(all, bad);
    agrees(&ask(caller, REQUESTS), &predicted);
}

#[test]
#[ignore = "twenty seconds with 28,000 requests: run by .ci/run minutes"]
fn envoy_splits_requests_as_predicted_while_services_come_go_and_fail() {
    let test = "envoy_splits_requests_as_predicted";
    let Some(town) = Town::new(test, [4, 1, 1]) else {
        return;
    };
    town.endpoints([3, 3, 3], [0, 0, 0]);
    let _daemon = TestDaemon::start(town.settings());
    let Some(envoy) = town.envoy(test, |bootstrap| bootstrap) else {
        return;
    };
    has(&envoy, "shop", 6, 6);
    has(&envoy, "web", 9, 9);
    let mut caller = Caller::connect(&envoy.listener("out"));
    let none = [0, 0, 0];
    compare(&town, &envoy, &mut caller, [3, 3, 3], none);
    // More in the zone of the callers, and fewer again.
    compare(&town, &envoy, &mut caller, [6, 3, 3], none);
    compare(&town, &envoy, &mut caller, [3, 3, 3], none);
    // A zone dies; no request fails.
    compare(&town, &envoy, &mut caller, [3, 3, 3], [0, 0, 3]);
    compare(&town, &envoy, &mut caller, [3, 3, 3], none);
    // Below six endpoints, and up again.
    compare(&town, &envoy, &mut caller, [2, 2, 1], none);
    compare(&town, &envoy, &mut caller, [3, 3, 3], none);
    let report = town.xds();
    let subscriber = &report.subscribers[0];
    assert_eq!((subscriber.node.as_str(), subscriber.nacks), ("shop-1", 0));
    assert_eq!(subscriber.locality, "r/a/");
    assert_eq!(subscriber.acked, report.version);
}

#[test]
#[ignore = "ten seconds of probes: run by .ci/run minutes"]
fn an_endpoint_that_flaps_moves_nothing_in_envoy() {
    let test = "an_endpoint_that_flaps_moves_nothing";
    let Some(town) = Town::new(test, [2, 2, 2]) else {
        return;
    };
    town.endpoints([2, 2, 2], [0, 0, 0]);
    let targets = Targets::start();
    let flapping = Origin::start("a", 1);
    external("flap", &http(&targets.url("flap")))
        .service_name("web")
        .node_meta("zone", "a")
        .node_meta("region", "r")
        .port(flapping.address().port())
        .status("passing")
        .notes("[evenkeel critical-threshold=3 passing-threshold=1]")
        .put(&town.consul);
    let _daemon = TestDaemon::start(town.settings());
    let Some(envoy) = town.envoy(test, |bootstrap| bootstrap) else {
        return;
    };
    has(&envoy, "shop", 6, 6);
    has(&envoy, "web", 7, 7);
    let structures = "cluster.web.lb_recalculate_zone_structures";
    let before = (envoy.stat(structures), town.xds().version);
    targets.set("flap", targets::Health::Cycle("FP"));
    let probes = targets.probes("flap");
    eventually("eight probes", || {
        (targets.probes("flap") > probes + 8).then_some(())
    });
    assert_eq!((envoy.stat(structures), town.xds().version), before);
    // One that is down for good does move it.
    targets.set("flap", targets::Health::Down);
    has(&envoy, "web", 7, 6);
}

#[test]
#[ignore = "a quarter of a minute: run by .ci/run minutes"]
fn envoy_goes_on_without_the_daemon_and_is_up_to_date_within_two_seconds_of_its_return() {
    let test = "envoy_goes_on_without_the_daemon";
    let Some(town) = Town::new(test, [4, 1, 1]) else {
        return;
    };
    town.endpoints([3, 3, 3], [0, 0, 0]);
    let daemon = TestDaemon::start(town.settings());
    let Some(envoy) = town.envoy(test, |bootstrap| bootstrap) else {
        return;
    };
    has(&envoy, "web", 9, 9);
    has(&envoy, "shop", 6, 6);
    let mut caller = Caller::connect(&envoy.listener("out"));
    let changes = "cluster.web.membership_change";
    let before = envoy.stat(changes);
    drop(daemon);
    eventually("it has noticed", || {
        (envoy.stat("control_plane.connected_state") == 0).then_some(())
    });
    agrees(
        &ask(&mut caller, REQUESTS),
        &town.prediction([3, 3, 3], [0, 0, 0]),
    );
    assert_eq!(envoy.stat(changes), before);
    town.endpoints([6, 3, 3], [0, 0, 0]);
    let daemon = TestDaemon::start(town.settings());
    wait_for(Duration::from_secs(2), || {
        (envoy.stat("cluster.web.membership_total") == 12).then_some(())
    })
    .expect("what is so now, within 2 s of the return");
    assert_eq!(envoy.stat(changes), before + 1, "one step, nothing between");
    agrees(
        &ask(&mut caller, REQUESTS),
        &town.prediction([6, 3, 3], [0, 0, 0]),
    );
    daemon.stop();
}

#[test]
#[ignore = "a quarter of a minute: run by .ci/run minutes"]
fn in_weights_mode_envoy_follows_bounded_and_joint() {
    let test = "in_weights_mode_envoy_follows";
    for rule in [RuleName::Bounded, RuleName::Joint] {
        // Fewer than six endpoints: where Envoy's rule gives up.
        let Some(town) = Town::new(test, [4, 1, 1]) else {
            return;
        };
        town.endpoints([2, 1, 1], [0, 0, 0]);
        let mut settings = town.settings();
        settings.xds.mode = Mode::Weights;
        settings.zones.rule = rule;
        let _daemon = TestDaemon::start(settings);
        let weighted = |bootstrap: String| {
            bootstrap.replace(
                "zone_aware_lb_config: {}",
                "locality_weighted_lb_config: {}",
            )
        };
        let Some(envoy) = town.envoy(test, weighted) else {
            return;
        };
        has(&envoy, "web", 4, 4);
        let mut caller = Caller::connect(&envoy.listener("out"));
        agrees(&ask(&mut caller, REQUESTS), &told(town.dir.path()));
        // The weight of a zone that is gone goes to the others, and a zone without
        // weight is left out.
        town.endpoints([2, 1, 1], [0, 0, 1]);
        let settled = eventually("the new weights", || {
            let report = town.xds();
            let weights = told(town.dir.path());
            let zones = weights.keys().map(|zone| if zone == "a" { 2 } else { 1 });
            let endpoints: u64 = zones.sum();
            let has = envoy.stat("cluster.web.membership_total") == endpoints;
            let acked = report.subscribers.first()?.acked == report.version;
            (has && acked && !weights.contains_key("c")).then_some(weights)
        });
        agrees(&ask(&mut caller, REQUESTS), &settled);
    }
}

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
        .collect()
}

#[test]
#[ignore = "counters that must stand still for 30 s: run by .ci/run minutes"]
fn the_counters_of_the_service_connect_procedure_move_as_it_says() {
    let test = "the_counters_of_the_service_connect_procedure";
    let Some(town) = Town::new(test, [2, 2, 2]) else {
        return;
    };
    town.endpoints([2, 2, 2], [0, 0, 0]);
    let _daemon = TestDaemon::start(town.settings());
    let Some(envoy) = town.envoy(test, |bootstrap| bootstrap) else {
        return;
    };
    has(&envoy, "shop", 6, 6);
    has(&envoy, "web", 6, 6);
    let mut caller = Caller::connect(&envoy.listener("out"));
    let names = ["lb_zone_routing_cross_zone", "lb_zone_cluster_too_small"];
    let counters = || names.map(|name| envoy.stat(&format!("cluster.web.{name}")));
    let before = counters();
    let moved = wait_for(Duration::from_secs(30), || {
        assert_eq!(ask(&mut caller, 10), BTreeMap::from([("a".to_owned(), 10)]));
        (counters() != before).then(counters)
    });
    assert_eq!(moved, None, "they stood at {before:?}");

    // Five: one per worker and one for the main thread, at each update.
    let workers = 2;
    town.endpoints([2, 2, 1], [0, 0, 0]);
    has(&envoy, "web", 5, 5);
    eventually("counted", || {
        (counters()[1] == before[1] + workers + 1).then_some(())
    });
    town.endpoints([2, 2, 1], [1, 0, 0]);
    has(&envoy, "web", 5, 4);
    eventually("counted", || {
        (counters()[1] == before[1] + 2 * (workers + 1)).then_some(())
    });
    town.endpoints([2, 2, 2], [0, 0, 0]);
    has(&envoy, "web", 6, 6);
}
