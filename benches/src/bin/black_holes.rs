//! Whether targets that swallow everything delay the others.
//!
//! ```text
//! cargo build --release -p evenkeel
//! cargo run --release -p evenkeel-benches --bin black_holes -- [TARGETS [SECONDS [ROUNDS]]]
//! ```
//!
//! TARGETS good ones, probed over HTTP once a second each, alone and beside as many
//! black-holed ones, each of which is probed without a pause with a timeout of a
//! second; by turns, ROUNDS times, SECONDS each. First by a prober in this
//! program, which sees how long each probe takes; then by the daemon, whose
//! scheduler decides when a probe begins: what is counted is by how much the gap
//! between two probes of a target, as they arrive there, is longer than a second,
//! and how long the daemon says that they took. Needs root, for a network of its
//! own.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]
#![allow(
    clippy::disallowed_methods,
    reason = "another process is measured, in the time of the world"
)]

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use evenkeel_benches::daemon::Daemon;
use evenkeel_benches::quantiles::{Quantiles, millis};
use evenkeel_benches::target::Target;
use evenkeel_benches::{namespace, native, process};
use evenkeel_probe::{Definition, HttpCheck, Prober, ProberSettings};
use evenkeel_threshold::Status;
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior};

type Failable<T> = Result<T, Box<dyn Error>>;

const BASE: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 0);

/// How much later the good ones may be.
const GOAL: Duration = Duration::from_millis(5);

fn main() -> Failable<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u32| match arguments.next() {
        Some(text) => text.parse::<u32>(),
        None => Ok(default),
    };
    let (targets, seconds, rounds) = (number(1_000)?.max(1), number(10)?.max(1), number(3)?.max(1));
    if !namespace::enter()? {
        return Err("a network namespace is needed, and not permitted here".into());
    }
    process::allow_descriptors()?;
    let load = std::fs::read_to_string("/proc/loadavg")?;
    println!(
        "{targets} good targets, alone and beside {targets} black-holed ones, {seconds} s each; load of the machine: {}",
        load.trim()
    );
    let directory = tempfile::tempdir()?;
    let program = native::compile(directory.path(), "target", native::TARGET)?;
    let target = Target::start(&program, "http", BASE, targets)?;

    let mut p99 = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (beside, p99) in [0, targets].into_iter().zip(&mut p99) {
            let took = probe(&target, targets, beside, seconds)?;
            println!("prober, {} took: {took}", named(beside));
            p99.push(took.p99);
        }
    }
    verdict("how long a probe takes in the prober", p99);

    let mut late = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for (beside, late) in [0, targets].into_iter().zip(&mut late) {
            let state = directory.path().join(format!("{round}-{beside}"));
            std::fs::create_dir(&state)?;
            late.push(watch(&state, &target, targets, beside, seconds)?);
        }
    }
    verdict("how late the daemon's probes arrive", late);
    Ok(())
}

fn named(beside: u32) -> &'static str {
    if beside == 0 {
        "alone:        "
    } else {
        "black holes beside:"
    }
}

/// Prints the medians and their difference.
fn verdict(what: &str, figures: [Vec<Duration>; 2]) {
    let [alone, beside] = figures.map(|mut figures| {
        figures.sort_unstable();
        figures[figures.len() / 2]
    });
    let more = beside.saturating_sub(alone);
    println!(
        "{what}, p99, median of the rounds: alone {:.2} ms, beside black holes {:.2} ms, {:.2} ms more: {}",
        millis(alone),
        millis(beside),
        millis(more),
        if more <= GOAL { "met" } else { "missed" }
    );
    println!(
        "{}",
        serde_json::json!({
            "what": what, "alone_p99_ms": millis(alone), "beside_p99_ms": millis(beside),
            "more_ms": millis(more),
        })
    );
}

fn black_hole(index: u32) -> SocketAddr {
    let ip = u32::from(namespace::BLACK_HOLE) + 1 + index;
    SocketAddr::from((Ipv4Addr::from(ip), 80))
}

fn check(address: SocketAddr) -> Failable<Definition> {
    let check = HttpCheck::new(&format!("http://{address}/health"))?;
    Ok(check.with_timeout(Duration::from_secs(1)).into())
}

