//! Status codes, requests, texts.

use evenkeel_probe::{Definition, Phase};
use evenkeel_threshold::Status::{Critical, Passing, Warning};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::*;

#[tokio::test]
async fn the_status_code_decides() {
    for (code, status) in [
        (200, Passing),
        (201, Passing),
        (204, Passing),
        (299, Passing),
        (300, Critical),
        (304, Critical),
        (400, Critical),
        (404, Critical),
        (429, Warning),
        (500, Critical),
        (503, Critical),
        (999, Critical),
    ] {
        let answer = format!("HTTP/1.1 {code} Word\r\nContent-Length: 0\r\n\r\n");
        let server = Server::answering(answer).await;
        let report = run(http(server.url())).await;
        assert_status(&report, status);
        assert_eq!(
            report.output,
            format!("HTTP GET {}: {code} Word Output: ", server.url())
        );
        assert_eq!(report.failed_phase, None);
    }
}

#[tokio::test]
async fn the_text_is_that_of_consul_esm() {
    let server = Server::answering(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\n\r\nno luck\r\n",
    )
    .await;
    let report = run(http(format!("{}health?x=1", server.url()))).await;
    assert_eq!(
        report.output,
        format!(
            "HTTP GET {}health?x=1: 503 Service Unavailable Output: no luck\r\n",
            server.url()
        )
    );
}

#[tokio::test]
async fn a_missing_reason_is_filled_in() {
    for line in ["HTTP/1.1 404 ", "HTTP/1.1 404"] {
        let server = Server::answering(format!("{line}\r\nContent-Length: 0\r\n\r\n")).await;
        let report = run(http(server.url())).await;
        assert_says(&report, ": 404 Not Found Output: ");
    }
}

#[tokio::test]
async fn the_request_is_that_of_consul_esm_by_default() {
    let (server, requests) =
        Server::recording("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    run(http(format!("{}health?q=a%20b#part", server.url()))).await;
    assert_eq!(
        requests.only(),
        format!(
            "GET /health?q=a%20b HTTP/1.1\r\nHost: {}\r\nUser-Agent: Consul Health Check\r\n\
             Accept: text/plain, text/*, */*\r\nConnection: close\r\n\r\n",
            server.address
        )
    );
}

#[tokio::test]
async fn given_headers_are_sent_and_replace_the_defaults() {
    let (server, requests) =
        Server::recording("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    // P090
    let check = http(server.url())
        .with_header("Host", "a.example")
        .unwrap()
        .with_header("X-Two", "one")
        .unwrap()
        .with_header("X-Two", "two")
        .unwrap()
        .with_header("user-agent", "mine")
        .unwrap()
        .with_header("ACCEPT", "application/json")
        .unwrap()
        .with_header("Content-Length", "1000")
        .unwrap()
        .with_header("Transfer-Encoding", "chunked")
        .unwrap();
    assert_status(&run(check).await, Passing);
    let request = requests.only();
    assert!(
        request.starts_with("GET / HTTP/1.1\r\nHost: a.example\r\n"),
        "{request}"
    );
    assert!(
        request.contains("X-Two: one\r\nX-Two: two\r\n"),
        "{request}"
    );
    assert!(request.contains("user-agent: mine\r\n"), "{request}");
    assert!(
        request.contains("ACCEPT: application/json\r\n"),
        "{request}"
    );
    for absent in [
        "User-Agent:",
        "Accept:",
        "Content-Length",
        "Transfer-Encoding",
        "127.0.0.1",
    ] {
        assert!(!request.contains(absent), "{absent} in {request}");
    }
}

#[tokio::test]
async fn a_body_is_sent_with_its_length() {
    let (server, requests) =
        Server::recording("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    // P055
    let check = http(server.url())
        .with_method("POST")
        .unwrap()
        .with_body("{\"ping\":1}");
    let report = run(check).await;
    assert_says(&report, "HTTP POST http://");
    let request = requests.only();
    assert!(request.starts_with("POST / HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nContent-Length: 10\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\n{\"ping\":1}"), "{request}");
}

#[tokio::test]
async fn a_post_without_a_body_says_that_it_is_empty() {
    let (server, requests) =
        Server::recording("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    run(http(server.url()).with_method("PUT").unwrap()).await;
    assert!(requests.only().contains("\r\nContent-Length: 0\r\n"));
}

#[tokio::test]
async fn user_and_password_of_a_url_are_sent_and_the_password_is_not_shown() {
    let (server, requests) =
        Server::recording("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n").await;
    let report = run(http(format!(
        "http://aladdin:opensesame@{}/",
        server.address
    )))
    .await;
    // `printf aladdin:opensesame | base64`
    assert!(
        requests
            .only()
            .contains("Authorization: Basic YWxhZGRpbjpvcGVuc2VzYW1l\r\n")
    );
    assert!(!report.output.contains("opensesame"));
    assert_says(&report, "HTTP GET http://aladdin:***@");
}

#[tokio::test]
async fn interim_answers_are_passed_over() {
    let server = Server::answering(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    )
    .await;
    let report = run(http(server.url())).await;
    assert_status(&report, Passing);
    assert_says(&report, "200 OK Output: ok");
}

#[tokio::test]
async fn switching_protocols_is_no_success() {
    let server =
        Server::answering("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n\0\0").await;
    let report = run(http(server.url())).await;
    assert_status(&report, Critical);
    assert_says(&report, "101 Switching Protocols");
}

#[tokio::test]
async fn a_refused_connection_is_told_in_gos_words() {
    let address = closed_port().await;
    let report = run(http(format!("http://{address}/"))
        .with_method("POST")
        .unwrap())
    .await;
    assert_status(&report, Critical);
    assert_eq!(
        report.output,
        format!("Post \"http://{address}/\": dial tcp {address}: connect: connection refused")
    );
    assert_eq!(report.failed_phase, Some(Phase::Connect));
}

#[tokio::test]
async fn an_ipv6_target_is_probed() {
    let Ok(listener) = TcpListener::bind("[::1]:0").await else {
        return println!("skipped: no IPv6 here");
    };
    let address = listener.local_addr().unwrap();
    drop(listener);
    let server = Server::start_on(&address.to_string(), |mut stream| async move {
        let request = read_request(&mut stream).await;
        assert!(request.contains("\r\nHost: [::1]:"), "{request}");
        let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nsix").await;
    })
    .await;
    let report = run(http(server.url())).await;
    assert_status(&report, Passing);
    assert_says(&report, "Output: six");
}

#[tokio::test]
async fn phases_are_timed() {
    let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let report = run(http(server.url())).await;
    let reached: Vec<Phase> = report.phases.iter().map(|(phase, _)| phase).collect();
    assert_eq!(reached, [Phase::Connect, Phase::FirstByte, Phase::Transfer]);
    let sum: std::time::Duration = report.phases.iter().map(|(_, took)| took).sum();
    assert!(sum <= report.took, "{report:#?}");
}

#[tokio::test]
async fn the_phase_that_takes_the_time_is_named() {
    // P136
    let silent = Server::start(|mut stream| async move { until_closed(&mut stream).await }).await;
    let report = run(http(silent.url()).with_timeout(SHORT)).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::FirstByte));
    assert_eq!(
        report.output,
        format!(
            "Get \"{}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
            silent.url()
        )
    );
    assert!(report.phases.first_byte >= Some(SHORT / 2), "{report:#?}");
}

/// The backlog of a listener that nobody accepts from fills up; then the
/// kernel drops what comes, as a black hole does.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_connection_that_is_not_answered_is_critical_at_the_timeout() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    while let Ok(Ok(stream)) =
        tokio::time::timeout(SHORT, tokio::net::TcpStream::connect(address)).await
    {
        held.push(stream);
    }
    let report = run(http(format!("http://{address}/")).with_timeout(SHORT)).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::Connect));
    assert_says(
        &report,
        &format!("dial tcp {address}: connect: context deadline exceeded"),
    );
}

