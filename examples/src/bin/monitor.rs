//! A whole monitor around the engine: several targets, each at its interval,
//! damped, with the changes printed. The catalog is the command line.
//!
//! `monitor http://192.0.2.1/health tcp://192.0.2.2:5432` runs until ^C; without
//! arguments it watches two ports of this process for two seconds, one of which
//! nobody answers.

#![expect(clippy::print_stdout, reason = "what a program prints is its result")]

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::{self as engine, Action, CheckId, Engine, EventKind, Settings, Written};
use evenkeel_probe::{self as probe, Definition, HttpCheck, Prober, ProberSettings, TcpCheck};
use evenkeel_threshold::{FirstResult, Leaky, Status, Timestamp};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

const INTERVAL: Duration = Duration::from_millis(200);

/// A catalog that is not written back to.
#[derive(Clone)]
struct Nowhere;

impl engine::Token for Nowhere {
    fn is_older_than(&self, _other: &Self) -> bool {
        false
    }
    fn keeps_status(&self) -> bool {
        false
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let targets: Vec<String> = std::env::args().skip(1).collect();
    if !targets.is_empty() {
        match watch(&targets).await? {}
    }
    let up = TcpListener::bind("127.0.0.1:0").await?;
    let down = TcpListener::bind("127.0.0.1:0").await?.local_addr()?; // closed again by now
    let targets = [up.local_addr()?, down].map(|address| format!("tcp://{address}"));
    match timeout(Duration::from_secs(2), watch(&targets)).await {
        Ok(ended) => match ended? {},
        Err(_) => Ok(()),
    }
}

async fn watch(targets: &[String]) -> Result<Infallible, Box<dyn Error>> {
    let started = Instant::now();
    let elapsed = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let now = || Timestamp::from_millis(elapsed());

    let mut engine = Engine::new(Settings {
        minimum_interval: INTERVAL,
        ..Settings::default()
    });
    let checks = targets
        .iter()
        .map(|target| check(target))
        .collect::<Result<_, _>>()?;
    engine.handle_catalog(now(), engine::CatalogUpdate::all(checks));

    let prober = Prober::new(ProberSettings::default())?;
    let mut probes = JoinSet::new();
    loop {
        while let Some(action) = engine.poll_action(now()) {
            match action {
                Action::Probe {
                    ticket, definition, ..
                } => {
                    let prober = prober.clone();
                    probes.spawn(async move { (ticket, prober.run(&definition).await) });
                }
                Action::Write { writes } => {
                    for write in writes {
                        println!("{}: {}: {}", write.id.node(), write.status, write.output);
                        engine.handle_written(now(), write.ticket, Written::Done(write.token));
                    }
                }
                Action::Event(event) => {
                    if let EventKind::Transition { from, to, seen, .. } = event.kind {
                        println!("{}: {from} to {to} after {seen}", event.id.node());
                    }
                }
                _ => {}
            }
        }
        let wake = engine.poll_timeout().map_or(60_000, Timestamp::as_millis);
        tokio::select! {
            Some(Ok((ticket, report))) = probes.join_next() => {
                let outcome = match report.outcome {
                    probe::Outcome::Observed(seen) => engine::Outcome::Observed(seen),
                    probe::Outcome::Unprobed(_) => engine::Outcome::Unprobed,
                };
                let finding = engine::Finding { outcome, output: report.output };
                engine.handle_observation(now(), ticket, finding);
            }
            () = sleep_until(started + Duration::from_millis(wake)) => engine.handle_timeout(now()),
        }
    }
}

type Check = engine::CatalogCheck<Definition, Nowhere, Leaky>;

fn check(target: &str) -> Result<Check, Box<dyn Error>> {
    let definition = match target.strip_prefix("tcp://") {
        Some(address) => TcpCheck::new(address)?.into(),
        None => HttpCheck::new(target)?.into(),
    };
    Ok(Check {
        id: CheckId::new("", "", target, "", ""),
        definition: Arc::new(definition),
        interval: INTERVAL,
        timeout: Duration::ZERO, // the default
        status: Status::Passing,
        output_hash: engine::output_hash(""),
        token: Nowhere,
        strategy: Arc::new(Leaky::new(2, 1)),
        first_result: FirstResult::Counted,
        deregister_after: None,
    })
}
