use serde::{Deserialize, Serialize};

use super::is_unset;
use crate::definition::{ConnectOptions, DefinitionError, DnsCheck, DnsOptions};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDns {
    server: String,
    name: String,
    #[serde(default)]
    options: DnsOptions,
    #[serde(default, skip_serializing_if = "is_unset")]
    connect: ConnectOptions,
}

impl RawDns {
    pub(super) fn check(self) -> Result<DnsCheck, DefinitionError> {
        DnsCheck::new(&self.server, &self.name, self.options)?.with_connect(self.connect)
    }
}

impl From<&DnsCheck> for RawDns {
    fn from(check: &DnsCheck) -> Self {
        Self {
            server: check.server().to_owned(),
            name: check.name(),
            options: check.options().clone(),
            connect: *check.connect(),
        }
    }
}
