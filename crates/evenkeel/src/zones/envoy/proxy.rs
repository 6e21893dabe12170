use std::collections::BTreeMap;

use evenkeel_zone_weights::envoy::{LocalityBasis, MinClusterSize, Runtime, Settings};
use evenkeel_zone_weights::{Health, InputError, Locality, Members, Percent, Upstream};
use serde_json::Value;

/// An answer of the admin interface that is not what Envoy answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Not JSON.
    #[error("{path}: {text}")]
    Json {
        /// What was asked.
        path: &'static str,
        /// What is wrong.
        text: String,
    },
    /// There is no such cluster.
    #[error("this Envoy has no cluster {cluster:?}; it has {clusters}")]
    NoCluster {
        /// The one that was asked for.
        cluster: String,
        /// Those that are there.
        clusters: String,
    },
    /// Hosts beyond what can be counted.
    #[error("cluster {cluster:?}: {error}")]
    Hosts {
        /// Of which cluster.
        cluster: String,
        /// Why.
        error: InputError,
    },
}

/// A proxy and one cluster of it, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Envoy's version, as it says it.
    pub version: String,
    /// Worker threads.
    pub workers: u64,
    /// Its own locality; none if it has none.
    pub locality: Option<Locality>,
    /// The cluster of the callers.
    pub local_cluster: Option<String>,
    /// The called cluster.
    pub cluster: String,
    /// How its zone-aware routing is set.
    pub settings: Settings,
    /// Why there is no zone-aware routing in this cluster whatever the hosts are.
    pub impossible: Option<String>,
}

fn json(path: &'static str, text: &[u8]) -> Result<Value, ReadError> {
    serde_json::from_slice(text).map_err(|error| ReadError::Json {
        path,
        text: error.to_string(),
    })
}

/// Envoy writes 64-bit numbers as text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn locality(value: &Value) -> Locality {
    let name = |key: &str| value[key].as_str().unwrap_or_default();
    Locality::new(name("region"), name("zone"), name("sub_zone"))
}

impl Proxy {
    /// From the answers to `/server_info`, `/config_dump` and `/runtime`.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn read(
        cluster: &str,
        server_info: &[u8],
        config_dump: &[u8],
        runtime: &[u8],
    ) -> Result<Self, ReadError> {
        let info = json(super::paths::SERVER_INFO, server_info)?;
        let config = json(super::paths::CONFIG_DUMP, config_dump)?;
        let runtime = json(super::paths::RUNTIME, runtime)?;
        let parts = config["configs"].as_array().map_or(&[][..], Vec::as_slice);
        let clusters: Vec<&Value> = parts.iter().flat_map(clusters_of).collect();
        let name = |cluster: &Value| cluster["name"].as_str().unwrap_or_default().to_owned();
        let found = clusters.iter().find(|one| one["name"] == cluster);
        let Some(found) = found else {
            let names: Vec<_> = clusters.iter().map(|cluster| name(cluster)).collect();
            return Err(ReadError::NoCluster {
                cluster: cluster.to_owned(),
                clusters: names.join(", "),
            });
        };
        let local_cluster = parts.iter().find_map(|part| {
            let manager = &part["bootstrap"]["cluster_manager"];
            manager["local_cluster_name"]
                .as_str()
                .filter(|name| !name.is_empty())
        });
        let node = &info["node"]["locality"];
        let (settings, mut impossible) = policy(found);
        if local_cluster == Some(cluster) {
            let text = "the called cluster is that of the callers itself, which Envoy does not route by zone";
            impossible = Some(text.to_owned());
        }
        Ok(Self {
            version: version(info["version"].as_str().unwrap_or("unknown")),
            workers: number(&info["command_line_options"]["concurrency"]).unwrap_or(1),
            locality: node.is_object().then(|| locality(node)),
            local_cluster: local_cluster.map(str::to_owned),
            cluster: cluster.to_owned(),
            settings: settings.with_runtime(&runtime_keys(&runtime)),
            impossible,
        })
    }
}

/// `revision/1.40.0/Clean/RELEASE/BoringSSL`
fn version(text: &str) -> String {
    text.split('/').nth(1).unwrap_or(text).to_owned()
}

fn clusters_of(part: &Value) -> impl Iterator<Item = &Value> {
    ["static_clusters", "dynamic_active_clusters"]
        .into_iter()
        .filter_map(|list| part[list].as_array())
        .flatten()
        .map(|entry| &entry["cluster"])
}

