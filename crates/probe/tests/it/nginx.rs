//! Probes of a real nginx.

use std::io::Write as _;

use evenkeel_probe::{HttpCheck, HttpExpect, Phase, Report, TcpCheck, TlsOptions};
use evenkeel_testkit::{Nginx, eventually};
use evenkeel_threshold::Status::{Critical, Passing, Warning};

use crate::support::*;
use crate::tls::{Ca, Files, Pair, named};

fn at(nginx: &Nginx, server: &str, path: &str) -> HttpCheck {
    http(format!("http://{}{path}", nginx.address(server)))
}

fn expecting(check: HttpCheck, set: impl FnOnce(&mut HttpExpect)) -> HttpCheck {
    let mut expect = HttpExpect::default();
    set(&mut expect);
    check.with_expect(expect).unwrap()
}

/// The answer has this header field.
fn with_field(check: HttpCheck, name: &str, value: &str) -> HttpCheck {
    expecting(check, |expect| {
        expect.headers = [(name.to_owned(), value.to_owned())].into();
    })
}

/// The answer with its body, which may have several lines.
#[track_caller]
fn assert_answer(report: &Report, part: &str) {
    assert!(report.output.contains(part), "no {part:?} in {report:#?}");
}

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn each_status_code_means_what_it_should() {
    let codes = [
        200, 201, 202, 204, 206, 226, 299, 300, 304, 400, 401, 403, 404, 405, 410, 429, 451, 500,
        501, 502, 503, 504, 507, 599, 999,
    ];
    let locations: String = codes
        .iter()
        .map(|code| format!("location = /{code} {{ return {code}; }}\n"))
        .collect();
    let servers = format!("server {{ listen <plain>; {locations} }}");
    let test = "each_status_code_means_what_it_should";
    let Some(nginx) = Nginx::start(test, &servers, &[]) else {
        return;
    };
    for code in codes {
        let expected = match code {
            200..=299 => Passing,
            429 => Warning,
            _ => Critical,
        };
        for method in ["GET", "HEAD", "POST"] {
            let check = at(&nginx, "plain", &format!("/{code}"));
            let report = run(check.with_method(method).unwrap()).await;
            assert_status(&report, expected);
            assert_eq!(report.failed_phase, None, "{report:#?}");
            assert_answer(&report, &format!("/{code}: {code} "));
        }
    }
    let report = run(at(&nginx, "plain", "/429")).await;
    assert_answer(&report, ": 429 Too Many Requests Output: ");
    eventually("every request is logged", || {
        let requests = nginx.requests();
        (requests.len() > 3 * codes.len()).then_some(())
    });
    for request in nginx.requests() {
        assert!(
            request.starts_with("HTTP/1.1 ") && request.ends_with(" 1"),
            "{request}"
        );
    }
}

