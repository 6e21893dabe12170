use evenkeel::config::CommandChecks;
use evenkeel_testkit::{Consul, Docker, GrpcHealth, eventually};
use evenkeel_threshold::Status;
use serde_json::{Value, json};

use crate::catalog::{eventually_status, external, status};
use crate::daemon::{TestDaemon, settings};
use crate::targets::{Health, Targets};
use crate::tls::Certificate;

/// The check without what a status write may change. `Type` is derived by the
/// server and lost by a transaction, with consul-esm too.
fn fixed_part(consul: &Consul, node: &str) -> Value {
    let mut check = consul.check(node, &format!("{node}-check")).unwrap();
    let fields = check.as_object_mut().unwrap();
    for field in ["Status", "Output", "ModifyIndex", "Type"] {
        fields.remove(field);
    }
    check
}

// P041.
#[test]
fn definitions_are_the_same_after_three_changes() {
    let Some(consul) = Consul::start("definitions_are_the_same_after_three_changes") else {
        return;
    };
    let targets = Targets::start();
    let dir = tempfile::tempdir().unwrap();
    let full = json!({
        "HTTP": targets.url("full"), "Method": "POST", "Body": "ping",
        "Header": {"Host": ["a.test"], "X-Two": ["1", "2"]}, "TLSSkipVerify": true,
        "Interval": "1s", "Timeout": "500ms", "DeregisterCriticalServiceAfter": "90m",
    });
    let mut limited = full.clone();
    limited["HTTP"] = targets.url("limited").into();
    limited["OutputMaxSize"] = 100.into();
    external("full", &full).notes("kept").put(&consul);
    external("limited", &limited).notes("kept").put(&consul);
    let before = ["full", "limited"].map(|node| fixed_part(&consul, node));

    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    for (health, wanted) in [
        (Health::Up, "passing"),
        (Health::Down, "critical"),
        (Health::Up, "passing"),
    ] {
        for node in ["full", "limited"] {
            targets.set(node, health.clone());
        }
        for node in ["full", "limited"] {
            eventually_status(&consul, node, wanted);
        }
    }
    for (node, before) in ["full", "limited"].into_iter().zip(before) {
        assert_eq!(fixed_part(&consul, node), before);
    }
    assert!(
        daemon.metric("evenkeel_writes_total{way=\"register\",outcome=\"written\"}") as u64 >= 3
    );
    daemon.stop();
}

/// The definition as Consul writes it.
fn definition_bytes(consul: &Consul, node: &str) -> String {
    let (code, body) = consul.get(&format!("/v1/health/node/{node}"));
    assert_eq!(code, 200, "{body}");
    let (_, definition) = body.split_once("\"Definition\":").unwrap();
    let (definition, _) = definition.split_once(",\"CreateIndex\":").unwrap();
    definition.to_owned()
}

/// Makes a target well or ill.
type Set<'a> = Box<dyn Fn(&TestDaemon, bool) + 'a>;

/// A check of some kind with its target.
struct Row<'a> {
    node: &'static str,
    definition: Value,
    set: Set<'a>,
}

impl<'a> Row<'a> {
    fn new(node: &'static str, definition: Value, set: impl Fn(&TestDaemon, bool) + 'a) -> Self {
        let set = Box::new(set);
        Self {
            node,
            definition,
            set,
        }
    }
}

