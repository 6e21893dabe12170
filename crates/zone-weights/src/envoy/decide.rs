//! The state of zone-aware routing: `ZoneAwareLoadBalancerBase` in Envoy's
//! source/extensions/load_balancing_policies/common/load_balancer_impl.cc
//! (1.40.0).

use alloc::vec::Vec;
use core::fmt;

use super::load::{PriorityLoad, in_panic, loads};
use super::{LocalityBasis, Settings};
use crate::{Counter, Health, Locality, Members, Tally, Upstream};

/// Why there is no routing by zone. They are looked at in this order, and the
/// first that holds is it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gate {
    /// The callers are not known: no `local_cluster_name`.
    NoLocalCluster,
    /// Fewer than two localities have an endpoint (of any health) at priority 0.
    UpstreamFewerThanTwoZones {
        /// How many have.
        zones: usize,
    },
    /// Fewer than two localities have a caller (of any health), and
    /// `force_local_zone` is off.
    SourceFewerThanTwoZones {
        /// How many have.
        zones: usize,
    },
    /// No caller (of any health) is known in the proxy's own locality, or the
    /// proxy has none.
    NoSourceHostInLocalZone,
    /// Fewer healthy endpoints at priority 0 than
    /// [`min_cluster_size`](Settings::min_cluster_size).
    ClusterTooSmall {
        /// Healthy endpoints.
        healthy: u64,
        /// How many it takes.
        needed: u64,
    },
}

impl Gate {
    /// A short name that stays the same.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoLocalCluster => "no_local_cluster",
            Self::UpstreamFewerThanTwoZones { .. } => "upstream_fewer_than_two_zones",
            Self::SourceFewerThanTwoZones { .. } => "source_fewer_than_two_zones",
            Self::NoSourceHostInLocalZone => "no_source_host_in_local_zone",
            Self::ClusterTooSmall { .. } => "cluster_too_small",
        }
    }

    /// For people: what would open it.
    #[must_use]
    pub fn remedy(&self) -> impl fmt::Display + use<> {
        Remedy(*self)
    }
}

struct Remedy(Gate);

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Gate::NoLocalCluster => {
                f.write_str("set local_cluster_name to the cluster of the calling service")
            }
            Gate::UpstreamFewerThanTwoZones { .. } => {
                f.write_str("run endpoints of priority 0 in two zones or more")
            }
            Gate::SourceFewerThanTwoZones { .. } => {
                f.write_str("run callers in two zones or more, or set force_local_zone")
            }
            Gate::NoSourceHostInLocalZone => f.write_str(
                "give the proxy a locality, spelled as the callers' localities are, and list it \
                 among the callers",
            ),
            Gate::ClusterTooSmall { healthy, needed } => write!(
                f,
                "healthy endpoints that are missing: {}; or lower min_cluster_size",
                needed.saturating_sub(healthy)
            ),
        }
    }
}

/// One gate, and whether it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GateCheck {
    /// The gate, with the numbers that it looks at.
    pub gate: Gate,
    /// Whether it is closed. The first closed one decides.
    pub closed: bool,
}

/// A sentence for people: what closes the gate.
impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLocalCluster => {
                f.write_str("the callers are not known (no local_cluster_name)")
            }
            Self::UpstreamFewerThanTwoZones { zones } => {
                write!(f, "endpoints in {zones} of the 2 zones that it takes")
            }
            Self::SourceFewerThanTwoZones { zones } => {
                write!(f, "callers in {zones} of the 2 zones that it takes")
            }
            Self::NoSourceHostInLocalZone => f.write_str("no caller is known in this zone"),
            Self::ClusterTooSmall { healthy, needed } => {
                write!(
                    f,
                    "{healthy} of the {needed} healthy endpoints that it takes"
                )
            }
        }
    }
}

/// What zone-aware routing does with the requests of priority 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Nothing: the ordinary policy, over all zones.
    Closed(Gate),
    /// All requests stay in the caller's locality.
    Direct,
    /// A part stays, the rest goes where there is room.
    Residual {
        /// Parts per 10,000 that stay.
        local_route: u16,
    },
}

impl State {
    /// `none`, `direct` or `residual`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Closed(_) => "none",
            Self::Direct => "direct",
            Self::Residual { .. } => "residual",
        }
    }
}

