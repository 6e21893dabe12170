use evenkeel_probe::{Definition, DefinitionError, DockerCheck};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Common, Kind};

/// A command in a Docker container.
#[derive(Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Docker {
    /// The container's name or id.
    #[schemars(example = &"shop-db")]
    pub container: String,

    /// The program and its arguments. There is no shell unless it is one.
    #[schemars(example = &["pg_isready", "-q"])]
    pub command: Vec<String>,

    /// How much of the output is kept for people, in bytes; 4096 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 131_072), example = 512)]
    pub output_max_size: Option<u32>,
}

impl Kind for Docker {
    fn key(&self) -> &'static str {
        "docker"
    }

    fn takes(&self) -> &'static [&'static str] {
        &[]
    }

    fn definition(&self, common: &Common<'_>) -> Result<Definition, DefinitionError> {
        let check = DockerCheck::new(&self.container, &self.command)?
            .with_timeout(common.timeout)
            .with_output_max_size(self.output_max_size.unwrap_or_default());
        Ok(check.into())
    }
}