const BODIES: &str = "
server {
    listen <plain>;
    listen unix:<DIR>/socket;
    root <DIR>/www;
    if_modified_since before;
    location /chunked/ { ssi on; ssi_types text/plain; alias <DIR>/www/; }
    location /packed/ { gzip_static always; alias <DIR>/www/; }
    location /either/ { gzip_static on; alias <DIR>/www/; }
    location /slow/ { limit_rate 1000; alias <DIR>/www/; }
    location /method { return 200 \"$request_method $content_length $http_x_given\"; }
    location = /hangup { return 444; }
}
# Keeps no connection, whatever the client wants.
server { listen <once>; keepalive_timeout 0; return 200 once; }
";

#[tokio::test]
async fn bodies_of_each_framing_are_read() {
    let long = "0123456789\n".repeat(1000);
    let packed = gzipped(long.as_bytes());
    let files: [(&str, &[u8]); 4] = [
        ("www/short.txt", b"all is well\n"),
        ("www/long.txt", long.as_bytes()),
        ("www/long.txt.gz", &packed),
        ("www/nothing.txt", b""),
    ];
    let Some(nginx) = Nginx::start("bodies_of_each_framing_are_read", BODIES, &files) else {
        return;
    };
    let get = |path: &str| at(&nginx, "plain", path);

    let report = run(with_field(get("/short.txt"), "content-length", "^12$")).await;
    assert_status(&report, Passing);
    assert!(
        report.output.ends_with(": 200 OK Output: all is well\n"),
        "{report:#?}"
    );
    let report = run(get("/nothing.txt")).await;
    assert_status(&report, Passing);
    assert!(report.output.ends_with("200 OK Output: "), "{report:#?}");

    let chunked = with_field(get("/chunked/short.txt"), "transfer-encoding", "^chunked$");
    let report = run(chunked).await;
    assert_status(&report, Passing);
    assert!(
        report.output.ends_with("200 OK Output: all is well\n"),
        "{report:#?}"
    );

    let report = run(get("/long.txt")).await;
    assert_status(&report, Passing);
    assert!(
        report.output.ends_with(" [captured 4096 of 11000 bytes]"),
        "{report:#?}"
    );
    let whole = expecting(get("/chunked/long.txt"), |expect| {
        expect.body = Some("\\A0123456789\n[0-9\n]*9\n\\z".into());
    });
    assert_status(&run(whole).await, Passing);

    // Whoever does not ask for it does not get it, unless the server will have it so.
    let report = run(get("/either/long.txt")).await;
    assert_answer(&report, "Output: 0123456789\n");
    for check in [
        get("/packed/long.txt"),
        get("/either/long.txt")
            .with_header("Accept-Encoding", "gzip")
            .unwrap(),
    ] {
        let report = run(with_field(check, "Content-Encoding", "^gzip$")).await;
        assert_status(&report, Passing);
        assert!(!report.output.contains("0123456789"), "{report:#?}");
    }

    let head = get("/long.txt").with_method("HEAD").unwrap();
    let report = run(with_field(head, "Content-Length", "^11000$")).await;
    assert_status(&report, Passing);
    assert!(report.output.ends_with("200 OK Output: "), "{report:#?}");
    assert_eq!(report.failed_phase, None);
    let unchanged =
        get("/short.txt").with_header("If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT");
    let report = run(expecting(unchanged.unwrap(), |expect| {
        expect.status = "304".into();
    }))
    .await;
    assert_status(&report, Passing);
    assert_answer(&report, ": 304 Not Modified Output: ");
    let part = get("/long.txt")
        .with_header("Range", "bytes=11-20")
        .unwrap();
    let report = run(part).await;
    assert!(
        report
            .output
            .ends_with(": 206 Partial Content Output: 0123456789"),
        "{report:#?}"
    );
}

#[tokio::test]
async fn what_goes_wrong_on_the_way_is_told() {
    let files: [(&str, &[u8]); 1] = [("www/long.txt", &[b'x'; 100_000])];
    let Some(nginx) = Nginx::start("what_goes_wrong_on_the_way_is_told", BODIES, &files) else {
        return;
    };
    let report = run(at(&nginx, "plain", "/hangup")).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::FirstByte));
    assert_says(&report, "/hangup\": EOF (while awaiting headers)");

    // The head is there, so the target answers; what is expected of the body is not.
    let slow = at(&nginx, "plain", "/slow/long.txt").with_timeout(SHORT);
    let report = run(slow.clone()).await;
    assert_status(&report, Passing);
    assert_eq!(report.failed_phase, Some(Phase::Transfer));
    assert_says(
        &report,
        " of 100000 bytes: context deadline exceeded while reading body]",
    );
    let report = run(expecting(slow, |expect| {
        expect.body = Some("x{50}\\z".into());
    }))
    .await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::Transfer));

    // More than nginx takes (client_max_body_size, 1 MiB): it says so before it has read it.
    let large = at(&nginx, "plain", "/method").with_method("POST").unwrap();
    let report = run(large.clone().with_body(vec![b'x'; 4 << 20])).await;
    assert_status(&report, Critical);
    assert_answer(&report, ": 413 Request Entity Too Large Output: ");
    let report = run(large
        .with_body("12345")
        .with_header("X-Given", "this")
        .unwrap())
    .await;
    assert!(
        report.output.ends_with("Output: POST 5 this"),
        "{report:#?}"
    );
    let heavy = at(&nginx, "plain", "/method").with_header("X-Given", &"x".repeat(40_000));
    let report = run(heavy.unwrap()).await;
    assert_status(&report, Critical);
    assert_answer(&report, ": 400 Bad Request Output: ");
}

