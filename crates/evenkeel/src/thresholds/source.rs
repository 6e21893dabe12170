use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::config::ThresholdSettings;

/// Where a threshold comes from, first to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The n-th `[[override]]` of the daemon's file, from 0 on.
    Override(usize),
    /// Fields of the check's definition.
    Definition,
    /// The directive in the check's notes.
    Notes,
    /// Metadata of the service.
    ServiceMeta,
    /// Metadata of the node.
    NodeMeta,
    /// The daemon's `[threshold]`.
    Daemon,
    /// Nobody said anything: the strategy's own default.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Override(index) => write!(f, "override[{index}]"),
            Self::Definition => f.write_str("definition"),
            Self::Notes => f.write_str("notes"),
            Self::ServiceMeta => f.write_str("service metadata"),
            Self::NodeMeta => f.write_str("node metadata"),
            Self::Daemon => f.write_str("[threshold]"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// What the catalog says of one check. Absent parts are empty or `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sources<'a> {
    /// Name of the node.
    pub node: &'a str,
    /// Name of the service; empty for a check of a node alone.
    pub service_name: &'a str,
    /// Id of the service; empty for a check of a node alone.
    pub service_id: &'a str,
    /// Name of the check.
    pub check_name: &'a str,
    /// Id of the check.
    pub check_id: &'a str,
    /// Fields of the check's definition.
    pub definition: DefinitionThresholds<'a>,
    /// The check's notes, in which there may be a directive.
    pub notes: &'a str,
    /// Metadata of the service.
    pub service_meta: Option<&'a BTreeMap<String, String>>,
    /// Metadata of the node.
    pub node_meta: Option<&'a BTreeMap<String, String>>,
}

/// Thresholds in a check's definition.
#[derive(Debug, Clone, Copy, Default)]
pub enum DefinitionThresholds<'a> {
    /// None.
    #[default]
    None,
    /// Consul's fields as the server sent them; `None` where a field is absent
    /// or zero (Go's way to say absent).
    Consul {
        /// `SuccessBeforePassing`
        success_before_passing: Option<i64>,
        /// `FailuresBeforeWarning`
        failures_before_warning: Option<i64>,
        /// `FailuresBeforeCritical`
        failures_before_critical: Option<i64>,
    },
    /// The keys of a check in the file catalog.
    File(&'a ThresholdSettings),
}
