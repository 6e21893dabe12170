//! Programs that embed evenkeel's libraries, in `src/bin/`. Each runs by itself
//! in a few seconds: `cargo run -p evenkeel-examples --bin damped_ping`.

/// The project's README: its Rust is compiled and run with the documentation
/// tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
