//! Status writes to a server that misbehaves.
#![allow(clippy::unwrap_used, reason = "only tests are compiled with this")]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::{stub_client, write};
use evenkeel_consul::types::{HealthCheck, Status};
use evenkeel_consul::write::{StatusWrite, WriteOutcome};
use evenkeel_testkit::{Reply, Request, Stub};
use serde_json::{Value, json};

fn check(node: &str) -> HealthCheck {
    let mut check = HealthCheck {
        node: node.into(),
        check_id: "c".into(),
        modify_index: 7,
        ..HealthCheck::default()
    };
    check.definition.tcp = "127.0.0.1:1".into();
    check
}

fn passing(node: &str) -> StatusWrite {
    write(&check(node), Status::Passing, "ok")
}

/// The operations of a transaction: verb and check of each.
fn operations(request: &Request) -> Vec<(String, Value)> {
    let body = request.json();
    let operations = body.as_array().unwrap();
    operations
        .iter()
        .map(|operation| {
            let verb = operation["Check"]["Verb"].as_str().unwrap().to_owned();
            (verb, operation["Check"]["Check"].clone())
        })
        .collect()
}

/// What a server answers that has each check with that index.
fn results(request: &Request, index: u64) -> Reply {
    let results: Vec<Value> = operations(request)
        .into_iter()
        .map(|(_, mut check)| {
            check["ModifyIndex"] = index.into();
            check["Definition"] = json!({"TCP": "127.0.0.1:1"});
            json!({"Check": check})
        })
        .collect();
    Reply::json(json!({"Results": results, "Errors": null}).to_string())
}

fn stale(op: usize) -> Reply {
    let what = "failed to set check \"c\" on node \"n\", index is stale";
    let body = json!({"Results": null, "Errors": [{"OpIndex": op, "What": what}]});
    Reply::status(409, body.to_string())
}

#[tokio::test]
async fn a_lagging_read_costs_a_round_but_no_second_write() {
    // P021: a stale index twice, then the fresh one
    let reads = AtomicUsize::new(0);
    let stub = Stub::start(move |request| {
        let (verb, sent) = operations(request).remove(0);
        match (verb.as_str(), sent["ModifyIndex"].as_u64()) {
            ("get", _) if reads.fetch_add(1, Ordering::SeqCst) < 2 => results(request, 8),
            ("get", _) => results(request, 9),
            (_, Some(9)) => results(request, 10),
            _ => stale(0),
        }
    });
    let client = stub_client(&stub);
    let mut write = passing("n");
    let mut rounds = 0;
    let index = loop {
        rounds += 1;
        match client.write_statuses(&[write.clone()]).await.remove(0) {
            WriteOutcome::Written { index, .. } => break index,
            WriteOutcome::Stale { index, form, .. } => (write.index, write.form) = (index, form),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((index, rounds), (10, 4));
    let requests = stub.requests();
    let successes = requests
        .iter()
        .filter(|request| operations(request)[0].1["ModifyIndex"] == 9)
        .count();
    assert_eq!(successes, 1);
    // The reads are consistent ones, the writes need not be.
    for request in &requests {
        let read = operations(request)[0].0 == "get";
        assert_eq!(
            request.target.contains("consistent"),
            read,
            "{}",
            request.target
        );
    }
}

#[tokio::test]
async fn after_a_refusal_nothing_counts_as_written() {
    // P022: of ten operations the fourth is stale
    let stub = Stub::start(|request| match operations(request)[0].0.as_str() {
        "cas" => stale(3),
        _ => results(request, 7),
    });
    let client = stub_client(&stub);
    let writes: Vec<StatusWrite> = (0..10).map(|n| passing(&format!("n{n}"))).collect();
    let outcomes = client.write_statuses(&writes).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| matches!(outcome, WriteOutcome::Stale { index: 7, .. })),
        "{outcomes:?}"
    );
    // One transaction, and one read for all ten.
    assert_eq!(stub.requests().len(), 2);
}

#[tokio::test]
async fn the_missing_are_told_from_the_stale() {
    let stub = Stub::start(|request| {
        let operations = operations(request);
        let gone: Vec<Value> = operations
            .iter()
            .enumerate()
            .filter(|(_, (_, check))| check["Node"] == "n1" || check["Node"] == "n3")
            .map(|(place, _)| json!({"OpIndex": place, "What": "check \"c\" on node \"n\" doesn't exist"}))
            .collect();
        match operations[0].0.as_str() {
            "cas" => stale(1),
            _ if gone.is_empty() => results(request, 8),
            _ => Reply::status(409, json!({"Results": null, "Errors": gone}).to_string()),
        }
    });
    let client = stub_client(&stub);
    let writes: Vec<StatusWrite> = (0..5).map(|n| passing(&format!("n{n}"))).collect();
    let outcomes = client.write_statuses(&writes).await;
    let gone: Vec<bool> = outcomes
        .iter()
        .map(|outcome| matches!(outcome, WriteOutcome::Gone))
        .collect();
    assert_eq!(gone, [false, true, false, true, false]);
}

