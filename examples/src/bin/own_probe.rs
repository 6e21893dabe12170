//! A kind of check of one's own beside those of evenkeel: a Redis server is to
//! answer `PING`, which says more than that its port is open. Both are a
//! [`Probe`], both are damped, and only one of them notices anything.
//!
//! The server is one of this program, with good and bad moments.

#![expect(clippy::print_stdout, reason = "what a program prints is its result")]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_probe::{Cause, Probe, Prober, ProberSettings, Report, TcpCheck};
use evenkeel_threshold::{FirstResult, Leaky, LeakyState, Status, Strategy, Timestamp};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, interval, timeout_at};

/// Passing while a Redis server answers its `PING`.
struct Redis(SocketAddr);

#[async_trait]
impl Probe for Redis {
    async fn probe(&self, deadline: Instant) -> Report {
        match timeout_at(deadline, self.ping()).await {
            Ok(Ok(answer)) if answer == "+PONG" => Report::observed(Status::Passing, answer),
            // It is there and will be of use: it reads its data, or wants a password.
            Ok(Ok(answer)) if answer.starts_with("-LOADING") => {
                Report::observed(Status::Warning, answer)
            }
            Ok(Ok(answer)) => Report::observed(Status::Critical, format!("said {answer:?}")),
            // No free port here says nothing of the server: it must not count.
            Ok(Err(error)) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                Report::unprobed(Cause::SourcePorts, error.to_string())
            }
            Ok(Err(error)) => Report::observed(Status::Critical, error.to_string()),
            Err(_) => Report::observed(Status::Critical, "no answer in time"),
        }
    }
}

impl Redis {
    async fn ping(&self) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.0).await?;
        stream.write_all(b"PING\r\n").await?;
        // Whatever listens there may never end its line.
        let mut line = String::new();
        BufReader::new(stream.take(128))
            .read_line(&mut line)
            .await?;
        Ok(line.trim_end().to_owned())
    }
}

/// A probe and what is thought of its target: critical at the third failure more
/// than success, passing at the second success.
struct Watched {
    name: &'static str,
    probe: Box<dyn Probe>,
    rule: Leaky,
    state: LeakyState,
}

impl Watched {
    fn new(name: &'static str, probe: impl Probe + 'static) -> Self {
        let rule = Leaky::new(2, 1);
        let now = Timestamp::from_millis(0);
        Self {
            name,
            probe: Box::new(probe),
            state: rule.start(Status::Passing, FirstResult::Counted, now),
            rule,
        }
    }

    async fn look(&mut self, now: Timestamp) -> Option<Status> {
        let deadline = Instant::now() + Duration::from_millis(50);
        let report = self.probe.probe(deadline).await;
        let seen = report.status()?;
        let change = self.rule.observe(&mut self.state, seen.into(), now)?;
        let (name, output) = (self.name, report.output);
        println!("{name}: {} to {}: {output}", change.from, change.to);
        Some(change.to)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(serve(listener));

    let prober = Prober::new(ProberSettings::default())?;
    let port = TcpCheck::new(&address.to_string())?;
    let mut watched = [
        Watched::new("the port", prober.bind(Arc::new(port.into()))),
        Watched::new("Redis", Redis(address)),
    ];

    let started = Instant::now();
    let mut tick = interval(Duration::from_millis(20));
    let mut changes = Vec::new();
    for _ in 0..MOMENTS.len() {
        let elapsed = tick.tick().await.duration_since(started).as_millis();
        let now = Timestamp::from_millis(u64::try_from(elapsed)?);
        for target in &mut watched {
            changes.extend(target.look(now).await.map(|to| (target.name, to)));
        }
    }
    assert_eq!(
        changes,
        [("Redis", Status::Critical), ("Redis", Status::Passing)],
        "one bad moment is none, three are an outage, and a port tells of neither",
    );
    Ok(())
}

/// What the server says to each `PING`; nothing is to keep it waiting.
const MOMENTS: [&str; 14] = [
    "+PONG",
    "+PONG",
    "",
    "+PONG",
    "+PONG", // a moment
    "",
    "-MISCONF cannot write",
    "",
    "",
    "", // an outage
    "+PONG",
    "+PONG",
    "+PONG",
    "+PONG",
];

async fn serve(listener: TcpListener) -> io::Result<()> {
    let mut moments = MOMENTS.into_iter().cycle();
    loop {
        let (mut stream, _) = listener.accept().await?;
        let mut ping = [0; 6];
        // Who only looks whether the port is open has gone.
        if stream.read_exact(&mut ping).await.is_err() {
            continue;
        }
        match moments.next() {
            Some("") | None => drop(tokio::spawn(async move {
                let _ = stream.read(&mut ping).await;
            })),
            Some(answer) => stream.write_all(format!("{answer}\r\n").as_bytes()).await?,
        }
    }
}
