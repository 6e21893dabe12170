use std::time::Duration;

use super::{DEFAULT_OUTPUT_MAX_SIZE, DEFAULT_TIMEOUT, DefinitionError, MAX_OUTPUT_MAX_SIZE};

/// What the checks that run a command have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Command {
    /// The program and its arguments; at least the program.
    pub(super) arguments: Box<[Box<str>]>,
    pub(super) timeout: Duration,
    pub(super) output_max_size: u32,
}

impl Command {
    pub(super) fn new<A: AsRef<str>>(
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Self, DefinitionError> {
        let arguments: Box<[Box<str>]> = arguments
            .into_iter()
            .map(|argument| argument.as_ref().into())
            .collect();
        if arguments.first().is_none_or(|program| program.is_empty()) {
            return Err(DefinitionError::Command("it has no program"));
        }
        if arguments.iter().any(|argument| argument.contains('\0')) {
            return Err(DefinitionError::Command("it has a NUL character"));
        }
        Ok(Self {
            arguments,
            timeout: Duration::ZERO,
            output_max_size: 0,
        })
    }

    pub(super) fn timeout(&self) -> Duration {
        if self.timeout.is_zero() {
            DEFAULT_TIMEOUT
        } else {
            self.timeout
        }
    }

    pub(super) fn output_max_size(&self) -> usize {
        let size = match self.output_max_size {
            0 => DEFAULT_OUTPUT_MAX_SIZE,
            size => size.min(MAX_OUTPUT_MAX_SIZE),
        };
        usize::try_from(size).unwrap_or(usize::MAX)
    }
}

pub(super) fn of_shell<'a>(shell: &'a str, script: &'a str) -> [&'a str; 3] {
    [shell, "-c", script]
}

/// The methods of a check with a field `command`.
macro_rules! command_options {
    () => {
        /// Sets how long the probe may take over all; zero means
        /// [`DEFAULT_TIMEOUT`](crate::DEFAULT_TIMEOUT).
        #[must_use]
        pub fn with_timeout(mut self, timeout: Duration) -> Self {
            self.command.timeout = timeout;
            self
        }

        /// Sets how much of the output is kept, in bytes: the first half and
        /// the last. Zero means
        /// [`DEFAULT_OUTPUT_MAX_SIZE`](crate::DEFAULT_OUTPUT_MAX_SIZE); more
        /// than [`MAX_OUTPUT_MAX_SIZE`](crate::MAX_OUTPUT_MAX_SIZE) is that
        /// much.
        #[must_use]
        pub fn with_output_max_size(mut self, bytes: u32) -> Self {
            self.command.output_max_size = bytes;
            self
        }

        /// The program and its arguments.
        pub fn command(&self) -> impl Iterator<Item = &str> {
            self.command.arguments.iter().map(|argument| &**argument)
        }

        /// How long the probe may take over all.
        pub fn timeout(&self) -> Duration {
            self.command.timeout()
        }

        /// How much of the output is kept, in bytes.
        pub fn output_max_size(&self) -> usize {
            self.command.output_max_size()
        }

        #[cfg(feature = "serde")]
        pub(super) fn given_timeout(&self) -> Duration {
            self.command.timeout
        }

        #[cfg(feature = "serde")]
        pub(super) fn given_output_max_size(&self) -> u32 {
            self.command.output_max_size
        }
    };
}
pub(super) use command_options;
