//! HTTP over what is not a new TCP connection to the target: a socket of this
//! machine, a proxy, a kept connection. And the credentials from files.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use evenkeel_probe::{
    Cause, Definition, HttpCheck, HttpCredentials, HttpTransport, Phase, Prober, ProberSettings,
    RedirectPolicy, TlsOptions,
};
use evenkeel_threshold::Status::{Critical, Passing};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpStream, UnixListener};

use crate::support::*;
use crate::tls::{Ca, Files, https, named, server_config};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn over(url: impl AsRef<str>, transport: HttpTransport) -> HttpCheck {
    http(url).with_transport(transport).unwrap()
}

fn through(proxy: impl ToString) -> HttpTransport {
    HttpTransport {
        proxy: Some(proxy.to_string()),
        ..HttpTransport::default()
    }
}

// --- a socket of this machine

fn at_socket(url: &str, path: &Path) -> HttpCheck {
    let transport = HttpTransport {
        unix_socket: Some(path.to_owned()),
        ..HttpTransport::default()
    };
    over(url, transport).with_timeout(SHORT)
}

/// Answers each connection to the socket `path`; the requests are kept.
fn socket(path: &Path, answer: &str) -> Requests {
    let listener = UnixListener::bind(path).unwrap();
    let (requests, answer) = (Requests::default(), answer.to_owned());
    let kept = requests.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            kept.push(read_request(&mut stream).await);
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    requests
}

#[tokio::test]
async fn a_unix_socket_is_asked_for_the_host_of_the_url() {
    let files = Files::new();
    let path = files.path().join("app.sock");
    let requests = socket(&path, OK);
    let report = run(at_socket("http://app.test/health", &path)).await;
    assert_status(&report, Passing);
    assert_eq!(
        report.output,
        "HTTP GET http://app.test/health: 200 OK Output: ok"
    );
    assert!(report.phases.resolve.is_none() && report.phases.connect.is_some());
    let request = requests.only();
    assert!(
        request.starts_with("GET /health HTTP/1.1\r\nHost: app.test\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn a_unix_socket_without_a_listener_is_critical() {
    let files = Files::new();
    let path = files.path().join("app.sock");
    let report = run(at_socket("http://app.test/", &path)).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::Connect));
    assert_says(&report, "app.sock: connect: no such file or directory");
    drop(UnixListener::bind(&path).unwrap());
    let report = run(at_socket("http://app.test/", &path)).await;
    assert_status(&report, Critical);
    assert_says(&report, "app.sock: connect: connection refused");
}

#[tokio::test]
async fn a_redirect_from_a_unix_socket_to_another_server_is_critical() {
    let files = Files::new();
    let path = files.path().join("app.sock");
    let away = "HTTP/1.1 302 Found\r\nLocation: http://other.test/\r\nContent-Length: 0\r\n\r\n";
    let requests = socket(&path, away);
    let report = run(at_socket("http://app.test/", &path)).await;
    assert_status(&report, Critical);
    assert_says(
        &report,
        "redirected to http://other.test/: to another server",
    );
    requests.only();
}

// --- a proxy

/// A proxy that answers requests in absolute form by `answer`, and passes on
/// what comes after a `CONNECT` that it has granted, wherever it was to.
async fn proxy(answer: &str, to: Option<std::net::SocketAddr>) -> (Server, Requests) {
    let requests = Requests::default();
    let (kept, answer) = (requests.clone(), answer.to_owned());
    let server = Server::start(move |mut stream: TcpStream| {
        let (kept, answer) = (kept.clone(), answer.clone());
        async move {
            kept.push(read_request(&mut stream).await);
            let _ = stream.write_all(answer.as_bytes()).await;
            if let Some(to) = to {
                let mut target = TcpStream::connect(to).await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut target).await;
            }
            until_closed(&mut stream).await;
        }
    })
    .await;
    (server, requests)
}

