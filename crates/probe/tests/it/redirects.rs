//! Redirects: followed, refused, bounded.

use std::sync::Arc;

use evenkeel_probe::{Cause, Prober, ProberSettings, RedirectPolicy};
use evenkeel_threshold::Status::{Critical, Passing};
use tokio::io::AsyncWriteExt;

use crate::support::*;

/// Answers by path; the requests are kept.
async fn site(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> (Server, Requests) {
    let requests = Requests::default();
    let kept = requests.clone();
    let answer = Arc::new(answer);
    let server = Server::start(move |mut stream| {
        let (answer, kept) = (answer.clone(), kept.clone());
        async move {
            let request = read_request(&mut stream).await;
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            kept.push(request);
            let _ = stream.write_all(answer(&path).as_bytes()).await;
            until_closed(&mut stream).await;
        }
    })
    .await;
    (server, requests)
}

fn to(code: u16, location: &str) -> String {
    format!("HTTP/1.1 {code} Over there\r\nLocation: {location}\r\nContent-Length: 4\r\n\r\ngone")
}

fn ok() -> String {
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned()
}

fn prober(redirects: RedirectPolicy) -> Prober {
    let mut settings = ProberSettings::default();
    settings.redirects = redirects;
    Prober::new(settings).unwrap()
}

#[tokio::test]
async fn a_redirect_to_a_good_answer_is_passing_when_followed_and_critical_when_not() {
    // P087
    let (server, requests) = site(|path| match path {
        "/" => to(302, "/up?x"),
        _ => ok(),
    })
    .await;
    let report = run(http(server.url())).await;
    assert_status(&report, Passing);
    assert_eq!(
        report.output,
        format!("HTTP GET {}: 200 OK Output: ok", server.url())
    );
    assert!(requests.all()[1].starts_with("GET /up?x HTTP/1.1\r\n"));
    let report = run(http(server.url()).with_follow_redirects(false)).await;
    assert_status(&report, Critical);
    assert_says(&report, ": 302 Over there Output: gone");
    assert_eq!(requests.all().len(), 3);
}

#[tokio::test]
async fn the_answer_at_the_end_decides() {
    let (server, _) = site(|path| match path {
        "/" => to(301, "/down"),
        _ => "HTTP/1.1 500 Down\r\nContent-Length: 0\r\n\r\n".to_owned(),
    })
    .await;
    let report = run(http(server.url())).await;
    assert_status(&report, Critical);
    assert_says(&report, ": 500 Down");
}

#[tokio::test]
async fn a_loop_ends_after_ten_redirects() {
    // P087
    let (server, requests) = site(|_| to(302, "/loop")).await;
    let report = run(http(server.url())).await;
    assert_status(&report, Critical);
    assert_says(&report, "stopped after 10 redirects");
    assert_eq!(requests.all().len(), 11);
    let ten = |path: &str| match path.len() {
        11 => ok(),
        _ => to(302, &format!("{path}x")),
    };
    let (server, _) = site(ten).await;
    assert_status(&run(http(server.url())).await, Passing);
}

#[tokio::test]
async fn the_method_and_the_body_follow_the_code() {
    for (code, method, body) in [
        (301, "GET", ""),
        (302, "GET", ""),
        (303, "GET", ""),
        (307, "POST", "data"),
        (308, "POST", "data"),
    ] {
        let (server, requests) = site(move |path| match path {
            "/" => to(code, "/next"),
            _ => ok(),
        })
        .await;
        let check = http(server.url())
            .with_method("POST")
            .unwrap()
            .with_header("Content-Type", "text/x")
            .unwrap()
            .with_body("data");
        assert_status(&run(check).await, Passing);
        let second = &requests.all()[1];
        assert!(second.starts_with(&format!("{method} /next ")), "{second}");
        assert!(second.ends_with(&format!("\r\n\r\n{body}")), "{second}");
        assert_eq!(
            second.contains("Content-Type"),
            !body.is_empty(),
            "{second}"
        );
    }
    let (server, requests) = site(|path| match path {
        "/" => to(303, "/next"),
        _ => ok(),
    })
    .await;
    run(http(server.url()).with_method("HEAD").unwrap()).await;
    assert!(requests.all()[1].starts_with("HEAD /next "));
}

#[tokio::test]
async fn secrets_stay_with_the_host_they_were_given_for() {
    let (other, seen_by_other) = site(|_| ok()).await;
    let other_host = format!("http://localhost:{}/", other.address.port());
    let other_port = other.url();
    for location in [other_host, other_port] {
        let (server, seen) = site(move |path| match path {
            "/" => to(302, "/same"),
            _ => to(307, &location),
        })
        .await;
        let mut check = http(server.url()).with_header("X-Plain", "plain").unwrap();
        for name in ["Authorization", "cookie", "X-Consul-Token", "X-Api-Key"] {
            check = check.with_header(name, "s3cret").unwrap();
        }
        assert_status(&run(check).await, Passing);
        for request in seen.all() {
            assert_eq!(request.matches("s3cret").count(), 4, "{request}");
        }
        let request = seen_by_other.all().pop().unwrap();
        assert!(!request.contains("s3cret"), "{request}");
        assert!(request.contains("X-Plain: plain"), "{request}");
    }
}

#[tokio::test]
async fn a_given_authority_holds_on_the_same_host_only() {
    let (server, requests) = site(|path| match path {
        "/" => to(302, "relative"),
        "/relative" => to(302, "http://localhost:1/"),
        _ => ok(),
    })
    .await;
    let check = http(server.url()).with_header("Host", "a.example").unwrap();
    let report = run(check).await;
    assert_status(&report, Critical);
    assert_says(&report, "redirected to http://localhost:1/: dial tcp ");
    let hosts: Vec<bool> = requests
        .all()
        .iter()
        .map(|request| request.contains("\r\nHost: a.example\r\n"))
        .collect();
    assert_eq!(hosts, [true, true]);
}

#[tokio::test]
async fn a_redirect_without_a_location_is_the_answer() {
    let (server, _) = site(|_| "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
    let report = run(http(server.url())).await;
    assert_status(&report, Critical);
    assert_says(&report, ": 302 Found");
}

#[tokio::test]
async fn faulty_locations_are_critical() {
    for (location, says) in [
        ("ftp://127.0.0.1/", "unsupported protocol scheme \"ftp\""),
        ("http://", "empty host"),
        ("http://127.0.0.1:99999/", "invalid port"),
        ("gopher:x", "unsupported protocol scheme \"gopher\""),
        ("http://127.0.0.1:0/", "the port is 0"),
    ] {
        let (server, _) = site(move |_| to(302, location)).await;
        let report = run(http(server.url())).await;
        assert_status(&report, Critical);
        assert_says(&report, says);
    }
}

#[tokio::test]
async fn the_target_policy_holds_on_each_hop() {
    // P087
    for location in [
        "http://169.254.169.254/latest",
        "http://[::ffff:169.254.169.254]/",
    ] {
        let (server, _) = site(move |_| to(302, location)).await;
        let report = run(http(server.url())).await;
        // The target chose where to send us; it gets no way out of a verdict by that.
        assert_status(&report, Critical);
        assert_says(&report, "metadata");
    }
    let report = run(http("http://169.254.169.254/")).await;
    assert_unprobed(&report, Cause::TargetRefused);
}

#[tokio::test]
async fn redirects_can_be_held_to_the_same_host() {
    let only = RedirectPolicy {
        same_host_only: true,
        ..RedirectPolicy::default()
    };
    let (server, _) = site(|path| match path {
        "/" => to(302, "/same"),
        "/away" => to(302, "http://localhost:1/"),
        _ => ok(),
    })
    .await;
    let prober = prober(only);
    assert_status(&run_with(&prober, http(server.url())).await, Passing);
    let report = run_with(&prober, http(format!("{}away", server.url()))).await;
    assert_status(&report, Critical);
    assert_says(&report, "to another host, which is refused");
}
