use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::is_unset;
use super::tls::RawTls;
use crate::definition::{ConnectOptions, DefinitionError, GrpcCheck};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::definition) struct RawGrpc {
    target: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    authority: String,
    /// Pairs, since a name may come more than once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    metadata: Vec<(String, String)>,
    #[serde(
        default,
        with = "crate::duration",
        skip_serializing_if = "Duration::is_zero"
    )]
    timeout: Duration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tls: Option<RawTls>,
    #[serde(default, skip_serializing_if = "is_unset")]
    connect: ConnectOptions,
}

impl RawGrpc {
    pub(super) fn check(self) -> Result<GrpcCheck, DefinitionError> {
        let mut check = GrpcCheck::new(&self.target)?
            .with_authority(&self.authority)?
            .with_connect(self.connect)?
            .with_timeout(self.timeout);
        for (name, value) in &self.metadata {
            check = check.with_metadata(name, value)?;
        }
        match self.tls {
            Some(tls) => check.with_tls(tls.into()),
            None => Ok(check),
        }
    }
}

impl From<&GrpcCheck> for RawGrpc {
    fn from(check: &GrpcCheck) -> Self {
        let metadata = check.metadata().map(|(name, value)| {
            // The check takes no other.
            let value = value.to_str().unwrap_or_default();
            (name.as_str().to_owned(), value.to_owned())
        });
        Self {
            target: check.target().to_owned(),
            authority: check.given_authority().to_owned(),
            metadata: metadata.collect(),
            timeout: check.given_timeout(),
            tls: check.tls().map(RawTls::from),
            connect: *check.connect(),
        }
    }
}
