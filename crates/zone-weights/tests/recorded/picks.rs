//! Sends requests through a picker and compares what becomes of them with the
//! exact expectation.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_zone_weights::envoy::decide;
use evenkeel_zone_weights::{
    Choice, Counter, Counters, Endpoints, Fraction, Locality, Picker, Rotation,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde_json::Value;

use crate::case::{Case, Step};
use crate::expected::{counter, fraction, target};

const REQUESTS: u32 = 8_000;
/// Hosts of a group beyond which it is represented by fewer, heavier ones.
const HOSTS: u64 = 1_000;

type Counts = BTreeMap<Option<(u32, Locality)>, u64>;

pub(crate) fn compare(case: &Case, step: &Step) -> Vec<String> {
    let Some(mut endpoints) = endpoints(step) else {
        return Vec::new();
    };
    let callers = case.local_cluster.then_some(&step.callers);
    let decision = decide(&case.settings, case.local.as_ref(), callers, &step.upstream);
    let routes = decision.routes();
    let mut faults = at_random(step, &endpoints.picker(&routes, Arc::default()), 0);
    if !faults.is_empty() {
        // Of thousands of draws a few are four standard deviations off, by
        // chance. A wrong rule is so again with other numbers.
        faults = at_random(step, &endpoints.picker(&routes, Arc::default()), 1);
    }

    // In turn: off by half a request for each level of classes and of zones.
    let picker = endpoints.picker(&routes, Arc::default());
    let rotation = Rotation::starting_at(u64::MAX - 77);
    let counts = send(&picker, |picker| picker.next(&rotation));
    let levels = routes.list().len().ilog2() + step.upstream.first().localities().max(1).ilog2();
    let turns = |_| f64::from(2 * levels + 4);
    faults.extend(differences(step, &counts, picker.counters(), turns));
    faults
}

fn at_random(step: &Step, picker: &Picker<u64>, stream: u64) -> Vec<String> {
    // The same numbers in each run.
    let mut random = ChaCha8Rng::seed_from_u64(0x5eed);
    random.set_stream(stream);
    let counts = send(picker, |picker| picker.pick(random.next_u64()));
    let requests = f64::from(REQUESTS);
    let sigmas = |share: f64| 4.0 * (requests * share * (1.0 - share)).sqrt();
    differences(step, &counts, picker.counters(), sigmas)
}

fn send<'a>(
    picker: &'a Picker<u64>,
    mut pick: impl FnMut(&'a Picker<u64>) -> Option<Choice<'a, u64>>,
) -> Counts {
    let mut counts = Counts::new();
    for _ in 0..REQUESTS {
        let place = pick(picker).map(|choice| (choice.priority, choice.locality.clone()));
        *counts.entry(place).or_default() += 1;
    }
    counts
}

/// One by one; `None` if a group is so heavy that it cannot be represented.
fn endpoints(step: &Step) -> Option<Endpoints<u64>> {
    let mut endpoints = Endpoints::new();
    for group in &step.groups {
        let hosts = group.count.min(HOSTS);
        for host in 0..hosts {
            let each = group.count / hosts + u64::from(host < group.count % hosts);
            let weight = u32::try_from(u64::from(group.weight) * each).ok()?;
            endpoints
                .insert(group.priority, &group.zone, group.health, weight, host)
                .expect("valid hosts");
        }
    }
    Some(endpoints)
}

fn differences(
    step: &Step,
    counts: &Counts,
    counters: &Counters,
    allowed: impl Fn(f64) -> f64,
) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |what: &str, count: u64, share: Fraction| {
        let fair = f64::from(REQUESTS) * share.to_f64();
        let off = (count as f64 - fair).abs();
        let certain = share == Fraction::ZERO || share == Fraction::ONE;
        let allowed = if certain {
            0.0
        } else {
            allowed(share.to_f64())
        };
        if off > allowed + 1e-6 {
            faults.push(format!("{count} requests {what}, {fair} are fair"));
        }
    };
    let probability = step.expected["probability"].as_object().expect("an object");
    let mut left = counts.clone();
    for (key, share) in probability {
        let count = left.remove(&target(key)).unwrap_or(0);
        check(&format!("to {key}"), count, fraction(share));
    }
    for (target, count) in left {
        check(&format!("to {target:?}"), count, Fraction::ZERO);
    }
    let stats: BTreeMap<Counter, &Value> = step.expected["stats_per_request"]
        .as_object()
        .expect("an object")
        .iter()
        .map(|(name, share)| (counter(name), share))
        .collect();
    for counter in Counter::ALL {
        let share = stats
            .get(&counter)
            .map_or(Fraction::ZERO, |share| fraction(share));
        check(counter.name(), counters.get(counter), share);
    }
    faults
}
