//! Faults that a real Consul cannot be made to show, on a server that plays one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_testkit::{Reply, Request, Stub, eventually};
use serde_json::{Value, json};

use crate::daemon::{TestDaemon, settings};
use crate::targets::{Health, Targets};

#[derive(Debug, Clone)]
enum Fault {
    None,
    /// The list of checks is this.
    List(Reply),
    /// An empty list, and no right to see what is missing.
    Blind,
    /// The same, and the index has not moved.
    BlindAtOnce,
    /// There is a leader, but too much is asked of it.
    Busy,
}

/// Two external nodes with a check each, passing.
struct FakeConsul {
    stub: Stub,
    fault: Arc<Mutex<Fault>>,
}

impl FakeConsul {
    fn start(targets: &Targets) -> Self {
        let fault = Arc::new(Mutex::new(Fault::None));
        let (now, urls) = (Arc::clone(&fault), ["a", "b"].map(|name| targets.url(name)));
        let stub = Stub::start(move |request| {
            let fault = now.lock().unwrap().clone();
            answer(request, &fault, &urls)
        });
        Self { stub, fault }
    }

    fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }
}

fn answer(request: &Request, fault: &Fault, urls: &[String; 2]) -> Reply {
    let list = |value: Value| {
        let reply = Reply::json(value.to_string()).header("X-Consul-Index", "7");
        if request.target.contains("index=7") {
            Reply::After(Duration::from_millis(500), Box::new(reply))
        } else {
            reply
        }
    };
    let names = ["a", "b"];
    match (request.path(), fault) {
        ("/v1/health/state/any", Fault::List(reply)) => reply.clone(),
        ("/v1/health/state/any", Fault::Blind) => Reply::json("[]").header("X-Consul-Index", "8"),
        ("/v1/health/state/any", Fault::BlindAtOnce) => list(json!([])),
        ("/v1/health/state/any", _) => list(
            names
                .iter()
                .zip(urls)
                .map(|(name, url)| {
                    json!({
                        "Node": name, "CheckID": format!("{name}-check"), "Status": "passing",
                        "ServiceID": name, "ServiceName": "web", "ModifyIndex": 5,
                        "Definition": {"HTTP": url, "Interval": "1s"},
                    })
                })
                .collect(),
        ),
        ("/v1/catalog/nodes", _) => {
            list(json!([{"Node": "a", "Meta": {}}, {"Node": "b", "Meta": {}}]))
        }
        // Consul's router cleans paths: such a service cannot be asked for.
        ("/v1/catalog/services", _) => list(json!({"a//b": [], "web": []})),
        (path, _) if path.starts_with("/v1/catalog/service/a") => Reply::status(301, ""),
        ("/v1/catalog/service/web", _) => list(json!([
            {"Node": "a", "ServiceID": "a", "ServiceMeta": {}},
            {"Node": "b", "ServiceID": "b", "ServiceMeta": {}},
        ])),
        ("/v1/agent/self", _) => Reply::json(r#"{"Config":{"Version":"1.8.7"}}"#),
        // An empty one is how the daemon asks at its start.
        ("/v1/txn", Fault::Busy) if request.body != b"[]" => {
            Reply::status(429, "rate limit exceeded")
        }
        ("/v1/txn", _) => Reply::json(r#"{"Results":[],"Errors":null}"#),
        ("/v1/status/leader", _) => Reply::json("\"10.0.0.1:8300\""),
        ("/v1/internal/acl/authorize", Fault::Blind | Fault::BlindAtOnce) => {
            let asked = request.json().as_array().map_or(0, Vec::len);
            Reply::json(json!(vec![json!({"Allow": false}); asked]).to_string())
        }
        _ => Reply::status(404, "not here"),
    }
}

// P018, P162.
#[test]
fn a_list_that_cannot_be_read_changes_nothing_but_readiness() {
    let targets = Targets::start();
    let consul = FakeConsul::start(&targets);
    let dir = tempfile::tempdir().unwrap();
    let daemon = TestDaemon::start(settings(&consul.stub.address(), dir.path()));
    eventually("both are probed", || {
        (targets.probes("a") > 0 && targets.probes("b") > 0).then_some(())
    });
    let whole = json!([{"Node": "a", "CheckID": "a-check", "Definition": {}}]).to_string();
    let endless_header = {
        let mut bytes = b"HTTP/1.1 200 OK\r\n".to_vec();
        bytes.extend(std::iter::repeat_n(&b"X-Filler: yes\r\n"[..], 100_000).flatten());
        Reply::Raw(bytes)
    };
    let faults = [
        ("a 500", Fault::List(Reply::status(500, "rpc error"))),
        (
            "a cut answer",
            Fault::List(Reply::cut(&whole, whole.len() / 2)),
        ),
        (
            "an answer cut between elements",
            Fault::List(Reply::Raw(
                b"HTTP/1.1 200 OK\r\nX-Consul-Index: 9\r\nConnection: close\r\n\r\n[".to_vec(),
            )),
        ),
        ("garbage", Fault::List(Reply::json("[{\"Node\": 5"))),
        (
            "an entry without a readable name",
            Fault::List(Reply::json("[{\"Node\": 5}]").header("X-Consul-Index", "8")),
        ),
        ("no JSON", Fault::List(Reply::json("<html>"))),
        ("an object", Fault::List(Reply::json("{}"))),
        ("a closed connection", Fault::List(Reply::Close)),
        ("endless headers", Fault::List(endless_header)),
        ("a deep nest", Fault::List(Reply::json("[".repeat(100_000)))),
        ("a token without rights", Fault::Blind),
        ("rights that went without a new index", Fault::BlindAtOnce),
    ];
    for (name, fault) in faults {
        eventually(&format!("ready before {name}"), || {
            daemon.readiness().ready.then_some(())
        });
        consul.set(fault);
        eventually(&format!("{name} shows in the readiness"), || {
            daemon
                .readiness()
                .reasons
                .iter()
                .any(|reason| reason.contains("the last list of checks is kept"))
                .then_some(())
        });
        assert_eq!(daemon.report().checks.len(), 2, "{name}");
        let probes = ["a", "b"].map(|target| targets.probes(target));
        consul.set(Fault::None);
        eventually(&format!("probing goes on after {name}"), || {
            ["a", "b"]
                .iter()
                .zip(probes)
                .all(|(target, before)| targets.probes(target) > before)
                .then_some(())
        });
    }
    eventually("all is well in the end", || {
        daemon.readiness().ready.then_some(())
    });
    // Nothing was written: nothing has changed.
    let writes = consul
        .stub
        .requests()
        .iter()
        .filter(|request| request.path() == "/v1/txn" && request.body != b"[]")
        .count();
    assert_eq!(writes, 0);
    daemon.stop();
}

// P044: Consul 1.8.7 takes and answers such definitions.
#[test]
fn an_entry_that_cannot_be_read_leaves_the_others_alone() {
    let targets = Targets::start();
    let consul = FakeConsul::start(&targets);
    let dir = tempfile::tempdir().unwrap();
    let url = targets.url("a");
    let odd = |name: &str, definition: Value| {
        json!({"Node": name, "CheckID": name, "Status": "passing", "ServiceID": name,
            "ServiceName": "web", "ModifyIndex": 5, "Definition": definition})
    };
    let list = json!([
        odd("negative", json!({"HTTP": url, "Interval": "-1s"})),
        odd("text", json!({"HTTP": url, "Interval": "1s", "Timeout": "abc"})),
        odd("after", json!({"HTTP": url, "Interval": "1s", "DeregisterCriticalServiceAfter": -5})),
        odd("none", json!({"HTTP": url})),
        odd("short", json!({"HTTP": url, "Interval": "100ms"})),
        odd("method", json!({"HTTP": url, "Interval": "1s", "Method": 7})),
        odd("whole", json!("x")),
        {"Node": "path", "CheckID": "path", "Status": "passing", "ServiceID": "path",
            "ServiceName": "a//b", "ModifyIndex": 5,
            "Definition": {"HTTP": url, "Interval": "1s"}},
        {"Node": ["x"], "CheckID": "lost"},
        odd("good", json!({"HTTP": targets.url("b"), "Interval": "1s"})),
    ]);
    consul.set(Fault::List(
        Reply::json(list.to_string()).header("X-Consul-Index", "6"),
    ));
    let daemon = TestDaemon::start(settings(&consul.stub.address(), dir.path()));
    eventually("the good one is probed", || {
        (targets.probes("b") > 1).then_some(())
    });
    let report = daemon.report();
    let fault = |wanted: &str| {
        let mut texts = report.faults.iter().map(|fault| format!("{fault:?}"));
        assert!(
            texts.any(|text| text.contains(wanted)),
            "{wanted}: {:?}",
            report.faults
        );
    };
    fault("Definition.Interval: ");
    fault("Definition.Timeout: ");
    fault("Definition.DeregisterCriticalServiceAfter: ");
    fault("Definition.Method: ");
    fault("missing or zero");
    fault("shorter than the minimum");
    fault("(/lost)");
    fault("a//b");
    fault("301");
    assert_eq!(report.checks.len(), 8);
    assert!(daemon.readiness().ready, "{:?}", daemon.readiness());
    assert!(daemon.check("whole", "whole").is_none());
    daemon.stop();
}

// P162: what fails again and again is asked for less and less often.
#[test]
fn a_list_that_is_refused_is_not_asked_for_in_a_hurry() {
    let targets = Targets::start();
    let consul = FakeConsul::start(&targets);
    let dir = tempfile::tempdir().unwrap();
    let daemon = TestDaemon::start(settings(&consul.stub.address(), dir.path()));
    for refusal in [
        Reply::status(403, "Permission denied"),
        Reply::status(500, "rpc error"),
    ] {
        eventually("ready", || daemon.readiness().ready.then_some(()));
        consul.set(Fault::List(refusal));
        let asked = || {
            let requests = consul.stub.requests();
            let lists = requests
                .iter()
                .filter(|request| request.path() == "/v1/health/state/any");
            lists.count()
        };
        let before = asked();
        let probes = targets.probes("a");
        eventually("six seconds", || {
            (targets.probes("a") >= probes + 6).then_some(())
        });
        let asked = asked() - before;
        assert!((1..=6).contains(&asked), "{asked} times in 6 s");
        consul.set(Fault::None);
    }
    daemon.stop();
}

// A leader that refuses for want of time is not asked in a hurry either.
#[test]
fn writes_that_fail_although_there_is_a_leader_are_sent_less_and_less_often() {
    let targets = Targets::start();
    let consul = FakeConsul::start(&targets);
    let dir = tempfile::tempdir().unwrap();
    let daemon = TestDaemon::start(settings(&consul.stub.address(), dir.path()));
    eventually("ready", || daemon.readiness().ready.then_some(()));
    consul.set(Fault::Busy);
    targets.set("a", Health::Down);
    let asked = |path: &str| {
        let requests = consul.stub.requests();
        let asked = requests
            .iter()
            .filter(|request| request.path() == path && request.body != b"[]");
        asked.count()
    };
    eventually("a write", || (asked("/v1/txn") > 0).then_some(()));
    let probes = targets.probes("b");
    eventually("six seconds", || {
        (targets.probes("b") >= probes + 6).then_some(())
    });
    let (writes, leader) = (asked("/v1/txn"), asked("/v1/status/leader"));
    assert!((2..=8).contains(&writes), "{writes} writes in 6 s");
    assert!(leader <= 10, "{leader} questions for the leader in 6 s");
    daemon.stop();
}

// An answer without an end is given up, and memory stays bounded.
#[test]
fn an_endless_list_is_given_up() {
    let targets = Targets::start();
    let consul = FakeConsul::start(&targets);
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(&consul.stub.address(), dir.path());
    settings.consul.request_timeout = Duration::from_secs(3);
    settings.consul.wait = Duration::from_secs(1);
    let daemon = TestDaemon::start(settings);
    eventually("both are probed", || {
        (targets.probes("b") > 0).then_some(())
    });
    consul.set(Fault::List(Reply::Endless {
        first: b"HTTP/1.1 200 OK\r\nX-Consul-Index: 9\r\nConnection: close\r\n\r\n[".to_vec(),
        then: br#"{"Node":"x","CheckID":"y"},"#.repeat(100),
    }));
    eventually("it shows in the readiness", || {
        (!daemon.readiness().ready).then_some(())
    });
    assert_eq!(daemon.report().checks.len(), 2);
    let probes = targets.probes("a");
    eventually("probing goes on", || {
        (targets.probes("a") > probes + 2).then_some(())
    });
    daemon.stop();
}
