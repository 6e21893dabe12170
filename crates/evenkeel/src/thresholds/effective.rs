use std::sync::Arc;

use evenkeel_threshold::{AnyStrategy, FirstResult};
use serde::{Serialize, Serializer};

use super::Source;

/// The strategy that a check gets, and why. One value is shared by all checks
/// that have the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct EffectiveThresholds {
    /// The rule itself, shared further: by all checks with the same rule,
    /// wherever it comes from.
    #[serde(serialize_with = "strategy_name")]
    pub strategy: Arc<AnyStrategy>,
    /// What the first result of a new check means.
    pub first_result: FirstResult,
    /// The source that decided which strategy it is.
    pub decided_by: Source,
    /// Every parameter of the strategy, in the strategy's order, `first-result`
    /// last.
    pub parameters: Vec<Parameter>,
    /// What sources say without effect.
    pub ignored: Vec<Ignored>,
    /// What is wrong in the sources.
    pub faults: Vec<ThresholdFault>,
    /// The sources' thresholds were invalid as a whole, so the daemon's
    /// `[threshold]` applies; `faults` says why.
    pub fallback: bool,
}

fn strategy_name<S: Serializer>(
    strategy: &Arc<AnyStrategy>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(strategy.name())
}

/// One parameter in effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Parameter {
    /// Its key, e.g. `critical-threshold`.
    pub key: &'static str,
    /// Its value as text.
    pub value: String,
    /// Where it comes from.
    pub source: Source,
}

/// Something a source says that has no effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Ignored {
    /// Who says it.
    pub source: Source,
    /// The key.
    pub key: &'static str,
    /// The value as written.
    pub value: String,
    /// Why it has no effect.
    pub reason: IgnoredReason,
}

/// Why something has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum IgnoredReason {
    /// It is a parameter of another strategy than the one decided on, or of a
    /// source that speaks for another one.
    OtherStrategy,
    /// The sources as a whole are invalid.
    Invalid,
}

/// A fault in a source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct ThresholdFault {
    /// Who says it.
    pub source: Source,
    /// The key as written; empty when the fault is not about a key.
    pub key: String,
    /// What is wrong, with the value, for people.
    pub text: String,
}

impl std::fmt::Display for ThresholdFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.key.as_str() {
            "" => write!(f, "{}: {}", self.source, self.text),
            key => write!(f, "{}: {key}: {}", self.source, self.text),
        }
    }
}
