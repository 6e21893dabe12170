use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command::{self, Command};
use super::{DefinitionError, command_options};

/// A program that is run on this machine. Exit code 0 is passing, 1 a warning,
/// all else critical, Nagios' 3 (unknown) too, as in Consul.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScriptCheck {
    command: Command,
    directory: PathBuf,
    environment: Vec<(Box<str>, Box<str>)>,
}

impl ScriptCheck {
    /// A check that runs `command`, a program and its arguments. There is no
    /// shell unless the command is one.
    ///
    /// # Errors
    /// [`DefinitionError::Command`].
    pub fn new<A: AsRef<str>>(
        command: impl IntoIterator<Item = A>,
    ) -> Result<Self, DefinitionError> {
        Ok(Self {
            command: Command::new(command)?,
            directory: PathBuf::new(),
            environment: Vec::new(),
        })
    }

    /// A check that has `shell` run a script, by `-c`.
    ///
    /// # Errors
    /// [`DefinitionError::Command`].
    pub fn with_shell(shell: &str, script: &str) -> Result<Self, DefinitionError> {
        Self::new(command::of_shell(shell, script))
    }

    command_options!();

    /// Sets the working directory. Without it: `/`.
    #[must_use]
    pub fn with_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Adds a variable to the environment, which has nothing but these and
    /// `PATH`: what the monitor's own holds, tokens for instance, is none of
    /// the program's business.
    ///
    /// # Errors
    /// [`DefinitionError::Variable`].
    pub fn with_variable(mut self, name: &str, value: &str) -> Result<Self, DefinitionError> {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(DefinitionError::Variable(name.to_owned()));
        }
        self.environment.push((name.into(), value.into()));
        Ok(self)
    }

    /// The working directory.
    pub fn directory(&self) -> &Path {
        if self.directory.as_os_str().is_empty() {
            Path::new("/")
        } else {
            &self.directory
        }
    }

    /// The variables beside `PATH`.
    pub fn environment(&self) -> impl Iterator<Item = (&str, &str)> {
        self.environment
            .iter()
            .map(|(name, value)| (&**name, &**value))
    }

    #[cfg(feature = "serde")]
    pub(super) fn given_directory(&self) -> &Path {
        &self.directory
    }
}