// P041, P053, P055: a transaction would lose the fields of all of these.
#[test]
fn the_other_kinds_are_probed_and_keep_their_definitions() {
    let test = "the_other_kinds_are_probed_and_keep_their_definitions";
    let Some(consul) = Consul::start(test) else {
        return;
    };
    let docker = Docker::start(test);
    let dir = tempfile::tempdir().unwrap();
    let certificate = Certificate::of("127.0.0.1");
    let (grpc, secure) = (
        GrpcHealth::start(),
        GrpcHealth::start_tls(&certificate.chain, &certificate.key),
    );
    let ill = dir.path().join("ill");
    let mut rows = vec![
        Row::new(
            "grpc",
            json!({"GRPC": format!("{}/", grpc.address()), "Interval": "1s", "Timeout": "5s"}),
            |_, well| grpc.set_serving(well),
        ),
        Row::new(
            "grpc-tls",
            json!({"GRPC": secure.address(), "GRPCUseTLS": true, "Interval": "1s", "Timeout": "5s",
                "DeregisterCriticalServiceAfter": "90m"}),
            |_, well| secure.set_serving(well),
        ),
        Row::new(
            "grpc-any-tls",
            json!({"GRPC": secure.address(), "GRPCUseTLS": true, "TLSSkipVerify": true, "Interval": "1s"}),
            |_, _| (),
        ),
        Row::new(
            "script",
            json!({"ScriptArgs": ["sh", "-c", "echo \"$0\"; ! test -e \"$1\"", "<a&b>", ill],
                "OutputMaxSize": 100, "Interval": "1s", "Timeout": "5s"}),
            |_, well| {
                // The exit status 1 would be a warning.
                if well {
                    let _ = std::fs::remove_file(&ill);
                } else {
                    std::fs::write(&ill, "").unwrap();
                }
            },
        ),
        Row::new("ttl", json!({"TTL": "1h"}), |daemon, well| {
            let status = if well {
                Status::Passing
            } else {
                Status::Critical
            };
            eventually("the report is taken", || {
                daemon.heartbeat("ttl-check", "ttl", status).then_some(())
            });
        }),
        Row::new(
            "alias",
            json!({"AliasNode": "grpc", "AliasService": "grpc-service", "Interval": "1s"}),
            |_, _| (),
        ),
    ];
    let mut settings = settings(&consul.address(), dir.path());
    settings.probe.scripts = CommandChecks::All;
    settings.probe.https_ca_file = Some(certificate.ca_file(dir.path()));
    if let Some(docker) = &docker {
        docker.container("web");
        settings.probe.docker = CommandChecks::All;
        settings.probe.docker_host = docker.host();
        rows.push(Row::new(
            "docker",
            json!({"DockerContainerID": "web", "ScriptArgs": ["sh", "-c", "exit 0"],
                "Interval": "1s", "Timeout": "20s"}),
            |_, well| {
                if !well {
                    docker.end("web");
                } else if !docker.runs("web", "sleep") {
                    let (code, said) = docker.ask("POST", "/containers/web/start", &[]);
                    assert_eq!(code, 204, "{said}");
                }
            },
        ));
    }
    for row in &rows {
        external(row.node, &row.definition)
            .notes("kept")
            .put(&consul);
    }
    let now = |row: &Row<'_>| {
        (
            definition_bytes(&consul, row.node),
            fixed_part(&consul, row.node),
        )
    };
    let before: Vec<_> = rows.iter().map(now).collect();

    let daemon = TestDaemon::start(settings);
    for (well, wanted) in [(true, "passing"), (false, "critical"), (true, "passing")] {
        for row in &rows {
            (row.set)(&daemon, well);
        }
        for row in &rows {
            let wanted = match (row.node, well) {
                ("script", false) => "warning",
                _ => wanted,
            };
            eventually_status(&consul, row.node, wanted);
        }
    }
    for (row, before) in rows.iter().zip(before) {
        assert_eq!(now(row), before, "{}", row.node);
    }
    let written = |way: &str| {
        daemon.metric(&format!(
            "evenkeel_writes_total{{way=\"{way}\",outcome=\"written\"}}"
        )) as usize
    };
    assert!(written("register") > 3 * (rows.len() - 1));
    assert_eq!(written("transaction"), 0);
    assert_eq!(daemon.report().unsupported.len(), 0);
    assert_eq!(
        daemon.report().faults.len(),
        0,
        "{:?}",
        daemon.report().faults
    );
    daemon.stop();
}

// P020: an edit between our read and our write survives.
#[test]
fn an_edit_of_the_notes_survives_our_write() {
    let Some(consul) = Consul::start("an_edit_of_the_notes_survives_our_write") else {
        return;
    };
    let targets = Targets::start();
    let dir = tempfile::tempdir().unwrap();
    let register = |notes: &str, status: &str| {
        let definition = json!({"HTTP": targets.url("a"), "Interval": "1s"});
        external("a", &definition)
            .notes(notes)
            .status(status)
            .put(&consul)
    };
    register("0", "passing");
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    eventually("it is probed", || (targets.probes("a") > 0).then_some(()));
    // The list is read at most once a second and the target changes each second,
    // so in some of the rounds the edit is not known when we write.
    for round in 1..=20 {
        let (health, wanted) = if round % 2 == 1 {
            (Health::Down, "critical")
        } else {
            (Health::Up, "passing")
        };
        targets.set("a", health);
        let before = status(&consul, "a").unwrap();
        register(&round.to_string(), &before);
        eventually_status(&consul, "a", wanted);
        let check = consul.check("a", "a-check").unwrap();
        assert_eq!(
            check["Notes"],
            round.to_string(),
            "the edit was overwritten"
        );
    }
    daemon.stop();
}