#[tokio::test]
async fn a_server_that_keeps_no_connection_and_one_that_does_are_the_same() {
    let test = "a_server_that_keeps_no_connection_and_one_that_does_are_the_same";
    let Some(nginx) = Nginx::start(test, BODIES, &[]) else {
        return;
    };
    for server in ["once", "plain", "once", "plain"] {
        for header in ["close", "keep-alive"] {
            let check = at(&nginx, server, "/method").with_header("Connection", header);
            let report = run(check.unwrap()).await;
            assert_status(&report, Passing);
            assert_eq!(report.failed_phase, None);
        }
    }
}

#[tokio::test]
async fn heads_up_to_the_limit_are_read() {
    let fields = |count: usize| {
        let value = "x".repeat(3900);
        format!("add_header X-Large {value};").repeat(count)
    };
    let servers = format!(
        "server {{ listen <fits>; {} return 200 ok; }}\nserver {{ listen <large>; {} return 200 ok; }}",
        fields(16),
        fields(17)
    );
    let Some(nginx) = Nginx::start("heads_up_to_the_limit_are_read", &servers, &[]) else {
        return;
    };
    assert_status(&run(at(&nginx, "fits", "/")).await, Passing);
    let report = run(at(&nginx, "large", "/")).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::FirstByte));
    assert_says(&report, "server response headers exceeded 65536 bytes");
}

