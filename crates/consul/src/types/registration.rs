use std::collections::BTreeMap;

use serde::Serialize;

use super::{CheckRef, HealthCheck, Locality, is_default};

/// What `/v1/catalog/register` takes.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Registration {
    /// The datacenter; the agent's own if empty.
    #[serde(skip_serializing_if = "is_default")]
    pub datacenter: String,
    /// A UUID of the node, or empty.
    #[serde(rename = "ID", skip_serializing_if = "is_default")]
    pub id: String,
    /// The node.
    pub node: String,
    /// Its address; may be empty with `skip_node_update`.
    #[serde(skip_serializing_if = "is_default")]
    pub address: String,
    /// Other addresses by name.
    #[serde(skip_serializing_if = "is_default")]
    pub tagged_addresses: BTreeMap<String, String>,
    /// The node's metadata.
    #[serde(skip_serializing_if = "is_default")]
    pub node_meta: BTreeMap<String, String>,
    /// Where the node is; only for servers from 1.17 on.
    #[serde(skip_serializing_if = "is_default")]
    pub locality: Option<Locality>,
    /// A service of the node.
    #[serde(skip_serializing_if = "is_default")]
    pub service: Option<ServiceRegistration>,
    /// Checks of the node or of its services.
    #[serde(
        skip_serializing_if = "is_default",
        serialize_with = "checks_for_registration"
    )]
    pub checks: Vec<HealthCheck>,
    /// Whether an existing node stays as it is.
    #[serde(skip_serializing_if = "is_default")]
    pub skip_node_update: bool,
    /// Consul Enterprise: the partition; older servers refuse it.
    #[serde(skip_serializing_if = "is_default")]
    pub partition: String,
}

/// Only the fields that are set: a server refuses what it does not know, and
/// takes an empty kind as a wish to derive it.
fn checks_for_registration<S: serde::Serializer>(
    checks: &[HealthCheck],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(checks.iter().map(CheckToRegister))
}

struct CheckToRegister<'a>(&'a HealthCheck);

impl Serialize for CheckToRegister<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let check = self.0;
        let mut map = BTreeMap::<&str, serde_json::Value>::new();
        for (key, text) in [
            ("Node", &check.node),
            ("CheckID", &check.check_id),
            ("Name", &check.name),
            ("Status", &check.status),
            ("Notes", &check.notes),
            ("Output", &check.output),
            ("ServiceID", &check.service_id),
            ("Type", &check.kind),
            ("Namespace", &check.namespace),
            ("Partition", &check.partition),
        ] {
            if !text.is_empty() {
                map.insert(key, text.as_str().into());
            }
        }
        let definition =
            serde_json::to_value(&check.definition).map_err(serde::ser::Error::custom)?;
        map.insert("Definition", definition);
        for (key, value) in &check.extra {
            map.insert(key, value.clone());
        }
        map.serialize(serializer)
    }
}

/// A service in a [`Registration`].
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ServiceRegistration {
    /// Unique on its node; the name if empty.
    #[serde(rename = "ID", skip_serializing_if = "is_default")]
    pub id: String,
    /// The name.
    pub service: String,
    /// Its tags.
    #[serde(skip_serializing_if = "is_default")]
    pub tags: Vec<String>,
    /// Its address; the node's if empty.
    #[serde(skip_serializing_if = "is_default")]
    pub address: String,
    /// Its port.
    #[serde(skip_serializing_if = "is_default")]
    pub port: u16,
    /// Its metadata.
    #[serde(skip_serializing_if = "is_default")]
    pub meta: BTreeMap<String, String>,
    /// Where it is; only for servers from 1.17 on.
    #[serde(skip_serializing_if = "is_default")]
    pub locality: Option<Locality>,
    /// Consul Enterprise: the namespace; older servers refuse it.
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
}

/// What `/v1/catalog/deregister` takes: a check, a service with its checks, or
/// a node with everything on it.
///
/// Made by the functions that say which, since a missing service id would
/// remove the whole node (P038).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Deregistration {
    node: String,
    #[serde(rename = "ServiceID", skip_serializing_if = "is_default")]
    service_id: String,
    #[serde(rename = "CheckID", skip_serializing_if = "is_default")]
    check_id: String,
    #[serde(skip_serializing_if = "is_default")]
    namespace: String,
    #[serde(skip_serializing_if = "is_default")]
    partition: String,
}

impl Deregistration {
    /// Removes one check. `None` if `check` has no check id.
    pub fn check(check: &CheckRef) -> Option<Self> {
        (!check.node.is_empty() && !check.check_id.is_empty()).then(|| Self {
            node: check.node.clone(),
            service_id: String::new(),
            check_id: check.check_id.clone(),
            namespace: check.namespace.clone(),
            partition: check.partition.clone(),
        })
    }

    /// Removes the service that `check` belongs to, and all its checks.
    /// `None` if it is a check of the node.
    pub fn service_of(check: &CheckRef) -> Option<Self> {
        (!check.node.is_empty() && !check.service_id.is_empty()).then(|| Self {
            node: check.node.clone(),
            service_id: check.service_id.clone(),
            check_id: String::new(),
            namespace: check.namespace.clone(),
            partition: check.partition.clone(),
        })
    }

    /// Removes a node with everything on it. `partition` is empty except on
    /// Consul Enterprise.
    pub fn node(node: impl Into<String>, partition: impl Into<String>) -> Self {
        Self {
            node: node.into(),
            service_id: String::new(),
            check_id: String::new(),
            namespace: String::new(),
            partition: partition.into(),
        }
    }

    /// The namespace, which the request's query names.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The partition, which the request's query names.
    pub(crate) fn partition(&self) -> &str {
        &self.partition
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_registration_sends_only_what_is_set() {
        let check = HealthCheck {
            node: "n".into(),
            check_id: "c".into(),
            ..HealthCheck::default()
        };
        let registration = Registration {
            node: "n".into(),
            skip_node_update: true,
            checks: vec![check],
            ..Registration::default()
        };
        assert_eq!(
            serde_json::to_value(&registration).unwrap(),
            json!({"Node": "n", "SkipNodeUpdate": true,
                   "Checks": [{"Node": "n", "CheckID": "c", "Definition": {}}]})
        );
    }

    #[test]
    fn a_deregistration_names_the_whole_identity() {
        // P038: the namespace and the partition too.
        let check = CheckRef {
            partition: "p".into(),
            namespace: "ns".into(),
            node: "n".into(),
            service_id: "s".into(),
            check_id: "c".into(),
        };
        let sent = serde_json::to_value(Deregistration::service_of(&check)).unwrap();
        assert_eq!(
            sent,
            json!({"Node": "n", "ServiceID": "s", "Namespace": "ns", "Partition": "p"})
        );
        let sent = serde_json::to_value(Deregistration::check(&check)).unwrap();
        assert_eq!(
            sent,
            json!({"Node": "n", "CheckID": "c", "Namespace": "ns", "Partition": "p"})
        );
    }

    #[test]
    fn a_check_of_the_node_never_removes_a_service_nor_the_node() {
        let check = CheckRef {
            node: "n".into(),
            check_id: "c".into(),
            ..CheckRef::default()
        };
        assert_eq!(Deregistration::service_of(&check), None);
        let nameless = CheckRef {
            check_id: String::new(),
            ..check
        };
        assert_eq!(Deregistration::check(&nameless), None);
    }
}