#[tokio::test]
async fn a_proxy_is_asked_for_the_whole_url_and_told_who_asks() {
    let (server, requests) = proxy(OK, None).await;
    let with_user = format!("http://me:secret@{}", server.address);
    // A name that only the proxy has to know.
    let check = over("http://app.invalid:8080/health?a", through(with_user));
    assert!(!format!("{check:?}").contains("secret"), "{check:?}");
    let report = run(check).await;
    assert_status(&report, Passing);
    assert_eq!(
        report.output,
        "HTTP GET http://app.invalid:8080/health?a: 200 OK Output: ok"
    );
    let request = requests.only();
    let line = "GET http://app.invalid:8080/health?a HTTP/1.1\r\nHost: app.invalid:8080\r\n";
    assert!(request.starts_with(line), "{request}");
    // `printf me:secret | base64`
    assert!(
        request.contains("\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn an_https_url_goes_through_a_tunnel_and_is_verified() {
    let files = Files::new();
    let ca = Ca::new("test CA");
    let pair = ca.issue(&named("server", &["app.test"]));
    let (target, mut told) = https(server_config(&pair, None)).await;
    let granted = "HTTP/1.1 200 Connection established\r\n\r\n";
    let (server, requests) = proxy(granted, Some(target.address)).await;
    let trusting = TlsOptions {
        ca_file: files.write("ca.pem", &ca.pem()),
        ..TlsOptions::default()
    };
    let check = |name: &str| {
        let url = format!("https://{name}/health");
        let check = over(url, through(format!("http://me:secret@{}", server.address)));
        check.with_tls(trusting.clone()).unwrap()
    };
    let report = run(check("app.test")).await;
    assert_status(&report, Passing);
    assert_says(&report, "200 OK Output: secure");
    assert_eq!(told.recv().await.unwrap(), "app.test -");
    let request = requests.only();
    assert!(
        request.starts_with("CONNECT app.test:443 HTTP/1.1\r\nHost: app.test:443\r\n"),
        "{request}"
    );
    assert!(
        request.contains("\r\nProxy-Authorization: Basic "),
        "{request}"
    );
    let report = run(check("other.test")).await;
    assert_status(&report, Critical);
    assert_says(&report, "certificate");
}

#[tokio::test]
async fn a_proxy_that_is_at_fault_says_nothing_of_the_target() {
    let closed = closed_port().await;
    let url = "https://app.invalid/";
    let report = run(over(url, through(format!("http://{closed}")))).await;
    assert_unprobed(&report, Cause::Proxy);
    assert_says(
        &report,
        &format!("proxy {closed}: dial tcp {closed}: connect: connection refused"),
    );
    for (answer, says) in [
        (
            "HTTP/1.1 407 Who are you\r\n\r\n",
            "CONNECT: 407 Who are you",
        ),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "CONNECT: 403 Forbidden"),
        ("SSH-2.0-OpenSSH\r\n", "malformed HTTP response"),
        ("HTTP/1.1 200 OK\r\n\r\nand more", "more than an answer"),
    ] {
        let (server, _) = proxy(answer, None).await;
        let report = run(over(url, through(server.url()))).await;
        assert_unprobed(&report, Cause::Proxy);
        assert_says(&report, says);
    }
    let report = run(over(url, through("http://proxy.invalid:3128"))).await;
    assert!(report.status().is_none(), "{report:#?}");
}

#[tokio::test]
async fn a_target_that_the_proxy_does_not_reach_is_critical() {
    for answer in [
        "502 Bad Gateway",
        "503 Service Unavailable",
        "504 Gateway Timeout",
    ] {
        let (server, _) = proxy(&format!("HTTP/1.1 {answer}\r\n\r\n"), None).await;
        let report = run(over("https://app.invalid/", through(server.url()))).await;
        assert_status(&report, Critical);
        assert_says(&report, &format!("CONNECT: {answer}"));
        assert_eq!(report.failed_phase, Some(Phase::Connect));
    }
    let silent = Server::start(|mut stream| async move { until_closed(&mut stream).await }).await;
    let check = over("https://app.invalid/", through(silent.url())).with_timeout(SHORT);
    let report = run(check).await;
    assert_status(&report, Critical);
    assert_says(
        &report,
        "awaiting the proxy's answer to CONNECT: context deadline exceeded",
    );
}

// P087
#[tokio::test]
async fn an_address_that_the_policy_refuses_is_not_asked_of_a_proxy() {
    let (server, requests) = proxy(OK, None).await;
    for url in [
        "http://169.254.169.254/latest",
        "https://169.254.169.254/latest",
    ] {
        let report = run(over(url, through(server.url()))).await;
        assert_unprobed(&report, Cause::TargetRefused);
    }
    assert_eq!(requests.all().len(), 0);
}

// --- a kept connection

fn reusing(server: &Server) -> HttpCheck {
    let reuse = HttpTransport {
        reuse: true,
        ..HttpTransport::default()
    };
    over(server.url(), reuse)
}

/// Serves `requests` requests on each connection; what it does then is `then`.
/// The connections are counted.
async fn persistent<F, R>(requests: u32, then: F) -> (Server, Arc<AtomicU32>)
where
    F: Fn(TcpStream) -> R + Clone + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let connections = Arc::new(AtomicU32::new(0));
    let counted = connections.clone();
    let server = Server::start(move |mut stream: TcpStream| {
        counted.fetch_add(1, Ordering::Relaxed);
        let then = then.clone();
        async move {
            for _ in 0..requests {
                if read_request(&mut stream).await.is_empty() {
                    return;
                }
                let _ = stream.write_all(OK.as_bytes()).await;
            }
            then(stream).await;
        }
    })
    .await;
    (server, connections)
}

