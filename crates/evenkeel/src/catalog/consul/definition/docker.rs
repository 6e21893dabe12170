use std::time::Duration;

use evenkeel_consul::types::CheckDefinition;
use evenkeel_probe::{Definition, DefinitionError, DockerCheck};

use super::{Kind, output_max_size};

pub(super) const KIND: Kind = Kind {
    word: "docker",
    made: |definition, timeout| {
        let is_docker = !definition.docker_container_id.is_empty();
        is_docker.then(|| made(definition, timeout))
    },
    // As in Consul, the shell is of no use to a command with arguments.
    fields: &["DockerContainerID", "ScriptArgs"],
};

fn made(definition: &CheckDefinition, timeout: Duration) -> Result<Definition, DefinitionError> {
    let check = DockerCheck::new(&definition.docker_container_id, &definition.script_args)?
        .with_timeout(timeout)
        .with_output_max_size(output_max_size(definition));
    Ok(check.into())
}
