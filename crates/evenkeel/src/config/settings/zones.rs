use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::zones::{LocalityKeys, RuleName, RuleSettings};

/// How traffic is split between zones. Nothing needs to be set: a service takes
/// part when somebody asks for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct ZoneSettings {
    /// The rule of those who name none: "service-connect", "envoy", "bounded",
    /// "joint" or "round-robin".
    pub rule: RuleName,

    /// Rules bounded and joint: how far above the mean an endpoint may be loaded,
    /// in percent.
    #[schemars(range(min = 0, max = 9_900))]
    pub tolerance: u32,

    /// Rules bounded and joint: new weights are published only when they send at
    /// least this percentage of all requests elsewhere.
    #[schemars(range(min = 0, max = 100))]
    pub least_change: u32,

    /// Rules bounded and joint: the percentage of all requests that may be sent
    /// elsewhere from one second to the next. Requests to a zone that has no
    /// endpoint any more are sent elsewhere at once.
    #[schemars(range(min = 0, max = 100))]
    pub largest_step: u32,

    /// Metadata keys of services and nodes that name the zone, where Consul's own
    /// Locality does not; the first that is there counts.
    pub zone_keys: Vec<String>,

    /// Metadata keys that name the region.
    pub region_keys: Vec<String>,
}

impl Default for ZoneSettings {
    fn default() -> Self {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            rule: RuleName::default(),
            tolerance: 10,
            least_change: 5,
            largest_step: 25,
            zone_keys: words(&["zone", "availability-zone", "az-id"]),
            region_keys: words(&["region"]),
        }
    }
}

impl ZoneSettings {
    /// What the rules are told.
    pub fn rules(&self) -> RuleSettings {
        RuleSettings::from_percent(
            self.rule,
            self.tolerance,
            self.least_change,
            self.largest_step,
        )
    }

    /// Where zones stand in metadata.
    pub fn locality_keys(&self) -> LocalityKeys {
        LocalityKeys {
            zone: self.zone_keys.clone(),
            region: self.region_keys.clone(),
        }
    }
}
