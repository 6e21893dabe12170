//! What survives the process: one file, replaced as a whole.
//!
//! The file is a header, one line per check and a last line that says how many
//! there were, each a JSON object. A file that is cut, garbled or of another
//! version is set aside and said, never half used. Times are the wall clock's,
//! so that they mean the same to the next process.

mod file;
mod lock;
mod record;

pub use file::{Loaded, StateError, StateFile, encode};
pub use lock::DirectoryLock;
pub use record::{SavedLine, VERSION};
