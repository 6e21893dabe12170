//! Fields of a definition that Consul 1.8.7 does not keep, on a server that plays a
//! newer one.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_testkit::{GrpcHealth, Reply, Request, Stub, eventually};
use serde_json::{Value, json};

use crate::daemon::{TestDaemon, settings};
use crate::reported::assert_reported;
use crate::tls::Certificate;

/// Checks as such a server keeps them, with an index that grows with each write.
#[derive(Default)]
struct Kept {
    index: u64,
    checks: Vec<Value>,
}

impl Kept {
    fn put(&mut self, mut check: Value) {
        self.index += 1;
        check["ModifyIndex"] = self.index.into();
        match self
            .checks
            .iter_mut()
            .find(|old| old["Node"] == check["Node"])
        {
            Some(old) => *old = check,
            None => self.checks.push(check),
        }
    }

    fn of(&self, node: &str) -> Option<&Value> {
        self.checks.iter().find(|check| check["Node"] == node)
    }
}

struct NewerConsul {
    stub: Stub,
    kept: Arc<Mutex<Kept>>,
}

impl NewerConsul {
    fn start() -> Self {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let state = Arc::clone(&kept);
        let stub = Stub::start(move |request| answer(request, &mut state.lock().unwrap()));
        Self { stub, kept }
    }

    fn register(&self, node: &str, status: &str, definition: &Value) {
        self.kept.lock().unwrap().put(json!({
            "Node": node, "CheckID": format!("{node}-check"), "Name": "a check", "Status": status,
            "ServiceID": node, "ServiceName": "web", "Output": "", "CreateIndex": 1,
            "Definition": definition,
        }));
    }

    fn check(&self, node: &str) -> Value {
        self.kept.lock().unwrap().of(node).unwrap().clone()
    }
}

fn answer(request: &Request, kept: &mut Kept) -> Reply {
    let list = |value: Value| {
        let reply =
            Reply::json(value.to_string()).header("X-Consul-Index", &kept.index.to_string());
        if request.target.contains(&format!("index={}", kept.index)) {
            Reply::After(Duration::from_millis(300), Box::new(reply))
        } else {
            reply
        }
    };
    let each = |make: &dyn Fn(&Value) -> Value| kept.checks.iter().map(make).collect::<Value>();
    match request.path() {
        "/v1/health/state/any" => list(kept.checks.clone().into()),
        "/v1/catalog/nodes" => list(each(&|check| json!({"Node": check["Node"], "Meta": {}}))),
        "/v1/catalog/services" => list(json!({"web": []})),
        "/v1/catalog/service/web" => list(each(
            &|check| json!({"Node": check["Node"], "ServiceID": check["ServiceID"], "ServiceMeta": {}}),
        )),
        "/v1/agent/self" => Reply::json(r#"{"Config":{"Version":"1.20.0"}}"#),
        // Nothing of what is registered here may be written by a transaction.
        "/v1/txn" => {
            let operations = request.json();
            let read = operations
                .as_array()
                .into_iter()
                .flatten()
                .map(|operation| {
                    let check = &operation["Check"];
                    assert_eq!(check["Verb"], "get");
                    let node = check["Check"]["Node"].as_str().unwrap();
                    json!({"Check": kept.of(node)})
                });
            let results: Vec<Value> = read.collect();
            Reply::json(json!({"Results": results, "Errors": null}).to_string())
        }
        "/v1/status/leader" => Reply::json("\"10.0.0.1:8300\""),
        "/v1/catalog/register" => {
            let registration = request.json();
            assert_eq!(registration["SkipNodeUpdate"], true);
            for check in registration["Checks"].as_array().into_iter().flatten() {
                kept.put(check.clone());
            }
            Reply::json("true")
        }
        _ => Reply::status(404, "not here"),
    }
}

// P050, P051, P055, P091, P096
#[test]
fn fields_of_newer_servers_are_honoured_and_kept() {
    let consul = NewerConsul::start();
    let dir = tempfile::tempdir().unwrap();
    let certificate = Certificate::of("b.test");
    let plain = GrpcHealth::start();
    let secure = GrpcHealth::start_tls(&certificate.chain, &certificate.key);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    // Nobody else gets its port for datagrams.
    let shut = UdpSocket::bind("127.0.0.1:0").unwrap();
    shut.connect(silent.local_addr().unwrap()).unwrap();
    let udp = |socket: &UdpSocket| socket.local_addr().unwrap().to_string();
    let redirecting = Stub::start(|request| match request.path() {
        "/" => Reply::status(302, "").header("Location", "/up"),
        _ => Reply::status(200, "up"),
    });
    let redirecting = format!("http://{}/", redirecting.address());
    let rows = [
        (
            "no-redirect",
            json!({"HTTP": redirecting, "DisableRedirects": true}),
            "critical",
        ),
        (
            "tcp-tls",
            json!({"TCP": plain.address(), "TCPUseTLS": true}),
            "critical",
        ),
        (
            "tcp-name",
            json!({"TCP": secure.address(), "TCPUseTLS": true, "TLSServerName": "b.test"}),
            "passing",
        ),
        ("udp", json!({"UDP": udp(&silent)}), "passing"),
        // Connected to another one, it takes nothing from us: that nobody listens is said.
        ("udp-shut", json!({"UDP": udp(&shut)}), "critical"),
        ("h2", json!({"H2PING": plain.address()}), "passing"),
        (
            "h2-tls",
            json!({"H2PING": plain.address(), "H2PingUseTLS": true}),
            "critical",
        ),
        (
            "h2-name",
            json!({"H2PING": secure.address(), "H2PingUseTLS": true, "TLSServerName": "b.test"}),
            "passing",
        ),
        (
            "grpc-name",
            json!({"GRPC": secure.address(), "GRPCUseTLS": true, "TLSServerName": "b.test"}),
            "passing",
        ),
        (
            "grpc-other",
            json!({"GRPC": secure.address(), "GRPCUseTLS": true, "TLSServerName": "c.test"}),
            "critical",
        ),
    ];
    let definition = |given: &Value| {
        let mut definition = given.clone();
        definition["Interval"] = "1s".into();
        definition["Timeout"] = "2s".into();
        definition
    };
    for (node, given, expected) in &rows {
        let before = if *expected == "passing" {
            "critical"
        } else {
            "passing"
        };
        consul.register(node, before, &definition(given));
    }
    let service = json!({"OSService": "sshd", "Interval": "1s"});
    consul.register("service", "warning", &service);
    let untouched = consul.check("service");

    let mut settings = settings(&consul.stub.address(), dir.path());
    settings.probe.https_ca_file = Some(certificate.ca_file(dir.path()));
    let daemon = TestDaemon::start(settings);
    for (node, given, expected) in &rows {
        let check = eventually(&format!("{node} is {expected}"), || {
            Some(consul.check(node)).filter(|check| check["Status"] == *expected)
        });
        assert_eq!(check["Definition"], definition(given), "{node}");
    }
    assert_reported(&daemon, dir.path(), &[("service", "os_service")]);
    assert_eq!(consul.check("service"), untouched);
    daemon.stop();
}
