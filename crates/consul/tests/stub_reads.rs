//! Reads from a server that misbehaves.
#![allow(clippy::unwrap_used, reason = "only tests are compiled with this")]

mod common;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use common::{config, stub_client};
use evenkeel_consul::blocking::deadline;
use evenkeel_consul::config::{BasicAuth, Limits, Secret};
use evenkeel_consul::{Client, Config, Error, ErrorKind, Query};
use evenkeel_testkit::{Reply, Stub};

const TWO_CHECKS: &str = r#"[{"Node":"a","CheckID":"c"},{"Node":"b","CheckID":"c"}]"#;

/// The error of a list read when the server replies so.
async fn list_error(reply: Reply) -> Error {
    let stub = Stub::start(move |_| reply.clone());
    let limits = Limits {
        answer: 1 << 20,
        list: 1 << 20,
        elements: 10_000,
        element: 64 << 10,
    };
    let client = Client::new(&Config {
        limits,
        ..config(&stub)
    })
    .unwrap();
    client.list_checks(&Query::default()).await.unwrap_err()
}

#[tokio::test]
async fn a_cut_list_is_an_error_never_a_short_list() {
    for sent in [0, 1, 30, TWO_CHECKS.len() - 1] {
        let error = list_error(Reply::cut(TWO_CHECKS, sent)).await;
        assert!(error.is_retryable(), "{sent}: {error}");
    }
    // Without a length, the end of the connection is all that there is.
    let headless = format!("HTTP/1.0 200 OK\r\n\r\n{}", &TWO_CHECKS[..30]);
    let error = list_error(Reply::Raw(headless.into_bytes())).await;
    assert!(
        matches!(error.kind(), ErrorKind::Decode { offset: 30, .. }),
        "{error}"
    );
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{TWO_CHECKS}\r\n",
        TWO_CHECKS.len()
    );
    let error = list_error(Reply::Raw(chunked.into_bytes())).await;
    assert!(matches!(error.kind(), ErrorKind::Transport(_)), "{error}");
}

