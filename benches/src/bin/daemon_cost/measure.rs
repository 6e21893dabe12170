use std::path::Path;
use std::time::{Duration, Instant};

use evenkeel_benches::daemon::Daemon;
use evenkeel_benches::target::Target;
use evenkeel_benches::{floor, process};
use serde_json::Value;

use crate::Failable;

/// Intervals that pass between the first probe of every check and the
/// measurement.
const SETTLE: u32 = 3;

const MIB: f64 = 1024.0 * 1024.0;

/// What the daemon is given to do.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) checks: u32,
    /// Seconds.
    pub(crate) interval: u32,
    /// For so long it is measured.
    pub(crate) seconds: u32,
}

/// Measures and prints one case.
pub(crate) fn measure(
    name: &str,
    kind: &str,
    floor: &Path,
    target: &Target,
    start: impl FnOnce() -> Failable<Daemon>,
    load: Load,
) -> Failable<()> {
    let rate = (load.checks / load.interval).max(1);
    let limit = || {
        let probes = rate * load.seconds;
        floor::cost(floor, kind, target.address(0), load.checks, probes, rate)
    };
    let before = limit()?;

    target.ask("reset")?;
    let mut daemon = start()?;
    wait_for_first_probes(target, &mut daemon, load)?;
    pause(load.interval * SETTLE);
    let start_peak = process::resident(daemon.id())?.peak;

    target.ask("reset")?;
    let begin = Instant::now();
    let cpu_before = process::cpu(daemon.id())?;
    let mut samples = Vec::new();
    for _ in 0..load.seconds {
        pause(1);
        samples.push(process::resident(daemon.id())?.now as f64 / MIB);
    }
    let cpu = process::cpu(daemon.id())? - cpu_before;
    let took = begin.elapsed().as_secs_f64();
    let stats = ask(target, "stats")?;
    let gaps = ask(target, "gaps")?;
    daemon.is_running()?;
    drop(daemon);

    let floors = [before, limit()?];
    let floor = floors.iter().sum::<f64>() / 2.0;

    let done = number(&stats, "probes")?;
    let expected = f64::from(load.checks) * took / f64::from(load.interval);
    let cost = cpu.as_secs_f64() * 1e6 / done;
    let late = |quantile| {
        Ok::<_, Box<dyn std::error::Error>>(
            number(&gaps, quantile)? - f64::from(load.interval) * 1000.0,
        )
    };
    let (late, latest) = (late("p99_ms")?, late("p999_ms")?);
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    let most = samples.iter().copied().fold(0.0, f64::max);
    let start_peak = start_peak as f64 / MIB;
    println!(
        "{name:12} {cost:6.2} us/probe, floor {floor:.2} {floors:.2?}: {:.2} x floor\n\
         {:12} {:.2} % of the expected probes, {:.0} not answered well\n\
         {:12} p99 {late:.0} ms late, p99.9 {latest:.0} ms\n\
         {:12} resident: mean {mean:.1} MiB, most {most:.1} MiB, at the start up to {start_peak:.1} MiB",
        cost / floor,
        "",
        done / expected * 100.0,
        number(&stats, "bad")?,
        "",
        "",
    );
    println!(
        "{}",
        serde_json::json!({
            "what": name, "checks": load.checks, "interval_s": load.interval,
            "cpu_us_per_probe": cost, "floor_us_per_probe": floors, "ratio": cost / floor,
            "done": done / expected, "p99_late_ms": late, "p999_late_ms": latest,
            "rss_mean_mib": mean, "rss_most_mib": most, "rss_start_peak_mib": start_peak,
        })
    );
    Ok(())
}

/// How busy the machine is.
pub(crate) fn say_load() -> Failable<()> {
    let load = std::fs::read_to_string("/proc/loadavg")?;
    println!("load of the machine: {}", load.trim());
    Ok(())
}

fn wait_for_first_probes(target: &Target, daemon: &mut Daemon, load: Load) -> Failable<()> {
    let patience = Duration::from_secs(60 + u64::from(load.interval));
    let begin = Instant::now();
    loop {
        daemon.is_running()?;
        let probed = number(&ask(target, "stats")?, "probed_targets")?;
        if probed >= f64::from(load.checks) {
            return Ok(());
        }
        if begin.elapsed() > patience {
            let log = daemon.log_tail();
            return Err(format!("{probed} of {} checks were probed\n{log}", load.checks).into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn pause(seconds: u32) {
    std::thread::sleep(Duration::from_secs(seconds.into()));
}

fn ask(target: &Target, command: &str) -> Failable<Value> {
    Ok(serde_json::from_str(&target.ask(command)?)?)
}

fn number(of: &Value, field: &str) -> Failable<f64> {
    of[field]
        .as_f64()
        .ok_or_else(|| format!("the target says no {field}: {of}").into())
}
