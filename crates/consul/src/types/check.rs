use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Extra, FieldFault, is_default, nullable};
use crate::duration::GoDuration;

/// The status of a check, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It works.
    Passing,
    /// It works with reservations.
    Warning,
    /// It does not work.
    Critical,
}

impl Status {
    /// Consul's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passing => "passing",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text is none of `passing`, `warning` and `critical`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the status is none of passing, warning and critical")]
pub struct UnknownStatus;

impl FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        match text {
            "passing" => Ok(Self::Passing),
            "warning" => Ok(Self::Warning),
            "critical" => Ok(Self::Critical),
            _ => Err(UnknownStatus),
        }
    }
}

/// A check as `/v1/health/…` answers it.
///
/// Node and service metadata are not part of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct HealthCheck {
    /// The node it belongs to.
    #[serde(deserialize_with = "nullable")]
    pub node: String,
    /// Unique on its node.
    #[serde(rename = "CheckID", deserialize_with = "nullable")]
    pub check_id: String,
    /// For people.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// `passing`, `warning` or `critical`; see [`status`](Self::status).
    #[serde(deserialize_with = "nullable")]
    pub status: String,
    /// For people; the daemon reads its directives here.
    #[serde(deserialize_with = "nullable")]
    pub notes: String,
    /// What the last probe said.
    #[serde(deserialize_with = "nullable")]
    pub output: String,
    /// The service it belongs to; empty for a check of the node.
    #[serde(rename = "ServiceID", deserialize_with = "nullable")]
    pub service_id: String,
    /// The name of that service.
    #[serde(deserialize_with = "nullable")]
    pub service_name: String,
    /// The tags of that service.
    #[serde(deserialize_with = "nullable")]
    pub service_tags: Vec<String>,
    /// The kind, derived by the server when the check was registered (`http`,
    /// `tcp`, `ttl`, …); empty after a status write by transaction.
    #[serde(rename = "Type", deserialize_with = "nullable")]
    pub kind: String,
    /// Consul Enterprise: the namespace; empty elsewhere.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub namespace: String,
    /// Consul Enterprise: the partition; empty elsewhere.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub partition: String,
    /// The cluster peer it was imported from; empty for one of our own.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub peer_name: String,
    /// How it is probed.
    #[serde(deserialize_with = "nullable")]
    pub definition: CheckDefinition,
    /// The raft index at which it was created.
    #[serde(deserialize_with = "nullable")]
    pub create_index: u64,
    /// The raft index at which it last changed.
    #[serde(deserialize_with = "nullable")]
    pub modify_index: u64,
    /// What this crate does not know.
    #[serde(flatten)]
    pub extra: Extra,
    /// Fields that could not be read, and have their defaults for it.
    #[serde(skip)]
    pub faults: Vec<FieldFault>,
}

impl HealthCheck {
    /// The status, if it is one of the three.
    pub fn status(&self) -> Option<Status> {
        self.status.parse().ok()
    }

    /// What names this check.
    pub fn reference(&self) -> CheckRef {
        CheckRef {
            partition: self.partition.clone(),
            namespace: self.namespace.clone(),
            node: self.node.clone(),
            service_id: self.service_id.clone(),
            check_id: self.check_id.clone(),
        }
    }
}

/// What names a check everywhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CheckRef {
    /// Consul Enterprise; empty elsewhere.
    pub partition: String,
    /// Consul Enterprise; empty elsewhere.
    pub namespace: String,
    /// The node.
    pub node: String,
    /// The service; empty for a check of the node.
    pub service_id: String,
    /// The check.
    pub check_id: String,
}

impl fmt::Display for CheckRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.partition, &self.namespace] {
            if !part.is_empty() {
                write!(f, "{part}/")?;
            }
        }
        write!(f, "{}/", self.node)?;
        if !self.service_id.is_empty() {
            write!(f, "{}/", self.service_id)?;
        }
        f.write_str(&self.check_id)
    }
}

