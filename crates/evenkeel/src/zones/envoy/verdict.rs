use std::collections::{BTreeMap, BTreeSet};

use evenkeel_zone_weights::Locality;
use evenkeel_zone_weights::envoy::{decide, gates};
use serde::Serialize;

use super::{Proxy, Seen};
use crate::zones::{Gate, ZoneName};

/// Requests below this number say nothing about shares.
const FEW: u64 = 20;

/// A share further off than so many standard deviations is not chance.
const SIGMAS: f64 = 4.0;

/// What there is to say of a cluster of a running Envoy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Envoy's version.
    pub envoy: String,
    /// The called cluster.
    pub cluster: String,
    /// The cluster of the callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callers: Option<String>,
    /// The proxy's own zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<ZoneName>,
    /// Whether requests are routed by zone.
    pub on: bool,
    /// `direct`, `residual` or `none`.
    pub mode: String,
    /// What keeps them from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What would change that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// All conditions.
    pub gates: Vec<Gate>,
    /// How long requests were watched.
    pub seconds: f64,
    /// Requests in that time.
    pub requests: u64,
    /// Whether they went where the rule says; none if that cannot be told, and
    /// then `unsure` says why.
    pub as_predicted: Option<bool>,
    /// Why it cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsure: Option<String>,
    /// Each zone that has endpoints.
    pub zones: Vec<ZoneVerdict>,
    /// Counters: their growth in that time, and what they have come to.
    pub counters: BTreeMap<String, Growth>,
}

/// A zone of the endpoints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ZoneVerdict {
    /// Which one.
    #[serde(flatten)]
    pub zone: ZoneName,
    /// The share of the requests that the rule gives it.
    pub predicted: f64,
    /// The share that it got; none without requests.
    pub observed: Option<f64>,
    /// How far that is off, in standard deviations of so many requests.
    pub sigmas: Option<f64>,
}

/// A counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Growth {
    /// By how much it grew.
    pub grew: u64,
    /// What it has come to.
    pub total: u64,
}

impl Verdict {
    /// On, and nothing speaks against it.
    pub fn is_good(&self) -> bool {
        self.on && self.as_predicted != Some(false)
    }
}

