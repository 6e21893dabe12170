//! Status writes, against a real Consul, directly or through a stub that does
//! something at a chosen moment.

#![allow(clippy::unwrap_used, reason = "only tests are compiled with this")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{checks, client, external, forward, stub_client, write};
use evenkeel_consul::types::{HealthCheck, Status};
use evenkeel_consul::write::{StatusWrite, WriteForm, WriteOutcome};
use evenkeel_consul::{Client, Config, Query};
use evenkeel_testkit::{Consul, Stub};
use serde_json::{Value, json};

/// What Consul 1.8.7 stores of a definition that is registered.
fn every_field() -> Value {
    json!({
        "HTTP": "http://127.0.0.1:1/", "Header": {"X-A": ["1", "2"], "Host": ["h"]},
        "Method": "POST", "Body": "b", "TLSSkipVerify": true, "TCP": "127.0.0.1:1",
        "GRPC": "127.0.0.1:1/s", "GRPCUseTLS": true, "DockerContainerID": "d",
        "Shell": "/bin/sh", "ScriptArgs": ["a", "b"], "AliasNode": "an", "AliasService": "as",
        "TTL": "5s", "Interval": "1.5h", "Timeout": "1m30s",
        "DeregisterCriticalServiceAfter": "90m", "OutputMaxSize": 100
    })
}

/// The record without what a status write changes.
fn rest(mut check: Value) -> Value {
    let fields = check.as_object_mut().unwrap();
    for field in ["Status", "Output", "ModifyIndex"] {
        fields.remove(field).unwrap();
    }
    check
}

