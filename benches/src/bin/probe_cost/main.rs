//! What one probe costs in CPU time, beside the physical limit in the same run.
//!
//! ```text
//! cargo run --release -p evenkeel-benches --bin probe_cost -- [PROBES [RATE [ROUNDS]]]
//! ```
//!
//! For each kind, by turns and ROUNDS times: the floor, which is nothing but the
//! kernel's work, in C, or where that would be no comparison the bare library
//! that the prober uses, and the prober. One thread each, RATE probes a second, a
//! new connection per probe, over 4,990 loopback addresses; of the dear kinds
//! (TLS, HTTP/2) a tenth, of commands a fiftieth, in number and in rate. Prints a
//! table and a line of JSON, with the median over the rounds. ONLY runs the
//! contenders with this in their name.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

mod commands;
mod datagrams;
mod http;
mod http2;
mod run;
mod tls;

use std::error::Error;
use std::net::Ipv4Addr;

use evenkeel_benches::peers::{self, ADDRESSES, Peers};
use evenkeel_benches::target::Target;
use evenkeel_benches::{namespace, native, process};

use crate::run::Run;

const BASE: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 0);

type Failable<T> = Result<T, Box<dyn Error>>;

/// Something that is measured.
struct Contender<'a> {
    name: &'static str,
    /// CPU microseconds per probe.
    cost: Box<dyn Fn() -> Failable<f64> + 'a>,
}

impl<'a> Contender<'a> {
    fn new(name: &'static str, cost: impl Fn() -> Failable<f64> + 'a) -> Self {
        Self {
            name,
            cost: Box::new(cost),
        }
    }
}

fn main() -> Failable<()> {
    if peers::serve()? {
        return Ok(());
    }
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u32| match arguments.next() {
        Some(text) => text.parse::<u32>(),
        None => Ok(default),
    };
    let run = Run {
        probes: number(50_000)?.max(1),
        rate: number(5_000)?.max(1),
        with_children: false,
    };
    let rounds = number(3)?.max(1);
    let own_network = namespace::enter()?;
    process::allow_descriptors()?;
    let load = std::fs::read_to_string("/proc/loadavg")?;
    println!(
        "probes {}, rate {}/s, own network namespace: {own_network}, load of the machine: {}",
        run.probes,
        run.rate,
        load.trim()
    );
    let directory = tempfile::tempdir()?;
    let compile = |name, source| native::compile(directory.path(), name, source);
    let floor = compile("floor", native::FLOOR)?;
    let spawn = compile("spawn", native::SPAWN)?;
    let target = compile("target", native::TARGET)?;

    let web = Target::start(&target, "http", BASE, ADDRESSES)?;
    measure(http::http(run, &web, &floor)?, rounds)?;
    drop(web);
    let silent = Target::start(&target, "tcp", BASE, ADDRESSES)?;
    measure(http::tcp(run, &silent, &floor)?, rounds)?;
    drop(silent);

    let peers = Peers::start()?;
    measure(datagrams::udp(run, &peers, &floor)?, rounds)?;
    measure(datagrams::dns(run, &peers, &floor)?, rounds)?;
    measure(datagrams::icmp(run, &floor)?, rounds)?;
    let tenth = run.over(10);
    measure(tls::https(tenth, &peers)?, rounds)?;
    measure(tls::tcp(tenth, &peers)?, rounds)?;
    measure(http2::grpc(tenth, &peers)?, rounds)?;
    measure(http2::ping(tenth, &peers)?, rounds)?;
    let fiftieth = run.over(50);
    measure(commands::script(fiftieth, &spawn)?, rounds)?;
    measure(commands::docker(fiftieth, &peers)?, rounds)
}

/// Lets them take turns. The first is the base of the ratios.
fn measure(mut contenders: Vec<Contender<'_>>, rounds: u32) -> Failable<()> {
    let only = std::env::var("ONLY").unwrap_or_default();
    contenders.retain(|contender| contender.name.contains(&only));
    let mut figures = vec![Vec::new(); contenders.len()];
    for _ in 0..rounds {
        for (contender, figures) in contenders.iter().zip(&mut figures) {
            let cost = (contender.cost)();
            figures.push(cost.map_err(|error| format!("{}: {error}", contender.name))?);
        }
    }
    let mut base = None;
    for (Contender { name, .. }, figures) in contenders.iter().zip(&mut figures) {
        figures.sort_by(f64::total_cmp);
        let median = figures[figures.len() / 2];
        let base = *base.get_or_insert(median);
        println!(
            "{name:24} {median:8.2} us/probe  {:5.2} x  {figures:.2?}",
            median / base
        );
        println!(
            "{}",
            serde_json::json!({"what": name, "cpu_us_per_probe": median, "rounds": figures})
        );
    }
    Ok(())
}
