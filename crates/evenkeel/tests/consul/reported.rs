//! Checks that are not probed, and how that shows.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use evenkeel_testkit::{Consul, eventually};
use serde_json::{Value, json};

use crate::catalog::{external, index, status};
use crate::daemon::{TestDaemon, settings};

/// What `evenkeel status` prints.
fn shown(dir: &Path, more: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .arg("status")
        .args(more)
        .arg("--admin")
        .arg(format!("unix:{}", dir.join("admin.sock").display()))
        .env_clear()
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Asserts that the checks of these nodes, and no others, are reported as not probed,
/// each as a check of its kind, in all places where that is to be seen.
pub(crate) fn assert_reported(daemon: &TestDaemon, dir: &Path, expected: &[(&str, &str)]) {
    let expected: BTreeSet<(&str, &str)> = expected.iter().copied().collect();
    let text = shown(dir, &[]);
    let (_, not_probed) = text
        .split_once("NOT PROBED")
        .unwrap_or_else(|| panic!("{text}"));
    for (node, _) in &expected {
        let line = not_probed
            .lines()
            .find(|line| line.contains(&format!("{node}-check")));
        assert!(
            line.is_some_and(|line| line.contains("not probed: ")),
            "{node}: {text}"
        );
    }
    let json: Value = serde_json::from_str(&shown(dir, &["--json"])).unwrap();
    let listed: BTreeSet<(&str, &str)> = json["unsupported"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            let node = entry["check"]["node"].as_str().unwrap();
            assert!(
                entry["reason"]
                    .as_str()
                    .unwrap()
                    .contains("stays as it was registered"),
                "{entry}"
            );
            (node, entry["kind"].as_str().unwrap())
        })
        .collect();
    assert_eq!(listed, expected);
    let kinds: BTreeSet<&str> = expected.iter().map(|(_, kind)| *kind).collect();
    for kind in kinds {
        let series = format!("evenkeel_checks_unsupported{{kind=\"{kind}\"}}");
        let count = expected.iter().filter(|(_, of)| *of == kind).count();
        assert_eq!(daemon.metric(&series) as usize, count, "{kind}");
    }
}

// P051: what is not probed must not stay passing in silence.
#[test]
fn what_is_not_probed_is_reported_and_left_as_it_is() {
    let Some(consul) = Consul::start("what_is_not_probed_is_reported_and_left_as_it_is") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let rows = [
        // Both are off until they are allowed.
        (
            "script",
            json!({"ScriptArgs": ["true"], "Interval": "1s"}),
            "script",
        ),
        (
            "docker",
            json!({"DockerContainerID": "c", "Shell": "sh", "ScriptArgs": ["true"], "Interval": "1s"}),
            "docker",
        ),
        ("shell", json!({"Shell": "sh", "Interval": "1s"}), "script"),
        ("nothing", json!({}), "none"),
        // What is left of a kind that this server does not know.
        (
            "service",
            json!({"OSService": "sshd", "Interval": "1s"}),
            "other",
        ),
    ];
    let registered = ["passing", "warning", "critical", "passing", "warning"];
    for ((node, definition, _), status) in rows.iter().zip(registered) {
        external(node, definition).status(status).put(&consul);
    }
    let before: Vec<u64> = rows.iter().map(|(node, ..)| index(&consul, node)).collect();
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    eventually("the list is taken", || {
        daemon.readiness().ready.then_some(())
    });
    let expected: Vec<_> = rows.iter().map(|(node, _, kind)| (*node, *kind)).collect();
    assert_reported(&daemon, dir.path(), &expected);
    for (((node, ..), registered), before) in rows.iter().zip(registered).zip(before) {
        assert_eq!(status(&consul, node).unwrap(), registered, "{node}");
        assert_eq!(index(&consul, node), before, "{node} was written");
    }
    daemon.stop();
}
