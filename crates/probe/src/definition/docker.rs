use std::time::Duration;

use super::command::{self, Command};
use super::{DefinitionError, command_options};

/// A command that is run in a Docker container. Exit code 0 is passing, 1 a
/// warning, all else critical.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DockerCheck {
    container: Box<str>,
    command: Command,
}

impl DockerCheck {
    /// A check that runs `command`, a program and its arguments, in the
    /// container of this name or id. There is no shell unless the command is
    /// one.
    ///
    /// # Errors
    /// [`DefinitionError::Container`], [`DefinitionError::Command`].
    pub fn new<A: AsRef<str>>(
        container: &str,
        command: impl IntoIterator<Item = A>,
    ) -> Result<Self, DefinitionError> {
        // Docker's own rule for names; ids are a part of it.
        let name = container.strip_prefix('/').unwrap_or(container);
        let mut bytes = name.bytes();
        let fits = bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
        if !fits {
            return Err(DefinitionError::Container(container.to_owned()));
        }
        Ok(Self {
            container: name.into(),
            command: Command::new(command)?,
        })
    }

    /// A check that has `shell` run a script, by `-c`.
    ///
    /// # Errors
    /// [`DefinitionError::Container`], [`DefinitionError::Command`].
    pub fn with_shell(container: &str, shell: &str, script: &str) -> Result<Self, DefinitionError> {
        Self::new(container, command::of_shell(shell, script))
    }

    command_options!();

    /// The container's name or id.
    pub fn container(&self) -> &str {
        &self.container
    }
}
