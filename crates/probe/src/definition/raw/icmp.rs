use serde::{Deserialize, Serialize};

use super::is_unset;
use crate::definition::{ConnectOptions, DefinitionError, IcmpCheck, IcmpOptions};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawIcmp {
    target: String,
    #[serde(default)]
    options: IcmpOptions,
    #[serde(default, skip_serializing_if = "is_unset")]
    connect: ConnectOptions,
}

impl RawIcmp {
    pub(super) fn check(self) -> Result<IcmpCheck, DefinitionError> {
        IcmpCheck::new(&self.target, self.options)?.with_connect(self.connect)
    }
}

impl From<&IcmpCheck> for RawIcmp {
    fn from(check: &IcmpCheck) -> Self {
        Self {
            target: check.target().to_owned(),
            options: check.options().clone(),
            connect: *check.connect(),
        }
    }
}
