use std::collections::BTreeMap;

use evenkeel_probe::{Definition, DefinitionError, GrpcCheck};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Common, HeaderValues, Kind};

/// A question to the gRPC health service.
#[derive(Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Grpc {
    /// The host and port; a service may follow after a slash.
    #[schemars(example = &"shop.example:50051/shop.Cart")]
    pub target: String,

    /// The authority that is asked for; the TLS server name or the address when
    /// left out.
    #[serde(default)]
    #[schemars(example = &"shop.example")]
    pub authority: Option<String>,

    /// Metadata, each with one value or a list.
    #[serde(default)]
    #[schemars(example = &[("x-tenant", "blue")])]
    pub metadata: BTreeMap<String, HeaderValues>,
}

impl From<String> for Grpc {
    fn from(target: String) -> Self {
        Self {
            target,
            ..Self::default()
        }
    }
}

impl Kind for Grpc {
    fn key(&self) -> &'static str {
        "grpc"
    }

    fn takes(&self) -> &'static [&'static str] {
        &["tls", "connect"]
    }

    fn definition(&self, common: &Common<'_>) -> Result<Definition, DefinitionError> {
        common.complete(self.plain()?)
    }

    fn faults(&self, common: &Common<'_>) -> Vec<(String, String)> {
        common.faults(self.key(), self.plain())
    }
}

impl Grpc {
    /// Without what the check has in common with others.
    fn plain(&self) -> Result<GrpcCheck, DefinitionError> {
        let mut check = GrpcCheck::new(&self.target)?;
        if let Some(authority) = &self.authority {
            check = check.with_authority(authority)?;
        }
        for (name, values) in &self.metadata {
            for value in &values.0 {
                check = check.with_metadata(name, value)?;
            }
        }
        Ok(check)
    }
}