/// One locality of priority 0. The shares are 0 if the state is
/// [`State::Closed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// Which one.
    pub locality: Locality,
    /// Its endpoints.
    pub endpoints: Tally,
    /// Its part of the healthy callers, in parts per 10,000; 0 where there is no
    /// healthy endpoint.
    pub source: u16,
    /// Its part of the healthy endpoints, in parts per 10,000.
    pub upstream: u16,
    /// Room for requests of other zones, in parts per 10,000 of all. 0 unless
    /// the state is [`State::Residual`].
    pub residual: u16,
}

/// What Envoy's rule makes of a set of endpoints and callers, for a proxy in one
/// locality. See [`decide`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub(crate) settings: Settings,
    pub(crate) zones: Vec<Zone>,
    pub(crate) has_local_zone: bool,
    pub(crate) state: State,
    pub(crate) priorities: Vec<PriorityLoad>,
    pub(crate) callers_in_panic: bool,
}

impl Decision {
    /// Localities of priority 0 that have an endpoint of any health: the
    /// caller's own first if it is one of them, then in order of their names.
    #[must_use]
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// Whether the first of [`zones`](Self::zones) is the caller's own.
    #[must_use]
    pub fn has_local_zone(&self) -> bool {
        self.has_local_zone
    }

    /// What is done with requests at priority 0.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Why there is no routing by zone, if there is none.
    #[must_use]
    pub fn gate(&self) -> Option<Gate> {
        match self.state {
            State::Closed(gate) => Some(gate),
            State::Direct | State::Residual { .. } => None,
        }
    }

    /// Load and panic of each priority.
    #[must_use]
    pub fn priorities(&self) -> &[PriorityLoad] {
        &self.priorities
    }

    /// Whether too few of the callers are healthy or degraded. Then no request
    /// is routed by zone, although the state says otherwise. Only looked at if
    /// the state is not [`State::Closed`].
    #[must_use]
    pub fn callers_in_panic(&self) -> bool {
        self.callers_in_panic
    }

    /// The settings it was made with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Counters that each recalculation adds one to, on each thread: Envoy's
    /// workers and its main thread.
    pub fn recalculation_counters(&self) -> impl Iterator<Item = Counter> + use<> {
        recalculation_counters(self.gate())
    }
}

/// The counters of [`Decision::recalculation_counters`], from the gate alone: the
/// first of [`gates`] that is closed, if one is. So what a recalculation counts can
/// be told without the decision, which costs more.
pub fn recalculation_counters(gate: Option<Gate>) -> impl Iterator<Item = Counter> + use<> {
    let (all, gate) = match gate {
        Some(Gate::NoLocalCluster) => (None, None),
        Some(Gate::NoSourceHostInLocalZone) => (
            Some(Counter::RecalculateZoneStructures),
            Some(Counter::LocalClusterNotOk),
        ),
        Some(Gate::ClusterTooSmall { .. }) => (
            Some(Counter::RecalculateZoneStructures),
            Some(Counter::ZoneClusterTooSmall),
        ),
        _ => (Some(Counter::RecalculateZoneStructures), None),
    };
    all.into_iter().chain(gate)
}

/// Envoy's rule.
///
/// `local` is the proxy's own locality, `callers` are the proxies of the calling
/// service (`local_cluster_name`; `None` if that is not set), `upstream` the
/// endpoints of the called one.
///
/// Costs time in proportion to the number of localities; the number of hosts
/// does not matter.
#[must_use]
pub fn decide(
    settings: &Settings,
    local: Option<&Locality>,
    callers: Option<&Members>,
    upstream: &Upstream,
) -> Decision {
    let members = upstream.first();
    let mut zones = listed(members, local);
    let has_local_zone = local.is_some() && zones.first().map(|zone| &zone.locality) == local;
    let closed = gates(settings, local, callers, upstream)
        .into_iter()
        .find(|check| check.closed);
    let (state, callers_in_panic) = match (closed, callers) {
        (Some(check), _) => (State::Closed(check.gate), false),
        (None, None) => (State::Closed(Gate::NoLocalCluster), false),
        (None, Some(callers)) => {
            fill_shares(&mut zones, settings.locality_basis, callers, members);
            (
                open_state(settings, &mut zones, has_local_zone),
                in_panic(callers.total(), settings.healthy_panic_threshold),
            )
        }
    };
    Decision {
        settings: *settings,
        zones,
        has_local_zone,
        state,
        priorities: loads(
            upstream.priorities(),
            settings.healthy_panic_threshold,
            settings.overprovisioning_factor,
        ),
        callers_in_panic,
    }
}

