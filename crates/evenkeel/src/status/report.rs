use evenkeel_threshold::Status;
use serde::{Deserialize, Serialize};

use crate::events::CheckName;

/// The version of the answer's form, in it as `v`.
pub const VERSION: u32 = 1;

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// [`VERSION`].
    pub v: u32,
    /// The daemon's version.
    pub version: String,
    /// When it was made, in Unix milliseconds; all times in it are such.
    pub at: u64,
    /// Whether the daemon can do its work.
    pub readiness: Readiness,
    /// Checks that are probed, by name.
    pub checks: Vec<CheckStatus>,
    /// Checks that are not, since their kind is not supported.
    pub unsupported: Vec<UnsupportedCheck>,
    /// What is wrong with the catalog.
    pub faults: Vec<Fault>,
}

/// Whether the daemon can do its work, and why not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// Whether all is well.
    pub ready: bool,
    /// What is not; empty if `ready`.
    pub reasons: Vec<String>,
}

/// One check that is probed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckStatus {
    /// Its identity.
    pub check: CheckName,
    /// The kind of probe: `http`, `tcp`, ….
    pub kind: String,
    /// What is probed: a URL or an address.
    pub target: String,
    /// How often, in milliseconds.
    pub interval_ms: u64,
    /// The status that is reported.
    pub reported: Status,
    /// The status in the catalog, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_catalog: Option<Status>,
    /// The latest result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// What the results are counting toward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    /// `flapping` or `suppressed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// Since its latest probes could not be run: how many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unprobed_run: u32,
    /// The thresholds that apply.
    pub thresholds: ThresholdStatus,
    /// The latest change of the reported status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_change: Option<Change>,
    /// Since when it is critical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_since: Option<u64>,
    /// When it is probed next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_probe: Option<u64>,
    /// Results since the start that differed from the one before: the changes
    /// that a monitor without thresholds would have reported.
    #[serde(default)]
    pub raw_changes: u32,
    /// Changes of the reported status since the start.
    #[serde(default)]
    pub changes: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// One result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// What it was.
    pub status: Status,
    /// When.
    pub at: u64,
}

/// `seen` of `needed` results toward `toward`, or a wait until `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// The status it may change to.
    pub toward: Status,
    /// Results counted so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u32>,
    /// Results at which it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<u32>,
    /// When it changes by time alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// The thresholds of a check and where they come from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThresholdStatus {
    /// The strategy's name.
    pub strategy: String,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Parameters that were given for another strategy and do not apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<Parameter>,
    /// What is wrong with a source; the daemon's own thresholds apply then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// One parameter of a strategy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Who set it.
    pub source: String,
}

/// A change of the reported status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// When.
    pub at: u64,
    /// From what; the check's status is what it changed to.
    pub from: Status,
}

/// A check that is not probed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsupportedCheck {
    /// Its identity.
    pub check: CheckName,
    /// Its kind.
    pub kind: String,
    /// Why it is not probed.
    pub reason: String,
}

/// Something wrong with the catalog or one entry of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The check, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckName>,
    /// What is wrong.
    pub text: String,
}

/// Which checks to show; an empty filter shows all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusFilter {
    /// Only checks on this node.
    pub node: Option<String>,
    /// Only checks of this service id.
    pub service: Option<String>,
    /// Only this check id.
    pub check: Option<String>,
    /// Only checks with this reported status.
    pub status: Option<Status>,
}

impl StatusFilter {
    /// Reads a URL's query: `node`, `service`, `check`, `status`.
    ///
    /// # Errors
    ///
    /// A sentence that names the faulty key or value.
    pub fn from_query(query: &str) -> Result<Self, String> {
        let mut filter = Self::default();
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "node" => filter.node = Some(value.into_owned()),
                "service" => filter.service = Some(value.into_owned()),
                "check" => filter.check = Some(value.into_owned()),
                "status" => {
                    filter.status =
                        Some(value.parse().map_err(|error| format!("status: {error}"))?);
                }
                _ => {
                    return Err(format!(
                        "unknown key `{key}`; known are node, service, check and status"
                    ));
                }
            }
        }
        Ok(filter)
    }

    /// The inverse of [`StatusFilter::from_query`].
    pub fn to_query(&self) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for (key, value) in [
            ("node", self.node.as_deref()),
            ("service", self.service.as_deref()),
            ("check", self.check.as_deref()),
            ("status", self.status.map(Status::as_str)),
        ] {
            if let Some(value) = value {
                query.append_pair(key, value);
            }
        }
        query.finish()
    }

    /// Whether a check is to be shown.
    pub fn admits(&self, node: &str, service: &str, check: &str, status: Status) -> bool {
        self.node.as_deref().is_none_or(|wanted| wanted == node)
            && self
                .service
                .as_deref()
                .is_none_or(|wanted| wanted == service)
            && self.check.as_deref().is_none_or(|wanted| wanted == check)
            && self.status.is_none_or(|wanted| wanted == status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_survives_its_query() {
        let filter = StatusFilter {
            node: Some("a b&c=ü".into()),
            service: None,
            check: Some("x".into()),
            status: Some(Status::Critical),
        };
        assert_eq!(StatusFilter::from_query(&filter.to_query()), Ok(filter));
    }

    #[test]
    fn an_unknown_key_or_status_is_refused() {
        assert!(
            StatusFilter::from_query("nodes=a")
                .unwrap_err()
                .contains("`nodes`")
        );
        assert!(StatusFilter::from_query("status=bad").is_err());
    }
}
