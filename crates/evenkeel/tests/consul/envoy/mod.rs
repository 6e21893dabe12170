//! A real Envoy, fed by the daemon from a real Consul or from files.

mod away;
mod files;
mod flapping;
mod own_rule;
mod procedure;
mod refusal;
mod secure;
mod weights;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output};

use evenkeel::config::Settings;
use evenkeel::delivery::XdsReport;
use evenkeel::zones::RuleName;
use evenkeel_testkit::{Caller, Consul, Envoy, Origin, eventually, filled};
use evenkeel_zone_weights::envoy::{self, decide};
use evenkeel_zone_weights::plan::{Bounded, Demand, Joint, Problem, Rule};
use evenkeel_zone_weights::{Health, Locality, Members, Routes, Upstream};
use serde_json::json;

use crate::daemon::settings;
use crate::zones::Admin;

const BOOTSTRAP: &str = include_str!("../../../../../docs/envoy/bootstrap.yaml");
const ZONES: [&str; 3] = ["a", "b", "c"];

/// Requests per comparison.
const REQUESTS: u32 = 4000;

/// Hosts in each of the zones.
type Counts = [usize; 3];

const NONE: Counts = [0, 0, 0];

/// A Consul, servers in three zones, and where the daemon serves proxies.
struct Town {
    consul: Consul,
    origins: BTreeMap<&'static str, Vec<Origin>>,
    callers: [u64; 3],
    dir: tempfile::TempDir,
    port: u16,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .unwrap()
        .port()
}

/// The documented bootstrap for the Envoy `shop-1` in zone `a`.
fn bootstrap(xds: u16) -> String {
    filled(
        BOOTSTRAP,
        &[
            ("<shop-1>", "shop-1"),
            ("<shop>", "shop"),
            ("<web>", "web"),
            ("<eu>", "r"),
            ("<eu-a>", "a"),
            ("port_value: 10000", "port_value: 0"),
            ("port_value: 9901", "port_value: 0"),
            ("port_value: 18000", &format!("port_value: {xds}")),
        ],
    )
}

/// One thing in a text replaced by another.
fn replaced(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "no {old}");
    text.replace(old, new)
}

/// The documented bootstrap as it is for weights.
fn weighted(bootstrap: &str) -> String {
    replaced(
        bootstrap,
        "zone_aware_lb_config: {}",
        "locality_weighted_lb_config: {}",
    )
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
            port: free_port(),
        };
        town.callers_of("shop", 11, callers);
        Some(town)
    }

    fn callers_of(&self, service: &str, host: usize, callers: [u64; 3]) {
        for (index, zone) in ZONES.iter().enumerate() {
            for number in 0..callers[index] {
                // Envoy takes two hosts of one address for one.
                let address = format!("127.0.1.{}", host + index);
                let port = u16::try_from(number + 1).unwrap();
                self.put(service, zone, number, &address, port, "passing");
            }
        }
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
    fn endpoints(&self, all: Counts, critical: Counts) {
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

    /// The servers of a zone die: nobody answers there any more.
    fn kill(&mut self, zone: &str) {
        for origin in self.origins.get_mut(zone).unwrap() {
            // One that nobody listens on.
            let dead = Origin::start("dead", 19);
            let alive = std::mem::replace(origin, dead);
            drop(alive);
        }
    }

    fn settings(&self) -> Settings {
        let mut settings = settings(&self.consul.address(), self.dir.path());
        settings.xds.listen = vec![format!("127.0.0.1:{}", self.port).parse().unwrap()];
        settings
    }

    fn envoy(&self, test: &str, alter: impl FnOnce(String) -> String) -> Option<Envoy> {
        Envoy::start(test, &alter(bootstrap(self.port)), 2)
    }

    /// Where the daemon serves proxies.
    fn serving(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// The share of each zone of the requests of a caller in `a`.
    fn prediction(&self, rule: RuleName, all: Counts, critical: Counts) -> BTreeMap<String, f64> {
        predicted(rule, &[self.callers], all, critical)
    }

    fn xds(&self) -> XdsReport {
        xds(self.dir.path())
    }
}

fn place(zone: &str) -> Locality {
    Locality::new("r", zone, "")
}

/// The share of each zone of the requests of a caller in `a`, of the first of the
/// calling services, by the rule and without the daemon.
fn predicted(
    rule: RuleName,
    services: &[[u64; 3]],
    all: Counts,
    critical: Counts,
) -> BTreeMap<String, f64> {
    let mut upstream = Upstream::new();
    for (index, zone) in ZONES.iter().enumerate() {
        let (bad, all) = (critical[index] as u64, all[index] as u64);
        let mut add = |health, count| upstream.add(0, &place(zone), health, 1, count).unwrap();
        add(Health::Healthy, all - bad);
        add(Health::Unhealthy, bad);
    }
    let callers: Vec<Members> = services
        .iter()
        .map(|counts| {
            let mut callers = Members::new();
            for (zone, count) in ZONES.iter().zip(counts) {
                callers
                    .add(&place(zone), Health::Healthy, 1, *count)
                    .unwrap();
            }
            callers
        })
        .collect();
    let demands: Vec<_> = callers.iter().map(Demand::of_callers).collect();
    let planned = |rule: &dyn Rule| -> Routes {
        let plan = rule.plan(&Problem::new(&upstream, &demands)).unwrap();
        plan.routes(0, &place("a")).unwrap()
    };
    let by_envoy = |settings| -> Routes {
        decide(settings, Some(&place("a")), Some(&callers[0]), &upstream).routes()
    };
    let routes = match rule {
        RuleName::Bounded => planned(&Bounded::default()),
        RuleName::Joint => planned(&Joint::default()),
        RuleName::Envoy => by_envoy(&envoy::Settings::ENVOY),
        RuleName::ServiceConnect => by_envoy(&envoy::Settings::SERVICE_CONNECT),
        RuleName::RoundRobin => unreachable!("not compared"),
    };
    let shares = routes.shares(&upstream).unwrap();
    let zones = shares.zones.into_iter();
    zones
        .map(|((_, zone), share)| (zone.zone().to_owned(), share.to_f64()))
        .filter(|(_, share)| *share > 0.0)
        .collect()
}

fn xds(dir: &Path) -> XdsReport {
    let (code, body) = Admin::of(dir).get("/v1/xds");
    assert_eq!(code, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// The program itself, as somebody at a terminal starts it.
fn evenkeel(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(arguments)
        .env_clear()
        .output()
        .unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
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