/// Compares what a proxy did between two moments with what Envoy's rule says of
/// it.
pub fn verdict(proxy: &Proxy, before: &Seen, after: &Seen, seconds: f64) -> Verdict {
    let local = proxy.locality.as_ref();
    let callers = after.callers.as_ref();
    let decision = decide(&proxy.settings, local, callers, &after.upstream);
    let checks = gates(&proxy.settings, local, callers, &after.upstream);
    let switched_off = (proxy.settings.routing_enabled.get() == 0).then(|| {
        let remedy = "set routing_enabled (upstream.zone_routing.enabled) to 1 or more";
        ("routing_enabled is 0".to_owned(), remedy.to_owned())
    });
    let panic = decision.callers_in_panic().then(|| {
        let remedy = "bring the callers up, or lower healthy_panic_threshold";
        (
            "more callers are unhealthy than the panic threshold allows".to_owned(),
            remedy.to_owned(),
        )
    });
    let why = match &proxy.impossible {
        Some(why) => {
            let remedy = "use ROUND_ROBIN or LEAST_REQUEST with zone_aware_lb_config";
            Some((why.clone(), remedy.to_owned()))
        }
        None => match decision.gate() {
            Some(gate) => Some((gate.to_string(), gate.remedy().to_string())),
            None => switched_off.or(panic),
        },
    };
    let on = why.is_none();
    let (reason, remedy) = why.unzip();

    let counts = growth_of_requests(before, after);
    let requests: u64 = counts.values().sum();
    let shares = decision
        .routes()
        .shares(&after.upstream)
        .unwrap_or_default();
    let mut predicted: BTreeMap<Locality, f64> = BTreeMap::new();
    for ((_, zone), share) in &shares.zones {
        *predicted.entry(zone.clone()).or_default() += share.to_f64();
    }
    let moved = before.upstream != after.upstream || before.callers != after.callers;
    let unsure = match &proxy.impossible {
        Some(_) => Some("another rule than the zone-aware one decides".to_owned()),
        None if moved => Some("endpoints or callers changed meanwhile".to_owned()),
        None if requests < FEW => Some(format!(
            "{requests} requests in this time; it takes {FEW} or more"
        )),
        None => None,
    };
    let listed: BTreeSet<Locality> = after
        .upstream
        .priorities()
        .iter()
        .flat_map(|members| members.iter())
        .map(|(zone, _)| zone.clone())
        .chain(counts.keys().cloned())
        .collect();
    let zones: Vec<ZoneVerdict> = listed
        .iter()
        .map(|zone| {
            let predicted = predicted.get(zone).copied().unwrap_or(0.0);
            let count = counts.get(zone).copied().unwrap_or(0);
            let all = requests as f64;
            let observed = (requests > 0).then(|| count as f64 / all);
            ZoneVerdict {
                zone: zone.into(),
                predicted,
                observed,
                sigmas: observed.map(|observed| off(predicted, observed, all)),
            }
        })
        .collect();
    let as_predicted = unsure.is_none().then(|| {
        zones
            .iter()
            .all(|zone| zone.sigmas.is_none_or(|off| off <= SIGMAS))
    });
    let counters = after.counters.iter().map(|(name, total)| {
        let earlier = before.counters.get(name).copied().unwrap_or(0);
        let growth = Growth {
            // A smaller one is that of an Envoy that was started anew.
            grew: total.saturating_sub(earlier),
            total: *total,
        };
        (name.clone(), growth)
    });
    Verdict {
        envoy: proxy.version.clone(),
        cluster: proxy.cluster.clone(),
        callers: proxy.local_cluster.clone(),
        zone: local.map(ZoneName::from),
        on,
        mode: match on {
            true => decision.state().name().to_owned(),
            false => "none".to_owned(),
        },
        reason,
        remedy,
        gates: checks
            .into_iter()
            .map(|check| Gate::new(check.gate, check.closed))
            .collect(),
        seconds,
        requests,
        as_predicted,
        unsure,
        zones,
        counters: counters.collect(),
    }
}

fn growth_of_requests(before: &Seen, after: &Seen) -> BTreeMap<Locality, u64> {
    let mut counts = BTreeMap::new();
    for (address, (zone, total)) in &after.requests {
        let earlier = before.requests.get(address).map_or(0, |(_, total)| *total);
        let grew = total.saturating_sub(earlier);
        if grew > 0 {
            *counts.entry(zone.clone()).or_default() += grew;
        }
    }
    counts
}

