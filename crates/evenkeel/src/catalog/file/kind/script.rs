use std::collections::BTreeMap;
use std::path::PathBuf;

use evenkeel_probe::{Definition, DefinitionError, ScriptCheck};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Common, Kind};

/// A program on this machine.
#[derive(Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Script {
    /// The program and its arguments. There is no shell unless it is one.
    #[schemars(example = &["/usr/lib/nagios/plugins/check_load", "-w", "5"])]
    pub command: Vec<String>,

    /// The working directory; / when left out.
    #[serde(default)]
    #[schemars(example = &"/var/lib/checks")]
    pub directory: Option<PathBuf>,

    /// The environment, which has nothing else but PATH.
    #[serde(default)]
    #[schemars(example = &[("LANG", "C.UTF-8")])]
    pub environment: BTreeMap<String, String>,

    /// How much of the output is kept for people, in bytes; 4096 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 131_072), example = 512)]
    pub output_max_size: Option<u32>,
}

impl Kind for Script {
    fn key(&self) -> &'static str {
        "script"
    }

    fn takes(&self) -> &'static [&'static str] {
        &[]
    }

    fn definition(&self, common: &Common<'_>) -> Result<Definition, DefinitionError> {
        let mut check = ScriptCheck::new(&self.command)?
            .with_timeout(common.timeout)
            .with_output_max_size(self.output_max_size.unwrap_or_default())
            .with_directory(self.directory.clone().unwrap_or_default());
        for (name, value) in &self.environment {
            check = check.with_variable(name, value)?;
        }
        Ok(check.into())
    }
}