/// The localities in Envoy's order.
fn listed(members: &Members, local: Option<&Locality>) -> Vec<Zone> {
    let zone = |(locality, endpoints): (&Locality, &Tally)| Zone {
        locality: locality.clone(),
        endpoints: *endpoints,
        source: 0,
        upstream: 0,
        residual: 0,
    };
    let first = local.and_then(|local| members.get(local).map(|tally| zone((local, tally))));
    let mut zones = Vec::with_capacity(members.localities());
    zones.extend(first);
    zones.extend(
        members
            .iter()
            .filter(|(locality, _)| Some(*locality) != local)
            .map(zone),
    );
    zones
}

/// All gates in the order in which they are looked at
/// (`earlyExitNonLocalityRouting`), with the arguments of [`decide`]: to explain
/// what closes, and what would close next.
#[must_use]
pub fn gates(
    settings: &Settings,
    local: Option<&Locality>,
    callers: Option<&Members>,
    upstream: &Upstream,
) -> [GateCheck; 5] {
    let members = upstream.first();
    let endpoint_zones = members.localities();
    let caller_zones = callers.map_or(0, Members::localities);
    let here = callers.and_then(|callers| callers.get(local?));
    let healthy = members.total().hosts(Health::Healthy);
    let needed = settings.min_cluster_size.needed(members);
    [
        (Gate::NoLocalCluster, callers.is_none()),
        (
            Gate::UpstreamFewerThanTwoZones {
                zones: endpoint_zones,
            },
            endpoint_zones < 2,
        ),
        (
            Gate::SourceFewerThanTwoZones {
                zones: caller_zones,
            },
            settings.force_local_zone.is_none() && caller_zones < 2,
        ),
        (Gate::NoSourceHostInLocalZone, here.is_none()),
        (Gate::ClusterTooSmall { healthy, needed }, healthy < needed),
    ]
    .map(|(gate, closed)| GateCheck { gate, closed })
}

/// `calculateLocalityPercentages`.
fn fill_shares(zones: &mut [Zone], basis: LocalityBasis, callers: &Members, upstream: &Members) {
    let count = |tally: &Tally| match basis {
        LocalityBasis::HealthyHostsNum => tally.hosts(Health::Healthy),
        LocalityBasis::HealthyHostsWeight => tally.weight(Health::Healthy),
    };
    let all_callers = count(callers.total());
    let all_endpoints = count(upstream.total());
    for zone in zones {
        if zone.endpoints.hosts(Health::Healthy) == 0 {
            continue;
        }
        let callers_here = callers.get(&zone.locality).map_or(0, count);
        zone.source = per_10000(callers_here, all_callers);
        zone.upstream = per_10000(count(&zone.endpoints), all_endpoints);
    }
}

/// Cut, not rounded. 0 of 0 is 0.
fn per_10000(part: u64, all: u64) -> u16 {
    let parts = (10_000 * u128::from(part))
        .checked_div(u128::from(all))
        .unwrap_or(0);
    // A part is at most all of it.
    u16::try_from(parts).unwrap_or(10_000)
}

/// `regenerateLocalityRoutingStructures`, after the gates.
fn open_state(settings: &Settings, zones: &mut [Zone], has_local_zone: bool) -> State {
    let (local, others) = match zones.split_first_mut() {
        Some((first, others)) if has_local_zone => (Some(first), others),
        _ => (None, zones),
    };
    if let Some(local) = &local {
        let fair = local.upstream > 0 && local.upstream >= local.source;
        let forced = settings
            .force_local_zone
            .is_some_and(|least| local.endpoints.hosts(Health::Healthy) >= u64::from(least));
        if fair || forced {
            return State::Direct;
        }
    }
    let local_route = local
        .and_then(|local| (u32::from(local.upstream) * 10_000).checked_div(u32::from(local.source)))
        // Less than 10,000: the local share of endpoints is smaller.
        .and_then(|parts| u16::try_from(parts).ok())
        .unwrap_or(0);
    for zone in others {
        zone.residual = zone.upstream.saturating_sub(zone.source);
    }
    State::Residual { local_route }
}
