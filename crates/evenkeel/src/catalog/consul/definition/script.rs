use std::time::Duration;

use evenkeel_consul::types::CheckDefinition;
use evenkeel_probe::{Definition, DefinitionError, ScriptCheck};

use super::{Kind, output_max_size};

pub(super) const KIND: Kind = Kind {
    word: "script",
    made: |definition, timeout| {
        let is_script = !definition.script_args.is_empty();
        is_script.then(|| made(definition, timeout))
    },
    fields: &["ScriptArgs"],
};

fn made(definition: &CheckDefinition, timeout: Duration) -> Result<Definition, DefinitionError> {
    let check = ScriptCheck::new(&definition.script_args)?
        .with_timeout(timeout)
        .with_output_max_size(output_max_size(definition));
    Ok(check.into())
}
