//! Programs that embed evenkeel's libraries, in `src/bin/`. Each runs by itself
//! in a few seconds: `cargo run -p evenkeel-examples --bin damped_ping`.
