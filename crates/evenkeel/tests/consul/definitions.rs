use evenkeel_testkit::{Consul, eventually};
use serde_json::{Value, json};

use crate::catalog::{eventually_status, external, status};
use crate::daemon::{TestDaemon, settings};
use crate::targets::{Health, Targets};

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
