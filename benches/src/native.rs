//! The helpers in C, compiled when they are needed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// The physical limit of a probe; see the head of its source.
pub const FLOOR: &str = include_str!("../native/floor.c");

/// The least that running a program takes; see the head of its source.
pub const SPAWN: &str = include_str!("../native/spawn.c");

/// The counting target; see the head of its source.
pub const TARGET: &str = include_str!("../native/target.c");

/// Compiles `source` as `name` in `directory`.
///
/// # Errors
/// There is no `cc`, or it refuses.
pub fn compile(directory: &Path, name: &str, source: &str) -> io::Result<PathBuf> {
    let source_file = directory.join(format!("{name}.c"));
    let program = directory.join(name);
    fs::write(&source_file, source)?;
    let status = Command::new("cc")
        .args(["-O2", "-w", "-o"])
        .args([&program, &source_file])
        .status()?;
    if status.success() {
        Ok(program)
    } else {
        Err(io::Error::other(format!("cc failed on {name}.c")))
    }
}