/// How long the probes of the good ones take.
fn probe(target: &Target, good: u32, beside: u32, seconds: u32) -> Failable<Quantiles> {
    let prober = Prober::new(ProberSettings::default())?;
    let definitions: Vec<Rc<Definition>> = (0..good)
        .map(|index| Ok(Rc::new(check(target.address(index))?)))
        .collect::<Failable<_>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = tokio::task::LocalSet::new();
    let took = local.block_on(&runtime, async {
        for index in 0..beside {
            let (prober, definition) = (prober.clone(), check(black_hole(index))?);
            tokio::task::spawn_local(async move {
                // Each at another time of its second.
                tokio::time::sleep(Duration::from_secs(1) * index / beside).await;
                loop {
                    prober.run(&definition).await;
                }
            });
        }
        // All of them run.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let took = Rc::new(RefCell::new(Vec::new()));
        let failed = Rc::new(Cell::new(0_u32));
        let begin = Instant::now();
        let mut ticks = tokio::time::interval(Duration::from_millis(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut started = 0;
        while started < good * seconds {
            ticks.tick().await;
            let due = (begin.elapsed().as_secs_f64() * f64::from(good)) as u32;
            while started < due.min(good * seconds) {
                let definition = Rc::clone(&definitions[(started % good) as usize]);
                let (prober, took, failed) = (prober.clone(), took.clone(), failed.clone());
                tokio::task::spawn_local(async move {
                    let begin = Instant::now();
                    let report = prober.run(&definition).await;
                    took.borrow_mut().push(begin.elapsed());
                    let bad = report.status() != Some(Status::Passing);
                    failed.set(failed.get() + u32::from(bad));
                });
                started += 1;
            }
        }
        // The last ones.
        tokio::time::sleep(Duration::from_secs(1)).await;
        match failed.get() {
            0 => Ok::<_, Box<dyn Error>>(took.take()),
            some => Err(format!("{some} probes of good targets failed").into()),
        }
    })?;
    Ok(Quantiles::of(took))
}

/// How late the daemon's probes of the good ones arrive, at the 99th percentile.
fn watch(
    state: &Path,
    target: &Target,
    good: u32,
    beside: u32,
    seconds: u32,
) -> Failable<Duration> {
    let file = state.join("checks.toml");
    let mut text = String::new();
    for index in 0..good {
        let address = target.address(index);
        writeln!(
            text,
            "[[check]]\nname = \"good {index}\"\nhttp = \"http://{address}/health\"\ninterval = \"1s\"\ntimeout = \"1s\"\ninitial_status = \"passing\"\n"
        )?;
    }
    for index in 0..beside {
        // Another kind, so that the daemon's account of durations keeps them apart.
        let address = black_hole(index);
        writeln!(
            text,
            "[[check]]\nname = \"black hole {index}\"\ntcp = \"{address}\"\ninterval = \"1s\"\ntimeout = \"1s\"\n"
        )?;
    }
    std::fs::write(&file, text)?;
    target.ask("reset")?;
    let file = file.to_str().ok_or("the path is no text")?;
    let mut daemon = Daemon::start(state, &["--file".to_owned(), file.to_owned()])?;
    wait_for_first_probes(target, &mut daemon, good)?;
    std::thread::sleep(Duration::from_secs(3));

    target.ask("reset")?;
    let before = durations(&daemon.metrics()?);
    std::thread::sleep(Duration::from_secs(seconds.into()));
    let gaps: Value = serde_json::from_str(&target.ask("gaps")?)?;
    let stats: Value = serde_json::from_str(&target.ask("stats")?)?;
    let after = durations(&daemon.metrics()?);
    daemon.is_running()?;
    let late = |name: &str| gaps[name].as_f64().unwrap_or(f64::NAN) - 1000.0;
    println!(
        "daemon, {} late: p50 {:.0}  p99 {:.0}  p99.9 {:.0} ms; took at p99 at most {} s; {} probes of {}",
        named(beside),
        late("p50_ms"),
        late("p99_ms"),
        late("p999_ms"),
        bound(&before, &after).unwrap_or_else(|| "?".to_owned()),
        stats["probes"],
        good * seconds,
    );
    Ok(Duration::from_secs_f64(late("p99_ms").max(0.0) / 1000.0))
}

fn wait_for_first_probes(target: &Target, daemon: &mut Daemon, good: u32) -> Failable<()> {
    for _ in 0..1_200 {
        daemon.is_running()?;
        let stats: Value = serde_json::from_str(&target.ask("stats")?)?;
        if stats["probed_targets"].as_u64() >= Some(good.into()) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!("not all targets were probed\n{}", daemon.log_tail()).into())
}

/// The counts of HTTP probes by the upper bound of their durations.
fn durations(metrics: &str) -> Vec<(String, u64)> {
    let buckets = metrics.lines().filter(|line| {
        line.starts_with("evenkeel_probe_duration_seconds_bucket") && line.contains("\"http\"")
    });
    buckets
        .filter_map(|line| {
            let (_, bound) = line.split_once("le=\"")?;
            let (bound, _) = bound.split_once('"')?;
            let count = line.rsplit(' ').next()?.parse().ok()?;
            Some((bound.to_owned(), count))
        })
        .collect()
}

/// The upper bound under which 99 of 100 are.
fn bound(before: &[(String, u64)], after: &[(String, u64)]) -> Option<String> {
    let counts: Vec<(&str, u64)> = before
        .iter()
        .zip(after)
        .map(|((_, before), (bound, after))| (&**bound, after - before))
        .collect();
    let all = counts.last()?.1;
    let enough = counts.iter().find(|(_, count)| count * 100 >= all * 99);
    enough.map(|(bound, _)| (*bound).to_owned())
}