/// How many standard deviations `observed` of `all` requests is off. A share that
/// is impossible and seen nevertheless is off by as much as it is seen; one
/// request more or less is rounding, since requests under way are counted at one
/// end only.
fn off(predicted: f64, observed: f64, all: f64) -> f64 {
    let difference = ((predicted - observed).abs() * all - 1.0).max(0.0);
    let deviation = (all * predicted * (1.0 - predicted)).sqrt().max(0.5);
    difference / deviation
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Recorded from an Envoy 1.40.0 with three callers in a, one in b, one in c, and
    // two endpoints in each zone that are healthy; 60 requests went through it.
    const INFO: &[u8] = include_bytes!("testdata/server_info.json");
    const CONFIG: &[u8] = include_bytes!("testdata/config_dump.json");
    const CLUSTERS: &[u8] = include_bytes!("testdata/clusters.json");
    const STATS: &[u8] = include_bytes!("testdata/stats.json");
    const RUNTIME: &[u8] = br#"{"entries":{},"layers":[]}"#;

    fn proxy() -> Proxy {
        Proxy::read("api", INFO, CONFIG, RUNTIME).unwrap()
    }

    fn seen(proxy: &Proxy) -> Seen {
        Seen::read(proxy, CLUSTERS, STATS).unwrap()
    }

    fn at_start(seen: &Seen) -> Seen {
        let mut start = seen.clone();
        for (_, count) in start.requests.values_mut() {
            *count = 0;
        }
        start.counters.clear();
        start
    }

    #[test]
    fn a_recorded_envoy_is_read_and_does_what_the_rule_says() {
        let proxy = proxy();
        assert_eq!((proxy.version.as_str(), proxy.workers), ("1.40.0", 1));
        assert_eq!(proxy.local_cluster.as_deref(), Some("web"));
        let after = seen(&proxy);
        let told = verdict(&proxy, &at_start(&after), &after, 10.0);
        assert!(told.on && told.is_good(), "{told:?}");
        assert_eq!((told.mode.as_str(), told.requests), ("residual", 60));
        assert_eq!(told.as_predicted, Some(true));
        // 3333 of 10,000 endpoints for 6000 of 10,000 callers, cut.
        assert!((told.zones[0].predicted - 0.5555).abs() < 1e-12);
        assert_eq!(told.counters["lb_zone_routing_cross_zone"].grew, 31);
        let a = told.zones[0].observed.unwrap();
        assert!((a - 29.0 / 60.0).abs() < 1e-12, "{a}");
    }

    #[test]
    fn requests_that_go_elsewhere_are_told_from_chance() {
        let proxy = proxy();
        let after = seen(&proxy);
        let mut other = after.clone();
        for (zone, count) in other.requests.values_mut() {
            *count = if zone.zone() == "b" { 100 } else { 0 };
        }
        let told = verdict(&proxy, &at_start(&after), &other, 10.0);
        assert_eq!(told.as_predicted, Some(false));
        assert!(!told.is_good());
    }

    #[test]
    fn without_requests_or_with_a_change_nothing_is_claimed() {
        let proxy = proxy();
        let after = seen(&proxy);
        let told = verdict(&proxy, &after, &after, 10.0);
        assert_eq!((told.as_predicted, told.is_good()), (None, true));
        assert!(told.unsure.unwrap().contains("0 requests"));
        let mut before = at_start(&after);
        before.upstream = evenkeel_zone_weights::Upstream::new();
        let told = verdict(&proxy, &before, &after, 10.0);
        assert!(told.unsure.unwrap().contains("changed"));
    }

    #[test]
    fn what_switches_it_off_is_named_with_what_would_switch_it_on() {
        let with = |config: &str, runtime: &str| {
            let text = String::from_utf8(CONFIG.to_vec()).unwrap();
            let zone_aware = r#""zone_aware_lb_config": {"routing_enabled": {"value": 100}}"#;
            assert!(text.contains(zone_aware));
            let text = text.replace(zone_aware, config);
            let proxy = Proxy::read("api", INFO, text.as_bytes(), runtime.as_bytes()).unwrap();
            let seen = seen(&proxy);
            let told = verdict(&proxy, &seen, &seen, 1.0);
            assert!(!told.on && told.mode == "none", "{told:?}");
            (told.reason.unwrap(), told.remedy.unwrap())
        };
        let none = r#"{"entries":{}}"#;
        let (reason, remedy) = with(r#""zone_aware_lb_config": {"min_cluster_size": "7"}"#, none);
        assert_eq!(reason, "6 of the 7 healthy endpoints that it takes");
        assert!(remedy.contains("missing: 1"), "{remedy}");
        let (reason, _) = with(
            r#""zone_aware_lb_config": {"routing_enabled": {"value": 0.5}}"#,
            none,
        );
        assert!(reason.contains("routing_enabled"), "{reason}");
        let (reason, _) = with(r#""locality_weighted_lb_config": {}"#, none);
        assert!(reason.contains("locality_weighted"), "{reason}");
        // Envoy shows a percentage of 0 so.
        let (reason, _) = with(r#""zone_aware_lb_config": {"routing_enabled": {}}"#, none);
        assert!(reason.contains("routing_enabled"), "{reason}");
        let half = r#"{"entries":{"upstream.zone_routing.enabled":{"final_value":"0.5"}}}"#;
        let (reason, _) = with(r#""zone_aware_lb_config": {}"#, half);
        assert!(reason.contains("routing_enabled"), "{reason}");
        // Runtime keys win.
        let runtime = r#"{"entries":{"upstream.zone_routing.min_cluster_size":
            {"final_value":"9","layer_values":["9"]}}}"#;
        let (reason, _) = with(r#""zone_aware_lb_config": {}"#, runtime);
        assert_eq!(reason, "6 of the 9 healthy endpoints that it takes");
    }

    // Each seen on the real Envoy 1.40.0.
    #[test]
    fn the_typed_policy_that_is_in_force_decides() {
        let typed = |policies: &str| {
            let text = String::from_utf8(CONFIG.to_vec()).unwrap();
            let old = r#""common_lb_config": {"#;
            assert!(text.contains(old));
            let new = format!(r#""load_balancing_policy": {{"policies": [{policies}]}}, {old}"#);
            let text = text.replace(old, &new);
            Proxy::read("api", INFO, text.as_bytes(), RUNTIME).unwrap()
        };
        let policy = |name: &str, rest: &str| {
            format!(
                r#"{{"typed_extension_config": {{"typed_config":
                    {{"@type": "type.googleapis.com/envoy.extensions.x.v3.{name}"{rest}}}}}}}"#
            )
        };
        let round_robin = policy("RoundRobin", "");
        assert_eq!(typed(&round_robin).impossible, None);
        let unknown_first = format!("{}, {round_robin}", policy("Mine", ""));
        assert_eq!(typed(&unknown_first).impossible, None);
        let inner = format!(r#", "subset_lb_policy": {{"policies": [{round_robin}]}}"#);
        assert_eq!(typed(&policy("Subset", &inner)).impossible, None);
        let said = typed(&policy("RingHash", "")).impossible.unwrap();
        assert!(said.contains("RingHash"), "{said}");
        let weighted = r#", "locality_lb_config": {"locality_weighted_lb_config": {}}"#;
        let said = typed(&policy("RoundRobin", weighted)).impossible.unwrap();
        assert!(said.contains("locality_weighted"), "{said}");
    }

    #[test]
    fn callers_among_themselves_are_not_routed_by_zone() {
        let proxy = Proxy::read("web", INFO, CONFIG, RUNTIME).unwrap();
        let seen = seen(&proxy);
        assert!(!verdict(&proxy, &seen, &seen, 1.0).is_good());
    }

    #[test]
    fn a_wrong_name_or_answer_is_said() {
        let error = Proxy::read("apis", INFO, CONFIG, RUNTIME).unwrap_err();
        assert_eq!(
            error.to_string(),
            "this Envoy has no cluster \"apis\"; it has api, web"
        );
        let error = Proxy::read("api", b"<html>", CONFIG, RUNTIME).unwrap_err();
        assert!(error.to_string().starts_with("/server_info: "), "{error}");
        // Anything that is JSON is read without a panic.
        for odd in [
            "{}",
            "[]",
            "0",
            r#"{"cluster_statuses":[{"name":"api","host_statuses":[{}]}]}"#,
        ] {
            let seen = Seen::read(&proxy(), odd.as_bytes(), odd.as_bytes()).unwrap();
            verdict(&proxy(), &seen, &seen, 0.0);
        }
    }

    proptest! {
        // An Envoy that is none, or one of another time.
        #[test]
        fn bytes_of_any_kind_are_read_or_refused(
            which in 0..4_usize,
            changes in prop::collection::vec((any::<usize>(), any::<u8>(), 0..40_usize), 1..6),
        ) {
            let mut texts = [INFO.to_vec(), CONFIG.to_vec(), CLUSTERS.to_vec(), STATS.to_vec()];
            let text = &mut texts[which];
            for (at, byte, removed) in changes {
                let at = at % text.len().max(1);
                let end = (at + removed).min(text.len());
                text.splice(at..end, [byte]);
            }
            let [info, config, clusters, stats] = &texts;
            if let Ok(proxy) = Proxy::read("api", info, config, RUNTIME)
                && let Ok(seen) = Seen::read(&proxy, clusters, stats)
            {
                let told = verdict(&proxy, &seen, &seen, 1.0);
                prop_assert!(!super::super::draw_verdict(&told).is_empty());
            }
        }
    }
}
