//! Compares a step with its expectation.

use std::collections::BTreeMap;
use std::fmt::Debug;

use evenkeel_zone_weights::envoy::{Decision, State, decide};
use evenkeel_zone_weights::{Counter, Counters, Fraction, Hosts, Locality, Reason, Shares};
use serde_json::Value;

use crate::case::{Case, Step, locality};

/// All differences between a step and its expectation.
pub(crate) fn compare(case: &Case, step: &Step, threads: u64) -> Vec<String> {
    let callers = case.local_cluster.then_some(&step.callers);
    let decision = decide(&case.settings, case.local.as_ref(), callers, &step.upstream);
    let mut faults = Faults::default();
    state(&decision, &step.expected, &mut faults);
    mode(&decision, &step.expected, &mut faults);
    let shares = decision
        .routes()
        .shares(&step.upstream)
        .expect("shares that fit");
    probabilities(&shares, &step.expected, &mut faults);
    recalculation(&decision, &step.expected, threads, &mut faults);
    faults.0
}

#[derive(Default)]
pub(crate) struct Faults(Vec<String>);

impl Faults {
    pub(crate) fn same<T: PartialEq + Debug>(&mut self, what: &str, ours: &T, envoys: &T) {
        if ours != envoys {
            self.0
                .push(format!("{what} is {ours:?}, Envoy has {envoys:?}"));
        }
    }
}

fn numbers(list: &Value) -> Option<Vec<u64>> {
    let list = list.as_array()?;
    Some(
        list.iter()
            .map(|number| number.as_u64().expect("a number"))
            .collect(),
    )
}

fn state(decision: &Decision, expected: &Value, faults: &mut Faults) {
    let text = |key: &str| expected[key].as_str();
    faults.same("state", &Some(decision.state().name()), &text("state"));
    faults.same(
        "reason",
        &decision.gate().map(|gate| gate.name()),
        &text("reason"),
    );
    let zones: Vec<Locality> = decision
        .zones()
        .iter()
        .map(|zone| zone.locality.clone())
        .collect();
    let order = expected["zones_in_order"].as_array().expect("a list");
    let order = order
        .iter()
        .map(|zone| locality(zone.as_str().expect("a name")));
    faults.same("order of zones", &zones, &order.collect());
    faults.same(
        "local zone first",
        &Some(decision.has_local_zone()),
        &expected["upstream_has_local_zone"].as_bool(),
    );

    let open = decision.gate().is_none();
    let shares = |share: fn(&evenkeel_zone_weights::envoy::Zone) -> u16| -> Vec<u64> {
        decision
            .zones()
            .iter()
            .map(|zone| share(zone).into())
            .collect()
    };
    faults.same(
        "source percentage",
        &open.then(|| shares(|zone| zone.source)),
        &numbers(&expected["source_percentage"]),
    );
    faults.same(
        "upstream percentage",
        &open.then(|| shares(|zone| zone.upstream)),
        &numbers(&expected["upstream_percentage"]),
    );
    let local_route = match decision.state() {
        State::Residual { local_route } => Some(u64::from(local_route)),
        State::Closed(_) | State::Direct => None,
    };
    faults.same(
        "local route",
        &local_route,
        &expected["local_percent_to_route"].as_u64(),
    );
    faults.same(
        "residual capacity",
        &local_route.map(|_| shares(|zone| zone.residual)),
        &numbers(&expected["residual_capacity"]),
    );
    let panic: Vec<Value> = decision
        .priorities()
        .iter()
        .map(|load| load.panic.into())
        .collect();
    faults.same("panic", &Value::from(panic), &expected["panic_by_priority"]);
}

