use std::time::Duration;

use evenkeel_testkit::{Consul, eventually};
use evenkeel_threshold::Status;
use serde_json::json;

use crate::catalog::{eventually_status, external, http, status, within};
use crate::daemon::{TestDaemon, settings};
use crate::targets::Targets;

// P018, P043.
#[test]
fn nodes_come_and_go_while_the_daemon_runs() {
    let Some(consul) = Consul::start("nodes_come_and_go_while_the_daemon_runs") else {
        return;
    };
    let targets = Targets::start();
    let dir = tempfile::tempdir().unwrap();
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    eventually("the empty list is taken", || {
        daemon.readiness().ready.then_some(())
    });
    // 2 s are promised; the rest is for a loaded machine.
    let soon = Duration::from_secs(5);
    for round in ["first", "second"] {
        external(round, &http(&targets.url(round))).put(&consul);
        within(soon, "the new node is probed", || targets.probes(round) > 0);
        eventually_status(&consul, round, "passing");
    }
    consul.deregister(&json!({"Node": "first"}));
    eventually("it is known to be gone", || {
        daemon.check("first", "first-check").is_none().then_some(())
    });
    let probes = targets.probes("first");
    let others = targets.probes("second");
    eventually("the other goes on", || {
        (targets.probes("second") > others + 3).then_some(())
    });
    assert!(
        targets.probes("first") <= probes + 1,
        "a node that is gone is probed"
    );

    // The last one.
    consul.deregister(&json!({"Node": "second", "ServiceID": "second-service"}));
    eventually("no checks are left", || {
        daemon.report().checks.is_empty().then_some(())
    });
    let probes = targets.probes("second");
    external("third", &http(&targets.url("third"))).put(&consul);
    eventually("a later one is probed", || {
        (targets.probes("third") > 3).then_some(())
    });
    assert!(
        targets.probes("second") <= probes + 1,
        "the last check is still probed"
    );
    daemon.stop();
}

// A node that gets or loses the mark wakes nobody who waits for checks.
#[test]
fn a_node_that_gets_the_mark_is_probed_and_one_that_loses_it_is_not() {
    let Some(consul) = Consul::start("a_node_that_gets_the_mark") else {
        return;
    };
    let targets = Targets::start();
    let dir = tempfile::tempdir().unwrap();
    let marked = |mark: &str| {
        external("late", &http(&targets.url("late")))
            .node_meta("external-node", mark)
            .put(&consul)
    };
    marked("false");
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    eventually("the list is taken", || {
        daemon.readiness().ready.then_some(())
    });
    assert!(daemon.report().checks.is_empty());
    consul.register(
        &json!({"Node": "late", "Address": "127.0.0.1", "NodeMeta": {"external-node": "true"}}),
    );
    eventually("it is probed", || {
        (targets.probes("late") > 1).then_some(())
    });
    consul.register(&json!({"Node": "late", "Address": "127.0.0.1", "NodeMeta": {}}));
    eventually("it is dropped", || {
        daemon.report().checks.is_empty().then_some(())
    });
    daemon.stop();
}

