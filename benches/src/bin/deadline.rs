//! How much later than its deadline a probe's report comes, for each kind and
//! each phase in which a peer may hang.
//!
//! ```text
//! cargo run --release -p evenkeel-benches --bin deadline -- [AT_ONCE [TIMEOUT_MS [ROUNDS]]]
//! ```
//!
//! AT_ONCE probes that begin at once, in one thread, as in the daemon; a hundredth
//! of it may be later than what is printed as p99. Says of which cases this is more than
//! 50 ms in each of the ROUNDS. Needs root, for a network of its own.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_benches::peers::{self, Peers};
use evenkeel_benches::quantiles::{Quantiles, millis};
use evenkeel_benches::{namespace, process};
use evenkeel_probe::{
    Definition, DnsCheck, DnsOptions, DnsTransport, DockerCheck, GrpcCheck, H2PingCheck, HttpCheck,
    IcmpCheck, IcmpOptions, Phase, Prober, ProberSettings, Resolve, ResolveError, ScriptCheck,
    TcpCheck, TlsOptions, UdpCheck,
};
use tokio::task::JoinSet;
use tokio::time::Instant;

type Failable<T> = Result<T, Box<dyn Error>>;

/// What is promised.
const GOAL: Duration = Duration::from_millis(50);

fn main() -> Failable<()> {
    if peers::serve()? {
        return Ok(());
    }
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u32| match arguments.next() {
        Some(text) => text.parse::<u32>(),
        None => Ok(default),
    };
    let (at_once, timeout, rounds) = (number(1_000)?, number(1_000)?, number(3)?.max(1));
    if !namespace::enter()? {
        return Err("a network namespace is needed, and not permitted here".into());
    }
    process::allow_descriptors()?;
    let load = std::fs::read_to_string("/proc/loadavg")?;
    println!(
        "{at_once} at once, timeout {timeout} ms, {rounds} rounds; load of the machine: {}\nlater than the deadline:",
        load.trim()
    );
    let peers = Peers::start()?;
    // For a closer look: only the cases with this in their name.
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut missed = Vec::new();
    for case in cases(&peers, Duration::from_millis(timeout.into()))? {
        let name = format!("{} {}", case.definition.kind(), case.hangs);
        if !name.contains(&only) {
            continue;
        }
        let mut late = Vec::new();
        let mut elsewhere = 0;
        for _ in 0..rounds {
            let (quantiles, other) = round(&case, at_once)?;
            late.push(quantiles);
            elsewhere += other;
        }
        late.sort_by_key(|late| late.p99);
        let median = late[late.len() / 2];
        println!(
            "{name:36} {median}  (p99 of all rounds: {:.1?}){}",
            late.iter().map(|late| millis(late.p99)).collect::<Vec<_>>(),
            match elsewhere {
                0 => String::new(),
                some => format!("  {some} ended in another phase"),
            }
        );
        println!(
            "{}",
            serde_json::json!({
                "what": name, "at_once": at_once, "p50_ms": millis(median.p50),
                "p99_ms": millis(median.p99), "max_ms": millis(median.most), "elsewhere": elsewhere,
            })
        );
        if late[0].p99 > GOAL {
            missed.push(name);
        }
    }
    // Told and no failure: a machine that is busy with something else is late itself.
    println!(
        "the goal of {GOAL:?} at p99 is {}",
        match missed.as_slice() {
            [] => "met by all".to_owned(),
            some => format!("missed in each round by: {}", some.join(", ")),
        }
    );
    Ok(())
}

/// A way to hang.
struct Case {
    hangs: &'static str,
    /// Where it is cut off.
    phase: Phase,
    definition: Arc<Definition>,
    prober: Prober,
}

/// How late the reports come, and how many tell of another phase than that in
/// which the peer hangs: under load a probe may not come so far.
fn round(case: &Case, at_once: u32) -> Failable<(Quantiles, u32)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let timeout = case.definition.timeout();
    let result = runtime.block_on(async {
        let mut running = JoinSet::new();
        for _ in 0..at_once {
            let (prober, definition) = (case.prober.clone(), Arc::clone(&case.definition));
            running.spawn(async move {
                let begin = Instant::now();
                let report = prober.run(&definition).await;
                (begin.elapsed(), report)
            });
        }
        let (mut late, mut elsewhere, mut early) = (Vec::new(), 0, false);
        while let Some(ended) = running.join_next().await {
            let (took, report) = ended?;
            // Before it where a part of the time is enough to know.
            early |= took < timeout / 3;
            late.push(took.saturating_sub(timeout));
            elsewhere += u32::from(report.failed_phase != Some(case.phase));
        }
        if early {
            return Err(format!("{}: the peer does not hang", case.hangs).into());
        }
        Ok((Quantiles::of(late), elsewhere))
    });
    // A script that is killed is waited for by the runtime.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// Looks a name up without end.
struct Slow;

#[async_trait]
impl Resolve for Slow {
    async fn resolve(&self, _: &str) -> Result<Vec<IpAddr>, ResolveError> {
        std::future::pending().await
    }
}

fn prober(change: impl FnOnce(&mut ProberSettings)) -> Failable<Prober> {
    let mut settings = ProberSettings::default();
    settings.resolver = Arc::new(Slow);
    settings.scripts = true;
    change(&mut settings);
    Ok(Prober::new(settings)?)
}

