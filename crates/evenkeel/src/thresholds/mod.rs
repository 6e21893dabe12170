//! Thresholds per check: from what the sources say to the strategy that a check
//! gets, and why. Pure; docs/thresholds.md has the rule for users.

mod assemble;
mod effective;
mod key;
mod resolve;
mod said;
mod source;
#[cfg(test)]
mod tests;

pub use effective::{EffectiveThresholds, Ignored, IgnoredReason, Parameter, ThresholdFault};
pub use key::{FIRST_RESULTS, Key};
pub use resolve::{Resolver, faults};
pub use source::{DefinitionThresholds, Source, Sources};
