//! The model. Nothing of it is shared with the crate but its plain types.

use std::collections::BTreeMap;

use evenkeel_zone_weights::envoy::{LocalityBasis, MinClusterSize, Settings};
use evenkeel_zone_weights::{Counter, Fraction, Health, Locality, Shares};

#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub(crate) priority: usize,
    pub(crate) locality: Locality,
    pub(crate) health: Health,
    pub(crate) weight: u32,
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) reason: Option<&'static str>,
    pub(crate) zones: Vec<Locality>,
    pub(crate) source: Vec<u64>,
    pub(crate) upstream: Vec<u64>,
    pub(crate) residual: Vec<u64>,
    pub(crate) local_route: Option<u64>,
    pub(crate) panic: Vec<bool>,
    pub(crate) shares: Shares,
}

type Hosts<'a> = Vec<&'a Host>;

fn of(hosts: &[&Host], health: Health) -> u64 {
    hosts.iter().filter(|host| host.health == health).count() as u64
}

/// With floating-point numbers, as Envoy calculates it.
fn in_panic(hosts: &[&Host], threshold: u8) -> bool {
    let percent = |health| match hosts.len() {
        0 => 0.0,
        all => 100.0 * of(hosts, health) as f64 / all as f64,
    };
    percent(Health::Healthy) + percent(Health::Degraded) < f64::from(threshold)
}

fn times(one: Fraction, other: Fraction) -> Fraction {
    one.checked_mul(other).expect("few hosts")
}

fn percent(part: u64) -> Fraction {
    Fraction::new(part.into(), 100)
}

/// What is left of the whole.
fn rest(part: Fraction) -> Fraction {
    Fraction::new(part.denominator() - part.numerator(), part.denominator())
}

/// Loads of healthy and of degraded hosts, and panic, for each priority.
fn loads(settings: &Settings, priorities: &[Hosts<'_>]) -> (Vec<u64>, Vec<u64>, Vec<bool>) {
    let threshold = settings.healthy_panic_threshold.get();
    let factor = u64::from(settings.overprovisioning_factor.get());
    let health = |class| -> Vec<u64> {
        let each = priorities.iter().map(|hosts| match hosts.len() as u64 {
            0 => 0,
            all => (factor * of(hosts, class) / all).min(100),
        });
        each.collect()
    };
    let (healthy, degraded) = (health(Health::Healthy), health(Health::Degraded));
    let total = (healthy.iter().sum::<u64>() + degraded.iter().sum::<u64>()).min(100);
    let none = vec![0; priorities.len()];
    let panic: Vec<bool> = priorities
        .iter()
        .map(|hosts| total != 100 && in_panic(hosts, threshold))
        .collect();
    let (mut well, mut ill) = (none.clone(), none);
    let mut left = 100;
    if panic.iter().all(|panic| *panic) {
        let all: usize = priorities.iter().map(Vec::len).sum();
        for (load, hosts) in well.iter_mut().zip(priorities) {
            *load = if all == 0 {
                0
            } else {
                100 * hosts.len() as u64 / all as u64
            };
            left -= *load;
        }
        let first = priorities.iter().position(|hosts| !hosts.is_empty());
        well[first.unwrap_or(0)] += left;
        return (well, ill, panic);
    }
    for (loads, health) in [(&mut well, &healthy), (&mut ill, &degraded)] {
        for (load, health) in loads.iter_mut().zip(health) {
            *load = (health * 100).checked_div(total).unwrap_or(0).min(left);
            left -= *load;
        }
    }
    let first = |health: &[u64]| health.iter().position(|health| *health > 0);
    match (first(&healthy), first(&degraded)) {
        (Some(first), _) => well[first] += left,
        (None, Some(first)) => ill[first] += left,
        (None, None) => well[0] += left,
    }
    (well, ill, panic)
}

fn reason(
    settings: &Settings,
    local: Option<&Locality>,
    callers: Option<&Vec<Host>>,
    first: &[&Host],
    zones: &[Locality],
) -> Option<&'static str> {
    let Some(callers) = callers else {
        return Some("no_local_cluster");
    };
    let mut calling: Vec<&Locality> = callers.iter().map(|host| &host.locality).collect();
    calling.sort();
    calling.dedup();
    let MinClusterSize::Hosts(least) = settings.min_cluster_size else {
        unreachable!("not generated");
    };
    if zones.len() < 2 {
        Some("upstream_fewer_than_two_zones")
    } else if settings.force_local_zone.is_none() && calling.len() < 2 {
        Some("source_fewer_than_two_zones")
    } else if local.is_none_or(|local| !calling.contains(&local)) {
        Some("no_source_host_in_local_zone")
    } else if of(first, Health::Healthy) < least {
        Some("cluster_too_small")
    } else {
        None
    }
}

