//! How long replaying a large history takes on one core.
//!
//! ```text
//! cargo run --release -p evenkeel-benches --bin replay_rate -- [ROWS]
//! ```
//!
//! A made-up history of 1,000 checks and ROWS rows is written into a temporary
//! directory, as CSV, gzip and JSON lines, and replayed with six strategies of
//! different kinds; the last round also keeps timelines of 100 checks. Prints a
//! table and a line of JSON for each: CPU time of the process, which has one
//! thread.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead as _, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use evenkeel_benches::cpu;
use evenkeel_replay::sample::{self, Sample};
use evenkeel_replay::{Candidate, History, Replay, ReplaySettings};
use evenkeel_threshold::{AnyStrategy, Consecutive, Counts, Cusum, Ewma, Leaky, Window};

const CHECKS: u32 = 1000;

type Failable<T> = Result<T, Box<dyn Error>>;

fn main() -> Failable<()> {
    let rows: u32 = match std::env::args().nth(1) {
        Some(rows) => rows.parse()?,
        None => 10_000_000,
    };
    let directory = tempfile::tempdir()?;
    let csv = directory.path().join("history.csv");
    let mut out = io::BufWriter::new(File::create(&csv)?);
    let wanted = Sample {
        seed: 1,
        checks: CHECKS,
        // Two hours of the made-up history are missing.
        results: rows.div_ceil(CHECKS) + 120,
    };
    sample::write(wanted, &mut out)?;
    out.flush()?;
    let packed = packed(&csv)?;
    let json = json(&csv)?;
    for (what, path, timelines) in [
        ("csv", &csv, 0),
        ("csv.gz", &packed, 0),
        ("json lines", &json, 0),
        ("csv, timelines", &csv, 100),
    ] {
        let before = cpu::used(None)?;
        let results = replay(path, timelines)?;
        let seconds = (cpu::used(None)? - before).as_secs_f64();
        let bytes = path.metadata()?.len();
        println!(
            "{what:16} {results:>10} rows {:>6} MB {seconds:6.2} s {:5.0} ns/row",
            bytes / 1_000_000,
            seconds * 1e9 / results as f64
        );
        println!(
            "{}",
            serde_json::json!({"what": what, "rows": results, "cpu_s": seconds})
        );
    }
    Ok(())
}

fn candidates() -> Failable<Vec<Candidate>> {
    let three = Counts {
        failures_before_critical: 3,
        success_before_passing: 3,
        ..Counts::default()
    };
    let strategies: [(&str, AnyStrategy); 6] = [
        ("raw", AnyStrategy::default()),
        ("consecutive", Consecutive::new(three)?.into()),
        ("leaky", Leaky::new(2, 2).into()),
        ("window", Window::default().into()),
        ("cusum", Cusum::default().into()),
        ("ewma", Ewma::default().into()),
    ];
    Ok(strategies
        .into_iter()
        .map(|(name, strategy)| Candidate::new(name, strategy))
        .collect())
}

fn replay(path: &Path, timelines: usize) -> Failable<u64> {
    let mut settings = ReplaySettings::default();
    settings.timelines = timelines;
    let mut replay = Replay::new(settings, candidates()?);
    let mut history = History::new(File::open(path)?)?;
    let mut bad = 0;
    let _ = replay.read(&mut history, |_| {
        bad += 1;
        ControlFlow::Continue(())
    })?;
    let outcome = replay.finish();
    if bad > 0 || outcome.strategies.iter().any(|it| it.tally.writes == 0) {
        return Err(format!("{bad} bad rows, or a strategy that did nothing").into());
    }
    Ok(outcome.results)
}

fn packed(csv: &Path) -> Failable<PathBuf> {
    let path = csv.with_extension("csv.gz");
    let file = io::BufWriter::new(File::create(&path)?);
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    io::copy(&mut File::open(csv)?, &mut packed)?;
    packed.finish()?.flush()?;
    Ok(path)
}

fn json(csv: &Path) -> Failable<PathBuf> {
    let path = csv.with_extension("jsonl");
    let mut out = io::BufWriter::new(File::create(&path)?);
    for line in io::BufReader::new(File::open(csv)?).lines().skip(1) {
        let line = line?;
        let mut fields = line.splitn(3, ',');
        let mut field = || fields.next().unwrap_or_default();
        let (time, check, status) = (field(), field(), field());
        writeln!(
            out,
            r#"{{"time":{time},"check":"{check}","status":"{status}"}}"#
        )?;
    }
    out.flush()?;
    Ok(path)
}
