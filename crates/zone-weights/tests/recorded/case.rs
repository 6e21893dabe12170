//! Reads the recorded cases.

use core::num::NonZeroU32;

use evenkeel_zone_weights::envoy::{LocalityBasis, MinClusterSize, Runtime, Settings};
use evenkeel_zone_weights::{Health, Locality, Members, Percent, Upstream};
use serde_json::Value;

pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) local: Option<Locality>,
    pub(crate) settings: Settings,
    pub(crate) local_cluster: bool,
    pub(crate) steps: Vec<Step>,
}

/// Hosts that are alike.
pub(crate) struct Group {
    pub(crate) priority: u32,
    pub(crate) zone: Locality,
    pub(crate) health: Health,
    pub(crate) weight: u32,
    pub(crate) count: u64,
}

pub(crate) struct Step {
    pub(crate) callers: Members,
    pub(crate) upstream: Upstream,
    pub(crate) groups: Vec<Group>,
    pub(crate) expected: Value,
}

/// `zone`, `region/zone` or `region/zone/sub_zone`; a bare zone is in region r1.
pub(crate) fn locality(text: &str) -> Locality {
    let mut names = text.splitn(3, '/');
    match (names.next(), names.next(), names.next()) {
        (Some(zone), None, None) => Locality::new("r1", zone, ""),
        (Some(region), Some(zone), sub_zone) => {
            Locality::new(region, zone, sub_zone.unwrap_or_default())
        }
        _ => unreachable!("a text has at least one part"),
    }
}

/// The keys of an object are exactly among these: a key that the test does not
/// know would be a rule that it does not test.
fn only(value: &Value, keys: &[&str]) {
    for key in value.as_object().expect("an object").keys() {
        assert!(keys.contains(&key.as_str()), "unknown key {key}");
    }
}

impl Case {
    pub(crate) fn read(value: &Value) -> Self {
        let config = &value["config"];
        Self {
            id: value["id"].as_str().expect("a name").to_owned(),
            local: value["local_zone"].as_str().map(locality),
            settings: settings(config),
            local_cluster: config["no_local_cluster"] != true,
            steps: value["steps"]
                .as_array()
                .expect("a list")
                .iter()
                .map(step)
                .collect(),
        }
    }
}

fn settings(config: &Value) -> Settings {
    only(
        config,
        &[
            "routing_enabled",
            "min_cluster_size",
            "healthy_panic_threshold",
            "fail_traffic_on_panic",
            "force_local_zone",
            "force_locality_direct_routing",
            "locality_basis",
            "overprovisioning_factor",
            "runtime",
            "no_local_cluster",
            "style",
        ],
    );
    let percent = |key: &str, default| {
        config[key].as_f64().map_or(default, |value| {
            Percent::from_config(value).expect("a percentage")
        })
    };
    let small = |value: &Value| {
        value
            .as_u64()
            .map(|value| u32::try_from(value).expect("32 bits"))
    };
    let defaults = Settings::ENVOY;
    let settings = Settings {
        routing_enabled: percent("routing_enabled", defaults.routing_enabled),
        min_cluster_size: config["min_cluster_size"]
            .as_u64()
            .map_or(defaults.min_cluster_size, MinClusterSize::Hosts),
        force_local_zone: config["force_local_zone"]
            .as_object()
            .map(|force| force.get("min_size").and_then(small).unwrap_or(1)),
        locality_basis: match config["locality_basis"].as_str() {
            None | Some("HEALTHY_HOSTS_NUM") => LocalityBasis::HealthyHostsNum,
            Some("HEALTHY_HOSTS_WEIGHT") => LocalityBasis::HealthyHostsWeight,
            Some(other) => panic!("unknown locality_basis {other}"),
        },
        healthy_panic_threshold: percent(
            "healthy_panic_threshold",
            defaults.healthy_panic_threshold,
        ),
        fail_traffic_on_panic: config["fail_traffic_on_panic"] == true,
        overprovisioning_factor: small(&config["overprovisioning_factor"])
            .map_or(defaults.overprovisioning_factor, |factor| {
                NonZeroU32::new(factor).expect("not 0")
            }),
    };
    let runtime = &config["runtime"];
    if !runtime.is_null() {
        only(
            runtime,
            &[
                "upstream.zone_routing.enabled",
                "upstream.zone_routing.min_cluster_size",
                "upstream.zone_routing.force_local_zone.min_size",
                "upstream.healthy_panic_threshold",
            ],
        );
    }
    settings
        .with_deprecated_force(config["force_locality_direct_routing"] == true)
        .with_runtime(&Runtime {
            zone_routing_enabled: runtime["upstream.zone_routing.enabled"].as_u64(),
            min_cluster_size: runtime["upstream.zone_routing.min_cluster_size"].as_u64(),
            force_local_zone_min_size: runtime["upstream.zone_routing.force_local_zone.min_size"]
                .as_u64(),
            healthy_panic_threshold: runtime["upstream.healthy_panic_threshold"].as_u64(),
        })
}

fn step(value: &Value) -> Step {
    let mut callers = Members::new();
    for group in groups(&value["source"]) {
        callers
            .add(&group.zone, group.health, group.weight, group.count)
            .expect("valid hosts");
    }
    let groups = groups(&value["upstream"]);
    let mut upstream = Upstream::new();
    for group in &groups {
        upstream
            .add(
                group.priority,
                &group.zone,
                group.health,
                group.weight,
                group.count,
            )
            .expect("valid hosts");
    }
    Step {
        callers,
        upstream,
        groups,
        expected: value["expected"].clone(),
    }
}

fn groups(list: &Value) -> Vec<Group> {
    let mut groups = Vec::new();
    for zone in list.as_array().expect("a list") {
        only(zone, &["zone", "priority", "hosts"]);
        for hosts in zone["hosts"].as_array().expect("a list") {
            only(hosts, &["count", "health", "weight"]);
            let number = |value: &Value, default| value.as_u64().unwrap_or(default);
            groups.push(Group {
                priority: u32::try_from(number(&zone["priority"], 0)).expect("32 bits"),
                zone: locality(zone["zone"].as_str().expect("a name")),
                health: hosts["health"].as_str().map_or(Health::Healthy, |health| {
                    Health::from_envoy(health).expect("a health status")
                }),
                weight: u32::try_from(number(&hosts["weight"], 1)).expect("32 bits"),
                count: hosts["count"].as_u64().expect("a number"),
            });
        }
    }
    groups
}
