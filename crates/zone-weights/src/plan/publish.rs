use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::parts::{PARTS, apportion, per_billion};
use super::{Part, Plan, Problem, Service, Split};
use crate::{Hosts, Locality};

/// When a plan is published, and how fast it may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The share of all requests, in parts of [`PARTS`], that must go elsewhere
    /// under a new plan for it to be published. 0: every change.
    pub least_change: u32,
    /// The share of all requests, in parts of [`PARTS`], that may go elsewhere
    /// from one step to the next. [`PARTS`]: no limit. 0 is taken as 1.
    pub largest_step: u32,
}

impl Default for Limits {
    /// Changes below a twentieth of the requests are held back, and a quarter may
    /// move at a time.
    fn default() -> Self {
        Self {
            least_change: PARTS / 20,
            largest_step: PARTS / 4,
        }
    }
}

/// Holds plans back until they differ enough, and limits each step.
///
/// What cannot wait does not: requests to a place that has no host any more are
/// moved at once and in full. So are those of zones and services that are new, and
/// all when a priority comes into panic or out of it.
/// A series of steps that has begun is carried to its end.
#[derive(Debug, Clone)]
pub struct Publisher {
    limits: Limits,
    published: Option<Plan>,
    under_way: bool,
    version: u64,
}

impl Publisher {
    /// With nothing published yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            published: None,
            under_way: false,
            version: 0,
        }
    }

    /// The published plan.
    #[must_use]
    pub fn published(&self) -> Option<&Plan> {
        self.published.as_ref()
    }

    /// How many times a plan has been published.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether the last step has not reached its plan: call
    /// [`offer`](Self::offer) again, with the same plan or the present one, when
    /// the next step is due.
    #[must_use]
    pub fn under_way(&self) -> bool {
        self.under_way
    }

    /// Takes a step towards `plan`, which was made for `problem`. The plan to use
    /// from now on, if that is another one.
    pub fn offer(&mut self, plan: &Plan, problem: &Problem<'_>) -> Option<&Plan> {
        let next = match &self.published {
            None => Some((plan.clone(), false)),
            Some(published) => self.step(published, plan, problem),
        };
        let (next, under_way) = next?;
        self.under_way = under_way;
        if self.published.as_ref() == Some(&next) {
            return None;
        }
        self.version += 1;
        Some(self.published.insert(next))
    }

    /// The next plan, and whether it is on the way to another.
    fn step(&self, published: &Plan, plan: &Plan, problem: &Problem<'_>) -> Option<(Plan, bool)> {
        let panic =
            |plan: &Plan| -> Vec<bool> { plan.priorities.iter().map(|load| load.panic).collect() };
        if panic(published) != panic(plan) {
            // Requests to hosts of any health begin and end at once.
            return Some((plan.clone(), false));
        }
        let mut base = Plan {
            services: Vec::with_capacity(plan.services.len()),
            priorities: plan.priorities.clone(),
        };
        let mut forced = published.services.len() != plan.services.len();
        for (index, target) in plan.services.iter().enumerate() {
            let old = published.services.get(index);
            let keep = |split: Option<&Split>, target: &Split| match split {
                Some(split) => without_the_dead(split, target, problem),
                None => (target.clone(), true),
            };
            let mut zones = BTreeMap::new();
            for (zone, target) in &target.zones {
                let (split, moved) = keep(old.and_then(|old| old.zones.get(zone)), target);
                // Where nobody calls from, nothing moves.
                let calls = problem
                    .services
                    .get(index)
                    .is_some_and(|demand| demand.get(zone) > 0);
                forced |= moved && calls;
                zones.insert(zone.clone(), split);
            }
            let (elsewhere, _) = keep(old.map(|old| &old.elsewhere), &target.elsewhere);
            base.services.push(Service { zones, elsewhere });
        }

        let distance = distance(&base, plan, problem);
        if !forced && !self.under_way && distance < u64::from(self.limits.least_change) {
            return None;
        }
        let step = u64::from(self.limits.largest_step.max(1));
        if distance <= step {
            return Some((plan.clone(), false));
        }
        Some((between(&base, plan, step, distance), true))
    }
}

