use evenkeel_threshold::FirstResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::text::Pattern;

/// How many results it takes to change a status.
///
/// The same keys are taken in `[threshold]`, in an `[[override]]` and in a
/// check of the file catalog.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct ThresholdSettings {
    /// "leaky": a result against the status counts one up, one that agrees
    /// counts one down. "consecutive": one that agrees sets the count to zero.
    /// "consul": as the Consul agent does, for which a warning is a success.
    /// When it is left out: "consecutive" if one of its keys is set, else
    /// "leaky".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"leaky")]
    pub strategy: Option<StrategyName>,

    /// Leaky: failures beyond the first that make a check critical; 3 means
    /// that the fourth counts. 0 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 3)]
    pub critical_threshold: Option<u32>,

    /// Leaky: successes beyond the first that make a check passing again; 1
    /// means that the second counts. 0 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 1)]
    pub passing_threshold: Option<u32>,

    /// Consecutive and consul: the failure in a row that makes a check critical. 0 is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 3)]
    pub failures_before_critical: Option<u32>,

    /// Consecutive and consul: the failure in a row that shows a warning, on the way to
    /// critical; at most `failures_before_critical`, and equal to it when left
    /// out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 2)]
    pub failures_before_warning: Option<u32>,

    /// Consecutive and consul: the success in a row that makes a check passing again. 0 is
    /// 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 2)]
    pub success_before_passing: Option<u32>,

    /// What the first result of a new check means: "believed" (reported at once)
    /// or "counted" (as any other). When it is left out, "counted" with leaky,
    /// "believed" with the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"counted")]
    pub first_result: Option<FirstResultName>,
}

/// The name of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum StrategyName {
    /// consul-esm's documented rule.
    Leaky,
    /// So many in a row.
    Consecutive,
    /// The rule of Consul's agent to the letter.
    Consul,
}

impl StrategyName {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Leaky, Self::Consecutive, Self::Consul];

    /// The word in files, Notes and metadata.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Leaky => "leaky",
            Self::Consecutive => "consecutive",
            Self::Consul => "consul",
        }
    }
}

/// What the first result of a new check means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum FirstResultName {
    /// It is reported at once.
    Believed,
    /// It counts as any other.
    Counted,
}

impl FirstResultName {
    /// The word in files, Notes and metadata.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Believed => "believed",
            Self::Counted => "counted",
        }
    }
}

impl From<FirstResultName> for FirstResult {
    fn from(name: FirstResultName) -> Self {
        match name {
            FirstResultName::Believed => Self::Believed,
            FirstResultName::Counted => Self::Counted,
        }
    }
}

/// Thresholds for the checks that match all patterns given. At least one pattern
/// is needed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Override {
    /// Pattern on the node's name; "*" stands for any characters, "?" for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"db-*")]
    pub node: Option<Pattern>,

    /// Pattern on the service's name or id. A check of a node alone has neither
    /// and matches no pattern here.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"postgres*")]
    pub service: Option<Pattern>,

    /// Pattern on the check's name or id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"*")]
    pub check: Option<Pattern>,

    /// The thresholds.
    #[serde(flatten)]
    pub thresholds: ThresholdSettings,
}
