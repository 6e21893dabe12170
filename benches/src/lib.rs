//! What the load measurements share: native helpers compiled on the spot, a
//! network namespace of their own, a target that counts, CPU time. They are
//! programs, in `src/bin/`; the benchmarks of single functions are in
//! `benches/`.
//!
//! Linux only, and in need of a C compiler as `cc`.

pub mod cpu;
pub mod daemon;
pub mod floor;
pub mod namespace;
pub mod native;
pub mod peers;
pub mod process;
pub mod quantiles;
pub mod target;