fn runtime_keys(runtime: &Value) -> Runtime {
    // Envoy cuts a fraction, and ignores what is no number.
    let key = |key: &str| {
        let value = &runtime["entries"][key]["final_value"];
        let fraction = || value.as_str()?.parse::<f64>().ok();
        let cut = |value: f64| (value >= 0.0).then(|| value.trunc().to_string().parse().ok())?;
        number(value).or_else(|| fraction().and_then(cut))
    };
    Runtime {
        zone_routing_enabled: key("upstream.zone_routing.enabled"),
        min_cluster_size: key("upstream.zone_routing.min_cluster_size"),
        force_local_zone_min_size: key("upstream.zone_routing.force_local_zone.min_size"),
        healthy_panic_threshold: key("upstream.healthy_panic_threshold"),
    }
}

/// The settings of a cluster's load balancing, and why it knows no zones.
fn policy(cluster: &Value) -> (Settings, Option<String>) {
    let common = &cluster["common_lb_config"];
    let mut settings = Settings::ENVOY;
    if let Some(percent) = percent(&common["healthy_panic_threshold"]) {
        settings.healthy_panic_threshold = percent;
    }
    let factor = &cluster["load_assignment"]["policy"]["overprovisioning_factor"];
    if let Some(factor) =
        number(factor).and_then(|factor| u32::try_from(factor).ok()?.try_into().ok())
    {
        settings.overprovisioning_factor = factor;
    }
    if let Some(config) = typed_policy(&cluster["load_balancing_policy"], 0) {
        let kind = config["@type"].as_str().unwrap_or_default();
        let locality = &config["locality_lb_config"];
        let impossible = if !is_any_of(kind, &ZONE_AWARE) {
            Some(format!(
                "the load balancing policy {kind:?} has no zone-aware routing"
            ))
        } else if locality["locality_weighted_lb_config"].is_object() {
            Some(WEIGHTED.to_owned())
        } else {
            None
        };
        return (
            zone_aware_settings(settings, &locality["zone_aware_lb_config"]),
            impossible,
        );
    }
    let name = cluster["lb_policy"].as_str().unwrap_or("ROUND_ROBIN");
    let impossible = if !["ROUND_ROBIN", "LEAST_REQUEST", "RANDOM"].contains(&name) {
        Some(format!(
            "the load balancing policy {name} has no zone-aware routing"
        ))
    } else if common["locality_weighted_lb_config"].is_object() {
        Some(WEIGHTED.to_owned())
    } else {
        None
    };
    (
        zone_aware_settings(settings, &common["zone_aware_lb_config"]),
        impossible,
    )
}

/// Typed policies that route by zone.
const ZONE_AWARE: [&str; 3] = ["RoundRobin", "LeastRequest", "Random"];

/// Others that Envoy knows; one that it does not know it passes over.
const OTHERS: [&str; 6] = [
    "RingHash",
    "Maglev",
    "ClusterProvided",
    "WrrLocality",
    "ClientSideWeightedRoundRobin",
    "OverrideHost",
];

fn is_any_of(kind: &str, names: &[&str]) -> bool {
    names.iter().any(|name| kind.ends_with(&format!(".{name}")))
}

/// The typed policy that is in force: the first that Envoy knows, within a subset
/// policy the one for each subset.
fn typed_policy(policy: &Value, depth: u32) -> Option<&Value> {
    let policies = policy["policies"].as_array()?.iter();
    let configs = policies.map(|policy| &policy["typed_extension_config"]["typed_config"]);
    let mut known = configs.filter_map(|config| {
        let kind = config["@type"].as_str()?;
        match kind.ends_with(".Subset") && depth < 4 {
            true => typed_policy(&config["subset_lb_policy"], depth + 1),
            false => (is_any_of(kind, &ZONE_AWARE) || is_any_of(kind, &OTHERS)).then_some(config),
        }
    });
    known.next()
}

const WEIGHTED: &str =
    "the cluster has locality_weighted_lb_config: it follows the weights of the assignment";

fn zone_aware_settings(mut settings: Settings, config: &Value) -> Settings {
    if let Some(percent) = percent(&config["routing_enabled"]) {
        settings.routing_enabled = percent;
    }
    if let Some(size) = number(&config["min_cluster_size"]) {
        settings.min_cluster_size = MinClusterSize::Hosts(size);
    }
    if let Some(fail) = config["fail_traffic_on_panic"].as_bool() {
        settings.fail_traffic_on_panic = fail;
    }
    if config["locality_basis"] == "HEALTHY_HOSTS_WEIGHT" {
        settings.locality_basis = LocalityBasis::HealthyHostsWeight;
    }
    let force = &config["force_local_zone"];
    if force.is_object() {
        let least = number(&force["min_size"]).unwrap_or(1);
        settings.force_local_zone = Some(u32::try_from(least).unwrap_or(u32::MAX));
    }
    settings.with_deprecated_force(config["force_locality_direct_routing"] == true)
}

