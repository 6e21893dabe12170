//! One check as the file has it.

use std::time::Duration;

use evenkeel_probe::DefinitionError;
use schemars::JsonSchema;
use serde::Deserialize;

use super::EndpointEntry;
use super::Kinds;
use crate::catalog::{Aliased, Definition};
use crate::config::text::DurationText;
use crate::config::{ThresholdSettings, duration};
use crate::thresholds::{self, Source};

/// A file of checks.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct File {
    /// The checks.
    pub check: Vec<Entry>,
    /// The endpoints of services, for zones.
    pub endpoint: Vec<EndpointEntry>,
}

/// One check: what is probed, how often, and how many results change its
/// status.
#[derive(Clone, PartialEq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Entry {
    /// What people call it.
    #[schemars(example = &"shop answers")]
    pub name: String,

    /// Its identity within node and service: with another id it is another
    /// check, whose counts start anew. The name, when left out.
    #[serde(default)]
    #[schemars(example = &"shop-http")]
    pub id: Option<String>,

    /// The node that it belongs to, for people, patterns and identity.
    #[serde(default = "default_node")]
    pub node: String,

    /// The service that it belongs to; none when left out.
    #[serde(default)]
    #[schemars(example = &"shop")]
    pub service: Option<String>,

    /// What is probed, and how.
    #[serde(flatten)]
    pub kinds: Kinds,

    /// Time between two probes; schedule.default_interval when left out.
    #[serde(default, with = "duration::option")]
    #[schemars(with = "Option<DurationText>", example = &"10s")]
    pub interval: Option<Duration>,

    /// How long a probe may take; probe.default_timeout when left out.
    #[serde(default, with = "duration::option")]
    #[schemars(with = "Option<DurationText>", example = &"3s")]
    pub timeout: Option<Duration>,

    /// The status before anything is known.
    #[serde(default)]
    pub initial_status: InitialStatus,

    /// Free text for people. Thresholds may stand in it, too, as in Consul.
    #[serde(default)]
    #[schemars(example = &"Owned by team shop.")]
    pub notes: Option<String>,

    /// How many results it takes to change the status.
    #[serde(flatten)]
    pub thresholds: ThresholdSettings,
}

/// The node of a check that names none.
pub(super) fn default_node() -> String {
    "file".to_owned()
}

/// The status before anything is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum InitialStatus {
    /// As Consul has it.
    #[default]
    Critical,
    /// Neither.
    Warning,
    /// Innocent until proven guilty.
    Passing,
}

impl From<InitialStatus> for evenkeel_threshold::Status {
    fn from(status: InitialStatus) -> Self {
        match status {
            InitialStatus::Critical => Self::Critical,
            InitialStatus::Warning => Self::Warning,
            InitialStatus::Passing => Self::Passing,
        }
    }
}

/// Without what may be a secret: headers, body, and a password in the URL.
impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("node", &self.node)
            .field("service", &self.service)
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

impl Entry {
    /// Its identity within the service.
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.name)
    }

    /// What is wrong with it, as pairs of the key (or nothing, for the check as
    /// a whole) and a sentence.
    pub fn faults(&self) -> Vec<(String, String)> {
        let mut faults = Vec::new();
        let mut fault = |key: &str, text: String| faults.push((key.to_owned(), text));
        let texts = [
            ("name", Some(&self.name)),
            ("id", self.id.as_ref()),
            ("node", Some(&self.node)),
            ("service", self.service.as_ref()),
        ];
        for (key, text) in texts {
            match text {
                Some(text) if text.trim().is_empty() => {
                    fault(key, "must not be empty".to_owned());
                }
                Some(text) if text.chars().any(char::is_control) => {
                    fault(key, "has a control character".to_owned());
                }
                _ => {}
            }
        }
        let least = Duration::from_millis(1);
        for (key, duration) in [("interval", self.interval), ("timeout", self.timeout)] {
            if duration.is_some_and(|duration| duration < least) {
                fault(key, "must be more than zero".to_owned());
            }
        }
        if self.kinds.heartbeat.is_some() {
            for (key, given) in [
                ("interval", self.interval.is_some()),
                ("timeout", self.timeout.is_some()),
            ] {
                if given {
                    faults.push((key.to_owned(), "heartbeat has no use for it".to_owned()));
                }
            }
        }
        faults.extend(thresholds::faults(&self.thresholds, Source::Definition));
        faults.extend(self.kinds.faults());
        faults
    }

    /// How it comes to its results.
    ///
    /// # Errors
    ///
    /// The first of [`Entry::faults`] that is about it.
    pub fn definition(&self, default_timeout: Duration) -> Result<Definition, DefinitionError> {
        if let Some(silence) = self.kinds.heartbeat {
            return Ok(Definition::Heartbeat { silence });
        }
        if let Some(alias) = &self.kinds.alias {
            return Ok(Definition::Alias(Aliased {
                node: alias.node.as_deref().unwrap_or(&self.node).into(),
                service: alias.service.as_deref().unwrap_or_default().into(),
            }));
        }
        let timeout = self.timeout.unwrap_or(default_timeout);
        Ok(self.kinds.definition(timeout)?.into())
    }
}
