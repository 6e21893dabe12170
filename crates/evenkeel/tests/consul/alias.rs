//! Aliases of nodes that the daemon does not watch.

use std::time::Duration;

use evenkeel_testkit::{Consul, eventually};
use serde_json::{Value, json};

use crate::catalog::{eventually_status, external, status};
use crate::daemon::{TestDaemon, settings};

/// A node without the mark, with the services `db`, which has a check, and `bare`,
/// which has none.
fn register_others(consul: &Consul, node: &str, db: &str) {
    for (service, checks) in [
        (
            "db",
            json!([{"Node": node, "CheckID": "db-check", "Name": "db", "Status": db, "ServiceID": "db"}]),
        ),
        ("bare", json!([])),
    ] {
        consul.register(&json!({"Node": node, "Address": "127.0.0.1",
            "Service": {"ID": service, "Service": service}, "Checks": checks}));
    }
}

fn alias(node: &str, service: &str) -> Value {
    json!({"AliasNode": node, "AliasService": service, "Interval": "1s"})
}

// P053, P120
#[test]
fn an_alias_follows_what_the_daemon_does_not_watch() {
    let Some(consul) = Consul::start("an_alias_follows_what_the_daemon_does_not_watch") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    register_others(&consul, "other", "passing");
    // The first is the agent's own node, with the check that Consul gives it.
    for (name, node, service, expected) in [
        ("agent", "server", "", "passing"),
        ("db", "other", "db", "passing"),
        ("bare", "other", "bare", "passing"),
        ("node", "other", "", "passing"),
        ("gone", "other", "none", "critical"),
        ("nowhere", "none", "", "critical"),
    ] {
        let before = match expected {
            "passing" => "critical",
            _ => "passing",
        };
        external(name, &alias(node, service))
            .status(before)
            .put(&consul);
    }
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    for name in ["agent", "db", "bare", "node"] {
        eventually_status(&consul, name, "passing");
    }
    for name in ["gone", "nowhere"] {
        eventually_status(&consul, name, "critical");
    }
    for wanted in ["critical", "warning", "passing"] {
        register_others(&consul, "other", wanted);
        eventually_status(&consul, "db", wanted);
    }
    // The check of a node counts for each of its services.
    consul.register(&json!({"Node": "other", "Address": "127.0.0.1",
        "Check": {"Node": "other", "CheckID": "disk", "Name": "disk", "Status": "critical"}}));
    for name in ["db", "bare", "node"] {
        eventually_status(&consul, name, "critical");
    }
    let output = &consul.check("db", "db-check").unwrap()["Output"];
    assert_eq!(output, "aliased check \"disk\" is critical");
    let output = &consul.check("gone", "gone-check").unwrap()["Output"];
    assert_eq!(output, "service none has no checks on node other");
    assert_eq!(daemon.report().unsupported.len(), 0);
    daemon.stop();
}

// P053: for a token without rights the catalog is empty.
#[test]
fn what_a_token_may_not_see_is_not_taken_for_gone() {
    let Some(consul) = Consul::builder()
        .acl()
        .start("what_a_token_may_not_see_is_not_taken_for_gone")
    else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    register_others(&consul, "other", "critical");
    external("sees", &alias("other", "db"))
        .status("passing")
        .put(&consul);
    external("misses", &alias("other", "none"))
        .status("passing")
        .put(&consul);
    let policy = |rules: &str| json!({"Name": "monitor", "Rules": rules}).to_string();
    let own = "node \"sees\" { policy = \"write\" } node \"misses\" { policy = \"write\" }\n\
               service \"web\" { policy = \"write\" }\n";
    let (code, made) = consul.put("/v1/acl/policy", &policy(own));
    assert_eq!(code, 200, "{made}");
    let id = serde_json::from_str::<Value>(&made).unwrap()["ID"].clone();
    let (code, made) = consul.put(
        "/v1/acl/token",
        &json!({"Policies": [{"Name": "monitor"}]}).to_string(),
    );
    assert_eq!(code, 200, "{made}");
    let token = serde_json::from_str::<Value>(&made).unwrap()["SecretID"].clone();
    let mut settings = settings(&consul.address(), dir.path());
    settings.consul.token = Some(evenkeel::config::Secret::new(token.as_str().unwrap()));
    settings.consul.wait = Duration::from_secs(2);
    let daemon = TestDaemon::start(settings);
    let unprobed = |name: &str| {
        eventually(&format!("{name} is looked at twice in vain"), || {
            let check = daemon.check(name, &format!("{name}-check"))?;
            (check.unprobed_run >= 2).then_some(())
        });
    };
    let allow = |rules: &str| {
        let path = format!("/v1/acl/policy/{}", id.as_str().unwrap());
        let (code, said) = consul.put(&path, &policy(&format!("{own}{rules}")));
        assert_eq!(code, 200, "{said}");
    };
    unprobed("sees");
    unprobed("misses");
    // With the node alone, neither its services nor that one is missing.
    allow("node \"other\" { policy = \"read\" }");
    unprobed("misses");
    assert_eq!(status(&consul, "sees").unwrap(), "passing");
    allow("node \"other\" { policy = \"read\" } service \"db\" { policy = \"read\" }");
    eventually_status(&consul, "sees", "critical");
    unprobed("misses");
    assert_eq!(status(&consul, "misses").unwrap(), "passing");
    allow("node \"other\" { policy = \"read\" } service_prefix \"\" { policy = \"write\" }");
    eventually_status(&consul, "misses", "critical");
    daemon.stop();
}
