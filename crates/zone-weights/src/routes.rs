use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::envoy::{Decision, State};
use crate::{Counter, Fraction, Health, Locality, Members, Tally, Upstream};

/// Which hosts of a zone or a priority a request goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hosts {
    /// The healthy ones.
    Healthy,
    /// The degraded ones.
    Degraded,
    /// All of them, healthy or not.
    All,
    /// None: the request fails.
    Nobody,
}

impl Hosts {
    /// The sum of the weights of these hosts.
    #[must_use]
    pub fn weight(self, tally: &Tally) -> u64 {
        match self {
            Self::Healthy => tally.weight(Health::Healthy),
            Self::Degraded => tally.weight(Health::Degraded),
            Self::All => tally.all_weight(),
            Self::Nobody => 0,
        }
    }
}

/// Why a request takes a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// All requests stay in the zone.
    AllLocal,
    /// This one stays in the zone, others have to leave it.
    Sampled,
    /// There is more room in another zone.
    CrossZone,
    /// It has to leave the zone, and no zone has room.
    NoCapacityLeft,
    /// No routing by zone.
    Ordinary,
    /// No routing by zone, since the callers are in panic.
    CallersInPanic,
    /// The priority is in panic.
    Panic,
}

impl Reason {
    /// A short name that stays the same.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AllLocal => "all_local",
            Self::Sampled => "sampled",
            Self::CrossZone => "cross_zone",
            Self::NoCapacityLeft => "no_capacity_left",
            Self::Ordinary => "ordinary",
            Self::CallersInPanic => "callers_in_panic",
            Self::Panic => "panic",
        }
    }

    /// The counters that a request on this route adds one to.
    #[must_use]
    pub fn counters(self) -> &'static [Counter] {
        match self {
            Self::AllLocal => &[Counter::ZoneRoutingAllDirectly],
            Self::Sampled => &[Counter::ZoneRoutingSampled],
            Self::CrossZone => &[Counter::ZoneRoutingCrossZone],
            Self::NoCapacityLeft => &[Counter::ZoneRoutingCrossZone, Counter::ZoneNoCapacityLeft],
            Self::Ordinary => &[],
            Self::CallersInPanic => &[Counter::LocalClusterNotOk],
            Self::Panic => &[Counter::HealthyPanic],
        }
    }
}

/// One of the ways that requests go: to some hosts of one zone, or of all zones
/// of a priority. Among them each host gets requests in proportion to its weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Parts of [`Routes::parts`] that go this way; not 0.
    pub parts: u64,
    /// The priority.
    pub priority: u32,
    /// The zone, or `None` for all zones of the priority together.
    pub zone: Option<Locality>,
    /// Which hosts there.
    pub hosts: Hosts,
    /// Why.
    pub reason: Reason,
}

/// Where the requests of a proxy go: the outcome of a rule, and what a
/// [`Picker`](crate::Picker) is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes {
    parts: u64,
    list: Vec<Route>,
}

/// Exact shares of requests; see [`Routes::shares`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shares {
    /// Share of each zone of each priority that gets any.
    pub zones: BTreeMap<(u32, Locality), Fraction>,
    /// Share of the requests for which there is no host.
    pub no_host: Fraction,
    /// By how much a request raises each counter, on average; counters that stay
    /// are left out.
    pub counters: BTreeMap<Counter, Fraction>,
}

impl Default for Fraction {
    /// [`Fraction::ZERO`].
    fn default() -> Self {
        Self::ZERO
    }
}

impl Routes {
    /// Of routes whose parts are not 0 and add up to 64 bits at most.
    pub(crate) fn new(list: Vec<Route>) -> Self {
        let parts = list.iter().map(|route| route.parts).sum();
        Self { parts, list }
    }

    /// All parts together: the share of a route is its parts of this.
    #[must_use]
    pub fn parts(&self) -> u64 {
        self.parts
    }

    /// The routes; never none.
    #[must_use]
    pub fn list(&self) -> &[Route] {
        &self.list
    }

    /// The exact share of each zone and counter, for the endpoints that the
    /// routes were made for. `None` if a share's terms exceed 128 bits, which
    /// cannot happen as long as the weights of a priority add up to no more than
    /// 32 bits, Envoy's own limit.
    #[must_use]
    pub fn shares(&self, upstream: &Upstream) -> Option<Shares> {
        let mut shares = Shares::default();
        let empty = Members::new();
        for route in &self.list {
            let share = Fraction::new(route.parts.into(), self.parts.into());
            let members = upstream
                .priorities()
                .get(route.priority as usize)
                .unwrap_or(&empty);
            let found = match &route.zone {
                Some(zone) => {
                    let weight = members
                        .get(zone)
                        .map_or(0, |tally| route.hosts.weight(tally));
                    if weight > 0 {
                        add_to(&mut shares.zones, (route.priority, zone.clone()), share)?;
                    }
                    weight > 0
                }
                None => {
                    let all = route.hosts.weight(members.total());
                    for (zone, tally) in members.iter() {
                        let weight = route.hosts.weight(tally);
                        if weight > 0 {
                            let part = Fraction::new(weight.into(), all.into());
                            let part = share.checked_mul(part)?;
                            add_to(&mut shares.zones, (route.priority, zone.clone()), part)?;
                        }
                    }
                    all > 0
                }
            };
            if !found {
                shares.no_host = shares.no_host.checked_add(share)?;
                add_to(&mut shares.counters, Counter::NoneHealthy, share)?;
            }
            for counter in route.reason.counters() {
                add_to(&mut shares.counters, *counter, share)?;
            }
        }
        Some(shares)
    }
}

