//! What a check can expect of an HTTP answer. // P088

use std::time::Duration;

use evenkeel_probe::{HttpCheck, HttpExpect};
use evenkeel_threshold::Status::{Critical, Passing, Warning};

use crate::support::*;

const JSON: &str = r#"{"status":"ok","n":[1,{"up":true}]}"#;

fn expecting(server: &Server, set: impl FnOnce(&mut HttpExpect)) -> HttpCheck {
    let mut expect = HttpExpect::default();
    set(&mut expect);
    http(server.url()).with_expect(expect).unwrap()
}

async fn answering(status: &str, body: &str) -> Server {
    let length = body.len();
    Server::answering(format!(
        "HTTP/1.1 {status}\r\nX-Kind: one\r\nx-kind: two\r\nContent-Length: {length}\r\n\r\n{body}"
    ))
    .await
}

#[tokio::test]
async fn a_set_of_status_codes_takes_the_place_of_the_usual_rule() {
    for (answer, set, status) in [
        ("401 Unauthorized", "200-299,401", Passing),
        ("204 No Content", "200-299, 401", Passing),
        ("500 Oops", "200-299,401", Critical),
        ("200 OK", "503", Critical),
        ("429 Slow", "429", Passing),
        ("429 Slow", "", Warning),
    ] {
        let server = answering(answer, "").await;
        let report = run(expecting(&server, |expect| expect.status = set.to_owned())).await;
        assert_status(&report, status);
        if status == Critical {
            assert_says(&report, &format!("(the status is not of {set}) Output: "));
        }
    }
}

#[tokio::test]
async fn the_body_must_or_must_not_match() {
    let server = answering("200 OK", "db: up\ncache: down").await;
    let up = expecting(&server, |expect| {
        expect.body = Some("db: (up|ready)".into());
    });
    assert_status(&run(up).await, Passing);
    let ready = expecting(&server, |expect| expect.body = Some("db: ready".into()));
    let report = run(ready).await;
    assert_status(&report, Critical);
    assert!(
        report
            .output
            .contains("(the body does not match \"db: ready\")")
    );
    let down = expecting(&server, |expect| expect.not_body = Some("down".into()));
    let report = run(down).await;
    assert_status(&report, Critical);
    assert!(report.output.contains("(the body matches \"down\")"));
}

#[tokio::test]
async fn a_match_is_found_across_the_end_of_what_is_shown() {
    let body = format!("{}needle{}", "x".repeat(4093), "y".repeat(10_000));
    let server = answering("200 OK", &body).await;
    let check = expecting(&server, |expect| expect.body = Some("xneedley".into()));
    let report = run(check).await;
    assert_status(&report, Passing);
    assert!(
        report
            .output
            .ends_with("nee [captured 4096 of 14099 bytes]"),
        "{report:?}"
    );
}

#[tokio::test]
async fn values_in_json_are_compared() {
    let server = answering("200 OK", JSON).await;
    for (pointer, value, fault) in [
        ("/status", "ok", ""),
        ("/n/0", "1", ""),
        ("/n/1/up", "true", ""),
        (
            "/status",
            "down",
            "(the JSON has \"ok\" at /status, not \"down\")",
        ),
        ("/gone", "1", "(the JSON has nothing at /gone)"),
    ] {
        let report = run(expecting(&server, |expect| {
            expect.json.insert(pointer.into(), value.into());
        }))
        .await;
        assert_status(&report, if fault.is_empty() { Passing } else { Critical });
        assert_says(&report, fault);
    }
    for body in ["no json", &"[".repeat(100_000)] {
        let server = answering("200 OK", body).await;
        let report = run(expecting(&server, |expect| {
            expect.json.insert("/a".into(), "b".into());
        }))
        .await;
        assert_status(&report, Critical);
        assert_says(&report, "(the body is no JSON)");
    }
}

#[tokio::test]
async fn one_of_a_headers_values_must_match() {
    let server = answering("200 OK", "").await;
    for (name, pattern, fault) in [
        ("X-KIND", "^two$", ""),
        (
            "x-kind",
            "three",
            "(the header x-kind does not match \"three\")",
        ),
        ("X-Gone", "", "(there is no header X-Gone)"),
    ] {
        let report = run(expecting(&server, |expect| {
            expect.headers.insert(name.into(), pattern.into());
        }))
        .await;
        assert_status(&report, if fault.is_empty() { Passing } else { Critical });
        assert_says(&report, fault);
    }
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_a_warning_or_critical() {
    let server = answering("200 OK", "ok").await;
    let least = Duration::from_nanos(1);
    let report = run(expecting(&server, |expect| expect.warning_after = least)).await;
    assert_status(&report, Warning);
    assert!(
        report.output.contains("(took longer than 1ns)"),
        "{report:?}"
    );
    let report = run(expecting(&server, |expect| expect.critical_after = least)).await;
    assert_status(&report, Critical);
    let report = run(expecting(&server, |expect| {
        expect.critical_after = Duration::from_secs(600);
    }));
    assert_status(&report.await, Passing);
}

/// An endless body of which something is expected ends at the first MiB.
#[tokio::test]
async fn an_endless_body_is_searched_as_far_as_it_is_read() {
    let server = Server::start(|mut stream| async move {
        read_request(&mut stream).await;
        let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 200 OK\r\n\r\n").await;
        while tokio::io::AsyncWriteExt::write_all(&mut stream, &[b'x'; 4096])
            .await
            .is_ok()
        {}
    })
    .await;
    let report = run(expecting(&server, |expect| expect.body = Some("y".into()))).await;
    assert_status(&report, Critical);
    assert_says(&report, "(the body does not match \"y\" in its first MiB)");
}

#[test]
fn what_cannot_be_expected_is_refused() {
    let refused = |set: fn(&mut HttpExpect)| {
        let mut expect = HttpExpect::default();
        set(&mut expect);
        let check = http("http://a.example/").with_expect(expect);
        check.unwrap_err().to_string()
    };
    for status in ["2xx", "200-", "299-200", "99", "600", "200,,201"] {
        let expect = HttpExpect {
            status: status.to_owned(),
            ..HttpExpect::default()
        };
        let check = http("http://a.example/").with_expect(expect);
        assert!(
            check
                .unwrap_err()
                .to_string()
                .starts_with("expect.status: "),
            "{status}"
        );
    }
    assert!(refused(|e| e.body = Some("(".into())).starts_with("expect.body: "));
    assert!(refused(|e| e.not_body = Some("a{9999999}".into())).starts_with("expect.not_body: "));
    assert!(refused(|e| drop(e.json.insert("a".into(), "b".into()))).contains("begins with /"));
    assert!(refused(|e| drop(e.headers.insert("a b".into(), "b".into()))).contains("a b"));
    assert!(
        refused(|e| {
            e.warning_after = Duration::from_secs(2);
            e.critical_after = Duration::from_secs(1);
        })
        .starts_with("expect.warning_after: ")
    );
}
