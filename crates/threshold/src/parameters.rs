use core::convert::Infallible;
use core::fmt;

use crate::Key;
use crate::key::{Parameters, keys};

/// The three numbers of Consul's check definition, as they are written there.
///
/// They are the parameters of [`Consecutive`](crate::Consecutive) and of
/// [`Consul`](crate::Consul), which differ in what 0 means for
/// `failures_before_warning`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Counts {
    /// Failures in a row at which the failing status is reported; 0 is 1.
    pub failures_before_critical: u32,
    /// Failures in a row at which at least `warning` is reported. `None`: as
    /// many as for critical, so there is no level in between. Not more than
    /// `failures_before_critical`.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub failures_before_warning: Option<u32>,
    /// Successes in a row at which the better status is reported; 0 is 1.
    pub success_before_passing: u32,
}

/// No damping: every result is reported.
impl Default for Counts {
    fn default() -> Self {
        Self {
            failures_before_critical: 1,
            failures_before_warning: None,
            success_before_passing: 1,
        }
    }
}

keys! { Counts {
    failures_before_critical: u32 = "failures-before-critical" or "down", "any; 0 is 1", "1",
        "Failures in a row at which the failing status is reported";
    failures_before_warning: Option<u32> = "failures-before-warning",
        "at most `failures-before-critical`", "",
        "Failures in a row at which at least a warning is reported";
    success_before_passing: u32 = "success-before-passing" or "up", "any; 0 is 1", "1",
        "Successes in a row at which the better status is reported";
} }

/// [`Counts`] that have been checked, with every 0 and `None` resolved:
/// `1 <= warning <= critical`, `1 <= passing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Resolved {
    pub(crate) critical: u32,
    pub(crate) warning: u32,
    pub(crate) passing: u32,
}

impl Resolved {
    pub(crate) fn new(counts: Counts) -> Result<Self, ParameterError> {
        let critical = counts.failures_before_critical.max(1);
        let warning = counts
            .failures_before_warning
            .map_or(critical, |warning| warning.max(1));
        Rules::new()
            .relation(
                &Relation {
                    parameters: ["failures_before_warning", "failures_before_critical"],
                    rule: "must not be more than",
                },
                warning <= critical,
            )
            .check()?;
        Ok(Self {
            critical,
            warning,
            passing: counts.success_before_passing.max(1),
        })
    }

    pub(crate) fn counts(self) -> Counts {
        Counts {
            failures_before_critical: self.critical,
            failures_before_warning: (self.warning < self.critical).then_some(self.warning),
            success_before_passing: self.passing,
        }
    }
}

/// Parameters that no strategy can be made from, with all that is wrong with
/// them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ParameterError {
    violations: [Option<Violation>; ParameterError::MOST],
}

/// One rule that parameters break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A parameter is not in its range.
    OutOfRange(&'static Key),
    /// Two parameters do not go together.
    Contradiction(&'static Relation),
}

/// What two parameters have to be to each other.
#[derive(Debug, PartialEq, Eq)]
pub struct Relation {
    /// Their names, as fields of the parameter type are spelled.
    pub parameters: [&'static str; 2],
    /// What the first is to the second, e.g. "must be less than".
    pub rule: &'static str,
}

impl ParameterError {
    /// No strategy has more rules that can be broken at the same time.
    const MOST: usize = 4;

    /// What is wrong.
    pub fn violations(&self) -> impl Iterator<Item = Violation> {
        self.violations.into_iter().flatten()
    }

    /// The names of the parameters at fault, as fields of the parameter types
    /// are spelled.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        self.violations()
            .flat_map(|violation| violation.parameters().iter().copied())
    }
}

impl Violation {
    /// The names of the parameters at fault, as fields of the parameter types
    /// are spelled.
    pub const fn parameters(&self) -> &'static [&'static str] {
        match self {
            Self::OutOfRange(key) => core::slice::from_ref(&key.field),
            Self::Contradiction(relation) => &relation.parameters,
        }
    }
}

/// Collects the rules that parameters break.
pub(crate) struct Rules(ParameterError);

impl Rules {
    pub(crate) const fn new() -> Self {
        Self(ParameterError {
            violations: [None; ParameterError::MOST],
        })
    }

    /// The parameter `field` of `P` must be in the range that its key states.
    pub(crate) fn range<P: Parameters>(self, field: &str, kept: bool) -> Self {
        match P::KEYS.iter().find(|key| key.field == field) {
            Some(key) if !kept => self.broken(Violation::OutOfRange(key)),
            _ => self,
        }
    }

    /// What `relation` says must hold, if its parameters are right by themselves.
    pub(crate) fn relation(self, relation: &'static Relation, kept: bool) -> Self {
        let wrong = self.0.violations().any(|violation| match violation {
            Violation::OutOfRange(key) => relation.parameters.contains(&key.field),
            Violation::Contradiction(_) => false,
        });
        if kept || wrong {
            self
        } else {
            self.broken(Violation::Contradiction(relation))
        }
    }

    fn broken(mut self, violation: Violation) -> Self {
        let violations = &mut self.0.violations;
        if let Some(place) = violations.iter_mut().find(|place| place.is_none()) {
            *place = Some(violation);
        }
        self
    }

    pub(crate) fn check(self) -> Result<(), ParameterError> {
        match self.0.violations {
            [None, ..] => Ok(()),
            _ => Err(self.0),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange(key) => write!(f, "{} must be {}", key.field, key.range),
            Self::Contradiction(Relation {
                parameters: [one, other],
                rule,
            }) => write!(f, "{one} {rule} {other}"),
        }
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.violations().enumerate() {
            f.write_str(if index == 0 { "" } else { "; " })?;
            violation.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.violations()).finish()
    }
}

impl core::error::Error for ParameterError {}

/// Of parameters that cannot be wrong.
impl From<Infallible> for ParameterError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
