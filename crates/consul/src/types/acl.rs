use serde::{Deserialize, Serialize};

/// A right on one thing, asked by `POST /v1/internal/acl/authorize`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct AclQuestion {
    /// The kind of thing: `node`, `service`, `key`, `session`, `agent`, ….
    pub resource: String,
    /// The name of the thing. Consul wants it empty for kinds without names.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub segment: String,
    /// `read`, `write`, `list`.
    pub access: String,
    /// Consul Enterprise: the namespace of the thing; empty elsewhere.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Consul Enterprise: the partition of the thing; empty elsewhere.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub partition: String,
}

impl AclQuestion {
    /// May `resource` `segment` be accessed so? E.g. `("node", "n1", "read")`.
    pub fn new(
        resource: impl Into<String>,
        segment: impl Into<String>,
        access: impl Into<String>,
    ) -> Self {
        Self {
            resource: resource.into(),
            segment: segment.into(),
            access: access.into(),
            namespace: String::new(),
            partition: String::new(),
        }
    }
}

/// One answer to an [`AclQuestion`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AclAccess {
    /// Whether the token has the right.
    pub allow: bool,
}