fn written(outcome: &WriteOutcome) -> (u64, WriteForm) {
    match outcome {
        WriteOutcome::Written { index, form } => (*index, form.clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_the_same_after_three_status_writes() {
    // P041, for every kind of check and for all fields at once
    let test = "a_definition_is_the_same_after_three_status_writes";
    let Some(consul) = Consul::start(test) else {
        return;
    };
    let client = client(&consul);
    let kinds = [
        ("all", every_field(), false),
        (
            "http",
            json!({"HTTP": "http://127.0.0.1:1/", "Header": {"A": ["b"]}, "Method": "PUT",
                        "Body": "b", "TLSSkipVerify": true, "Interval": "10s", "Timeout": "1s",
                        "DeregisterCriticalServiceAfter": "90m"}),
            true,
        ),
        ("tcp", json!({"TCP": "127.0.0.1:1", "Interval": "2s"}), true),
        ("nothing", json!({}), true),
        (
            "http-limited",
            json!({"HTTP": "http://127.0.0.1:1/", "OutputMaxSize": 10}),
            false,
        ),
        (
            "grpc",
            json!({"GRPC": "127.0.0.1:1/s", "GRPCUseTLS": true, "Interval": "2s"}),
            false,
        ),
        (
            "docker",
            json!({"DockerContainerID": "d", "ScriptArgs": ["a"], "Shell": "sh"}),
            false,
        ),
        (
            "script",
            json!({"ScriptArgs": ["a"], "Interval": "2s"}),
            false,
        ),
        (
            "alias",
            json!({"AliasNode": "n", "AliasService": "s"}),
            false,
        ),
        ("ttl", json!({"TTL": "5s"}), false),
    ];
    for (node, definition, _) in &kinds {
        consul.register(&external(node, definition));
    }
    let before: Vec<Value> = kinds
        .iter()
        .map(|(node, ..)| consul.check(node, "c").unwrap())
        .collect();
    for (node, definition, _) in &kinds {
        // The test's own list is right: nothing is lost at the registration.
        let check = consul.check(node, "c").unwrap();
        let sent = definition.as_object().unwrap().len();
        assert_eq!(
            check["Definition"].as_object().unwrap().len(),
            sent,
            "{check}"
        );
    }

    let listed = checks(&client).await;
    let mut writes: Vec<StatusWrite> = listed
        .iter()
        .map(|check| {
            let (.., by_transaction) = kinds.iter().find(|(node, ..)| *node == check.node).unwrap();
            let form = WriteForm::of(check);
            assert_eq!(
                matches!(form, WriteForm::Transaction(_)),
                *by_transaction,
                "{check:?}"
            );
            write(check, Status::Critical, "")
        })
        .collect();
    for (round, status) in [Status::Passing, Status::Critical, Status::Warning]
        .iter()
        .enumerate()
    {
        for write in &mut writes {
            write.status = *status;
            write.output = format!("round {round} \"\\\u{7}ä").into();
        }
        let outcomes = client.write_statuses(&writes).await;
        for (write, outcome) in writes.iter_mut().zip(&outcomes) {
            // The next round needs no read.
            (write.index, write.form) = written(outcome);
        }
    }

    for ((node, _, by_transaction), before) in kinds.iter().zip(before) {
        let after = consul.check(node, "c").unwrap();
        assert_eq!(
            (&after["Status"], &after["Output"]),
            (&json!("warning"), &json!("round 2 \"\\\u{7}ä"))
        );
        let mut expected = rest(before);
        if *by_transaction {
            // Consul empties what it had derived itself; see docs/consul.md.
            expected["Type"] = json!("");
        }
        assert_eq!(rest(after), expected, "{node}");
    }
    // 4 checks by 1 transaction each round; the others by node.
    let counters = client.write_counters();
    assert_eq!((counters.transactions, counters.registers), (3, 3 * 7));
    assert_eq!(
        (counters.refused, counters.lost_races, counters.repaired),
        (0, 0, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_the_notes_between_read_and_write_survives() {
    // P020, on both ways of writing
    let test = "an_edit_of_the_notes_between_read_and_write_survives";
    let Some(consul) = Consul::start(test) else {
        return;
    };
    let client = client(&consul);
    for definition in [
        json!({"TCP": "127.0.0.1:1"}),
        json!({"GRPC": "127.0.0.1:1"}),
    ] {
        let mut registration = external("n", &definition);
        consul.register(&registration);
        let mut first = write(&checks(&client).await[0], Status::Passing, "ok");
        registration["Check"]["Notes"] = json!("[evenkeel critical-threshold=3]");
        consul.register(&registration);

        let outcome = client.write_statuses(&[first.clone()]).await.remove(0);
        let WriteOutcome::Stale {
            index,
            form,
            status,
            output,
        } = outcome
        else {
            panic!("{outcome:?}")
        };
        assert_eq!((status, output.as_str()), (Some(Status::Critical), ""));
        first.index = index;
        first.form = form;
        written(&client.write_statuses(&[first]).await[0]);
        let check = consul.check("n", "c").unwrap();
        assert_eq!(check["Status"], "passing");
        assert_eq!(check["Notes"], "[evenkeel critical-threshold=3]");
        consul.deregister(&json!({"Node": "n"}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_ten_of_a_batch_with_one_stale_are_in_the_catalog_at_the_end() {
    // P022
    let test = "all_ten_of_a_batch_with_one_stale_are_in_the_catalog_at_the_end";
    let Some(consul) = Consul::start(test) else {
        return;
    };
    let client = client(&consul);
    for n in 0..10 {
        consul.register(&external(&format!("n{n}"), &json!({"TCP": "127.0.0.1:1"})));
    }
    let mut writes: Vec<StatusWrite> = checks(&client)
        .await
        .iter()
        .map(|check| write(check, Status::Passing, "ok"))
        .collect();
    let mut edited = external("n3", &json!({"TCP": "127.0.0.1:2"}));
    edited["Check"]["Output"] = json!("by another");
    consul.register(&edited);

    let outcomes = client.write_statuses(&writes).await;
    for ((n, write), outcome) in writes.iter_mut().enumerate().zip(&outcomes) {
        // None of them has happened, and each says where it stands.
        let WriteOutcome::Stale {
            index,
            form,
            status,
            output,
        } = outcome
        else {
            panic!("{outcome:?}")
        };
        assert_eq!(*status, Some(Status::Critical));
        assert_eq!(output, if n == 3 { "by another" } else { "" });
        assert_eq!(*index != write.index, n == 3);
        write.index = *index;
        write.form = form.clone();
    }
    let outcomes = client.write_statuses(&writes).await;
    assert!(
        outcomes.iter().all(WriteOutcome::is_written),
        "{outcomes:?}"
    );
    for check in checks(&client).await {
        assert_eq!(
            (check.status(), check.output.as_str()),
            (Some(Status::Passing), "ok")
        );
        let port = if check.node == "n3" { 2 } else { 1 };
        assert_eq!(check.definition.tcp, format!("127.0.0.1:{port}"));
    }
    assert_eq!(client.write_counters().transactions, 2);
    assert_eq!(client.write_counters().refused, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_writes_in_one_call_are_sixteen_transactions() {
    // P023
    let test = "a_thousand_writes_in_one_call_are_sixteen_transactions";
    let Some(consul) = Consul::start(test) else {
        return;
    };
    let client = client(&consul);
    for n in 0..10 {
        let checks: Vec<Value> = (0..100)
            .map(|c| {
                json!({"Node": format!("n{n}"), "CheckID": format!("c{c}"), "Status": "critical",
                       "Definition": {"TCP": "127.0.0.1:1", "Interval": "1s"}})
            })
            .collect();
        let mut registration = external(&format!("n{n}"), &json!({}));
        registration.as_object_mut().unwrap().remove("Check");
        registration["Checks"] = checks.into();
        consul.register(&registration);
    }
    let writes: Vec<StatusWrite> = checks(&client)
        .await
        .iter()
        .map(|check| write(check, Status::Passing, &check.check_id))
        .collect();
    assert_eq!(writes.len(), 1_000);
    let outcomes = client.write_statuses(&writes).await;
    assert_eq!(client.write_counters().transactions, 16);
    let listed = checks(&client).await;
    assert!(
        listed
            .iter()
            .all(|check| check.status == "passing" && check.output == check.check_id)
    );
    // Each index is the one that the catalog has.
    for (check, outcome) in listed.iter().zip(&outcomes) {
        assert_eq!(check.modify_index, written(outcome).0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_is_gone_is_not_brought_back() {
    let Some(consul) = Consul::start("a_check_that_is_gone_is_not_brought_back") else {
        return;
    };
    let client = client(&consul);
    consul.register(&external("n1", &json!({"TCP": "127.0.0.1:1"})));
    consul.register(&external("n2", &json!({"GRPC": "127.0.0.1:1"})));
    let writes: Vec<StatusWrite> = checks(&client)
        .await
        .iter()
        .map(|check| write(check, Status::Passing, "ok"))
        .collect();
    consul.deregister(&json!({"Node": "n1"}));
    consul.deregister(&json!({"Node": "n2"}));
    let outcomes = client.write_statuses(&writes).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| matches!(outcome, WriteOutcome::Gone)),
        "{outcomes:?}"
    );
    assert!(checks(&client).await.is_empty());
    assert_eq!(client.write_counters().registers, 0);
}

/// A client that reaches Consul through a stub, which calls `before` with the
/// path of each request, once for the first `path`.
fn interfering(
    consul: &Consul,
    path: &'static str,
    after: bool,
    interfere: impl Fn() + Send + Sync + 'static,
) -> (Stub, Client) {
    let address = consul.address();
    let done = AtomicBool::new(false);
    let stub = Stub::start(move |request| {
        let now = request.path() == path && !done.swap(request.path() == path, Ordering::SeqCst);
        if now && !after {
            interfere();
        }
        let reply = forward(&address, request);
        if now && after {
            interfere();
        }
        reply
    });
    let client = stub_client(&stub);
    (stub, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_removed_between_read_and_register_is_not_brought_back() {
    // Consul makes an empty node for a check without one (seen on 1.8.7).
    let test = "a_node_removed_between_read_and_register_is_not_brought_back";
    let Some(consul) = Consul::start(test) else {
        return;
    };
    let consul = Arc::new(consul);
    consul.register(&external("n", &json!({"GRPC": "127.0.0.1:1"})));
    let other = Arc::clone(&consul);
    let (_stub, client) = interfering(&consul, "/v1/catalog/register", false, move || {
        other.deregister(&json!({"Node": "n"}));
    });
    let write = write(&checks(&client).await[0], Status::Passing, "ok");
    let outcome = client.write_statuses(&[write]).await.remove(0);
    assert!(matches!(outcome, WriteOutcome::Gone), "{outcome:?}");
    assert_eq!(client.write_counters().lost_races, 1);
    assert_eq!(consul.get("/v1/catalog/node/n").1, "null");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_removed_between_read_and_register_is_not_brought_back() {
    let test = "a_check_removed_between_read_and_register_is_not_brought_back";
    let Some(consul) = Consul::start(test) else {
        return;
    };
    let consul = Arc::new(consul);
    consul.register(&external("n", &json!({"GRPC": "127.0.0.1:1"})));
    let other = Arc::clone(&consul);
    let (_stub, client) = interfering(&consul, "/v1/catalog/register", false, move || {
        other.deregister(&json!({"Node": "n", "CheckID": "c"}));
    });
    let write = write(&checks(&client).await[0], Status::Passing, "ok");
    let outcome = client.write_statuses(&[write]).await.remove(0);
    assert!(matches!(outcome, WriteOutcome::Gone), "{outcome:?}");
    assert_eq!(consul.check("n", "c"), None);
    // The node is somebody's, and stays.
    assert_ne!(consul.get("/v1/catalog/node/n").1, "null");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_right_after_a_register_is_seen_and_counted() {
    let test = "an_edit_right_after_a_register_is_seen_and_counted";
    let Some(consul) = Consul::start(test) else {
        return;
    };
    let consul = Arc::new(consul);
    consul.register(&external("n", &json!({"GRPC": "127.0.0.1:1"})));
    let other = Arc::clone(&consul);
    let (_stub, client) = interfering(&consul, "/v1/catalog/register", true, move || {
        let mut edited = external("n", &json!({"GRPC": "127.0.0.1:2"}));
        edited["Check"]["Notes"] = json!("edited");
        other.register(&edited);
    });
    let mut write = write(&checks(&client).await[0], Status::Passing, "ok");
    let outcome = client.write_statuses(&[write.clone()]).await.remove(0);
    let WriteOutcome::Stale {
        index,
        form,
        status,
        ..
    } = outcome
    else {
        panic!("{outcome:?}")
    };
    assert_eq!(status, Some(Status::Critical));
    assert_eq!(client.write_counters().lost_races, 1);
    (write.index, write.form) = (index, form);
    written(&client.write_statuses(&[write]).await[0]);
    let check = consul.check("n", "c").unwrap();
    assert_eq!(
        (
            &check["Status"],
            &check["Notes"],
            &check["Definition"]["GRPC"]
        ),
        (&json!("passing"), &json!("edited"), &json!("127.0.0.1:2"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_a_server_loses_is_put_back_and_remembered() {
    // A server that drops Method from transactions, as 1.8.7 drops others.
    let test = "a_field_that_a_server_loses_is_put_back_and_remembered";
    let Some(consul) = Consul::start(test) else {
        return;
    };
    let definition = json!({"HTTP": "http://127.0.0.1:1/", "Method": "PUT", "Interval": "90s"});
    consul.register(&external("n", &definition));
    consul.register(&external("plain", &json!({"HTTP": "http://127.0.0.1:1/"})));
    let address = consul.address();
    let stub = Stub::start(move |request| {
        let mut request = request.clone();
        if request.path() == "/v1/txn" {
            let mut body = request.json();
            for operation in body.as_array_mut().unwrap() {
                let definition = operation.pointer_mut("/Check/Check/Definition");
                if let Some(definition) = definition.and_then(Value::as_object_mut) {
                    definition.remove("Method");
                }
            }
            request.body = body.to_string().into_bytes();
        }
        forward(&address, &request)
    });
    let client = stub_client(&stub);
    let mut writes: Vec<StatusWrite> = checks(&client)
        .await
        .iter()
        .map(|check| write(check, Status::Passing, "ok"))
        .collect();
    let before = consul.check("n", "c").unwrap();
    for status in [Status::Passing, Status::Warning] {
        for write in &mut writes {
            write.status = status;
        }
        let outcomes = client.write_statuses(&writes).await;
        for (write, outcome) in writes.iter_mut().zip(&outcomes) {
            (write.index, write.form) = written(outcome);
        }
        let after = consul.check("n", "c").unwrap();
        assert_eq!(after["Status"], status.as_str());
        assert_eq!(rest(after), rest(before.clone()));
        assert_eq!(
            consul.check("plain", "c").unwrap()["Status"],
            status.as_str()
        );
    }
    let counters = client.write_counters();
    assert_eq!(counters.repaired, 1);
    assert!(counters.lost_fields.contains("Method"));
    // The second time it was not tried again: one transaction, for the other.
    assert_eq!((counters.transactions, counters.registers), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_a_server_does_not_know_is_left_out_and_remembered() {
    // P028
    let test = "a_field_that_a_server_does_not_know_is_left_out_and_remembered";
    let Some(consul) = Consul::start(test) else {
        return;
    };
    let client = client(&consul);
    consul.register(&external("n", &json!({"TCP": "127.0.0.1:1"})));
    let mut check: HealthCheck = checks(&client).await.remove(0);
    // As if the list had come from a newer server than the one that is written to.
    check.extra.insert("ExposedPort".into(), 8080.into());
    check
        .extra
        .insert("FromTheFuture".into(), json!({"a": [1]}));
    let mut write = write(&check, Status::Passing, "ok");
    for status in [Status::Passing, Status::Warning] {
        write.status = status;
        (write.index, _) = written(&client.write_statuses(&[write.clone()]).await[0]);
        assert_eq!(consul.check("n", "c").unwrap()["Status"], status.as_str());
    }
    let counters = client.write_counters();
    // Two refusals, a success, and a success at once.
    assert_eq!(counters.transactions, 4);
    assert_eq!(counters.refused_fields.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_forbidden_check_does_not_stop_the_others() {
    let test = "one_forbidden_check_does_not_stop_the_others";
    let Some(consul) = Consul::builder().acl().start(test) else {
        return;
    };
    for (node, definition) in [
        ("mine-1", json!({"TCP": "127.0.0.1:1"})),
        ("mine-2", json!({"GRPC": "127.0.0.1:1"})),
        ("theirs-1", json!({"TCP": "127.0.0.1:1"})),
        ("theirs-2", json!({"GRPC": "127.0.0.1:1"})),
    ] {
        consul.register(&external(node, &definition));
    }
    let rules = r#"node_prefix "" { policy = "read" } node_prefix "mine" { policy = "write" }"#;
    let (status, body) = consul.put(
        "/v1/acl/policy",
        &json!({"Name": "p", "Rules": rules}).to_string(),
    );
    assert_eq!(status, 200, "{body}");
    let (_, body) = consul.put(
        "/v1/acl/token",
        &json!({"Policies": [{"Name": "p"}]}).to_string(),
    );
    let token: Value = serde_json::from_str(&body).unwrap();
    let config = Config {
        address: consul.address().parse().unwrap(),
        token: Some(token["SecretID"].as_str().unwrap().into()),
        ..Config::default()
    };
    let client = Client::new(&config).unwrap();
    let mut writes: Vec<StatusWrite> = checks(&client)
        .await
        .iter()
        .map(|check| write(check, Status::Passing, "ok"))
        .collect();
    for _ in 0..2 {
        let outcomes = client.write_statuses(&writes).await;
        let mut again = Vec::new();
        for (write, outcome) in writes.iter().zip(outcomes) {
            match outcome {
                WriteOutcome::Failed(error) => {
                    assert!(write.check.node.starts_with("theirs"), "{error}");
                    assert!(error.is_denied() && !error.is_retryable(), "{error}");
                }
                WriteOutcome::Stale { index, form, .. } => {
                    again.push(StatusWrite {
                        index,
                        form,
                        ..write.clone()
                    });
                }
                WriteOutcome::Written { .. } => {}
                WriteOutcome::Gone => panic!("{write:?} is there"),
            }
        }
        writes = again;
    }
    for check in checks(&client).await {
        let expected = if check.node.starts_with("mine") {
            "passing"
        } else {
            "critical"
        };
        assert_eq!(check.status, expected, "{}", check.node);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_to_a_dead_consul_fail_for_a_while_only() {
    let test = "writes_to_a_dead_consul_fail_for_a_while_only";
    let Some(mut consul) = Consul::start(test) else {
        return;
    };
    consul.register(&external("n1", &json!({"TCP": "127.0.0.1:1"})));
    consul.register(&external("n2", &json!({"GRPC": "127.0.0.1:1"})));
    let client = client(&consul);
    let writes: Vec<StatusWrite> = checks(&client)
        .await
        .iter()
        .map(|check| write(check, Status::Passing, "ok"))
        .collect();
    consul.kill();
    for outcome in client.write_statuses(&writes).await {
        let WriteOutcome::Failed(error) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(error.is_retryable(), "{error}");
    }
    consul.restart();
    consul.wait_for_leader();
    let outcomes = client.write_statuses(&writes).await;
    assert!(
        outcomes.iter().all(WriteOutcome::is_written),
        "{outcomes:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_write_of_what_is_there_already_changes_no_index() {
    let test = "the_write_of_what_is_there_already_changes_no_index";
    let Some(consul) = Consul::start(test) else {
        return;
    };
    let client = client(&consul);
    consul.register(&external("n1", &json!({"TCP": "127.0.0.1:1"})));
    consul.register(&external("n2", &json!({"GRPC": "127.0.0.1:1"})));
    let mut writes: Vec<StatusWrite> = checks(&client)
        .await
        .iter()
        .map(|check| write(check, Status::Passing, "ok"))
        .collect();
    let mut indexes = Vec::new();
    for _ in 0..3 {
        let outcomes = client.write_statuses(&writes).await;
        indexes.push(
            outcomes
                .iter()
                .map(|outcome| written(outcome).0)
                .collect::<Vec<_>>(),
        );
        for (write, outcome) in writes.iter_mut().zip(&outcomes) {
            (write.index, write.form) = written(outcome);
        }
    }
    // The first transaction also empties Type; see docs/consul.md.
    assert_eq!(indexes[1], indexes[2]);
    let query = Query::external_nodes("external-node", "true");
    assert_eq!(client.list_checks(&query).await.unwrap().value.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_by_others_are_never_lost_and_the_last_status_always_arrives() {
    // P020, many times: somebody edits while statuses are written.
    const NODES: usize = 10;
    const ROUNDS: usize = 30;
    let test = "edits_by_others_are_never_lost_and_the_last_status_always_arrives";
    let Some(consul) = Consul::start(test) else {
        return;
    };
    let consul = Arc::new(consul);
    let registration = |node: usize, notes: &str| {
        let mut registration = external(&format!("n{node}"), &json!({"TCP": "127.0.0.1:1"}));
        registration["SkipNodeUpdate"] = json!(true);
        registration["Check"]["Notes"] = json!(notes);
        registration
    };
    for node in 0..NODES {
        let mut whole = registration(node, "first");
        whole.as_object_mut().unwrap().remove("SkipNodeUpdate");
        consul.register(&whole);
    }
    let client = client(&consul);
    let mut writes: Vec<StatusWrite> = checks(&client)
        .await
        .iter()
        .map(|check| write(check, Status::Passing, "round 0"))
        .collect();

    let other = Arc::clone(&consul);
    let editing = tokio::task::spawn_blocking(move || {
        for round in 1..=ROUNDS {
            for node in 0..NODES {
                // Not the status: that is ours, as the record in the catalog has it.
                let now = other.check(&format!("n{node}"), "c").unwrap();
                let mut edit = registration(node, &format!("edit {round}"));
                for field in ["Status", "Output"] {
                    edit["Check"][field] = now[field].clone();
                }
                other.register(&edit);
            }
        }
    });
    let mut stale = 0;
    let mut round = 0;
    while !editing.is_finished() || round < ROUNDS {
        round += 1;
        for write in &mut writes {
            write.status = [Status::Passing, Status::Warning, Status::Critical][round % 3];
            write.output = format!("round {round}").into();
        }
        stale += write_until_written(&client, &mut writes).await;
    }
    editing.await.unwrap();
    // Every edit's own register may have put back a status of the round before.
    stale += write_until_written(&client, &mut writes).await;
    assert!(stale > 0, "nobody was ever in the way");
    for check in checks(&client).await {
        assert_eq!(check.notes, format!("edit {ROUNDS}"));
        assert_eq!(check.output, format!("round {round}"));
        assert_eq!(check.status(), Some(writes[0].status));
        assert_eq!(check.definition.tcp, "127.0.0.1:1");
    }
}

/// Writes until all is written; how many times a write came too late.
async fn write_until_written(client: &Client, writes: &mut [StatusWrite]) -> usize {
    let mut stale = 0;
    let mut left: Vec<usize> = (0..writes.len()).collect();
    while !left.is_empty() {
        let batch: Vec<StatusWrite> = left.iter().map(|place| writes[*place].clone()).collect();
        let outcomes = client.write_statuses(&batch).await;
        let mut again = Vec::new();
        for (place, outcome) in left.iter().zip(outcomes) {
            let write = &mut writes[*place];
            match outcome {
                WriteOutcome::Written { index, form } => (write.index, write.form) = (index, form),
                WriteOutcome::Stale { index, form, .. } => {
                    stale += usize::from(index != write.index);
                    (write.index, write.form) = (index, form);
                    again.push(*place);
                }
                other => panic!("{other:?}"),
            }
        }
        left = again;
    }
    stale
}