#[tokio::test]
async fn a_request_that_is_larger_than_the_socket_takes_gets_through() {
    let (server, requests) =
        Server::recording("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let body = "b".repeat(8 << 20);
    let report = run(http(server.url())
        .with_method("POST")
        .unwrap()
        .with_body(body.as_str()))
    .await;
    assert_status(&report, Passing);
    assert!(requests.only().ends_with(&body));
}

#[tokio::test]
async fn an_answer_that_comes_before_the_request_is_out_counts() {
    let server = Server::start(|mut stream| async move {
        let mut some = [0; 100];
        stream.read_exact(&mut some).await.unwrap();
        let answer = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        // Neither reads on nor closes.
        std::future::pending::<()>().await;
    })
    .await;
    let check = http(server.url())
        .with_method("POST")
        .unwrap()
        .with_body(vec![b'b'; 8 << 20]);
    let report = run(check).await;
    assert_status(&report, Critical);
    assert_says(&report, "413 Content Too Large");
}

#[tokio::test]
async fn a_faulty_definition_is_critical_with_its_text() {
    let fault = "parse \"nonsense\": relative URL without a base";
    let report = run(Definition::Faulty(fault.into())).await;
    assert_status(&report, Critical);
    assert_eq!(report.output, fault);
}

#[tokio::test]
async fn every_probe_makes_a_connection_of_its_own() {
    // P086
    let (server, requests) =
        Server::recording("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    for _ in 0..3 {
        assert_status(&run(http(server.url())).await, Passing);
    }
    assert_eq!(requests.all().len(), 3);
}

#[test]
fn probes_can_run_on_a_runtime_with_threads_and_take_little_memory() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let prober = evenkeel_probe::Prober::new(evenkeel_probe::ProberSettings::default()).unwrap();
    let definition = Definition::from(http("http://127.0.0.1:8080/health"));
    let future = is_send(prober.run(&definition));
    // A daemon with thousands of probes at once carries this much for each.
    assert!(size_of_val(&future) <= 1536, "{}", size_of_val(&future));
    assert!(
        size_of::<Definition>() <= 128,
        "{}",
        size_of::<Definition>()
    );
}