/// A percentage as Envoy cuts it. One of 0 is shown as an empty table, and what
/// Envoy would not take counts as all.
fn percent(setting: &Value) -> Option<Percent> {
    setting.is_object().then(|| {
        let percent = setting["value"].as_f64().unwrap_or(0.0);
        Percent::from_config(percent).unwrap_or(Percent::HUNDRED)
    })
}

/// Hosts, requests and counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// The callers; none without a local cluster.
    pub callers: Option<Members>,
    /// The endpoints.
    pub upstream: Upstream,
    /// Requests that each endpoint ever got, with its zone, by address.
    pub requests: BTreeMap<String, (Locality, u64)>,
    /// Counters of the cluster, by their short names.
    pub counters: BTreeMap<String, u64>,
}

impl Seen {
    /// From the answers to `/clusters` and `/stats`.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn read(proxy: &Proxy, clusters: &[u8], stats: &[u8]) -> Result<Self, ReadError> {
        let clusters = json(super::paths::CLUSTERS, clusters)?;
        let stats = json(super::paths::STATS, stats)?;
        let hosts = |name: &str| {
            let statuses = clusters["cluster_statuses"].as_array();
            let cluster = statuses
                .into_iter()
                .flatten()
                .find(|one| one["name"] == name);
            let hosts = cluster.and_then(|cluster| cluster["host_statuses"].as_array());
            hosts.map_or(&[][..], Vec::as_slice)
        };
        let mut seen = Self::default();
        for host in hosts(&proxy.cluster) {
            let host = Host::of(host);
            seen.upstream
                .add(host.priority, &host.locality, host.health, host.weight, 1)
                .map_err(|error| ReadError::Hosts {
                    cluster: proxy.cluster.clone(),
                    error,
                })?;
            // An address can be there twice.
            let mut key = host.address;
            while seen.requests.contains_key(&key) {
                key.push('+');
            }
            seen.requests.insert(key, (host.locality, host.requests));
        }
        if let Some(local) = &proxy.local_cluster {
            let mut callers = Members::new();
            for host in hosts(local) {
                let host = Host::of(host);
                callers
                    .add(&host.locality, host.health, host.weight, 1)
                    .map_err(|error| ReadError::Hosts {
                        cluster: local.clone(),
                        error,
                    })?;
            }
            seen.callers = Some(callers);
        }
        let prefix = format!("cluster.{}.", proxy.cluster.replace(':', "_"));
        for stat in stats["stats"].as_array().into_iter().flatten() {
            let name = stat["name"].as_str().unwrap_or_default();
            if let Some(name) = name.strip_prefix(&prefix)
                && let Some(value) = number(&stat["value"])
            {
                seen.counters.insert(name.to_owned(), value);
            }
        }
        Ok(seen)
    }
}

struct Host {
    address: String,
    locality: Locality,
    priority: u32,
    health: Health,
    weight: u32,
    requests: u64,
}

impl Host {
    fn of(status: &Value) -> Self {
        let small = |key: &str| number(&status[key]).and_then(|value| u32::try_from(value).ok());
        let requests = status["stats"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|stat| stat["name"] == "rq_total")
            // A counter at zero has no value.
            .and_then(|stat| number(&stat["value"]));
        Self {
            address: status["address"].to_string(),
            locality: locality(&status["locality"]),
            priority: small("priority").unwrap_or(0),
            health: health(&status["health_status"]),
            weight: small("weight").unwrap_or(1).max(1),
            requests: requests.unwrap_or(0),
        }
    }
}

/// What Envoy makes of its own checks and of what the assignment says.
fn health(status: &Value) -> Health {
    let fails = ["failed_active_health_check", "failed_outlier_check"]
        .iter()
        .any(|key| status[key] == true);
    let eds = status["eds_health_status"].as_str().unwrap_or("UNKNOWN");
    match Health::from_envoy(eds) {
        _ if fails => Health::Unhealthy,
        Some(Health::Healthy) if status["failed_active_degraded_check"] == true => Health::Degraded,
        Some(health) => health,
        None => Health::Unhealthy,
    }
}
