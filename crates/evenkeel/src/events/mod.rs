//! The event log: what happened to checks, one JSON object a line.
//!
//! It holds one line per transition and per fault and none per probe. The
//! format is versioned ([`VERSION`]) and described in `docs/events.md`; later
//! tools read it.

mod line;
mod rotate;
mod writer;

pub use line::{CheckName, EventLine, Kind, PhasesMs, VERSION};
pub use rotate::RotatingFile;
pub use writer::{EventLog, EventLogOptions};
