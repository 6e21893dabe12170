use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::is_zero;
use crate::definition::{DefinitionError, ScriptCheck};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::definition) struct RawScript {
    command: Vec<String>,
    #[serde(default, skip_serializing_if = "is_unset")]
    directory: PathBuf,
    /// Pairs, so that their order stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    environment: Vec<(String, String)>,
    #[serde(
        default,
        with = "crate::duration",
        skip_serializing_if = "Duration::is_zero"
    )]
    timeout: Duration,
    #[serde(default, skip_serializing_if = "is_zero")]
    output_max_size: u32,
}

fn is_unset(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

impl RawScript {
    pub(super) fn check(self) -> Result<ScriptCheck, DefinitionError> {
        let mut check = ScriptCheck::new(&self.command)?
            .with_directory(self.directory)
            .with_timeout(self.timeout)
            .with_output_max_size(self.output_max_size);
        for (name, value) in &self.environment {
            check = check.with_variable(name, value)?;
        }
        Ok(check)
    }
}

impl From<&ScriptCheck> for RawScript {
    fn from(check: &ScriptCheck) -> Self {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Self {
            command: check.command().map(str::to_owned).collect(),
            directory: check.given_directory().to_owned(),
            environment: check.environment().map(owned).collect(),
            timeout: check.given_timeout(),
            output_max_size: check.given_output_max_size(),
        }
    }
}