/// How a check is probed, as its registration says.
///
/// Consul stores it and does nothing with it. A field that is not set has its
/// default, and is not written back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct CheckDefinition {
    /// The URL to ask.
    #[serde(
        rename = "HTTP",
        deserialize_with = "nullable",
        skip_serializing_if = "is_default"
    )]
    pub http: String,
    /// Headers to send with it.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub header: BTreeMap<String, Vec<String>>,
    /// The HTTP method; GET if empty.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub method: String,
    /// The body to send.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub body: String,
    /// Whether redirects are not followed.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub disable_redirects: bool,
    /// The name that the server's certificate must be for.
    #[serde(
        rename = "TLSServerName",
        deserialize_with = "nullable",
        skip_serializing_if = "is_default"
    )]
    pub tls_server_name: String,
    /// Whether the server's certificate is not verified.
    #[serde(
        rename = "TLSSkipVerify",
        deserialize_with = "nullable",
        skip_serializing_if = "is_default"
    )]
    pub tls_skip_verify: bool,
    /// `host:port` to connect to.
    #[serde(
        rename = "TCP",
        deserialize_with = "nullable",
        skip_serializing_if = "is_default"
    )]
    pub tcp: String,
    /// Whether to speak TLS to `tcp`.
    #[serde(
        rename = "TCPUseTLS",
        deserialize_with = "nullable",
        skip_serializing_if = "is_default"
    )]
    pub tcp_use_tls: bool,
    /// `host:port` to send a datagram to.
    #[serde(
        rename = "UDP",
        deserialize_with = "nullable",
        skip_serializing_if = "is_default"
    )]
    pub udp: String,
    /// `host:port/service` of a gRPC health service.
    #[serde(
        rename = "GRPC",
        deserialize_with = "nullable",
        skip_serializing_if = "is_default"
    )]
    pub grpc: String,
    /// Whether to speak TLS to `grpc`.
    #[serde(
        rename = "GRPCUseTLS",
        deserialize_with = "nullable",
        skip_serializing_if = "is_default"
    )]
    pub grpc_use_tls: bool,
    /// `host:port` to ping over HTTP/2.
    #[serde(
        rename = "H2PING",
        deserialize_with = "nullable",
        skip_serializing_if = "is_default"
    )]
    pub h2ping: String,
    /// Whether to speak TLS to `h2ping`. The server's default is true, so it
    /// is kept apart from "not set".
    #[serde(rename = "H2PingUseTLS", skip_serializing_if = "Option::is_none")]
    pub h2ping_use_tls: Option<bool>,
    /// The container a script runs in.
    #[serde(
        rename = "DockerContainerID",
        deserialize_with = "nullable",
        skip_serializing_if = "is_default"
    )]
    pub docker_container_id: String,
    /// The shell for it.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub shell: String,
    /// The script and its arguments.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub script_args: Vec<String>,
    /// The node whose health is mirrored.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub alias_node: String,
    /// The service whose health is mirrored.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub alias_service: String,
    /// The system service whose state is watched.
    #[serde(
        rename = "OSService",
        deserialize_with = "nullable",
        skip_serializing_if = "is_default"
    )]
    pub os_service: String,
    /// The time within which a report must come.
    #[serde(
        rename = "TTL",
        deserialize_with = "nullable",
        skip_serializing_if = "is_default"
    )]
    pub ttl: GoDuration,
    /// The time between probes.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub interval: GoDuration,
    /// The deadline of one probe.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub timeout: GoDuration,
    /// How long the check may be critical before its service is deregistered.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub deregister_critical_service_after: GoDuration,
    /// How much of a probe's output is kept, in bytes.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub output_max_size: u64,
    /// Successes in a row before passing; not stored by Consul 1.8.7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_before_passing: Option<u32>,
    /// Failures in a row before warning; not stored by Consul 1.8.7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures_before_warning: Option<u32>,
    /// Failures in a row before critical; not stored by Consul 1.8.7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures_before_critical: Option<u32>,
    /// What this crate does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn missing_null_and_unknown_fields_are_tolerated() {
        let check: HealthCheck = serde_json::from_value(json!({
            "Node": "n", "CheckID": "c", "ServiceTags": null, "Definition": null,
            "Partition": "default", "ExposedPort": 0, "Interval": "10s"
        }))
        .unwrap();
        assert_eq!(check.node, "n");
        assert_eq!(check.partition, "default");
        assert!(check.service_tags.is_empty());
        assert_eq!(check.definition, CheckDefinition::default());
        assert_eq!(check.extra["Interval"], "10s");
        assert_eq!(
            serde_json::from_str::<HealthCheck>("{}").unwrap(),
            HealthCheck::default()
        );
    }

    #[test]
    fn a_definition_comes_back_as_it_came() {
        // Every field of the API at once, as Consul 1.8.7 writes durations.
        let definition = json!({
            "HTTP": "http://h/", "Header": {"X-A": ["1", "2"]}, "Method": "PUT", "Body": "b",
            "DisableRedirects": true, "TLSServerName": "n", "TLSSkipVerify": true,
            "TCP": "h:1", "TCPUseTLS": true, "UDP": "h:2", "GRPC": "h:3/s", "GRPCUseTLS": true,
            "H2PING": "h:4", "H2PingUseTLS": false, "DockerContainerID": "d", "Shell": "/bin/sh",
            "ScriptArgs": ["a"], "AliasNode": "n", "AliasService": "s", "OSService": "o",
            "TTL": "5s", "Interval": "1m30s", "Timeout": "1.5s",
            "DeregisterCriticalServiceAfter": "1h30m0s", "OutputMaxSize": 100,
            "SuccessBeforePassing": 0, "FailuresBeforeWarning": 2, "FailuresBeforeCritical": 3,
            "FromTheFuture": {"deep": [1, null]}
        });
        let read: CheckDefinition = serde_json::from_value(definition.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), definition);
        assert_eq!(read.failures_before_critical, Some(3));
    }

    #[test]
    fn the_recorded_list_is_read() {
        let text = include_str!("../../tests/data/health-state-any.json");
        let checks: Vec<HealthCheck> = serde_json::from_str(text).unwrap();
        let raw: Vec<Value> = serde_json::from_str(text).unwrap();
        assert_eq!(checks.len(), raw.len());
        for (check, raw) in checks.iter().zip(&raw) {
            assert_eq!(&serde_json::to_value(check).unwrap(), raw);
            assert!(check.status().is_some());
            assert!(check.extra.is_empty());
        }
    }

    #[test]
    fn a_reference_reads_as_a_path() {
        let mut reference = CheckRef {
            node: "n".into(),
            check_id: "c".into(),
            ..CheckRef::default()
        };
        assert_eq!(reference.to_string(), "n/c");
        reference.service_id = "s".into();
        reference.namespace = "ns".into();
        assert_eq!(reference.to_string(), "ns/n/s/c");
    }
}
