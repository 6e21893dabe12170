use core::num::NonZeroU32;

use crate::{Members, Percent};

/// What one healthy host counts in the shares of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LocalityBasis {
    /// One: `HEALTHY_HOSTS_NUM`, the default.
    #[default]
    HealthyHostsNum,
    /// Its weight: `HEALTHY_HOSTS_WEIGHT`. Weights of the callers count too.
    HealthyHostsWeight,
}

/// How many healthy endpoints it takes for routing by zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MinClusterSize {
    /// So many: Envoy's `min_cluster_size`.
    Hosts(u64),
    /// So many for each locality that has an endpoint of any health, at
    /// priority 0: the form in which ECS Service Connect documents it.
    HostsPerLocality(u64),
}

impl MinClusterSize {
    /// The number of healthy endpoints that these endpoints must have.
    #[must_use]
    pub fn needed(self, upstream: &Members) -> u64 {
        match self {
            Self::Hosts(hosts) => hosts,
            Self::HostsPerLocality(each) => each.saturating_mul(upstream.localities() as u64),
        }
    }
}

/// Settings of Envoy's zone-aware routing, with Envoy's names and defaults
/// (`LocalityLbConfig.ZoneAwareLbConfig`,
/// envoy/extensions/load_balancing_policies/common/v3/common.proto).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Share of requests that may be routed by zone. Default: all.
    pub routing_enabled: Percent,
    /// Below this there is no routing by zone. Default: 6 hosts.
    pub min_cluster_size: MinClusterSize,
    /// As long as so many healthy endpoints are in the caller's zone, all its
    /// requests go there, however few they are for it. Counts hosts, whatever
    /// the basis; `Some(0)` sends them there even if nobody is. Default: off.
    pub force_local_zone: Option<u32>,
    /// What the shares of the zones are made of. Default: numbers of hosts.
    pub locality_basis: LocalityBasis,
    /// Panic if fewer than this percentage are healthy or degraded; 0 is never.
    /// Default: 50. It judges the callers as well.
    pub healthy_panic_threshold: Percent,
    /// In panic, fail requests instead of sending them to all hosts. Default:
    /// no.
    pub fail_traffic_on_panic: bool,
    /// How much of the healthy part of a priority counts as its health, in
    /// percent (`ClusterLoadAssignment.Policy.overprovisioning_factor`).
    /// Default: 140.
    pub overprovisioning_factor: NonZeroU32,
}

impl Settings {
    /// Envoy's defaults, which hold as soon as a `local_cluster_name` is set.
    pub const ENVOY: Self = Self {
        routing_enabled: Percent::HUNDRED,
        min_cluster_size: MinClusterSize::Hosts(6),
        force_local_zone: None,
        locality_basis: LocalityBasis::HealthyHostsNum,
        healthy_panic_threshold: Percent::capped(50),
        fail_traffic_on_panic: false,
        overprovisioning_factor: NonZeroU32::new(140).expect("140 is not 0"),
    };

    /// As ECS Service Connect documents it: on without configuration, off (that
    /// is, round robin) while there are fewer than two available endpoints for
    /// each zone, and on again by itself. For three zones this is Envoy's
    /// default.
    pub const SERVICE_CONNECT: Self = Self {
        min_cluster_size: MinClusterSize::HostsPerLocality(2),
        ..Self::ENVOY
    };

    /// These settings with the deprecated `force_locality_direct_routing`, which
    /// means a minimum of 1 and loses to
    /// [`force_local_zone`](Self::force_local_zone).
    #[must_use]
    pub fn with_deprecated_force(mut self, forced: bool) -> Self {
        if forced && self.force_local_zone.is_none() {
            self.force_local_zone = Some(1);
        }
        self
    }

    /// These settings with Envoy's runtime keys laid over them, which win.
    #[must_use]
    pub fn with_runtime(mut self, runtime: &Runtime) -> Self {
        if let Some(percent) = runtime.zone_routing_enabled {
            self.routing_enabled = Percent::capped(percent);
        }
        if let Some(hosts) = runtime.min_cluster_size {
            self.min_cluster_size = MinClusterSize::Hosts(hosts);
        }
        match runtime.force_local_zone_min_size {
            // 0 is as good as not set, in this key only.
            None | Some(0) => {}
            // Envoy cuts it to 32 bits.
            #[expect(clippy::cast_possible_truncation, reason = "as Envoy does")]
            Some(hosts) => self.force_local_zone = Some(hosts as u32),
        }
        if let Some(percent) = runtime.healthy_panic_threshold {
            self.healthy_panic_threshold = Percent::capped(percent);
        }
        self
    }
}

impl Default for Settings {
    /// [`Settings::ENVOY`].
    fn default() -> Self {
        Self::ENVOY
    }
}

/// Envoy's runtime keys that concern zone-aware routing. `None`: the key is not
/// set, or is not a whole number, which Envoy ignores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Runtime {
    /// `upstream.zone_routing.enabled`, in percent.
    pub zone_routing_enabled: Option<u64>,
    /// `upstream.zone_routing.min_cluster_size`.
    pub min_cluster_size: Option<u64>,
    /// `upstream.zone_routing.force_local_zone.min_size`. Envoy reads it once,
    /// when it makes the balancer.
    pub force_local_zone_min_size: Option<u64>,
    /// `upstream.healthy_panic_threshold`, in percent.
    pub healthy_panic_threshold: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deprecated_switch_loses_to_its_successor() {
        let settings = Settings::ENVOY.with_deprecated_force(true);
        assert_eq!(settings.force_local_zone, Some(1));
        let both = Settings {
            force_local_zone: Some(4),
            ..Settings::ENVOY
        };
        assert_eq!(both.with_deprecated_force(true), both);
        assert_eq!(
            Settings::ENVOY.with_deprecated_force(false),
            Settings::ENVOY
        );
    }

    #[test]
    fn runtime_wins_except_for_a_force_of_zero() {
        let settings = Settings {
            force_local_zone: Some(4),
            ..Settings::ENVOY
        };
        let runtime = Runtime {
            zone_routing_enabled: Some(400),
            min_cluster_size: Some(0),
            force_local_zone_min_size: Some(0),
            healthy_panic_threshold: Some(7),
        };
        let over = settings.with_runtime(&runtime);
        assert_eq!(over.routing_enabled, Percent::HUNDRED);
        assert_eq!(over.min_cluster_size, MinClusterSize::Hosts(0));
        assert_eq!(over.force_local_zone, Some(4));
        assert_eq!(over.healthy_panic_threshold.get(), 7);
        let forced = Runtime {
            force_local_zone_min_size: Some(2),
            ..Runtime::default()
        };
        assert_eq!(settings.with_runtime(&forced).force_local_zone, Some(2));
    }
}