pub(crate) fn model(
    settings: &Settings,
    local: Option<&Locality>,
    callers: Option<&Vec<Host>>,
    hosts: &[Host],
) -> Model {
    let highest = hosts.iter().map(|host| host.priority).max().unwrap_or(0);
    let priorities: Vec<Hosts<'_>> = (0..=highest)
        .map(|priority| {
            hosts
                .iter()
                .filter(|host| host.priority == priority)
                .collect()
        })
        .collect();
    let (well, ill, panic) = loads(settings, &priorities);
    let first = &priorities[0];

    let mut zones: Vec<Locality> = first.iter().map(|host| host.locality.clone()).collect();
    zones.sort();
    zones.dedup();
    let mut has_local = false;
    if let Some(at) = zones.iter().position(|zone| Some(zone) == local) {
        let zone = zones.remove(at);
        zones.insert(0, zone);
        has_local = true;
    }

    let reason = reason(settings, local, callers, first, &zones);
    let calling: Hosts<'_> = callers.into_iter().flatten().collect();
    let healthy = |hosts: &[&Host], zone: Option<&Locality>| -> u64 {
        hosts
            .iter()
            .filter(|host| host.health == Health::Healthy)
            .filter(|host| zone.is_none_or(|zone| host.locality == *zone))
            .map(|host| match settings.locality_basis {
                LocalityBasis::HealthyHostsNum => 1,
                LocalityBasis::HealthyHostsWeight => u64::from(host.weight),
            })
            .sum()
    };
    let share = |hosts: &[&Host], zone: &Locality| -> u64 {
        let empty = healthy(first, Some(zone)) == 0;
        match healthy(hosts, None) {
            _ if empty || reason.is_some() => 0,
            0 => 0,
            all => 10_000 * healthy(hosts, Some(zone)) / all,
        }
    };
    let source: Vec<u64> = zones.iter().map(|zone| share(&calling, zone)).collect();
    let upstream: Vec<u64> = zones.iter().map(|zone| share(first, zone)).collect();
    let local_hosts = first
        .iter()
        .filter(|host| Some(&host.locality) == local && host.health == Health::Healthy)
        .count();
    let forced = settings
        .force_local_zone
        .is_some_and(|least| local_hosts >= least as usize);
    let direct = has_local && (forced || (upstream[0] > 0 && upstream[0] >= source[0]));
    let residual: Vec<u64> = (0..zones.len())
        .map(|zone| match zone {
            _ if reason.is_some() || direct => 0,
            0 if has_local => 0,
            zone => upstream[zone].saturating_sub(source[zone]),
        })
        .collect();
    let local_route = (reason.is_none() && !direct).then(|| match has_local {
        true if source[0] > 0 => upstream[0] * 10_000 / source[0],
        _ => 0,
    });

    let mut out = Out::default();
    for priority in 0..=highest {
        for (class, load) in [
            (Health::Healthy, well[priority]),
            (Health::Degraded, ill[priority]),
        ] {
            let all = &priorities[priority];
            let mine: Hosts<'_> = all
                .iter()
                .filter(|host| host.health == class)
                .copied()
                .collect();
            let fail = settings.fail_traffic_on_panic;
            let mut part = percent(load);
            if panic[priority] {
                out.count(Counter::HealthyPanic, part);
                out.spread(if fail { &[] } else { all }, part);
                continue;
            }
            if priority > 0 || reason.is_some() {
                out.spread(&mine, part);
                continue;
            }
            let enabled = percent(settings.routing_enabled.get().into());
            out.spread(&mine, times(part, rest(enabled)));
            part = times(part, enabled);
            if in_panic(&calling, settings.healthy_panic_threshold.get()) {
                out.count(Counter::LocalClusterNotOk, part);
                out.spread(if fail { &[] } else { &mine }, part);
                continue;
            }
            let mut zone = |zone: usize, part: Fraction, counters: &[Counter]| {
                let here = mine.iter().filter(|host| host.locality == zones[zone]);
                out.spread(&here.copied().collect::<Vec<_>>(), part);
                for counter in counters {
                    out.count(*counter, part);
                }
            };
            let Some(local_route) = local_route else {
                zone(0, part, &[Counter::ZoneRoutingAllDirectly]);
                continue;
            };
            let stays = Fraction::new(local_route.into(), 10_000);
            zone(0, times(part, stays), &[Counter::ZoneRoutingSampled]);
            let leaves = times(part, rest(stays));
            let room: u64 = residual.iter().sum();
            for (at, residual) in residual.iter().enumerate() {
                if room > 0 {
                    let share = Fraction::new((*residual).into(), room.into());
                    zone(at, times(leaves, share), &[Counter::ZoneRoutingCrossZone]);
                } else {
                    let share = Fraction::new(1, zones.len() as u128);
                    let counters = [Counter::ZoneRoutingCrossZone, Counter::ZoneNoCapacityLeft];
                    zone(at, times(leaves, share), &counters);
                }
            }
        }
    }
    Model {
        reason,
        zones,
        source,
        upstream,
        residual,
        local_route,
        panic,
        shares: Shares {
            zones: out.zones,
            no_host: out.no_host,
            counters: out.counters,
        },
    }
}

#[derive(Default)]
struct Out {
    zones: BTreeMap<(u32, Locality), Fraction>,
    no_host: Fraction,
    counters: BTreeMap<Counter, Fraction>,
}

impl Out {
    fn count(&mut self, counter: Counter, part: Fraction) {
        if part != Fraction::ZERO {
            add(self.counters.entry(counter).or_default(), part);
        }
    }

    fn spread(&mut self, hosts: &[&Host], part: Fraction) {
        if part == Fraction::ZERO {
            return;
        }
        if hosts.is_empty() {
            add(&mut self.no_host, part);
            self.count(Counter::NoneHealthy, part);
        }
        let all: u32 = hosts.iter().map(|host| host.weight).sum();
        for host in hosts {
            let priority = u32::try_from(host.priority).expect("small");
            let sum = self
                .zones
                .entry((priority, host.locality.clone()))
                .or_default();
            add(
                sum,
                times(part, Fraction::new(host.weight.into(), all.into())),
            );
        }
    }
}

fn add(sum: &mut Fraction, part: Fraction) {
    *sum = sum.checked_add(part).expect("few hosts");
}