// `200 []` for a token without rights changes nothing but readiness.
#[test]
fn a_token_that_loses_its_rights_drops_no_check() {
    let Some(consul) = Consul::builder()
        .acl()
        .start("a_token_that_loses_its_rights")
    else {
        return;
    };
    let targets = Targets::start();
    let dir = tempfile::tempdir().unwrap();
    let policy = json!({"Name": "monitor", "Rules":
        "node_prefix \"\" { policy = \"write\" } service_prefix \"\" { policy = \"write\" }"});
    let (code, made) = consul.put("/v1/acl/policy", &policy.to_string());
    assert_eq!(code, 200, "{made}");
    let policy_id = serde_json::from_str::<serde_json::Value>(&made).unwrap()["ID"].clone();
    let (code, made) = consul.put(
        "/v1/acl/token",
        &json!({"Policies": [{"Name": "monitor"}]}).to_string(),
    );
    assert_eq!(code, 200, "{made}");
    let token = serde_json::from_str::<serde_json::Value>(&made).unwrap()["SecretID"].clone();

    external("a", &http(&targets.url("a"))).put(&consul);
    external("b", &http(&targets.url("b"))).put(&consul);
    let mut settings = settings(&consul.address(), dir.path());
    settings.consul.token = Some(evenkeel::config::Secret::new(token.as_str().unwrap()));
    // Rights are looked at when an answer is made: a shorter wait sees it sooner.
    settings.consul.wait = Duration::from_secs(2);
    let daemon = TestDaemon::start(settings);
    eventually_status(&consul, "a", "passing");
    eventually_status(&consul, "b", "passing");

    let path = format!("/v1/acl/policy/{}", policy_id.as_str().unwrap());
    let none =
        json!({"ID": policy_id, "Name": "monitor", "Rules": "node \"x\" { policy = \"read\" }"});
    assert_eq!(consul.put(&path, &none.to_string()).0, 200);
    eventually("readiness says so", || {
        daemon
            .readiness()
            .reasons
            .iter()
            .any(|reason| reason.contains("may not read"))
            .then_some(())
    });
    let probes = targets.probes("a");
    eventually("probing goes on", || {
        (targets.probes("a") > probes + 3).then_some(())
    });
    assert_eq!(daemon.report().checks.len(), 2);

    let mut back = policy.clone();
    back["ID"] = policy_id;
    assert_eq!(consul.put(&path, &back.to_string()).0, 200);
    eventually("all is well again", || {
        daemon.readiness().ready.then_some(())
    });
    // And now a real removal is believed.
    consul.deregister(&json!({"Node": "b"}));
    eventually("b is dropped", || {
        daemon.check("b", "b-check").is_none().then_some(())
    });
    daemon.stop();
}

// P053: neither is probed, and neither loses its definition by being written.
#[test]
fn a_ttl_is_reported_to_us_and_an_alias_follows() {
    let Some(consul) = Consul::start("a_ttl_is_reported_to_us_and_an_alias_follows") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    external("beats", &json!({"TTL": "3s"})).put(&consul);
    external(
        "follows",
        &json!({"AliasNode": "beats", "AliasService": "beats-service"}),
    )
    .put(&consul);
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    let check = consul.get_json("/v1/health/node/beats")[0]["CheckID"]
        .as_str()
        .unwrap()
        .to_owned();
    eventually("the report is taken", || {
        daemon
            .heartbeat(&check, "beats", Status::Passing)
            .then_some(())
    });
    eventually("it is written", || {
        (status(&consul, "beats")? == "passing").then_some(())
    });
    let kept = &consul.get_json("/v1/health/node/beats")[0]["Definition"]["TTL"];
    // As 1.8.7 writes this one duration.
    assert_eq!(kept, &json!(3_000_000_000_u64));
    for node in ["beats", "follows"] {
        eventually("silence is critical", || {
            (status(&consul, node)? == "critical").then_some(())
        });
    }
    assert_eq!(daemon.report().unsupported.len(), 0);
    daemon.stop();
}

// Another monitor's registration is noticed and said.
#[test]
fn another_monitor_is_said() {
    let Some(consul) = Consul::start("another_monitor_is_said") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    consul.register(&json!({"Node": "agent", "Address": "127.0.0.1",
        "Service": {"ID": "consul-esm:1", "Service": "consul-esm"}}));
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    eventually("it is said", || {
        daemon
            .report()
            .faults
            .iter()
            .any(|fault| fault.text.contains("consul-esm:1"))
            .then_some(())
    });
    assert_eq!(daemon.metric("evenkeel_other_monitor") as u64, 1);
    daemon.stop();
}

// P007: drift is put right, also by somebody who writes again and again.
#[test]
fn a_status_that_is_not_ours_is_written_over() {
    let Some(consul) = Consul::start("a_status_that_is_not_ours_is_written_over") else {
        return;
    };
    let targets = Targets::start();
    let dir = tempfile::tempdir().unwrap();
    let register = || external("a", &http(&targets.url("a"))).put(&consul);
    register();
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    eventually_status(&consul, "a", "passing");
    for round in 1..=5 {
        register();
        eventually_status(&consul, "a", "passing");
        eventually("the drift is counted", || {
            (daemon.metric("evenkeel_drifts_total") as u64 >= round).then_some(())
        });
    }
    eventually("five of them are taken for another monitor", || {
        daemon
            .report()
            .faults
            .iter()
            .any(|fault| fault.text.contains("another monitor"))
            .then_some(())
    });
    daemon.stop();
}