/// The share of all requests that go elsewhere, in parts of [`PARTS`].
fn distance(from: &Plan, to: &Plan, problem: &Problem<'_>) -> u64 {
    let (mut moved, mut all) = (0_u128, 0_u128);
    for (index, demand) in problem.services.iter().enumerate() {
        for (zone, amount) in demand.iter() {
            all += u128::from(amount) * u128::from(PARTS);
            if let (Some(from), Some(to)) = (from.split(index, zone), to.split(index, zone)) {
                moved += u128::from(amount) * u128::from(apart(from, to));
            }
        }
    }
    per_billion(moved, all)
}

type Place<'a> = (u32, &'a Locality, Hosts);

/// Both splits, place by place.
fn side_by_side<'a>(from: &'a Split, to: &'a Split) -> BTreeMap<Place<'a>, [u32; 2]> {
    let mut places: BTreeMap<Place<'a>, [u32; 2]> = BTreeMap::new();
    for (side, split) in [from, to].into_iter().enumerate() {
        for part in &split.parts {
            places.entry(part.place()).or_default()[side] = part.parts;
        }
    }
    places
}

/// Parts that are elsewhere in the other split.
fn apart(from: &Split, to: &Split) -> u32 {
    let places = side_by_side(from, to);
    let arriving = |[from, to]: &[u32; 2]| to.saturating_sub(*from);
    let leaving = |[from, to]: &[u32; 2]| from.saturating_sub(*to);
    let arriving: u32 = places.values().map(arriving).sum();
    let leaving: u32 = places.values().map(leaving).sum();
    arriving.max(leaving)
}

/// The split with what goes to places without hosts moved to where the target
/// has it, and whether there was any.
fn without_the_dead(split: &Split, target: &Split, problem: &Problem<'_>) -> (Split, bool) {
    let alive = |part: &Part| {
        let members = problem.upstream.priorities().get(part.priority as usize);
        let tally = members.and_then(|members| members.get(&part.zone));
        tally.is_some_and(|tally| part.hosts.weight(tally) > 0)
    };
    let mut parts: Vec<Part> = split
        .parts
        .iter()
        .filter(|part| alive(part))
        .cloned()
        .collect();
    let kept: u32 = parts.iter().map(|part| part.parts).sum();
    let all: u32 = target.parts.iter().map(|part| part.parts).sum();
    // Also what found no host before and now would.
    let dead = all.saturating_sub(kept);
    if dead == 0 && parts.len() == split.parts.len() {
        return (split.clone(), false);
    }
    let weights: Vec<u128> = target.parts.iter().map(|part| part.parts.into()).collect();
    for (part, share) in target.parts.iter().zip(apportion(dead, &weights)) {
        parts.push(Part {
            parts: share,
            ..part.clone()
        });
    }
    (Split::new(parts), true)
}

/// `step` of `distance` of the way.
fn between(from: &Plan, to: &Plan, step: u64, distance: u64) -> Plan {
    let mix = |from: &Split, to: &Split| {
        let places = side_by_side(from, to);
        let weights: Vec<u128> = places
            .values()
            .map(|[from, to]| {
                u128::from(*from) * u128::from(distance - step) + u128::from(*to) * u128::from(step)
            })
            .collect();
        let total: u32 = to.parts.iter().map(|part| part.parts).sum();
        let parts = places.keys().zip(apportion(total, &weights));
        Split::new(
            parts
                .map(|((priority, zone, hosts), parts)| Part {
                    priority: *priority,
                    zone: (*zone).clone(),
                    hosts: *hosts,
                    parts,
                })
                .collect(),
        )
    };
    let services = from.services.iter().zip(&to.services);
    Plan {
        services: services
            .map(|(from, to)| Service {
                zones: to
                    .zones
                    .iter()
                    .map(|(zone, to)| {
                        let from = from.zones.get(zone).unwrap_or(to);
                        (zone.clone(), mix(from, to))
                    })
                    .collect(),
                elsewhere: mix(&from.elsewhere, &to.elsewhere),
            })
            .collect(),
        priorities: to.priorities.clone(),
    }
}
