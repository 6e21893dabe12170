use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::is_zero;
use crate::definition::{DefinitionError, DockerCheck};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::definition) struct RawDocker {
    container: String,
    command: Vec<String>,
    #[serde(
        default,
        with = "crate::duration",
        skip_serializing_if = "Duration::is_zero"
    )]
    timeout: Duration,
    #[serde(default, skip_serializing_if = "is_zero")]
    output_max_size: u32,
}

impl RawDocker {
    pub(super) fn check(self) -> Result<DockerCheck, DefinitionError> {
        Ok(DockerCheck::new(&self.container, &self.command)?
            .with_timeout(self.timeout)
            .with_output_max_size(self.output_max_size))
    }
}

impl From<&DockerCheck> for RawDocker {
    fn from(check: &DockerCheck) -> Self {
        Self {
            container: check.container().to_owned(),
            command: check.command().map(str::to_owned).collect(),
            timeout: check.given_timeout(),
            output_max_size: check.given_output_max_size(),
        }
    }
}