#[tokio::test]
async fn redirects_lead_on_with_what_belongs_there() {
    let servers = "
server {
    listen <plain>;
    location = /method { return 200 \"$request_method <$content_length> $http_cookie\"; }
    location = /absolute { return 302 http://$http_host/method; }
    location = /relative { return 301 /method; }
    location = /see { return 303 /method; }
    location = /again { return 307 /method; }
    location = /for-ever { return 308 /method; }
    location = /elsewhere { return 302 http://<other>/method; }
    location = /nowhere { return 302 http://<other>/hangup; }
    location = /loop { return 302 /loop; }
}
server {
    listen <other>;
    location = /method { return 200 \"there $request_method $http_cookie\"; }
    location = /hangup { return 444; }
}";
    let test = "redirects_lead_on_with_what_belongs_there";
    let Some(nginx) = Nginx::start(test, servers, &[]) else {
        return;
    };
    let post = |path: &str| {
        let check = at(&nginx, "plain", path).with_method("POST").unwrap();
        check
            .with_body("12345")
            .with_header("Cookie", "a=b")
            .unwrap()
    };
    for (path, said) in [
        ("/absolute", "GET <> a=b"),
        ("/relative", "GET <> a=b"),
        ("/see", "GET <> a=b"),
        ("/again", "POST <5> a=b"),
        ("/for-ever", "POST <5> a=b"),
        ("/elsewhere", "there GET "),
    ] {
        let report = run(post(path)).await;
        assert_status(&report, Passing);
        assert!(
            report.output.ends_with(&format!("Output: {said}")),
            "{report:#?}"
        );
    }
    let report = run(post("/loop")).await;
    assert_status(&report, Critical);
    assert_says(&report, "/loop\": redirected to ");
    assert_says(&report, "stopped after 10 redirects");
    let report = run(post("/nowhere")).await;
    assert_status(&report, Critical);
    assert_says(&report, "/hangup: EOF (while awaiting headers)");
    let report = run(post("/relative").with_follow_redirects(false)).await;
    assert_status(&report, Critical);
    assert_answer(&report, ": 301 Moved Permanently Output: ");
}

const SECURE: &str = "
ssl_certificate <DIR>/server.pem;
ssl_certificate_key <DIR>/server.key;
ssl_client_certificate <DIR>/ca.pem;
ssl_protocols TLSv1.2 TLSv1.3;
server {
    listen <open> ssl;
    return 200 \"$ssl_server_name $ssl_protocol $ssl_client_verify\";
}
server {
    listen <verified> ssl;
    ssl_verify_client on;
    return 200 \"$ssl_client_s_dn $ssl_client_verify\";
}
server { listen <old> ssl; ssl_protocols TLSv1.2; return 200 $ssl_protocol; }
server { listen <h> ssl http2; return 200 $server_protocol; }
server { listen <prior> http2; return 200 $server_protocol; }
server { listen <plain>; return 200 $server_protocol; }
";

struct Secure {
    nginx: Nginx,
    ca: Ca,
    files: Files,
}

impl Secure {
    fn start(test: &str) -> Option<Self> {
        let ca = Ca::new("test CA");
        let server = ca.issue(&named("server", &["shop.test", "127.0.0.1"]));
        let ca_pem = ca.pem();
        let written: [(&str, &[u8]); 3] = [
            ("server.pem", server.certificate_pem().as_bytes()),
            ("server.key", server.key_pem().as_bytes()),
            ("ca.pem", ca_pem.as_bytes()),
        ];
        let nginx = Nginx::start(test, SECURE, &written)?;
        let files = Files::new();
        Some(Self { nginx, ca, files })
    }

    fn trusting(&self) -> TlsOptions {
        TlsOptions {
            ca_file: self.nginx.path("ca.pem"),
            ..TlsOptions::default()
        }
    }

    fn as_client(&self, client: &Pair) -> TlsOptions {
        TlsOptions {
            cert_file: self.files.write("client.pem", client.certificate_pem()),
            key_file: self.files.write("client.key", client.key_pem()),
            ..self.trusting()
        }
    }

    fn at(&self, server: &str, tls: &TlsOptions) -> HttpCheck {
        http(format!("https://{}/", self.nginx.address(server)))
            .with_tls(tls.clone())
            .unwrap()
    }
}

#[tokio::test]
async fn over_tls_names_versions_and_client_certificates_count() {
    let test = "over_tls_names_versions_and_client_certificates_count";
    let Some(secure) = Secure::start(test) else {
        return;
    };
    let named_shop = TlsOptions {
        server_name: "shop.test".into(),
        ..secure.trusting()
    };
    let report = run(secure.at("open", &named_shop)).await;
    assert_status(&report, Passing);
    assert_says(&report, "Output: shop.test TLSv1.3 NONE");
    assert!(report.phases.tls.is_some());
    let report = run(secure.at("old", &named_shop)).await;
    assert_says(&report, "Output: TLSv1.2");
    let report = run(secure.at("open", &TlsOptions::default())).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::Tls));
    assert_says(&report, "x509: certificate signed by unknown authority");
    let other = TlsOptions {
        server_name: "other.test".into(),
        ..secure.trusting()
    };
    let report = run(secure.at("open", &other)).await;
    assert_status(&report, Critical);
    assert_says(&report, "certificate is valid for shop.test");

    // nginx finishes the handshake all the same, and says it by HTTP.
    let report = run(secure.at("verified", &secure.trusting())).await;
    assert_status(&report, Critical);
    assert_answer(&report, ": 400 Bad Request Output: ");
    assert!(
        report
            .output
            .contains("No required SSL certificate was sent"),
        "{report:#?}"
    );
    let client = secure.ca.issue(&named("probe", &["probe.test"]));
    let report = run(secure.at("verified", &secure.as_client(&client))).await;
    assert_status(&report, Passing);
    assert!(
        report.output.contains("CN=probe") && report.output.ends_with("SUCCESS"),
        "{report:#?}"
    );
    let stranger = Ca::new("another CA").issue(&named("probe", &["probe.test"]));
    let report = run(secure.at("verified", &secure.as_client(&stranger))).await;
    assert_status(&report, Critical);
    assert_answer(&report, ": 400 Bad Request Output: ");

    // TLS where there is none, and none where there is.
    let plain = secure.at("plain", &secure.trusting());
    let report = run(plain).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::Tls));
    assert_says(&report, "first record does not look like a TLS handshake");
    let report = run(at(&secure.nginx, "open", "/")).await;
    assert_status(&report, Critical);
    assert!(
        report
            .output
            .contains("plain HTTP request was sent to HTTPS port"),
        "{report:#?}"
    );

    for server in ["open", "verified", "old"] {
        let address = secure.nginx.address(server).to_string();
        let check = TcpCheck::new(&address).unwrap();
        let report = run(check.with_tls(secure.trusting()).unwrap()).await;
        assert_status(&report, Passing);
        assert_says(&report, "Success (with TLS)");
    }
}

#[cfg(all(feature = "h2ping", feature = "grpc"))]
#[tokio::test]
async fn http_2_over_tls_and_by_prior_knowledge() {
    use evenkeel_probe::{GrpcCheck, H2PingCheck};

    let Some(secure) = Secure::start("http_2_over_tls_and_by_prior_knowledge") else {
        return;
    };
    let address = |server| secure.nginx.address(server).to_string();
    let ping = |server| H2PingCheck::new(&address(server)).unwrap();
    let over_tls = |server| ping(server).with_tls(secure.trusting()).unwrap();
    assert_status(&run(ping("prior")).await, Passing);
    assert_status(&run(over_tls("h")).await, Passing);
    let report = run(ping("plain")).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::FirstByte));
    assert_says(&report, "the server may not speak HTTP/2 here");
    let report = run(over_tls("open")).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::Tls), "{report:#?}");
    assert_says(&report, "remote error: tls: no application protocol");
    // It speaks HTTP/1 to whoever asks for no other.
    let report = run(secure.at("h", &secure.trusting())).await;
    assert_status(&report, Passing);
    assert_says(&report, "Output: HTTP/1.1");

    let grpc = |server| GrpcCheck::new(&address(server)).unwrap();
    for check in [
        grpc("prior"),
        grpc("h").with_tls(secure.trusting()).unwrap(),
    ] {
        let report = run(check).await;
        assert_status(&report, Critical);
        assert_eq!(report.failed_phase, Some(Phase::FirstByte));
        assert_says(
            &report,
            "the server answered HTTP 200 with text/plain, which is no gRPC",
        );
    }
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn an_http_check_speaks_http_2_where_it_is_asked_to() {
    use evenkeel_probe::{HttpTransport, HttpVersion};

    let test = "an_http_check_speaks_http_2_where_it_is_asked_to";
    let Some(secure) = Secure::start(test) else {
        return;
    };
    let by = |check: HttpCheck, version| {
        let transport = HttpTransport {
            version,
            ..HttpTransport::default()
        };
        check.with_transport(transport).unwrap()
    };
    let over_tls = |server| secure.at(server, &secure.trusting());
    for (check, version, said) in [
        (over_tls("h"), HttpVersion::Http2, "HTTP/2.0"),
        (over_tls("h"), HttpVersion::Negotiated, "HTTP/2.0"),
        (over_tls("h"), HttpVersion::Http1, "HTTP/1.1"),
        (over_tls("old"), HttpVersion::Negotiated, "TLSv1.2"),
        (
            at(&secure.nginx, "prior", "/"),
            HttpVersion::Http2,
            "HTTP/2.0",
        ),
    ] {
        let report = run(by(check, version)).await;
        assert_status(&report, Passing);
        assert!(report.output.ends_with(said), "{report:#?}");
    }
    let report = run(by(at(&secure.nginx, "plain", "/"), HttpVersion::Http2)).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::FirstByte));
    assert_says(&report, "the server may not speak HTTP/2 here");
}

