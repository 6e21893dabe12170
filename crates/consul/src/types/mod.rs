//! What Consul's API sends and takes.
//!
//! Every type reads the answers of older and newer servers: a missing field
//! and `null` are the default, an unknown field is ignored, and kept in
//! `extra` where the record may have to be sent back.

mod acl;
mod agent;
mod catalog;
mod check;
mod fault;
mod registration;

pub use acl::{AclAccess, AclQuestion};
pub use agent::{AgentConfig, AgentSelf};
pub use catalog::{CatalogService, Locality, Node, NodeService, NodeServices, ServiceHealth};
pub use check::{CheckDefinition, CheckRef, HealthCheck, Status, UnknownStatus};
pub use fault::FieldFault;
pub use registration::{Deregistration, Registration, ServiceRegistration};

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// Fields that this crate does not know, as they came.
pub type Extra = BTreeMap<String, serde_json::Value>;

/// `null` is the default. Go's encoder writes it for an empty list or map.
fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Whether a value is the one that a missing field would have.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