fn add_to<K: Ord>(map: &mut BTreeMap<K, Fraction>, key: K, share: Fraction) -> Option<()> {
    let sum = map.entry(key).or_default();
    *sum = sum.checked_add(share)?;
    Some(())
}

/// Parts of the whole that a percentage of the requests has.
const PERCENT: u64 = 100;
/// Parts of the local route.
const ROUTE: u64 = 10_000;

impl Decision {
    /// Where the requests go, as Envoy draws it: `hostSourceToUse` and
    /// `tryChooseLocalLocalityHosts`.
    #[must_use]
    pub fn routes(&self) -> Routes {
        // The finest split: load of the priority × share routed by zone × local
        // route × what splits the rest. The last is at most 10,000 or the number
        // of localities, so that all of it stays well below 64 bits.
        let residual: u64 = self.zones.iter().map(|zone| u64::from(zone.residual)).sum();
        let last = match self.state {
            State::Residual { .. } if residual > 0 => residual,
            State::Residual { .. } => self.zones.len() as u64,
            State::Closed(_) | State::Direct => 1,
        };
        let mut list = Vec::with_capacity(self.zones.len() + 2);
        for (priority, load) in (0..).zip(&self.priorities) {
            for (hosts, percent) in [
                (Hosts::Healthy, load.healthy),
                (Hosts::Degraded, load.degraded),
            ] {
                let class = Class {
                    decision: self,
                    priority,
                    hosts,
                    each: ROUTE * last,
                    last,
                    residual,
                };
                class.routes(u64::from(percent), load.panic, &mut list);
            }
        }
        list.retain(|route| route.parts > 0);
        Routes::new(list)
    }
}

/// Requests for one health of one priority.
struct Class<'a> {
    decision: &'a Decision,
    priority: u32,
    hosts: Hosts,
    /// Parts of one percent of one percent.
    each: u64,
    last: u64,
    residual: u64,
}

impl Class<'_> {
    fn route(&self, parts: u64, hosts: Hosts, reason: Reason) -> Route {
        Route {
            parts,
            priority: self.priority,
            zone: None,
            hosts,
            reason,
        }
    }

    fn routes(&self, percent: u64, panic: bool, list: &mut Vec<Route>) {
        let settings = self.decision.settings();
        let on_panic = |else_to| {
            if settings.fail_traffic_on_panic {
                Hosts::Nobody
            } else {
                else_to
            }
        };
        let all = percent * PERCENT * self.each;
        if panic {
            list.push(self.route(all, on_panic(Hosts::All), Reason::Panic));
            return;
        }
        if self.priority > 0 || self.decision.gate().is_some() {
            list.push(self.route(all, self.hosts, Reason::Ordinary));
            return;
        }
        let by_zone = percent * u64::from(settings.routing_enabled.get()) * self.each;
        list.push(self.route(all - by_zone, self.hosts, Reason::Ordinary));
        if self.decision.callers_in_panic {
            list.push(self.route(by_zone, on_panic(self.hosts), Reason::CallersInPanic));
            return;
        }
        self.by_zone(by_zone / self.each, list);
    }

    /// `units` are percents of percents.
    fn by_zone(&self, units: u64, list: &mut Vec<Route>) {
        let to = |zone: usize, parts, reason| Route {
            zone: Some(self.decision.zones[zone].locality.clone()),
            ..self.route(parts, self.hosts, reason)
        };
        let State::Residual { local_route } = self.decision.state else {
            // Direct: only if the first zone is the local one.
            list.push(to(0, units * self.each, Reason::AllLocal));
            return;
        };
        let local_route = u64::from(local_route);
        if local_route > 0 {
            list.push(to(0, units * local_route * self.last, Reason::Sampled));
        }
        let leaving = units * (ROUTE - local_route);
        for (index, zone) in self.decision.zones.iter().enumerate() {
            if self.residual == 0 {
                list.push(to(index, leaving, Reason::NoCapacityLeft));
            } else if zone.residual > 0 {
                let parts = leaving * u64::from(zone.residual);
                list.push(to(index, parts, Reason::CrossZone));
            }
        }
    }
}