/// What becomes of the requests, and the part of each priority.
fn mode(decision: &Decision, expected: &Value, faults: &mut Faults) {
    let routed = decision.gate().is_none() && decision.settings().routing_enabled.get() > 0;
    let routes = decision.routes();
    let mut modes: Vec<&str> = routes
        .list()
        .iter()
        // What is routed by zone in part only is named after that part.
        .filter(|route| !(routed && route.priority == 0 && route.reason == Reason::Ordinary))
        .map(|route| match (route.reason, route.hosts) {
            (Reason::Panic, Hosts::Nobody) => "panic_fail",
            (Reason::Panic, _) => "panic_all_hosts",
            (Reason::CallersInPanic, Hosts::Nobody) => "source_panic_fail",
            (Reason::CallersInPanic | Reason::Ordinary, _) => "uniform",
            (Reason::AllLocal, _) => "all_local",
            (Reason::Sampled | Reason::CrossZone | Reason::NoCapacityLeft, _) => "residual",
        })
        .collect();
    modes.sort_unstable();
    modes.dedup();
    let ours = match modes[..] {
        [mode] => mode,
        _ => "mixed",
    };
    faults.same("mode", &Some(ours), &expected["mode"].as_str());

    let mut loads = vec![0; decision.priorities().len()];
    for branch in expected["branches"].as_array().expect("a list") {
        let number = |key: &str| branch[key].as_u64().expect("a number");
        let priority = usize::try_from(number("priority")).expect("it fits");
        loads[priority] += number("percent");
    }
    let ours: Vec<u64> = decision
        .priorities()
        .iter()
        .map(|load| u64::from(load.healthy) + u64::from(load.degraded))
        .collect();
    faults.same("load of the priorities", &ours, &loads);
}

pub(crate) fn fraction(value: &Value) -> Fraction {
    let part = |key: &str| u128::from(value[key].as_u64().expect("a number"));
    Fraction::new(part("num"), part("den"))
}

/// A key of the probabilities: `zone`, `zone@pN`, or `none`.
pub(crate) fn target(key: &str) -> Option<(u32, Locality)> {
    match key.rsplit_once("@p") {
        _ if key == "none" => None,
        Some((zone, priority)) => Some((priority.parse().expect("a number"), locality(zone))),
        None => Some((0, locality(key))),
    }
}

pub(crate) fn counter(name: &str) -> Counter {
    let known = Counter::ALL
        .into_iter()
        .find(|counter| counter.name() == name);
    known.unwrap_or_else(|| panic!("unknown counter {name}"))
}

fn probabilities(shares: &Shares, expected: &Value, faults: &mut Faults) {
    let mut zones = BTreeMap::new();
    let mut no_host = Fraction::ZERO;
    for (key, value) in expected["probability"].as_object().expect("an object") {
        match target(key) {
            Some(target) => {
                zones.insert(target, fraction(value));
            }
            None => no_host = fraction(value),
        }
    }
    faults.same("probability", &shares.zones, &zones);
    faults.same("probability of no host", &shares.no_host, &no_host);

    let stats = expected["stats_per_request"].as_object();
    let counters = stats.expect("an object").iter();
    let counters: BTreeMap<Counter, Fraction> = counters
        .map(|(name, value)| (counter(name), fraction(value)))
        .collect();
    faults.same("counters per request", &shares.counters, &counters);
}

fn recalculation(decision: &Decision, expected: &Value, threads: u64, faults: &mut Faults) {
    let counters = Counters::new();
    counters.count_recalculation(decision, threads);
    let stats = &expected["stats_per_recalculation"];
    counted(&counters, stats, threads, faults);
}

/// The counters are exactly `times` what is listed; what is not listed is 0.
fn counted(counters: &Counters, stats: &Value, times: u64, faults: &mut Faults) {
    let stats = stats.as_object().expect("an object");
    let listed: BTreeMap<Counter, u64> = stats
        .iter()
        .map(|(name, count)| (counter(name), count.as_u64().expect("a number")))
        .collect();
    for counter in Counter::ALL {
        let envoys = listed.get(&counter).map_or(0, |count| count * times);
        faults.same(counter.name(), &counters.get(counter), &envoys);
    }
}
