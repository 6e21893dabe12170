//! What it costs to tell many proxies that one endpoint has changed:
//! `xds_push SUBSCRIBERS ENDPOINTS PUSHES`.
//!
//! The server is this process; the proxies are gRPC clients in another one, over
//! loopback, each with a connection of its own. The endpoints are all in one
//! cluster, and then in clusters of a hundred each. CPU is that of the server's
//! process, kernel work included, from the publication to the last
//! acknowledgement.

#![expect(clippy::print_stdout, reason = "what a program prints is its result")]

use std::error::Error;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use envoy_types::pb::envoy::service::discovery::v3::DiscoveryRequest;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use evenkeel_benches::{cpu, namespace};
use evenkeel_xds::{Assignment, Assignments, Endpoint, Health, Locality, Server, Settings};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::transport::Channel;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [proxies, address, subscribers] = arguments.as_slice()
        && proxies == "proxies"
    {
        return runtime()?.block_on(proxies_at(address.clone(), subscribers.parse()?));
    }
    namespace::enter()?;
    let number = |at: usize, default: usize| match arguments.get(at) {
        Some(text) => text.parse(),
        None => Ok(default),
    };
    let (subscribers, endpoints, pushes) = (number(0, 200)?, number(1, 10_000)?, number(2, 20)?);
    println!("{subscribers} subscribers, {endpoints} endpoints, {pushes} pushes; medians\n");
    println!(
        "{:<16} {:>12} {:>14} {:>12} {:>12} {:>14} {:>12}",
        "clusters",
        "encoded",
        "sent to each",
        "publish",
        "server CPU",
        "per subscriber",
        "last has it"
    );
    for clusters in [1, endpoints.div_ceil(100)] {
        runtime()?.block_on(measure(subscribers, endpoints, clusters, pushes))?;
    }
    Ok(())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
}

/// The endpoints of one cluster, in three zones; `health` is that of the first.
fn cluster(cluster: usize, endpoints: usize, health: Health) -> Assignment {
    let mut assignment = Assignment::default();
    for number in 0..endpoints {
        let zone = ["euc1-az1", "euc1-az2", "euc1-az3"][number % 3];
        let endpoint = Endpoint {
            address: format!("10.{}.{}.{}", cluster % 256, number / 256, number % 256),
            port: 8080,
            health: if number == 0 { health } else { Health::Healthy },
            weight: Some(1),
        };
        assignment.insert(0, &Locality::new("eu-central-1", zone, ""), endpoint);
    }
    assignment
}

async fn measure(
    subscribers: usize,
    endpoints: usize,
    clusters: usize,
    pushes: usize,
) -> Outcome<()> {
    let each = endpoints / clusters;
    let name = |number: usize| format!("service-{number}");
    let mut assignments = Assignments::new();
    for number in 0..clusters {
        assignments.insert(name(number), cluster(number, each, Health::Healthy));
    }
    let server = Server::new(Settings::default(), 1);
    server.publish(&assignments)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let serving = server.clone();
    let serving =
        tokio::spawn(async move { serving.serve(listener, None, std::future::pending()).await });
    let mut child = Command::new(std::env::current_exe()?)
        .args(["proxies", &address.to_string(), &subscribers.to_string()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut proxies = Proxies::of(&mut child)?;
    proxies.have(1).await?;
    let subscribers = subscribers as u64;
    acknowledged(&server, subscribers).await;

    let mut rounds = Vec::new();
    for push in 0..pushes {
        let health = match push % 2 {
            0 => Health::Unhealthy,
            _ => Health::Healthy,
        };
        assignments.insert(name(0), cluster(0, each, health));
        let before = (server.counters(), cpu::used(None)?);
        let began = Instant::now();
        let published = server.publish(&assignments)?;
        let publish = began.elapsed();
        proxies.have(published.version).await?;
        let last = began.elapsed();
        acknowledged(&server, before.0.acks + subscribers).await;
        let used = cpu::used(None)?.saturating_sub(before.1);
        let counters = server.counters();
        assert_eq!(published.encoded, 1, "the changed cluster, once");
        assert_eq!(counters.responses - before.0.responses, subscribers);
        rounds.push(Round {
            encoded: published.bytes as u64,
            sent: (counters.response_bytes - before.0.response_bytes) / subscribers,
            publish,
            used,
            last,
        });
    }
    let median = |of: fn(&Round) -> Duration| {
        let mut times: Vec<_> = rounds.iter().map(of).collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    let Some(round) = rounds.last() else {
        return Ok(());
    };
    let micros = |time: Duration| format!("{:.0} µs", time.as_secs_f64() * 1e6);
    let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let used = median(|round| round.used);
    println!(
        "{:<16} {:>12} {:>14} {:>12} {:>12} {:>14} {:>12}",
        format!("{clusters} of {each}"),
        format!("1 × {} B", round.encoded),
        format!("{} B", round.sent),
        micros(median(|round| round.publish)),
        millis(used),
        micros(used.div_f64(subscribers as f64)),
        millis(median(|round| round.last)),
    );
    serving.abort();
    Ok(())
}

struct Round {
    encoded: u64,
    sent: u64,
    publish: Duration,
    used: Duration,
    last: Duration,
}

/// The other process; it says which version all of its proxies have.
struct Proxies {
    lines: Lines<BufReader<ChildStdout>>,
}

impl Proxies {
    fn of(child: &mut Child) -> Outcome<Self> {
        let out = child.stdout.take().ok_or("no output of the proxies")?;
        Ok(Self {
            lines: BufReader::new(out).lines(),
        })
    }

    async fn have(&mut self, version: u64) -> Outcome<()> {
        let version = version.to_string();
        while let Some(line) = self.lines.next_line().await? {
            if line == version {
                return Ok(());
            }
        }
        Err("the proxies have ended".into())
    }
}

async fn acknowledged(server: &Server, acks: u64) {
    while server.counters().acks < acks {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// So many proxies, which take everything and accept it.
async fn proxies_at(address: String, number: usize) -> Outcome<()> {
    let (tell, mut told) = mpsc::channel::<String>(number);
    for _ in 0..number {
        tokio::spawn(proxy(address.clone(), tell.clone()));
    }
    drop(tell);
    let mut counts = std::collections::HashMap::new();
    while let Some(version) = told.recv().await {
        let count = counts.entry(version.clone()).or_insert(0);
        *count += 1;
        if *count == number {
            println!("{version}");
            std::io::stdout().flush()?;
            counts.remove(&version);
        }
    }
    Ok(())
}

async fn proxy(address: String, tell: mpsc::Sender<String>) -> Outcome<()> {
    let channel = Channel::from_shared(format!("http://{address}"))?
        .connect()
        .await?;
    let mut client = AggregatedDiscoveryServiceClient::new(channel);
    let request = |version: String, nonce: String| DiscoveryRequest {
        version_info: version,
        response_nonce: nonce,
        resource_names: vec!["*".to_owned()],
        type_url: EDS.to_owned(),
        ..Default::default()
    };
    let (requests, outgoing) = mpsc::channel(4);
    requests.send(request(String::new(), String::new())).await?;
    let outgoing = futures_util::stream::unfold(outgoing, |mut outgoing| async move {
        outgoing.recv().await.map(|request| (request, outgoing))
    });
    let mut responses = client
        .stream_aggregated_resources(outgoing)
        .await?
        .into_inner();
    while let Some(response) = responses.message().await? {
        let version = response.version_info.clone();
        requests
            .send(request(response.version_info, response.nonce))
            .await?;
        tell.send(version).await?;
    }
    Ok(())
}
