//! Documents that people write, TOML and JSON: read into one tree that knows its
//! lines, and verified against a schema with all faults told at once.
//!
//! Neither format's reader can do that by itself: both stop at the first fault,
//! and what they say of an unknown key names no line.

mod file;
mod nearest;
mod read;
mod shape;
#[cfg(test)]
mod tests;
mod tree;
mod verify;

pub use file::{open_file, read_file};
pub use nearest::nearest;
pub use read::{Format, read, read_value};
pub use shape::{Field, Shape, schema};
pub use tree::{Fault, Node, Path, Place, Value};
pub use verify::{Hint, verify};
