//! What one probe costs in CPU time, beside the physical limit in the same run.
//!
//! ```text
//! cargo run --release -p evenkeel-benches --bin probe_cost -- [PROBES [RATE [ROUNDS]]]
//! ```
//!
//! By turns, ROUNDS times: `floor` (nothing but the kernel's work), the
//! prober, and a bare exchange over hyper's HTTP/1 client with the least
//! settings. One thread each, a new connection per probe, RATE probes a second
//! over 4,990 loopback addresses. Prints a table and a line of JSON, with the
//! median over the rounds.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::cell::Cell;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_benches::{cpu, floor, namespace, native, target::Target};
use evenkeel_probe::{Definition, HttpCheck, Prober, ProberSettings, TcpCheck};
use evenkeel_threshold::Status;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior};

const ADDRESSES: u32 = 4990;
const BASE: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 0);

type Failable<T> = Result<T, Box<dyn Error>>;
type Contender<'a> = (&'static str, Box<dyn Fn() -> Failable<f64> + 'a>);

fn main() -> Failable<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u32| match arguments.next() {
        Some(text) => text.parse::<u32>(),
        None => Ok(default),
    };
    let (probes, rate, rounds) = (number(50_000)?, number(5_000)?, number(3)?);
    let own_network = namespace::enter()?;
    println!("probes {probes}, rate {rate}/s, own network namespace: {own_network}");
    let directory = tempfile::tempdir()?;
    let program = native::compile(directory.path(), "floor", native::FLOOR)?;
    let target = native::compile(directory.path(), "target", native::TARGET)?;
    // For a profiler: only the contenders with this in their name.
    let only = std::env::var("ONLY").unwrap_or_default();
    for kind in ["http", "tcp"] {
        let target = Target::start(&target, kind, BASE, ADDRESSES)?;
        let run = Run {
            target: &target,
            probes,
            rate,
        };
        let mut contenders: Vec<Contender<'_>> = Vec::new();
        if kind == "http" {
            contenders.push(("floor http", Box::new(|| run.floor(&program, "http"))));
            contenders.push(("prober http", Box::new(|| run.prober(http))));
            contenders.push(("hyper http", Box::new(|| run.hyper())));
        } else {
            contenders.push(("floor tcp", Box::new(|| run.floor(&program, "tcp"))));
            contenders.push((
                "prober tcp",
                Box::new(|| run.prober(|address| tcp(address, false))),
            ));
            contenders.push(("floor tcp-rst", Box::new(|| run.floor(&program, "tcp-rst"))));
            contenders.push((
                "prober tcp-rst",
                Box::new(|| run.prober(|address| tcp(address, true))),
            ));
        }
        contenders.retain(|(name, _)| name.contains(&only));
        let mut figures = vec![Vec::new(); contenders.len()];
        for _ in 0..rounds {
            for ((_, contender), figures) in contenders.iter().zip(&mut figures) {
                figures.push(contender()?);
            }
        }
        let mut base = None;
        for ((name, _), figures) in contenders.iter().zip(&mut figures) {
            figures.sort_by(f64::total_cmp);
            let median = figures[figures.len() / 2];
            let base = *base.get_or_insert(median);
            println!(
                "{name:16} {median:6.2} us/probe  {:4.2} x floor  {figures:.2?}",
                median / base
            );
            println!(
                "{}",
                serde_json::json!({"what": name, "cpu_us_per_probe": median, "rounds": figures})
            );
        }
    }
    Ok(())
}

fn http(address: SocketAddr) -> Failable<Definition> {
    Ok(HttpCheck::new(&format!("http://{address}/health"))?.into())
}

fn tcp(address: SocketAddr, abortive: bool) -> Failable<Definition> {
    Ok(TcpCheck::new(&address.to_string())?
        .with_abortive_close(abortive)
        .into())
}

struct Run<'a> {
    target: &'a Target,
    probes: u32,
    rate: u32,
}

impl Run<'_> {
    fn floor(&self, program: &Path, mode: &str) -> Failable<f64> {
        let (probes, rate) = (self.probes, self.rate);
        Ok(floor::cost(
            program,
            mode,
            self.target,
            ADDRESSES,
            probes,
            rate,
        )?)
    }

    fn prober(&self, definition: impl Fn(SocketAddr) -> Failable<Definition>) -> Failable<f64> {
        let prober = Prober::new(ProberSettings::default())?;
        let definitions: Vec<Rc<Definition>> = (0..ADDRESSES)
            .map(|index| Ok(Rc::new(definition(self.target.address(index))?)))
            .collect::<Failable<_>>()?;
        self.measure(|index| {
            let definition = definitions[(index % ADDRESSES) as usize].clone();
            let prober = prober.clone();
            async move {
                let report = prober.run(&definition).await;
                let good = report.status() == Some(Status::Passing);
                if !good {
                    println!("{}", report.output);
                }
                good
            }
        })
    }

    fn hyper(&self) -> Failable<f64> {
        let targets: Rc<Vec<SocketAddr>> = Rc::new(
            (0..ADDRESSES)
                .map(|index| self.target.address(index))
                .collect(),
        );
        self.measure(|index| {
            let address = targets[(index % ADDRESSES) as usize];
            async move {
                let deadline = Instant::now() + Duration::from_secs(10);
                tokio::time::timeout_at(deadline, hyper_exchange(address))
                    .await
                    .is_ok_and(|result| result.is_ok_and(|good| good))
            }
        })
    }

    /// CPU microseconds per probe, of this thread's runtime with all that it
    /// does: ticks, tasks, exchanges.
    fn measure<F: Future<Output = bool> + 'static>(
        &self,
        probe: impl Fn(u32) -> F,
    ) -> Failable<f64> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let local = tokio::task::LocalSet::new();
        let (probes, rate) = (self.probes, self.rate);
        let before = cpu::used(None)?;
        let good = local.block_on(&runtime, async {
            let good = Rc::new(Cell::new(0));
            let done = Rc::new(Cell::new(0));
            let begin = Instant::now();
            let mut ticks = tokio::time::interval(Duration::from_millis(1));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            let mut started = 0;
            while done.get() < probes {
                ticks.tick().await;
                let due = (begin.elapsed().as_secs_f64() * f64::from(rate)) as u32;
                while started < due.min(probes) {
                    let probe = probe(started);
                    let (good, done) = (good.clone(), done.clone());
                    tokio::task::spawn_local(async move {
                        let passed = probe.await;
                        good.set(good.get() + u32::from(passed));
                        done.set(done.get() + 1);
                    });
                    started += 1;
                }
            }
            good.get()
        });
        let used = cpu::used(None)? - before;
        if good != probes {
            return Err(format!("{good} of {probes} probes were passing").into());
        }
        Ok(used.as_secs_f64() * 1e6 / f64::from(probes))
    }
}

/// The least that hyper's client can be asked for.
async fn hyper_exchange(address: SocketAddr) -> Failable<bool> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = hyper::Request::get("/health")
        .header("host", address.to_string())
        .header("user-agent", "Consul Health Check")
        .header("accept", "text/plain, text/*, */*")
        .header("connection", "close")
        .body(Empty::<Bytes>::new())?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok::<_, hyper::Error>(status.is_success() && !body.is_empty())
    };
    // The connection may end before the body has been taken out.
    let driver = async {
        let _ = connection.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        good = exchange => Ok(good?),
        () = driver => Ok(false),
    }
}
