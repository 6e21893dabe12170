//! Benchmarks of the workspace's crates, in `benches/`; there is nothing here.
