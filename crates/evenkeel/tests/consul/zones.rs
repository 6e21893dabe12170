//! Zones of real services, as the admin address tells them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use evenkeel::config::Secret;
use evenkeel::zones::PairReport;
use evenkeel_testkit::{Consul, eventually, wait_for};
use serde_json::{Value, json};

use crate::catalog::{external, http, within};
use crate::daemon::{TestDaemon, settings};
use crate::targets::{Health, Targets};

pub(crate) struct Admin(PathBuf);

impl Admin {
    pub(crate) fn of(dir: &Path) -> Self {
        Self(dir.join("admin.sock"))
    }

    fn ask(&self, path: &str, accept: &str) -> BufReader<UnixStream> {
        let mut stream = UnixStream::connect(&self.0).unwrap();
        let limit = Some(Duration::from_secs(30));
        stream.set_read_timeout(limit).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: unix\r\nAccept: {accept}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let mut answer = String::new();
        self.ask(path, "*/*").read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, body.to_owned())
    }

    pub(crate) fn report(&self, upstream: &str, callers: &str, zone: &str) -> PairReport {
        let path = format!("/v1/zones/{upstream}?callers={callers}&zone={zone}");
        let (code, body) = self.get(&path);
        assert_eq!(code, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    fn zones(&self, query: &str) -> PairReport {
        let (code, body) = self.get(&format!("/v1/zones/api?callers=shop&{query}"));
        assert_eq!(code, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }
}

/// Two endpoints of `api` in each of the zones a and b, with checks of ours that
/// take three failures; callers of `shop` on ordinary nodes: three in a, one in b.
fn register(consul: &Consul, targets: &Targets) {
    for zone in ["a", "b"] {
        for n in 1..=2 {
            let node = format!("{zone}{n}");
            external(&node, &http(&targets.url(&node)))
                .service_name("api")
                .service_meta("zone", zone)
                .port(8080)
                .status("passing")
                .notes("[evenkeel critical-threshold=3 passing-threshold=1]")
                .put(consul);
        }
    }
    for (n, zone) in ["a", "a", "a", "b"].into_iter().enumerate() {
        // The zone is where it mostly is: at the node.
        consul.register(&json!({
            "Node": format!("host{n}"),
            "Address": format!("127.0.1.{n}"),
            "NodeMeta": {"availability-zone": zone},
            "Service": {"ID": format!("shop{n}"), "Service": "shop"},
        }));
    }
}

#[test]
fn requests_are_split_by_the_zones_of_real_services_and_damped_health() {
    let Some(consul) = Consul::start("requests_are_split_by_the_zones") else {
        return;
    };
    let targets = Targets::start();
    register(&consul, &targets);
    let dir = tempfile::tempdir().unwrap();
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    let admin = Admin::of(dir.path());
    eventually("all are probed", || {
        (targets.all_probes() >= 8).then_some(())
    });

    // Three quarters of the callers are in a, and half of the endpoints.
    let told = admin.zones("zone=a");
    let zone = &told.zones[0];
    assert_eq!(
        (zone.mode.as_str(), told.degraded.as_ref()),
        ("residual", None)
    );
    let shares: Vec<_> = zone
        .weights
        .iter()
        .map(|weight| (weight.zone.zone.as_str(), weight.share.as_str()))
        .collect();
    assert_eq!(shares, [("a", "3333/5000"), ("b", "1667/5000")]);
    let (_, stats) = admin.get("/stats");
    assert!(
        stats.contains("cluster.api.from.shop.a.lb_recalculate_zone_structures: "),
        "{stats}"
    );

    // As somebody at a terminal asks.
    let shell = std::process::Command::new("sh")
        .arg("-c")
        .arg("curl -s --unix-socket \"$0\" http://unix/stats | grep lb_zone")
        .arg(dir.path().join("admin.sock"))
        .output()
        .unwrap();
    let shown = String::from_utf8(shell.stdout).unwrap();
    assert!(
        shown.contains("cluster.api.from.shop.a.lb_zone_cluster_too_small: 0\n"),
        "{shown}"
    );
    assert!(shown.lines().all(|line| line.contains(".lb_zone_")));

    // It fails every other time: nothing moves.
    let before = told.version;
    for _ in 0..3 {
        targets.set("b1", Health::Down);
        let failed = targets.probes("b1");
        eventually("a failure", || {
            (targets.probes("b1") > failed).then_some(())
        });
        targets.set("b1", Health::Up);
        let passed = targets.probes("b1");
        eventually("a success", || {
            (targets.probes("b1") > passed).then_some(())
        });
    }
    assert_eq!(
        admin.zones("zone=a").version,
        before,
        "a flapping endpoint moved weights"
    );

    // It stays down: who waits for a change is told of it.
    targets.set("b1", Health::Down);
    let waited = admin.zones(&format!("zone=a&index={before}&wait=25s"));
    assert!(waited.version > before);
    let b = &waited.places[1];
    assert_eq!((b.endpoints.healthy, b.endpoints.unhealthy), (1, 1));
    // Three healthy endpoints in two zones are one too few.
    assert_eq!(
        waited.zones[0].reason.as_ref().unwrap().name,
        "cluster_too_small"
    );

    // A wait that ends without a change has the same version.
    assert_eq!(
        admin
            .zones(&format!("index={}&wait=100ms", waited.version))
            .version,
        waited.version
    );
    daemon.stop();
}

#[test]
fn a_stream_of_events_follows_what_comes_and_goes() {
    let Some(mut consul) = Consul::start("a_stream_of_events_follows") else {
        return;
    };
    let targets = Targets::start();
    register(&consul, &targets);
    let dir = tempfile::tempdir().unwrap();
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    let admin = Admin::of(dir.path());
    let mut stream = admin.ask("/v1/zones/api?callers=shop", "text/event-stream");
    let mut next = |what: &str, wanted: &dyn Fn(&PairReport) -> bool| {
        for _ in 0..100 {
            let mut line = String::new();
            assert!(stream.read_line(&mut line).unwrap() > 0, "{what}: it ended");
            if let Some((_, data)) = line.split_once("data: ")
                && let Ok(report) = serde_json::from_str::<PairReport>(data)
                && wanted(&report)
            {
                return report;
            }
        }
        panic!("no event: {what}");
    };
    let callers = |report: &PairReport| -> u64 {
        report
            .places
            .iter()
            .map(|place| place.callers.healthy)
            .sum()
    };
    next("four callers", &|report| callers(report) == 4);
    consul.register(&json!({
        "Node": "host9", "Address": "127.0.1.9", "NodeMeta": {"zone": "c"},
        "Service": {"ID": "shop9", "Service": "shop"},
    }));
    let report = next("a fifth, in a new zone", &|report| callers(report) == 5);
    assert_eq!(report.places[2].zone.zone, "c");

    // Consul goes: what is known stands, and says so.
    consul.kill();
    let report = next("degraded", &|report| report.degraded.is_some());
    assert_eq!(callers(&report), 5);
    consul.restart();
    next("well again", &|report| report.degraded.is_none());
    // Waiting clients keep nobody from asking.
    let waiting: Vec<_> = (0..64)
        .map(|_| {
            admin.ask(
                "/v1/zones/api?callers=shop&index=1&wait=60s",
                "text/event-stream",
            )
        })
        .collect();
    assert_eq!(admin.get("/live").0, 200);
    drop(waiting);
    daemon.stop();
}

/// A policy and a token with it.
struct Policy<'a> {
    consul: &'a Consul,
    id: Value,
    token: String,
}

impl<'a> Policy<'a> {
    fn new(consul: &'a Consul, rules: &str) -> Self {
        let made = |path: &str, what: &Value| -> Value {
            let (code, made) = consul.put(path, &what.to_string());
            assert_eq!(code, 200, "{made}");
            serde_json::from_str(&made).unwrap()
        };
        let policy = made("/v1/acl/policy", &json!({"Name": "zones", "Rules": rules}));
        let token = made("/v1/acl/token", &json!({"Policies": [{"Name": "zones"}]}));
        Self {
            consul,
            id: policy["ID"].clone(),
            token: token["SecretID"].as_str().unwrap().to_owned(),
        }
    }

    fn set(&self, rules: &str) {
        let path = format!("/v1/acl/policy/{}", self.id.as_str().unwrap());
        let policy = json!({"ID": self.id, "Name": "zones", "Rules": rules});
        assert_eq!(self.consul.put(&path, &policy.to_string()).0, 200);
    }

    fn token(&self) -> Secret {
        Secret::new(self.token.as_str())
    }
}

// A token that may no longer read a service is told of an empty list.
#[test]
fn an_empty_list_is_believed_only_from_a_token_that_may_read() {
    let Some(consul) = Consul::builder()
        .acl()
        .start("an_empty_list_is_believed_only")
    else {
        return;
    };
    let nodes = r#"node_prefix "" { policy = "write" } operator = "read""#;
    let all = format!(r#"{nodes} service_prefix "" {{ policy = "write" }}"#);
    let policy = Policy::new(&consul, &all);
    let targets = Targets::start();
    register(&consul, &targets);
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(&consul.address(), dir.path());
    settings.consul.token = Some(policy.token());
    // Rights are looked at when an answer is made: a shorter wait sees it sooner.
    settings.consul.wait = Duration::from_secs(2);
    let daemon = TestDaemon::start(settings);
    let admin = Admin::of(dir.path());
    let healthy = || {
        let report = admin.zones("");
        let places = report.places.iter();
        let endpoints: u64 = places.map(|place| place.endpoints.healthy).sum();
        (endpoints, report.degraded)
    };
    assert_eq!(healthy(), (4, None));
    policy.set(nodes);
    let told = wait_for(Duration::from_secs(30), || {
        let (endpoints, degraded) = healthy();
        assert_eq!(endpoints, 4, "the endpoints are gone");
        degraded
    });
    assert!(told.unwrap().contains("may not read"));
    // Gone for good is gone, with the right to see it.
    policy.set(&all);
    within(Duration::from_secs(60), "well again", || {
        healthy() == (4, None)
    });
    for node in ["a1", "a2", "b1", "b2"] {
        consul.deregister(&json!({"Node": node}));
    }
    within(Duration::from_secs(60), "no endpoint is left", || {
        healthy() == (0, None)
    });
    daemon.stop();
}
