use std::collections::BTreeMap;
use std::fmt::Write as _;

use evenkeel_zone_weights::envoy::Gate as Of;
use evenkeel_zone_weights::plan::PARTS;
use evenkeel_zone_weights::{Counter, Fraction, Health, Locality, Members};
use serde::{Deserialize, Serialize};

use super::{PairView, RuleName};

/// Version of the form of [`PairReport`].
pub const VERSION: u32 = 1;

/// How the requests of a calling service to another should be split between
/// zones, as `/v1/zones/…` says it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairReport {
    /// Version of this form.
    pub v: u32,
    /// Grows with each change; what a long poll waits for.
    pub version: u64,
    /// The called service.
    pub upstream: String,
    /// The calling service.
    pub callers: String,
    /// How the split was found.
    pub rule: RuleName,
    /// Why it may be out of date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
    /// Why there are no weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Instances that could not be used, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// Endpoints and callers, in each zone.
    pub places: Vec<Place>,
    /// For a caller in each zone.
    pub zones: Vec<CallerZone>,
}

/// A zone's names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ZoneName {
    /// The region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// The zone.
    pub zone: String,
    /// The part of the zone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sub_zone: String,
}

impl From<&Locality> for ZoneName {
    fn from(locality: &Locality) -> Self {
        Self {
            region: locality.region().to_owned(),
            zone: locality.zone().to_owned(),
            sub_zone: locality.sub_zone().to_owned(),
        }
    }
}

impl std::fmt::Display for ZoneName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Locality::new(&self.region, &self.zone, &self.sub_zone).fmt(f)
    }
}

/// Who is in a zone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Which zone.
    #[serde(flatten)]
    pub zone: ZoneName,
    /// Callers there.
    pub callers: Tally,
    /// Endpoints there, of all priorities.
    pub endpoints: Tally,
}

/// Hosts by their health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Those that take traffic.
    pub healthy: u64,
    /// Those that take it when the healthy ones are too few.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub degraded: u64,
    /// Those that do not.
    pub unhealthy: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Tally {
    /// All of them.
    pub const fn all(self) -> u64 {
        self.healthy + self.degraded + self.unhealthy
    }

    fn add(&mut self, members: &Members, zone: &Locality) {
        if let Some(tally) = members.get(zone) {
            self.healthy += tally.hosts(Health::Healthy);
            self.degraded += tally.hosts(Health::Degraded);
            self.unhealthy += tally.hosts(Health::Unhealthy);
        }
    }
}

/// What a caller in one zone should do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallerZone {
    /// Which zone.
    #[serde(flatten)]
    pub zone: ZoneName,
    /// `direct`: all requests stay in the zone; `residual`: some leave it;
    /// `none`: they are not routed by zone; `planned`: by another rule than
    /// Envoy's.
    pub mode: String,
    /// Why they are not routed by zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Gate>,
    /// The share of the requests that stays in the zone.
    pub local: f64,
    /// Where the requests go.
    pub weights: Vec<Weight>,
    /// The share of the requests that no endpoint is there for.
    pub no_host: f64,
    /// What Envoy's rule looks at, in parts per 10,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentages: Vec<Percentages>,
    /// All gates of Envoy's rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// What one thread of an Envoy there would have counted.
    pub counters: BTreeMap<String, u64>,
}

/// Something that keeps requests from being routed by zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// A word that stays the same.
    pub name: String,
    /// Whether it does so now; the first one decides.
    pub closed: bool,
    /// What it looks at, for people.
    pub text: String,
    /// What would open it, for people.
    pub remedy: String,
}

/// What a zone gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Weight {
    /// Which zone.
    #[serde(flatten)]
    pub zone: ZoneName,
    /// Endpoints of which priority.
    #[serde(default, skip_serializing_if = "is_first")]
    pub priority: u32,
    /// The exact share of the requests: `3/10`.
    pub share: String,
    /// The same in parts of a billion, cut.
    pub parts: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_first(priority: &u32) -> bool {
    *priority == 0
}

impl Weight {
    /// The share as a number between 0 and 1.
    pub fn fraction(&self) -> f64 {
        f64::from(self.parts) / f64::from(PARTS)
    }
}

/// A zone in Envoy's rule, in parts per 10,000.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentages {
    /// Which zone.
    #[serde(flatten)]
    pub zone: ZoneName,
    /// Its part of the callers.
    pub source: u16,
    /// Its part of the endpoints.
    pub upstream: u16,
    /// Its room for requests of other zones.
    pub residual: u16,
}