fn cases(peers: &Peers, timeout: Duration) -> Failable<Vec<Case>> {
    use Phase::{Connect, FirstByte, Resolve, Run, Tls, Transfer};
    let common = prober(|_| ())?;
    let mut cases = Vec::new();
    let mut add = |hangs, phase, definition: Definition| {
        cases.push(Case {
            hangs,
            phase,
            definition: Arc::new(definition),
            prober: common.clone(),
        });
    };
    let black_hole = SocketAddr::new(namespace::BLACK_HOLE.into(), 80);
    let at = |name: &str| peers.address(name);
    let tls = TlsOptions {
        skip_verify: true,
        ..TlsOptions::default()
    };

    let http = |target: String| -> Failable<Definition> {
        let check = HttpCheck::new(&target)?.with_timeout(timeout);
        Ok(check.with_tls(tls.clone())?.into())
    };
    let plain = |at: SocketAddr| http(format!("http://{at}/"));
    let secure = |at: SocketAddr| http(format!("https://{at}/"));
    add(
        "name server",
        Resolve,
        http("http://slow.test/".to_owned())?,
    );
    add("black hole", Connect, plain(black_hole)?);
    add("full backlog", Connect, plain(at("full backlog")?)?);
    add("silence", FirstByte, plain(at("silent")?)?);
    add("endless head", FirstByte, plain(at("endless head")?)?);
    add("endless body", Transfer, plain(at("endless body")?)?);
    add("TLS silence", Tls, secure(at("silent")?)?);
    add("endless TLS record", Tls, secure(at("endless tls")?)?);
    add("silence in TLS", FirstByte, secure(at("silent in tls")?)?);

    let tcp = |at: SocketAddr| -> Failable<TcpCheck> {
        Ok(TcpCheck::new(&at.to_string())?.with_timeout(timeout))
    };
    add("black hole", Connect, tcp(black_hole)?.into());
    add("full backlog", Connect, tcp(at("full backlog")?)?.into());
    let silent = tcp(at("silent")?)?.with_tls(tls.clone())?;
    add("TLS silence", Tls, silent.into());

    let udp = UdpCheck::new(&at("silent udp")?.to_string())?.with_timeout(timeout);
    add("silence", FirstByte, udp.into());
    let dns = |transport, at: SocketAddr| -> Failable<Definition> {
        let options = DnsOptions {
            transport,
            timeout,
            ..DnsOptions::default()
        };
        Ok(DnsCheck::new(&at.to_string(), "www.test", options)?.into())
    };
    let silent = at("silent dns")?;
    add("silence", FirstByte, dns(DnsTransport::Udp, silent)?);
    add(
        "silence over TCP",
        FirstByte,
        dns(DnsTransport::Tcp, silent)?,
    );
    add(
        "black hole over TCP",
        Connect,
        dns(DnsTransport::Tcp, black_hole)?,
    );
    let truncating = dns(DnsTransport::Udp, at("truncating dns")?)?;
    add("silence of the rest", FirstByte, truncating);

    let options = IcmpOptions {
        spacing: timeout / 10,
        timeout,
        ..IcmpOptions::default()
    };
    let icmp = IcmpCheck::new(&black_hole.ip().to_string(), options)?;
    add("black hole", FirstByte, icmp.into());

    let grpc = |at: SocketAddr| -> Failable<GrpcCheck> {
        Ok(GrpcCheck::new(&at.to_string())?.with_timeout(timeout))
    };
    add("black hole", Connect, grpc(black_hole)?.into());
    add("silence", FirstByte, grpc(at("silent")?)?.into());
    add(
        "unanswered call",
        FirstByte,
        grpc(at("unanswered call")?)?.into(),
    );
    add(
        "TLS silence",
        Tls,
        grpc(at("silent")?)?.with_tls(tls.clone())?.into(),
    );

    let ping = |at: SocketAddr| -> Failable<H2PingCheck> {
        Ok(H2PingCheck::new(&at.to_string())?.with_timeout(timeout))
    };
    add("black hole", Connect, ping(black_hole)?.into());
    add("no pong", FirstByte, ping(at("no pong")?)?.into());
    add("half a pong", FirstByte, ping(at("half a pong")?)?.into());
    add(
        "TLS silence",
        Tls,
        ping(at("silent")?)?.with_tls(tls.clone())?.into(),
    );

    let script = |text| -> Failable<Definition> {
        let check = ScriptCheck::with_shell("/bin/sh", text)?;
        Ok(check.with_timeout(timeout).into())
    };
    add(
        "sleep",
        Run,
        script("trap '' TERM; sleep 1000 & sleep 1000")?,
    );
    // Programs that compute without end would take the processor from whoever counts.
    let loud = "i=0; while [ $i -lt 5000 ]; do echo 0123456789; i=$((i+1)); done; sleep 1000";
    add("much output", Run, script(loud)?);

    for (engine, phase) in [
        ("silent", Connect),
        ("silent at create", Connect),
        ("silent at start", Connect),
        ("silent at inspect", Run),
    ] {
        let check = DockerCheck::new("web", ["true"])?.with_timeout(timeout);
        cases.push(Case {
            hangs: engine,
            phase,
            definition: Arc::new(check.into()),
            prober: prober(|settings| settings.docker = Some(peers.engine(engine)))?,
        });
    }
    Ok(cases)
}
