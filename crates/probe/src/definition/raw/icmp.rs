use serde::{Deserialize, Serialize};

use crate::definition::{DefinitionError, IcmpCheck, IcmpOptions};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawIcmp {
    target: String,
    #[serde(default)]
    options: IcmpOptions,
}

impl RawIcmp {
    pub(super) fn check(self) -> Result<IcmpCheck, DefinitionError> {
        IcmpCheck::new(&self.target, self.options)
    }
}

impl From<&IcmpCheck> for RawIcmp {
    fn from(check: &IcmpCheck) -> Self {
        Self {
            target: check.target().to_owned(),
            options: check.options().clone(),
        }
    }
}