/// What there is to say of a pair, for the zone that is asked for or for all.
pub fn report(pair: &PairView, zone: Option<&str>) -> PairReport {
    let zones = pair.zones();
    let places = zones.iter().map(|zone| {
        let (mut callers, mut endpoints) = (Tally::default(), Tally::default());
        callers.add(&pair.callers.callers, zone);
        for members in pair.upstream.upstream.priorities() {
            endpoints.add(members, zone);
        }
        Place {
            zone: zone.into(),
            callers,
            endpoints,
        }
    });
    let asked = match zone {
        Some(zone) => vec![pair.zone(zone)],
        None => zones.iter().cloned().collect(),
    };
    let both = [&pair.callers, &pair.upstream];
    let degraded = both.iter().find_map(|service| {
        let why = service.degraded.as_ref()?;
        Some(format!("{}: {why}", service.name))
    });
    let faults = both.iter().flat_map(|service| {
        let named = |fault| format!("{}: {fault}", service.name);
        service.faults.iter().map(named)
    });
    PairReport {
        v: VERSION,
        version: pair.version,
        upstream: pair.upstream.name.to_string(),
        callers: pair.callers.name.to_string(),
        rule: pair.rule,
        degraded,
        failure: pair.failure().map(str::to_owned),
        faults: faults.collect(),
        places: places.collect(),
        zones: asked.iter().map(|zone| caller_zone(pair, zone)).collect(),
    }
}

fn caller_zone(pair: &PairView, zone: &Locality) -> CallerZone {
    let decision = pair.decision(zone);
    let routes = pair.routes(zone);
    // Weights are of 32 bits and endpoints fewer than that, so shares are exact.
    let shares = routes
        .and_then(|routes| routes.shares(&pair.upstream.upstream))
        .unwrap_or_default();
    let local: f64 = shares
        .zones
        .iter()
        .filter(|((_, to), _)| to == zone)
        .map(|(_, share)| share.to_f64())
        .sum();
    CallerZone {
        zone: zone.into(),
        mode: match &decision {
            Some(decision) => decision.state().name().to_owned(),
            None if pair.failure().is_some() => "none".to_owned(),
            None => "planned".to_owned(),
        },
        reason: decision
            .as_ref()
            .and_then(|decision| decision.gate())
            .map(|gate| Gate::new(gate, true)),
        local,
        weights: shares
            .zones
            .iter()
            .map(|((priority, zone), share)| Weight {
                zone: zone.into(),
                priority: *priority,
                share: share.to_string(),
                parts: parts(*share),
            })
            .collect(),
        no_host: shares.no_host.to_f64(),
        percentages: decision
            .iter()
            .filter(|decision| decision.gate().is_none())
            .flat_map(|decision| decision.zones())
            .map(|zone| Percentages {
                zone: (&zone.locality).into(),
                source: zone.source,
                upstream: zone.upstream,
                residual: zone.residual,
            })
            .collect(),
        gates: pair
            .gates(zone)
            .into_iter()
            .map(|check| Gate::new(check.gate, check.closed))
            .collect(),
        counters: pair
            .recalculations
            .of(zone)
            .filter(|(counter, _)| is_of_recalculation(*counter))
            .map(|(counter, count)| (counter.name().to_owned(), count))
            .collect(),
    }
}

impl Gate {
    /// What there is to say of a gate.
    pub(super) fn new(gate: Of, closed: bool) -> Self {
        Self {
            name: gate.name().to_owned(),
            closed,
            // Those with numbers say the same of an open gate.
            text: match gate {
                Of::NoLocalCluster if !closed => "the callers are known".to_owned(),
                Of::NoSourceHostInLocalZone if !closed => {
                    "callers are known in this zone".to_owned()
                }
                gate => gate.to_string(),
            },
            remedy: gate.remedy().to_string(),
        }
    }
}

/// The counters that a recalculation raises. The others count requests, which the
/// daemon does not see.
fn is_of_recalculation(counter: Counter) -> bool {
    matches!(
        counter,
        Counter::LocalClusterNotOk
            | Counter::RecalculateZoneStructures
            | Counter::ZoneClusterTooSmall
    )
}

fn parts(share: Fraction) -> u32 {
    share
        .numerator()
        .checked_mul(PARTS.into())
        .map(|parts| parts / share.denominator())
        .and_then(|parts| u32::try_from(parts).ok())
        .unwrap_or(PARTS)
}

/// The counters of a pair in the form of Envoy's `/stats`, for each zone of the
/// callers: `cluster.UPSTREAM.from.CALLERS.ZONE.COUNTER: VALUE`.
pub fn stats(pair: &PairView) -> String {
    let mut text = String::new();
    let name = |name: &str| -> String {
        name.chars()
            .map(|character| match character {
                ':' => '_',
                other if other.is_control() => '_',
                other => other,
            })
            .collect()
    };
    let (upstream, callers) = (name(&pair.upstream.name), name(&pair.callers.name));
    for zone in pair.recalculations.zones() {
        let at = name(&zone.to_string());
        for (counter, count) in pair.recalculations.of(zone) {
            if is_of_recalculation(counter) {
                // Writing to a string does not fail.
                let _ = writeln!(
                    text,
                    "cluster.{upstream}.from.{callers}.{at}.{}: {count}",
                    counter.name()
                );
            }
        }
    }
    text
}
