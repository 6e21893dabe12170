//! How the program ends: exit codes, and the failure that carries one.

use std::fmt;
use std::process::ExitCode;

/// Exit codes of the program. The numbers above one are those of BSD's
/// `sysexits.h`; docs/configuration.md lists them for users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done; after a signal to stop, too.
    Ok = 0,
    /// What was to be verified is not so; a probe gave a warning.
    NotSo = 1,
    /// A probe found its target critical (Nagios plugins have the same number).
    Critical = 2,
    /// A probe could not be run (as with Nagios plugins, where it is "unknown").
    Unprobed = 3,
    /// The command line is wrong (`EX_USAGE`).
    Usage = 64,
    /// What was given to be read is wrong (`EX_DATAERR`).
    Data = 65,
    /// What was asked for is not there: no daemon answers (`EX_UNAVAILABLE`).
    Unavailable = 69,
    /// A fault of the program itself (`EX_SOFTWARE`).
    Internal = 70,
    /// A file or socket cannot be made (`EX_CANTCREAT`).
    CannotCreate = 73,
    /// Reading or writing failed (`EX_IOERR`).
    Io = 74,
    /// Ended by a second signal before all was in order (`EX_TEMPFAIL`).
    Cut = 75,
    /// The right to do it is missing (`EX_NOPERM`).
    NoPermission = 77,
    /// The configuration is missing or wrong (`EX_CONFIG`).
    Config = 78,
}

impl Exit {
    /// The number the process ends with.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why the program ends before its work is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What the process ends with.
    pub exit: Exit,
    /// For people: what failed, and what to do. One entry per fault; shown as
    /// they are, one log line each.
    pub messages: Vec<String>,
}

impl Failure {
    /// A failure with one message.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            messages: vec![message.into()],
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages.join("\n"))
    }
}

impl std::error::Error for Failure {}
