//! Documents that people write, TOML and JSON: read into one tree that knows its
//! lines, and verified against a schema with all faults told at once.

mod nearest;

pub use nearest::nearest;
