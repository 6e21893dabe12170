use std::str::FromStr;

use evenkeel_zone_weights::envoy::Settings;
use evenkeel_zone_weights::plan::{Bounded, Joint, Limits, PARTS, RoundRobin, Rule, Tolerance};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How requests are split between zones.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum RuleName {
    /// Envoy's rule with its defaults: six healthy endpoints or more.
    Envoy,
    /// Envoy's rule as Amazon ECS Service Connect documents it: two healthy
    /// endpoints per zone or more.
    #[default]
    ServiceConnect,
    /// The least traffic between zones with no endpoint more than a tolerance
    /// above the mean, for each calling service by itself.
    Bounded,
    /// As bounded, for all calling services together.
    Joint,
    /// No routing by zone.
    RoundRobin,
}

impl RuleName {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Envoy,
        Self::ServiceConnect,
        Self::Bounded,
        Self::Joint,
        Self::RoundRobin,
    ];

    /// The word in queries and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Envoy => "envoy",
            Self::ServiceConnect => "service-connect",
            Self::Bounded => "bounded",
            Self::Joint => "joint",
            Self::RoundRobin => "round-robin",
        }
    }

    /// The settings of Envoy's rule, where it is that.
    pub(super) const fn envoy(self) -> Option<Settings> {
        match self {
            Self::Envoy => Some(Settings::ENVOY),
            Self::ServiceConnect => Some(Settings::SERVICE_CONNECT),
            Self::Bounded | Self::Joint | Self::RoundRobin => None,
        }
    }
}

impl std::fmt::Display for RuleName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for RuleName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|rule| rule.as_str() == text)
            .ok_or_else(|| {
                let names = Self::ALL.map(Self::as_str).join(", ");
                format!("there is no rule {text:?}; there are {names}")
            })
    }
}

/// What the rules can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleSettings {
    /// The rule of those who name none.
    pub default: RuleName,
    /// How far above the mean `bounded` and `joint` may load an endpoint.
    pub tolerance: Tolerance,
    /// When their weights are published, and how fast they may change.
    pub limits: Limits,
}

impl RuleSettings {
    /// From percentages.
    pub fn from_percent(
        default: RuleName,
        tolerance: u32,
        least_change: u32,
        largest_step: u32,
    ) -> Self {
        let parts = |percent: u32| (PARTS / 100).saturating_mul(percent).min(PARTS);
        Self {
            default,
            tolerance: Tolerance::per_10_000(tolerance.saturating_mul(100)),
            limits: Limits {
                least_change: parts(least_change),
                largest_step: parts(largest_step),
            },
        }
    }

    /// The rule that makes a plan, where it is not Envoy's.
    pub(super) fn planner(&self, rule: RuleName) -> Option<Box<dyn Rule>> {
        let tolerance = self.tolerance;
        match rule {
            RuleName::Envoy | RuleName::ServiceConnect => None,
            RuleName::Bounded => Some(Box::new(Bounded { tolerance })),
            RuleName::Joint => Some(Box::new(Joint { tolerance })),
            RuleName::RoundRobin => Some(Box::new(RoundRobin)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_found_under_its_name() {
        for rule in RuleName::ALL {
            assert_eq!(rule.as_str().parse(), Ok(rule));
            let json = serde_json::to_string(&rule).unwrap();
            assert_eq!(json, format!("\"{rule}\""));
        }
        let error = "Envoy".parse::<RuleName>().unwrap_err();
        assert!(error.contains("service-connect"), "{error}");
    }

    #[test]
    fn percentages_are_cut_to_what_can_be() {
        let rule = |percent| RuleSettings::from_percent(RuleName::Joint, percent, percent, percent);
        assert_eq!(rule(10).tolerance, Tolerance::default());
        assert_eq!(rule(25).limits.largest_step, PARTS / 4);
        assert_eq!(rule(u32::MAX).limits.largest_step, PARTS);
        assert_eq!(rule(u32::MAX).tolerance.get(), Tolerance::MAX_PER_10_000);
    }
}
