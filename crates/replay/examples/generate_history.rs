//! Writes a made-up history to standard output.
//!
//! The bundled one is made by
//!
//! ```text
//! cargo run -p evenkeel-replay --example generate_history | gzip -9n > crates/replay/data/sample.csv.gz
//! ```
//!
//! Other numbers are taken as arguments: seed, checks, results of each check.

use std::error::Error;
use std::io::{self, Write as _};

use evenkeel_replay::sample::{self, Sample};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut wanted = Sample::default();
    if let Some(seed) = arguments.next() {
        wanted.seed = seed.parse()?;
    }
    if let Some(checks) = arguments.next() {
        wanted.checks = checks.parse()?;
    }
    if let Some(results) = arguments.next() {
        wanted.results = results.parse()?;
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    sample::write(wanted, &mut out)?;
    out.flush()?;
    Ok(())
}