#[tokio::test]
async fn a_connection_is_kept_only_if_the_check_says_so() {
    let (server, connections) = persistent(100, |_| async {}).await;
    let prober = Prober::new(ProberSettings::default()).unwrap();
    let check = Definition::from(reusing(&server));
    for probe in 0..20 {
        let report = prober.run(&check).await;
        assert_status(&report, Passing);
        assert_eq!(report.phases.connect.is_none(), probe > 0, "{report:#?}");
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    for _ in 0..3 {
        assert_status(&run_with(&prober, http(server.url())).await, Passing);
    }
    assert_eq!(connections.load(Ordering::Relaxed), 4);
    // A copy has no part in it, and neither has another prober.
    assert_status(&run_with(&prober, check.clone()).await, Passing);
    assert_eq!(connections.load(Ordering::Relaxed), 5);
    let other = Prober::new(ProberSettings::default()).unwrap();
    assert_status(&other.run(&check).await, Passing);
    assert_eq!(connections.load(Ordering::Relaxed), 6);
}

type Ending = fn(TcpStream) -> Pin<Box<dyn Future<Output = ()> + Send>>;

// P086
#[tokio::test]
async fn a_server_that_ends_idle_connections_fails_no_probe() {
    // In order; by a reset; and at the moment of the next request, without an answer.
    let ends: [Ending; 4] = [
        |stream| Box::pin(async move { drop(stream) }),
        |stream| Box::pin(async move { reset(stream) }),
        |mut stream| {
            Box::pin(async move {
                let _ = stream.read(&mut [0; 16]).await;
            })
        },
        |mut stream| {
            Box::pin(async move {
                let _ = stream.read(&mut [0; 16]).await;
                reset(stream);
            })
        },
    ];
    let prober = Prober::new(ProberSettings::default()).unwrap();
    for (case, then) in ends.into_iter().enumerate() {
        for requests in [1, 2] {
            let (server, connections) = persistent(requests, then).await;
            let check = Definition::from(reusing(&server));
            for _ in 0..250 {
                let report = prober.run(&check).await;
                assert_eq!(report.status(), Some(Passing), "case {case}: {report:#?}");
            }
            let connections = connections.load(Ordering::Relaxed);
            assert!(connections >= 250 / (requests + 1), "{connections}");
        }
    }
}

#[tokio::test]
async fn a_kept_connection_that_says_nothing_any_more_is_given_up_in_time() {
    let (server, connections) = persistent(1, |mut stream: TcpStream| async move {
        until_closed(&mut stream).await;
    })
    .await;
    let prober = Prober::new(ProberSettings::default()).unwrap();
    let check = Definition::from(reusing(&server).with_timeout(SHORT));
    for connection in 1..3 {
        let report = prober.run(&check).await;
        assert_status(&report, Passing);
        assert!(report.took < SHORT, "{report:#?}");
        assert_eq!(connections.load(Ordering::Relaxed), connection);
    }
}

#[tokio::test]
async fn what_comes_of_the_new_connection_counts() {
    let (server, _) = persistent(1, |stream| async move { drop(stream) }).await;
    let prober = Prober::new(ProberSettings::default()).unwrap();
    let check = Definition::from(reusing(&server));
    assert_status(&prober.run(&check).await, Passing);
    drop(server);
    // The listener goes with the task, which ends at its next turn.
    tokio::task::yield_now().await;
    let report = prober.run(&check).await;
    assert_status(&report, Critical);
    assert_says(&report, "connection refused");
}

#[tokio::test]
async fn a_bad_answer_on_a_kept_connection_is_not_asked_for_again() {
    let requests = Arc::new(AtomicU32::new(0));
    let counted = requests.clone();
    let server = Server::start(move |mut stream: TcpStream| {
        let counted = counted.clone();
        async move {
            for answer in [
                OK,
                "HTTP/1.1 500 Down\r\nContent-Length: 0\r\n\r\n",
                "HTTP/1.1 20",
            ] {
                let _ = read_request(&mut stream).await;
                counted.fetch_add(1, Ordering::Relaxed);
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    })
    .await;
    let prober = Prober::new(ProberSettings::default()).unwrap();
    let check = Definition::from(reusing(&server));
    assert_status(&prober.run(&check).await, Passing);
    let report = prober.run(&check).await;
    assert_status(&report, Critical);
    assert_says(&report, "500 Down");
    let report = prober.run(&check).await;
    assert_status(&report, Critical);
    assert_says(&report, "unexpected EOF (in the headers)");
    assert_eq!(requests.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn connections_that_cannot_carry_another_request_are_not_kept() {
    let long = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n{}",
        "x".repeat(9000)
    );
    for answer in [
        "HTTP/1.1 200 OK\r\nConnection: keep-alive, Close\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        // More than was announced: whose answer would it be?
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nTrailer: 1\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\nok",
        // Not read to its end.
        long.as_str(),
    ] {
        let (server, requests) = Server::recording(answer).await;
        let prober = Prober::new(ProberSettings::default()).unwrap();
        let check = Definition::from(reusing(&server));
        for _ in 0..3 {
            let report = prober.run(&check).await;
            assert_status(&report, Passing);
            assert!(report.phases.connect.is_some(), "{answer:.60}: {report:#?}");
        }
        assert_eq!(requests.all().len(), 3);
    }
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    for answer in [OK, chunked, "HTTP/1.1 204 No Content\r\n\r\n"] {
        let connections = Arc::new(AtomicU32::new(0));
        let counted = connections.clone();
        let server = Server::start(move |mut stream: TcpStream| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move {
                while !read_request(&mut stream).await.is_empty() {
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            }
        })
        .await;
        let prober = Prober::new(ProberSettings::default()).unwrap();
        let check = Definition::from(reusing(&server));
        for _ in 0..3 {
            assert_status(&prober.run(&check).await, Passing);
        }
        assert_eq!(connections.load(Ordering::Relaxed), 1, "{answer}");
    }
}

#[tokio::test]
async fn a_request_that_may_not_be_repeated_has_a_new_connection() {
    let (server, connections) = persistent(10, |_| async {}).await;
    let prober = Prober::new(ProberSettings::default()).unwrap();
    for (method, expected) in [("POST", 3), ("PATCH", 6), ("HEAD", 7), ("PUT", 8)] {
        let check = Definition::from(reusing(&server).with_method(method).unwrap());
        for _ in 0..3 {
            // What the server sends after a head is too much for HEAD.
            let report = prober.run(&check).await;
            assert_status(&report, Passing);
            if method == "HEAD" {
                break;
            }
        }
        assert_eq!(connections.load(Ordering::Relaxed), expected, "{method}");
    }
}

#[tokio::test]
async fn a_kept_connection_may_be_one_with_tls() {
    let files = Files::new();
    let ca = Ca::new("test CA");
    let pair = ca.issue(&named("server", &["app.test"]));
    let (server, mut told) = https(server_config(&pair, None)).await;
    let tls = TlsOptions {
        ca_file: files.write("ca.pem", &ca.pem()),
        server_name: "app.test".into(),
        ..TlsOptions::default()
    };
    let reuse = HttpTransport {
        reuse: true,
        ..HttpTransport::default()
    };
    let url = format!("https://{}/", server.address);
    let check = Definition::from(over(url, reuse).with_tls(tls).unwrap());
    let prober = Prober::new(ProberSettings::default()).unwrap();
    for probe in 0..5 {
        let report = prober.run(&check).await;
        assert_status(&report, Passing);
        assert_eq!(report.phases.tls.is_none(), probe > 0);
    }
    assert_eq!(told.recv().await.unwrap(), "app.test -");
    drop(check);
    // The connection goes with the check.
    assert_eq!(told.recv().await.unwrap(), "UnexpectedEof");
    assert!(told.is_empty());
}

// --- redirects of one check

// P087
#[tokio::test]
async fn a_check_may_limit_redirects_more_than_the_prober() {
    let answer = "HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n";
    let (server, requests) = Server::recording(answer).await;
    let policy = RedirectPolicy {
        max: 2,
        ..RedirectPolicy::default()
    };
    let report = run(http(server.url()).with_redirects(policy)).await;
    assert_status(&report, Critical);
    assert_says(&report, "stopped after 2 redirects");
    assert_eq!(requests.all().len(), 3);

    let (target, _) = Server::recording(OK).await;
    let port = target.address.port();
    let away = format!("HTTP/1.1 302 F\r\nLocation: http://localhost:{port}/\r\n\r\n");
    let (server, _) = Server::recording(away).await;
    assert_status(&run(http(server.url())).await, Passing);
    let policy = RedirectPolicy {
        same_host_only: true,
        ..RedirectPolicy::default()
    };
    let report = run(http(server.url()).with_redirects(policy)).await;
    assert_status(&report, Critical);
    assert_says(&report, "to another host, which is refused");
}

// --- credentials

#[tokio::test]
async fn credentials_are_read_at_each_probe() {
    let files = Files::new();
    let file = files.write("secret", "one\n");
    let bearer = HttpCredentials::Bearer {
        bearer_file: file.clone(),
    };
    let basic = HttpCredentials::Basic {
        user: "me".into(),
        password_file: file.clone(),
    };
    let header = HttpCredentials::Header {
        header: "X-Api-Key".into(),
        value_file: file.clone(),
    };
    // `printf me:one | base64` and so on.
    for (credentials, first, second) in [
        (
            bearer,
            "Authorization: Bearer one",
            "Authorization: Bearer two",
        ),
        (
            basic,
            "Authorization: Basic bWU6b25l",
            "Authorization: Basic bWU6dHdv",
        ),
        (header, "X-Api-Key: one", "X-Api-Key: two"),
    ] {
        files.write("secret", "one\n");
        let (server, requests) = Server::recording(OK).await;
        let url = format!("http://user:password@{}/", server.address);
        let check = http(url)
            .with_header("x-api-key", "overruled")
            .and_then(|check| check.with_credentials(credentials))
            .unwrap();
        let (check, prober) = (
            Definition::from(check),
            Prober::new(ProberSettings::default()),
        );
        let prober = prober.unwrap();
        assert_status(&prober.run(&check).await, Passing);
        files.write("secret", "two\r\n");
        assert_status(&prober.run(&check).await, Passing);
        let requests = requests.all();
        for (request, line) in requests.iter().zip([first, second]) {
            assert!(request.contains(&format!("\r\n{line}\r\n")), "{request}");
            assert_eq!(request.matches("Authorization").count(), 1, "{request}");
            let key = line.starts_with("X-Api-Key");
            assert_eq!(request.contains("overruled"), !key, "{request}");
        }
    }
}

#[tokio::test]
async fn credentials_that_cannot_be_read_say_nothing_of_the_target() {
    let files = Files::new();
    let (server, requests) = Server::recording(OK).await;
    let large = "x".repeat(70_000);
    for (text, says) in [
        (None, "no such file or directory"),
        (Some(""), "is empty"),
        (Some("\n"), "is empty"),
        (Some("a\nb"), "a character that a header cannot carry"),
        (Some(&*large), "larger than 64 KiB"),
    ] {
        let bearer_file = match text {
            Some(text) => files.write("secret", text),
            None => files.path().join("none"),
        };
        let credentials = HttpCredentials::Bearer { bearer_file };
        let check = http(server.url()).with_credentials(credentials).unwrap();
        let report = run(check).await;
        assert_unprobed(&report, Cause::Credentials);
        assert_says(&report, says);
        assert!(!report.output.contains("a\nb"));
    }
    assert_eq!(requests.all().len(), 0);
}

#[tokio::test]
async fn credentials_stay_at_the_host_and_port_that_they_are_for() {
    let files = Files::new();
    let (target, at_target) = Server::recording(OK).await;
    let away = format!("HTTP/1.1 302 F\r\nLocation: {}\r\n\r\n", target.url());
    let (server, requests) = Server::recording(away).await;
    let credentials = HttpCredentials::Bearer {
        bearer_file: files.write("secret", "token"),
    };
    let check = http(server.url()).with_credentials(credentials).unwrap();
    assert_status(
        &run(check.with_timeout(Duration::from_secs(9))).await,
        Passing,
    );
    assert!(requests.only().contains("Bearer token"));
    assert!(!at_target.only().contains("token"));
}
