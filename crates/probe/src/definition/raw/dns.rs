use serde::{Deserialize, Serialize};

use crate::definition::{DefinitionError, DnsCheck, DnsOptions};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDns {
    server: String,
    name: String,
    #[serde(default)]
    options: DnsOptions,
}

impl RawDns {
    pub(super) fn check(self) -> Result<DnsCheck, DefinitionError> {
        DnsCheck::new(&self.server, &self.name, self.options)
    }
}

impl From<&DnsCheck> for RawDns {
    fn from(check: &DnsCheck) -> Self {
        Self {
            server: check.server().to_owned(),
            name: check.name(),
            options: check.options().clone(),
        }
    }
}
