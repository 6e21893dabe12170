use core::fmt;

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
        if warning > critical {
            return Err(ParameterError::WarningAboveCritical {
                failures_before_warning: warning,
                failures_before_critical: critical,
            });
        }
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

    /// The parameters as a directive has them.
    pub(crate) fn write(self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "strategy={name} failures-before-critical={}",
            self.critical
        )?;
        if self.warning < self.critical {
            write!(f, " failures-before-warning={}", self.warning)?;
        }
        write!(f, " success-before-passing={}", self.passing)
    }
}

/// Parameters that no strategy can be made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterError {
    /// The warning would come after the critical status, so never.
    WarningAboveCritical {
        /// As given.
        failures_before_warning: u32,
        /// As given, or 1 for 0.
        failures_before_critical: u32,
    },
    /// A parameter is not in its range.
    OutOfRange {
        /// Its name, as a field of the parameter type is spelled.
        parameter: &'static str,
        /// What it may be, e.g. "1 to 64".
        range: &'static str,
    },
    /// Two parameters do not go together.
    Contradiction {
        /// Their names, as fields of the parameter type are spelled.
        parameters: &'static [&'static str; 2],
        /// What the first is to the second, e.g. "must be less than".
        rule: &'static str,
    },
}

impl ParameterError {
    /// The names of the parameters at fault, as fields of the parameter types
    /// are spelled.
    pub const fn parameters(&self) -> &[&'static str] {
        match self {
            Self::WarningAboveCritical { .. } => {
                &["failures_before_warning", "failures_before_critical"]
            }
            Self::OutOfRange { parameter, .. } => core::slice::from_ref(parameter),
            Self::Contradiction { parameters, .. } => *parameters,
        }
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WarningAboveCritical {
                failures_before_warning,
                failures_before_critical,
            } => write!(
                f,
                "failures_before_warning ({failures_before_warning}) must not be more than \
                 failures_before_critical ({failures_before_critical})"
            ),
            Self::OutOfRange { parameter, range } => write!(f, "{parameter} must be {range}"),
            Self::Contradiction {
                parameters: [one, other],
                rule,
            } => write!(f, "{one} {rule} {other}"),
        }
    }
}

impl core::error::Error for ParameterError {}
