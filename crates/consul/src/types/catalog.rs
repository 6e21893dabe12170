use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Extra, FieldFault, HealthCheck, is_default, nullable};

/// Where a node or a service is, as newer servers know it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Locality {
    /// The region.
    #[serde(deserialize_with = "nullable")]
    pub region: String,
    /// The zone in it.
    #[serde(deserialize_with = "nullable")]
    pub zone: String,
}

/// A node of the catalog, of `/v1/catalog/nodes` and others.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Node {
    /// A UUID; empty for most external nodes.
    #[serde(rename = "ID", deserialize_with = "nullable")]
    pub id: String,
    /// The name.
    #[serde(deserialize_with = "nullable")]
    pub node: String,
    /// The address.
    #[serde(deserialize_with = "nullable")]
    pub address: String,
    /// The datacenter.
    #[serde(deserialize_with = "nullable")]
    pub datacenter: String,
    /// Other addresses, by name (`lan`, `wan`).
    #[serde(deserialize_with = "nullable")]
    pub tagged_addresses: BTreeMap<String, String>,
    /// Metadata.
    #[serde(deserialize_with = "nullable")]
    pub meta: BTreeMap<String, String>,
    /// Consul Enterprise: the partition; empty elsewhere.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub partition: String,
    /// The cluster peer it was imported from; empty for one of our own.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub peer_name: String,
    /// Where it is; servers before 1.17 do not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locality: Option<Locality>,
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

/// An instance of a service with its node, of `/v1/catalog/service/NAME`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct CatalogService {
    /// The node's UUID.
    #[serde(rename = "ID", deserialize_with = "nullable")]
    pub id: String,
    /// The node.
    #[serde(deserialize_with = "nullable")]
    pub node: String,
    /// The node's address.
    #[serde(deserialize_with = "nullable")]
    pub address: String,
    /// The datacenter.
    #[serde(deserialize_with = "nullable")]
    pub datacenter: String,
    /// The node's metadata.
    #[serde(deserialize_with = "nullable")]
    pub node_meta: BTreeMap<String, String>,
    /// Unique on its node.
    #[serde(rename = "ServiceID", deserialize_with = "nullable")]
    pub service_id: String,
    /// The service.
    #[serde(deserialize_with = "nullable")]
    pub service_name: String,
    /// Its tags.
    #[serde(deserialize_with = "nullable")]
    pub service_tags: Vec<String>,
    /// Its address; the node's if empty.
    #[serde(deserialize_with = "nullable")]
    pub service_address: String,
    /// Its port.
    #[serde(deserialize_with = "nullable")]
    pub service_port: i64,
    /// Its metadata.
    #[serde(deserialize_with = "nullable")]
    pub service_meta: BTreeMap<String, String>,
    /// Where it is; servers before 1.17 do not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_locality: Option<Locality>,
    /// Consul Enterprise: the namespace; empty elsewhere.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub namespace: String,
    /// Consul Enterprise: the partition; empty elsewhere.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub partition: String,
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

/// A service as part of its node.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeService {
    /// Unique on its node.
    #[serde(rename = "ID", deserialize_with = "nullable")]
    pub id: String,
    /// The service.
    #[serde(deserialize_with = "nullable")]
    pub service: String,
    /// Its tags.
    #[serde(deserialize_with = "nullable")]
    pub tags: Vec<String>,
    /// Its address; the node's if empty.
    #[serde(deserialize_with = "nullable")]
    pub address: String,
    /// Its port.
    #[serde(deserialize_with = "nullable")]
    pub port: i64,
    /// Its metadata.
    #[serde(deserialize_with = "nullable")]
    pub meta: BTreeMap<String, String>,
    /// Where it is; servers before 1.17 do not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locality: Option<Locality>,
    /// Consul Enterprise: the namespace; empty elsewhere.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub namespace: String,
    /// Consul Enterprise: the partition; empty elsewhere.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub partition: String,
    /// The raft index at which it was created.
    #[serde(deserialize_with = "nullable")]
    pub create_index: u64,
    /// The raft index at which it last changed.
    #[serde(deserialize_with = "nullable")]
    pub modify_index: u64,
    /// What this crate does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A node and its services by id, of `/v1/catalog/node/NAME`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeServices {
    /// The node.
    #[serde(deserialize_with = "nullable")]
    pub node: Node,
    /// Its services, by service id.
    #[serde(deserialize_with = "nullable")]
    pub services: BTreeMap<String, NodeService>,
}

/// An instance of a service with its checks, of `/v1/health/service/NAME`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ServiceHealth {
    /// The node.
    #[serde(deserialize_with = "nullable")]
    pub node: Node,
    /// The service.
    #[serde(deserialize_with = "nullable")]
    pub service: NodeService,
    /// The checks of the service and of its node.
    #[serde(deserialize_with = "nullable")]
    pub checks: Vec<HealthCheck>,
    /// Fields that could not be read, and have their defaults for it.
    #[serde(skip)]
    pub faults: Vec<FieldFault>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_nodes_and_services_are_read() {
        let nodes: Vec<Node> =
            serde_json::from_str(include_str!("../../tests/data/catalog-nodes.json")).unwrap();
        assert!(
            nodes
                .iter()
                .any(|node| node.meta.contains_key("external-node"))
        );
        let services: Vec<CatalogService> =
            serde_json::from_str(include_str!("../../tests/data/catalog-service.json")).unwrap();
        assert_eq!(services[0].service_name, "esm-agentless");
        assert_eq!(services[0].service_meta["external-source"], "consul-esm");
        assert!(services[0].node_meta.is_empty());
    }

    #[test]
    fn a_newer_server_says_where_a_service_is() {
        let health: ServiceHealth = serde_json::from_str(
            r#"{"Node":{"Node":"n","Partition":"p","Locality":{"Region":"r","Zone":"z"}},
                "Service":{"ID":"s","Locality":{"Zone":"z2"},"Connect":{}},"Checks":null}"#,
        )
        .unwrap();
        assert_eq!(health.node.locality.unwrap().zone, "z");
        assert_eq!(health.service.locality.unwrap().zone, "z2");
        assert!(health.checks.is_empty());
    }
}
