//! What the commands print. Nothing else in the library writes to the standard
//! streams, the log aside.

use std::io::{self, Write as _};

use crate::exit::{Exit, Failure};

/// Prints `text` on standard output. A reader that has gone away, as `head` has
/// after ten lines, is not a failure.
///
/// # Errors
///
/// Standard output cannot be written.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Io, format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a JSON value and a newline.
///
/// # Errors
///
/// As [`print`].
pub(super) fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&format!("{value:#}\n"))
}

/// Says on standard error why a command failed; for commands that log nothing.
pub(super) fn complain(failure: &Failure, json: bool) {
    let mut err = io::stderr().lock();
    for message in &failure.messages {
        // There is nowhere left to say that this failed.
        let _ = match json {
            true => writeln!(
                err,
                "{}",
                serde_json::json!({ "level": "ERROR", "message": message })
            ),
            false => writeln!(err, "evenkeel: {message}"),
        };
    }
}

/// Text for people on standard error, as it is.
pub(super) fn tell(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
