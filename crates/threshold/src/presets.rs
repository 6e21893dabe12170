//! The rules of other programs, with their names and figures.
//!
//! Each gives the strategy that does exactly what that program does, and how a
//! check starts with it. `passing` and `warning` results are successes, as with
//! the Consul agent; a program that knows two statuses never sees the third.
//! (HAProxy's conditional success and the warning of a Kubernetes probe are such
//! successes.) For Nagios and Icinga see [`Flap::nagios`](crate::Flap::nagios)
//! and [`Flap::icinga`](crate::Flap::icinga).

use crate::{Consul, Counts, FirstResult, RunState, Status, Strategy, Timestamp};

/// A strategy and the start of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Preset {
    /// The rule.
    pub strategy: Consul,
    /// What is reported before the first result.
    pub initial: Status,
    /// What the first result means.
    pub first: FirstResult,
}

impl Preset {
    fn new(failures: u32, successes: u32, initial: Status, first: FirstResult) -> Self {
        let strategy = Consul::new(Counts {
            failures_before_critical: failures,
            failures_before_warning: None,
            success_before_passing: successes,
        });
        Self {
            // Only a warning threshold can be at fault.
            strategy: strategy.unwrap_or_default(),
            initial,
            first,
        }
    }

    /// The state of a new check.
    pub fn start(&self, now: Timestamp) -> RunState {
        self.strategy.start(self.initial, self.first, now)
    }
}

/// HAProxy's health checks (src/check.c): `fall` failures in a row, `rise`
/// successes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HaProxy {
    /// Successes in a row that bring a server up.
    pub rise: u32,
    /// Failures in a row that take it down.
    pub fall: u32,
    /// How a server starts.
    pub init_state: InitState,
}

/// HAProxy's `init-state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum InitState {
    /// Up, and as if all checks had succeeded: `fall` failures are wanted.
    FullyUp,
    /// Up, and the first failed check takes it down. HAProxy's default.
    #[default]
    Up,
    /// Down, and the first successful check brings it up.
    Down,
    /// Down, and `rise` successes are wanted.
    FullyDown,
}

/// `rise 2 fall 3`, as HAProxy without configuration.
impl Default for HaProxy {
    fn default() -> Self {
        Self {
            rise: 2,
            fall: 3,
            init_state: InitState::default(),
        }
    }
}

impl From<HaProxy> for Preset {
    fn from(haproxy: HaProxy) -> Self {
        let (initial, first) = match haproxy.init_state {
            InitState::FullyUp => (Status::Passing, FirstResult::Counted),
            InitState::Up => (Status::Passing, FirstResult::Believed),
            InitState::Down => (Status::Critical, FirstResult::Believed),
            InitState::FullyDown => (Status::Critical, FirstResult::Counted),
        };
        Self::new(haproxy.fall, haproxy.rise, initial, first)
    }
}

/// A Kubernetes readiness probe (pkg/kubelet/prober/worker.go): a pod is not
/// ready until it has proved to be.
///
/// An internal error of the prober is discarded there, as everywhere in this
/// crate: it is no observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kubernetes {
    /// `failureThreshold`.
    pub failure_threshold: u32,
    /// `successThreshold`; 1 for a liveness probe.
    pub success_threshold: u32,
    /// A liveness probe starts as a success, a readiness probe as a failure.
    pub liveness: bool,
}

/// A readiness probe with failureThreshold 3 and successThreshold 1.
impl Default for Kubernetes {
    fn default() -> Self {
        Self {
            failure_threshold: 3,
            success_threshold: 1,
            liveness: false,
        }
    }
}

impl From<Kubernetes> for Preset {
    fn from(probe: Kubernetes) -> Self {
        let initial = if probe.liveness {
            Status::Passing
        } else {
            Status::Critical
        };
        Self::new(
            probe.failure_threshold,
            probe.success_threshold,
            initial,
            FirstResult::Counted,
        )
    }
}

/// Envoy's active health checks (health_checker_base_impl.cc).
///
/// A failure that is none of the network, e.g. an HTTP 503 that is not in
/// `retriable_statuses`, takes a host out at once there: hand it in as an
/// [immediate](crate::Observation::immediate) critical result. The first result
/// of all suffices to bring a host in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Envoy {
    /// `unhealthy_threshold`.
    pub unhealthy_threshold: u32,
    /// `healthy_threshold`.
    pub healthy_threshold: u32,
}

impl From<Envoy> for Preset {
    fn from(envoy: Envoy) -> Self {
        Self::new(
            envoy.unhealthy_threshold,
            envoy.healthy_threshold,
            Status::Critical,
            FirstResult::Believed,
        )
    }
}

/// The checks of an AWS Application Load Balancer. A newly registered target
/// needs a single success, whatever the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Alb {
    /// `HealthyThresholdCount`: 2 to 10 there.
    pub healthy: u32,
    /// `UnhealthyThresholdCount`: 2 to 10 there.
    pub unhealthy: u32,
}

/// 5 and 2, as without configuration.
impl Default for Alb {
    fn default() -> Self {
        Self {
            healthy: 5,
            unhealthy: 2,
        }
    }
}

impl From<Alb> for Preset {
    fn from(alb: Alb) -> Self {
        Self::new(
            alb.unhealthy,
            alb.healthy,
            Status::Critical,
            FirstResult::Believed,
        )
    }
}
