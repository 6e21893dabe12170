use std::sync::Arc;

use evenkeel_engine::CheckId;
use evenkeel_threshold::Status;
use evenkeel_zone_weights::{Health, Locality};

/// One instance of a service, as a catalog has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Who and where it is.
    pub endpoint: Endpoint,
    /// Its capacity.
    pub weights: Weights,
    /// Its checks and its node's, each with the status that the catalog has.
    pub checks: Vec<(CheckId, Status)>,
}

/// Where an instance is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Unique among the instances of the service.
    pub id: Arc<str>,
    /// Host name or IP address; may be empty for one that only calls.
    pub address: Arc<str>,
    /// Its port; 0 for one that only calls.
    pub port: u16,
    /// Its zone.
    pub locality: Locality,
    /// Endpoints of a higher number only get what those of lower ones cannot
    /// take.
    pub priority: u32,
}

impl Endpoint {
    /// Whether requests can be sent to it.
    pub fn is_reachable(&self) -> bool {
        self.port != 0 && !self.address.is_empty()
    }
}

/// What an instance can take, in proportion to others. 0: nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weights {
    /// While it is passing.
    pub passing: u32,
    /// While it is in warning.
    pub warning: u32,
}

impl Default for Weights {
    /// All alike, as Consul's agent has it.
    fn default() -> Self {
        Self {
            passing: 1,
            warning: 1,
        }
    }
}

impl Instance {
    /// Its health and weight. `released` knows the statuses of the checks that
    /// the daemon watches; they come before what the catalog has.
    pub(super) fn health(&self, released: impl Fn(&CheckId) -> Option<Status>) -> (Health, u32) {
        let worst = self
            .checks
            .iter()
            .map(|(id, status)| released(id).unwrap_or(*status))
            .max_by_key(|status| *status as u8)
            .unwrap_or(Status::Passing);
        let weight = match worst {
            Status::Warning => self.weights.warning,
            Status::Passing | Status::Critical => self.weights.passing,
        };
        // Consul's DNS leaves out an instance of weight 0; here it is still a host,
        // since Envoy's rule looks at the zones of all of them.
        match (worst, weight) {
            (Status::Critical, _) | (_, 0) => (Health::Unhealthy, weight.max(1)),
            (Status::Passing | Status::Warning, _) => (Health::Healthy, weight),
        }
    }
}