#[tokio::test]
async fn what_is_no_list_is_an_error_that_says_where() {
    let error = list_error(Reply::json("<html>Welcome</html>")).await;
    assert!(
        matches!(error.kind(), ErrorKind::Decode { offset: 0, .. }),
        "{error}"
    );
    let error = list_error(Reply::json(r#"[{"Node":"a"},{"Node":x}]"#)).await;
    assert!(
        matches!(error.kind(), ErrorKind::Decode { offset: 14, .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("GET /v1/health/state/any"),
        "{error}"
    );
    let error = list_error(Reply::json("")).await;
    assert!(matches!(error.kind(), ErrorKind::Decode { .. }), "{error}");
    let error = list_error(Reply::json(r#"{"Node":"a"}"#)).await;
    assert!(matches!(error.kind(), ErrorKind::Decode { .. }), "{error}");
}

#[tokio::test]
async fn endless_answers_end_at_the_limit() {
    let first = b"HTTP/1.1 200 OK\r\n\r\n[\"".to_vec();
    // One element of a gigabyte and more.
    let element = Reply::Endless {
        first,
        then: vec![b'x'; 1 << 16],
    };
    let error = list_error(element).await;
    assert!(
        matches!(error.kind(), ErrorKind::TooLarge { limit: 65_536, .. }),
        "{error}"
    );
    assert!(!error.is_retryable());
    // Elements for ever.
    let first = b"HTTP/1.1 200 OK\r\n\r\n[{}".to_vec();
    let elements = Reply::Endless {
        first,
        then: b",{}".repeat(10_000),
    };
    let error = list_error(elements).await;
    assert!(
        matches!(error.kind(), ErrorKind::TooLarge { limit: 10_000, .. }),
        "{error}"
    );
    // White space for ever.
    let first = b"HTTP/1.1 200 OK\r\n\r\n[".to_vec();
    let error = list_error(Reply::Endless {
        first,
        then: vec![b' '; 1 << 16],
    })
    .await;
    assert!(
        matches!(error.kind(), ErrorKind::TooLarge { .. }),
        "{error}"
    );
    // Nesting for ever.
    let first = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let error = list_error(Reply::Endless {
        first,
        then: vec![b'['; 1 << 16],
    })
    .await;
    assert!(matches!(error.kind(), ErrorKind::Decode { .. }), "{error}");
    // Headers for ever: many, and one.
    let first = b"HTTP/1.1 200 OK\r\n".to_vec();
    let error = list_error(Reply::Endless {
        first,
        then: b"X-A: b\r\n".repeat(1_000),
    })
    .await;
    assert!(matches!(error.kind(), ErrorKind::Transport(_)), "{error}");
    let first = b"HTTP/1.1 200 OK\r\nX-A: ".to_vec();
    let error = list_error(Reply::Endless {
        first,
        then: vec![b'a'; 1 << 16],
    })
    .await;
    assert!(matches!(error.kind(), ErrorKind::Transport(_)), "{error}");
    // The body of an error.
    let first = b"HTTP/1.1 500 Oops\r\n\r\n".to_vec();
    let error = list_error(Reply::Endless {
        first,
        then: vec![b'x'; 1 << 16],
    })
    .await;
    assert_eq!(error.status().unwrap(), 500);
    assert!(error.to_string().len() < 700);
}

#[tokio::test]
async fn an_endless_answer_that_is_no_list_ends_at_the_limit_too() {
    let stub = Stub::start(|_| Reply::Endless {
        first: b"HTTP/1.1 200 OK\r\n\r\n\"".to_vec(),
        then: vec![b'x'; 1 << 16],
    });
    let limits = Limits {
        answer: 1 << 20,
        ..Limits::default()
    };
    let client = Client::new(&Config {
        limits,
        ..config(&stub)
    })
    .unwrap();
    let error = client.leader().await.unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::TooLarge {
                limit: 1_048_576,
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn errors_of_consul_keep_what_it_said() {
    // P018, P106, P161, P162
    let error = list_error(Reply::status(500, "No cluster leader")).await;
    assert!(error.is_no_leader() && error.is_retryable());
    let error = list_error(Reply::status(
        500,
        "rpc error making call: i/o deadline reached",
    ))
    .await;
    assert!(!error.is_no_leader() && error.is_retryable());
    let error = list_error(Reply::status(429, "slow down").header("Retry-After", "7")).await;
    assert!(error.is_retryable());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    let error = list_error(Reply::status(503, "").header("retry-after", "2")).await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(2)));
    let error = list_error(Reply::status(403, "Permission denied")).await;
    assert!(error.is_denied() && !error.is_retryable());
    assert_eq!(
        error.to_string(),
        "GET /v1/health/state/any: 403 Forbidden: Permission denied"
    );
    for reply in [Reply::Close, Reply::Raw(b"220 smtp ready\r\n".to_vec())] {
        let error = list_error(reply).await;
        assert!(matches!(error.kind(), ErrorKind::Transport(_)), "{error}");
        assert!(error.is_retryable());
    }
}

#[tokio::test]
async fn nobody_listening_is_an_error_that_names_the_address() {
    let stub = Stub::start(|_| Reply::Close);
    let (address, config) = (stub.address(), config(&stub));
    drop(stub);
    let error = Client::new(&config).unwrap().leader().await.unwrap_err();
    assert!(error.is_retryable());
    let text = error.to_string();
    assert!(
        text.contains(&address) && text.contains("refused"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn silence_ends_with_the_deadline() {
    // P017, P158: on a connection that has gone without a word. Time is
    // paused: it jumps to the deadline as soon as nothing else can happen.
    let stub = Stub::start(|_| Reply::Silence);
    let long = Duration::from_secs(1 << 20);
    let client = Client::new(&Config {
        connect_timeout: long,
        ..config(&stub)
    })
    .unwrap();
    let start = tokio::time::Instant::now();
    let wait = Some(Duration::from_secs(300));
    let query = Query {
        index: Some(7),
        wait,
        ..Query::default()
    };
    let error = client.list_checks(&query).await.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Timeout(after) if *after == deadline(wait)),
        "{error}"
    );
    assert!(start.elapsed() > Duration::from_secs(300) * 17 / 16);
    assert!(error.is_retryable());

    let start = tokio::time::Instant::now();
    let error = client.leader().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Timeout(_)), "{error}");
    assert!(start.elapsed() <= Config::default().timeout + Duration::from_millis(1));
}

#[tokio::test]
async fn a_body_that_trickles_ends_with_the_deadline() {
    let stub = Stub::start(|_| Reply::Stall(b"HTTP/1.1 200 OK\r\n\r\n[{},".to_vec()));
    let list_timeout = Duration::from_millis(300);
    let client = Client::new(&Config {
        list_timeout,
        ..config(&stub)
    })
    .unwrap();
    let error = client.list_checks(&Query::default()).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Timeout(_)), "{error}");
}

#[tokio::test]
async fn one_connection_serves_one_request_after_another() {
    let stub = Stub::start(|_| Reply::json("\"127.0.0.1:8300\""));
    let client = stub_client(&stub);
    for _ in 0..50 {
        client.leader().await.unwrap();
    }
    assert_eq!(stub.most_connections(), 1);
}

#[tokio::test]
async fn a_read_on_a_connection_that_closes_under_it_is_asked_again_a_write_is_not() {
    // Each connection is good for one request, without being announced.
    let used = Mutex::new(BTreeSet::new());
    let stub = Stub::start(move |request| {
        if used.lock().unwrap().insert(request.connection) {
            Reply::json("\"\"")
        } else {
            Reply::Close
        }
    });
    let client = stub_client(&stub);
    for _ in 0..10 {
        client.leader().await.unwrap();
    }
    let error = client.register(&Default::default()).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    let writes = stub
        .requests()
        .iter()
        .filter(|request| request.method == "PUT")
        .count();
    assert_eq!(writes, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_at_once_are_few_connections() {
    // P161: Consul closes what is beyond its limit without a word.
    let stub = Stub::start(|request| {
        if request.connection >= 64 {
            return Reply::Close;
        }
        Reply::After(Duration::from_millis(10), Box::new(Reply::json("[]")))
    });
    let client = stub_client(&stub);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..300 {
        let client = client.clone();
        tasks.spawn(async move { client.list_nodes(&Query::default()).await });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap().unwrap();
    }
    assert!(stub.most_connections() <= 32, "{}", stub.most_connections());
}

#[tokio::test(flavor = "multi_thread")]
async fn long_polls_never_keep_a_write_waiting() {
    let stub = Stub::start(|request| {
        if request.target.contains("index=") {
            Reply::Silence
        } else {
            Reply::json("true")
        }
    });
    let client = stub_client(&stub);
    let mut polls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let client = client.clone();
        polls.spawn(async move {
            let query = Query {
                index: Some(1),
                ..Query::default()
            };
            client.list_checks(&query).await.map(drop)
        });
    }
    evenkeel_testkit::eventually("all the polls that may wait do", || {
        (stub.open_connections() == 24).then_some(())
    });
    client.register(&Default::default()).await.unwrap();
    polls.abort_all();
}

#[tokio::test]
async fn every_request_carries_what_the_configuration_says() {
    let stub = Stub::start(|request| {
        if request.path().ends_with("/services") {
            Reply::json("{}")
        } else {
            Reply::json("[]")
        }
    });
    let client = Client::new(&Config {
        address: format!("http://{}/consul/", stub.address())
            .parse()
            .unwrap(),
        token: Some(Secret::new("t0ken\n")),
        auth: Some(BasicAuth {
            user: "ada".into(),
            password: Secret::new("l:ove"),
        }),
        namespace: Some("ns1".into()),
        partition: Some("p1".into()),
        datacenter: Some("dc2".into()),
        ..Config::default()
    })
    .unwrap();
    client.list_checks(&Query::default()).await.unwrap();
    client
        .list_services(&Query {
            namespace: Some("*".into()),
            ..Query::default()
        })
        .await
        .unwrap();
    client.health_node("n", &Query::default()).await.unwrap();
    let requests = stub.requests();
    // P064
    let scope = "partition=p1&dc=dc2";
    assert_eq!(
        requests[0].target,
        format!("/consul/v1/health/state/any?ns=ns1&{scope}")
    );
    assert_eq!(
        requests[1].target,
        format!("/consul/v1/catalog/services?ns=%2A&{scope}")
    );
    assert_eq!(
        requests[2].target,
        format!("/consul/v1/health/node/n?ns=ns1&{scope}")
    );
    for request in requests {
        assert_eq!(request.headers["x-consul-token"], "t0ken");
        assert_eq!(request.headers["authorization"], "Basic YWRhOmw6b3Zl");
        assert_eq!(request.headers["host"], stub.address());
        assert!(!request.headers.contains_key("accept-encoding"));
    }
}

#[tokio::test]
async fn a_token_file_that_changes_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, "first\n").unwrap();
    let stub = Stub::start(|_| Reply::json("\"\""));
    let token_file = Some(file.clone());
    let client = Client::new(&Config {
        token_file,
        ..config(&stub)
    })
    .unwrap();
    let last = async || {
        client.leader().await.unwrap();
        stub.requests().pop().unwrap().headers["x-consul-token"].clone()
    };
    assert_eq!(last().await, "first");
    // While it is being written, or gone, the old one goes on.
    std::fs::write(&file, "").unwrap();
    assert_eq!(last().await, "first");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(last().await, "first");
    std::fs::write(&file, "second-token").unwrap();
    for _ in 0..600 {
        if last().await == "second-token" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the second token was never sent");
}

#[tokio::test]
async fn reads_of_the_catalog_are_never_consistent_ones() {
    // P105
    let stub = Stub::start(|_| Reply::json("[]"));
    let client = stub_client(&stub);
    let query = Query::external_nodes("external-node", "true");
    client.list_checks(&query).await.unwrap();
    client.list_nodes(&query).await.unwrap();
    client.health_service("s", &query).await.unwrap();
    client.catalog_service("s", &query).await.unwrap();
    assert!(
        stub.requests()
            .iter()
            .all(|request| !request.target.contains("consistent"))
    );
}

#[tokio::test]
async fn a_newer_server_says_when_it_has_left_something_out() {
    // Consul from 1.11 on; tested on a stub.
    let stub = Stub::start(|_| {
        Reply::json("[]")
            .header("X-Consul-Index", "12")
            .header("X-Consul-Results-Filtered-By-ACLs", "true")
    });
    let answer = stub_client(&stub)
        .list_checks(&Query::default())
        .await
        .unwrap();
    assert!(answer.meta.filtered_by_acls);
    assert_eq!(answer.index(), Some(12));
    assert_eq!(answer.meta.bytes, 2);
}

#[tokio::test]
async fn an_old_server_is_refused_with_one_clear_sentence() {
    // P029
    let old = r#"{"Config":{"Version":"1.4.0"}}"#;
    let stub = Stub::start(move |_| Reply::json(old));
    let error = stub_client(&stub).check_server().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Consul 1.4.0 is too old: at least 1.4.1 is needed"
    );

    let stub = Stub::start(|request| match request.path() {
        "/v1/agent/self" => Reply::json(r#"{"Config":{"Version":"2.0.0"}}"#),
        _ => Reply::status(404, ""),
    });
    let error = stub_client(&stub).check_server().await.unwrap_err();
    assert!(
        error.to_string().contains("at least version 1.4.1"),
        "{error}"
    );
}

#[tokio::test]
async fn answers_of_another_length_are_no_rights() {
    let stub = Stub::start(|_| Reply::json(r#"[{"Allow":true}]"#));
    let question = evenkeel_consul::types::AclQuestion::new("node", "n", "read");
    let client = stub_client(&stub);
    assert_eq!(
        client
            .authorize(std::slice::from_ref(&question))
            .await
            .unwrap(),
        [true]
    );
    let error = client
        .authorize(&[question.clone(), question])
        .await
        .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Decode { .. }), "{error}");
}