// A token without rights reads nothing: that does not mean that nothing is there.
#[tokio::test]
async fn a_check_that_may_not_be_written_nor_read_is_not_gone() {
    let stub = Stub::start(|request| {
        let (verb, _) = operations(request).remove(0);
        if verb == "get" {
            return Reply::json(r#"{"Results":[],"Errors":null}"#);
        }
        let body = json!({"Results": null, "Errors": [
            {"OpIndex": 0, "What": "Permission denied"},
        ]});
        Reply::status(409, body.to_string())
    });
    let outcomes = stub_client(&stub).write_statuses(&[passing("n")]).await;
    assert!(
        matches!(&outcomes[0], WriteOutcome::Failed(error) if error.is_denied()),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn namespaces_and_partitions_are_named_in_every_request() {
    // P064; Consul Enterprise, tested on a stub
    let stub = Stub::start(|request| match operations(request)[0].0.as_str() {
        "cas" => stale(0),
        _ => results(request, 8),
    });
    let client = stub_client(&stub);
    let mut scoped = passing("n");
    scoped.check.namespace = "ns1".into();
    scoped.check.partition = "p1".into();
    let outcomes = client.write_statuses(&[passing("n"), scoped]).await;
    assert_eq!(outcomes.len(), 2);
    let mut seen = 0;
    for request in stub.requests() {
        let (_, check) = operations(&request).remove(0);
        let scoped = check["Partition"] == "p1";
        assert_eq!(check["Namespace"] == "ns1", scoped);
        assert_eq!(
            request.target.contains("partition=p1"),
            scoped,
            "{}",
            request.target
        );
        seen += u32::from(scoped);
    }
    assert_eq!(seen, 2);
}

#[tokio::test]
async fn answers_that_make_no_sense_are_failures_not_writes() {
    for body in [
        "garbage",
        "",
        "{}",
        r#"{"Results":[]}"#,
        r#"{"Results":[{"Node":{}}]}"#,
        r#"{"Results":[{"Check":{"Node":"other","CheckID":"c"}}]}"#,
        r#"{"Results":[{"Check":null}],"Errors":null}"#,
    ] {
        let stub = Stub::start(move |_| Reply::json(body));
        let outcome = stub_client(&stub)
            .write_statuses(&[passing("n")])
            .await
            .remove(0);
        let WriteOutcome::Failed(error) = outcome else {
            panic!("{body}: {outcome:?}")
        };
        assert!(error.is_retryable(), "{error}");
    }
}

#[tokio::test]
async fn every_kind_of_failure_is_an_outcome_of_each_write() {
    for (reply, retryable) in [
        (Reply::Close, true),
        (Reply::status(500, "No cluster leader"), true),
        (Reply::status(429, "").header("Retry-After", "1"), true),
        (Reply::status(403, "Permission denied"), false),
        (Reply::status(404, ""), false),
        (Reply::status(400, "json: unknown field \"CheckID\""), false),
        // Refused for ever, though it is not sent any more.
        (Reply::status(400, "json: unknown field \"Notes\""), false),
        (Reply::cut(r#"{"Results":[]}"#, 5), true),
    ] {
        let stub = Stub::start({
            let reply = reply.clone();
            move |_| reply.clone()
        });
        let client = stub_client(&stub);
        let mut by_register = check("n2");
        by_register.definition.grpc = "127.0.0.1:1".into();
        let writes = [passing("n1"), write(&by_register, Status::Passing, "ok")];
        for outcome in client.write_statuses(&writes).await {
            let WriteOutcome::Failed(error) = outcome else {
                panic!("{reply:?}: {outcome:?}")
            };
            assert_eq!(error.is_retryable(), retryable, "{error}");
        }
        assert!(stub.requests().len() <= 6, "{}", stub.requests().len());
    }
}

#[tokio::test]
async fn no_more_than_four_transactions_are_under_way() {
    let stub = Stub::start(|request| {
        let reply = results(request, 8);
        Reply::After(std::time::Duration::from_millis(20), Box::new(reply))
    });
    let client = stub_client(&stub);
    let writes: Vec<StatusWrite> = (0..1_000).map(|n| passing(&format!("n{n}"))).collect();
    let outcomes = client.write_statuses(&writes).await;
    assert!(outcomes.iter().all(WriteOutcome::is_written));
    assert_eq!(stub.requests().len(), 16);
    assert!(stub.most_connections() <= 4, "{}", stub.most_connections());
}