// P086
#[tokio::test]
async fn a_kept_connection_and_a_unix_socket_lead_to_it_too() {
    use evenkeel_probe::{HttpTransport, Prober, ProberSettings};

    let test = "a_kept_connection_and_a_unix_socket_lead_to_it_too";
    let Some(nginx) = Nginx::start(test, BODIES, &[]) else {
        return;
    };
    let by_socket = HttpTransport {
        unix_socket: Some(nginx.path("socket")),
        ..HttpTransport::default()
    };
    let check = http("http://shop.example/method").with_transport(by_socket);
    let report = run(check.unwrap()).await;
    assert_status(&report, Passing);
    assert!(report.output.ends_with("Output: GET  "), "{report:#?}");

    let prober = Prober::new(ProberSettings::default()).unwrap();
    let kept = |server: &str, path: &str| {
        let reuse = HttpTransport {
            reuse: true,
            ..HttpTransport::default()
        };
        at(&nginx, server, path).with_transport(reuse).unwrap()
    };
    // One keeps the connection, the other ends it after each answer.
    let checks =
        [kept("plain", "/method"), kept("once", "/once")].map(evenkeel_probe::Definition::from);
    for _ in 0..5 {
        for check in &checks {
            let report = prober.run(check).await;
            assert_status(&report, Passing);
        }
    }
    let of = |path: &str| {
        let path = format!(" {path} ");
        let requests = nginx.requests().into_iter();
        requests
            .filter(|line| line.contains(&path))
            .collect::<Vec<_>>()
    };
    eventually("the requests are logged", || {
        (of("/method").len() == 6 && of("/once").len() == 5).then_some(())
    });
    assert!(
        of("/method").iter().any(|line| line.ends_with(" 5")),
        "{:?}",
        of("/method")
    );
    assert!(
        of("/once").iter().all(|line| line.ends_with(" 1")),
        "{:?}",
        of("/once")
    );
}
