//! Names, through a scripted resolver.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_probe::{
    Cause, HoldingResolver, Phase, Prober, ProberSettings, Resolve, ResolveError, TargetPolicy,
};
use evenkeel_threshold::Status::{Critical, Passing};
use tokio::net::TcpListener;

use crate::support::*;

type Answer = Result<Vec<IpAddr>, ResolveError>;

/// Answers from a table, keeps what it was asked for, and never answers for
/// what is not in the table.
#[derive(Default)]
struct Script {
    answers: Mutex<HashMap<&'static str, Answer>>,
    asked: Mutex<Vec<String>>,
}

impl Script {
    fn set(&self, name: &'static str, answer: Answer) {
        self.answers.lock().unwrap().insert(name, answer);
    }
}

#[async_trait]
impl Resolve for Script {
    async fn resolve(&self, name: &str) -> Answer {
        self.asked.lock().unwrap().push(name.to_owned());
        let answer = self.answers.lock().unwrap().get(name).cloned();
        match answer {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

fn scripted() -> (Prober, Arc<Script>) {
    scripted_with(TargetPolicy::default())
}

fn scripted_with(policy: TargetPolicy) -> (Prober, Arc<Script>) {
    let script = Arc::new(Script::default());
    let mut settings = ProberSettings::default();
    settings.resolver = script.clone();
    settings.policy = policy;
    (Prober::new(settings).unwrap(), script)
}

fn ips(texts: &[&str]) -> Answer {
    Ok(texts.iter().map(|text| text.parse().unwrap()).collect())
}

async fn ok_server() -> Server {
    Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_critical() {
    let (prober, script) = scripted();
    script.set("gone.example", Err(ResolveError::NotFound));
    script.set("empty.example", Ok(Vec::new()));
    for name in ["gone.example", "empty.example"] {
        let report = run_with(&prober, http(format!("http://{name}/"))).await;
        assert_status(&report, Critical);
        assert_eq!(report.failed_phase, Some(Phase::Resolve));
        assert_eq!(
            report.output,
            format!("Get \"http://{name}/\": dial tcp: lookup {name}: no such host")
        );
        let report = run_with(&prober, tcp(format!("{name}:80"))).await;
        assert_status(&report, Critical);
        assert_eq!(
            report.output,
            format!("dial tcp: lookup {name}: no such host")
        );
    }
}

#[tokio::test]
async fn a_resolver_that_fails_says_nothing_of_the_target() {
    // P118
    let (prober, script) = scripted();
    let failed = ResolveError::Failed("server misbehaving: SERVFAIL".into());
    script.set("odd.example", Err(failed));
    let report = run_with(&prober, http("http://odd.example/")).await;
    assert_unprobed(&report, Cause::Resolver);
    assert_says(&report, "lookup odd.example: server misbehaving: SERVFAIL");
}

/// A time passes for the prober, and not for its sockets.
async fn pass(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

// P118
#[tokio::test]
async fn name_servers_that_fail_for_half_a_minute_flip_nothing_if_addresses_are_held() {
    let script = Arc::new(Script::default());
    let hold = Duration::from_secs(60);
    let holding = Arc::new(HoldingResolver::new(script.clone(), hold));
    let mut settings = ProberSettings::default();
    settings.resolver = holding.clone();
    let prober = Prober::new(settings).unwrap();
    let server = ok_server().await;
    let check = http(format!("http://shop.example:{}/", server.address.port()));

    script.set("shop.example", ips(&["127.0.0.1"]));
    assert_status(&run_with(&prober, check.clone()).await, Passing);
    let failed = || ResolveError::Failed("server misbehaving: SERVFAIL".into());
    script.set("shop.example", Err(failed()));
    for _ in 0..6 {
        pass(5).await;
        assert_status(&run_with(&prober, check.clone()).await, Passing);
    }
    assert_eq!(holding.helped(), 6);
    // It is still the target that decides.
    drop(server);
    assert_status(&run_with(&prober, check.clone()).await, Critical);
    pass(31).await;
    let report = run_with(&prober, check).await;
    assert_unprobed(&report, Cause::Resolver);
    assert_says(&report, "lookup shop.example: server misbehaving: SERVFAIL");
}

#[tokio::test]
async fn a_resolver_that_does_not_answer_says_nothing_of_the_target() {
    let (prober, _) = scripted();
    let report = run_with(&prober, http("http://slow.example/").with_timeout(SHORT)).await;
    assert_unprobed(&report, Cause::Resolver);
    assert_eq!(report.failed_phase, Some(Phase::Resolve));
    assert_says(
        &report,
        "dial tcp: lookup slow.example: context deadline exceeded",
    );
}

#[tokio::test]
async fn localhost_and_addresses_are_never_asked_for() {
    let (prober, script) = scripted();
    let server = ok_server().await;
    let port = server.address.port();
    for host in [
        "localhost",
        "LOCALHOST",
        "app.localhost",
        "localhost.",
        "127.0.0.1",
    ] {
        let report = run_with(&prober, http(format!("http://{host}:{port}/"))).await;
        assert_status(&report, Passing);
    }
    assert_status(
        &run_with(&prober, tcp(format!("localhost:{port}"))).await,
        Passing,
    );
    assert_eq!(*script.asked.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_name_is_asked_for_at_each_probe() {
    // P119: the record moves from a dead address to a live one.
    let (prober, script) = scripted();
    let server = ok_server().await;
    let check = http(format!("http://moving.example:{}/", server.address.port()));
    script.set("moving.example", ips(&["127.0.0.2"]));
    assert_status(&run_with(&prober, check.clone()).await, Critical);
    script.set("moving.example", ips(&["127.0.0.1"]));
    let report = run_with(&prober, check).await;
    assert_status(&report, Passing);
    assert!(report.phases.resolve.is_some());
    assert_eq!(script.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn one_address_that_works_is_enough() {
    let (prober, script) = scripted();
    let server = ok_server().await;
    script.set(
        "several.example",
        ips(&["::1", "127.0.0.2", "127.0.0.3", "127.0.0.1"]),
    );
    let report = run_with(
        &prober,
        http(format!("http://several.example:{}/", server.address.port())),
    )
    .await;
    assert_status(&report, Passing);
}

#[tokio::test]
async fn the_first_address_that_fails_is_told() {
    let (prober, script) = scripted();
    let port = closed_port().await.port();
    script.set(
        "down.example",
        ips(&["127.0.0.2", "127.0.0.3", "127.0.0.2"]),
    );
    let report = run_with(&prober, tcp(format!("down.example:{port}"))).await;
    assert_status(&report, Critical);
    assert_eq!(
        report.output,
        format!("dial tcp 127.0.0.2:{port}: connect: connection refused (2 addresses tried)")
    );
}

/// Both families, of which the first does not answer: the second is tried
/// before the time is up.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_address_that_does_not_answer_does_not_use_up_the_time() {
    let (prober, script) = scripted();
    // A listener with a full backlog drops what comes.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    while let Ok(Ok(stream)) =
        tokio::time::timeout(SHORT, tokio::net::TcpStream::connect(address)).await
    {
        held.push(stream);
    }
    let _live = TcpListener::bind(("127.0.0.3", address.port()))
        .await
        .unwrap();
    script.set("half.example", ips(&["127.0.0.2", "127.0.0.3"]));
    let check = tcp(format!("half.example:{}", address.port()));
    let report = run_with(
        &prober,
        check.with_timeout(std::time::Duration::from_secs(600)),
    )
    .await;
    assert_status(&report, Passing);
}

#[tokio::test]
async fn the_policy_holds_for_what_a_name_resolves_to() {
    let (prober, script) = scripted();
    let server = ok_server().await;
    let port = server.address.port();
    script.set("rebound.example", ips(&["169.254.169.254"]));
    let report = run_with(&prober, http(format!("http://rebound.example:{port}/"))).await;
    assert_unprobed(&report, Cause::TargetRefused);
    assert_says(
        &report,
        "lookup rebound.example: 169.254.169.254 is a cloud metadata address",
    );
    // Of several, those that are allowed are used.
    script.set("mixed.example", ips(&["169.254.169.254", "127.0.0.1"]));
    let report = run_with(&prober, http(format!("http://mixed.example:{port}/"))).await;
    assert_status(&report, Passing);

    let (prober, script) = scripted_with(TargetPolicy {
        deny: vec!["127.0.0.0/8".parse().unwrap()],
        ..TargetPolicy::default()
    });
    script.set("inner.example", ips(&["127.0.0.1"]));
    for host in [
        "inner.example",
        "127.0.0.1",
        "0.0.0.0",
        "[::ffff:127.0.0.1]",
    ] {
        let report = run_with(&prober, tcp(format!("{host}:{port}"))).await;
        assert_unprobed(&report, Cause::TargetRefused);
    }
}
