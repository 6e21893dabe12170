//! `evenkeel probe`: one probe from the command line.
#![allow(clippy::unwrap_used, reason = "only tests are compiled with this")]

use std::net::TcpListener;
use std::process::{Command, Output};

use evenkeel_testkit::{Reply, Stub};
use serde_json::Value as Json;

fn probe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .arg("probe")
        .args(arguments)
        .env_clear()
        .output()
        .unwrap()
}

fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let code = output.status.code().unwrap();
    (code, text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_verdict_comes_with_phases_and_an_exit_code() {
    let stub = Stub::start(|request| match request.path() {
        "/busy" => Reply::status(429, "busy"),
        "/bad" => Reply::status(500, "bad\u{1b}[31m"),
        _ => Reply::status(200, "fine"),
    });
    for (path, code, status) in [
        ("/", 0, "passing"),
        ("/busy", 1, "warning"),
        ("/bad", 2, "critical"),
    ] {
        let url = format!("http://{}{path}", stub.address());
        let (ended, text, _) = told(&probe(&[&url, "timeout=5s"]));
        assert_eq!(ended, code, "{text}");
        assert!(
            text.starts_with(&format!("{status}: http {url}\n")),
            "{text}"
        );
        for part in ["  connect ", "  first_byte ", "  total ", "HTTP GET "] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}

#[test]
fn json_has_the_same_for_programs() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (code, text, _) = told(&probe(&[&format!("tcp://{closed}"), "--json"]));
    let json: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 2);
    assert_eq!(json["kind"], "tcp");
    assert_eq!(json["target"], closed.to_string());
    assert_eq!(json["status"], "critical");
    assert_eq!(json["failed_phase"], "connect");
    assert!(json["phases"]["connect"].is_f64(), "{json}");
    // P087: the policy holds here, too.
    let (code, text, _) = told(&probe(&["tcp:169.254.169.254:80", "--json"]));
    let json: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (code, &json["unprobed"]),
        (3, &Json::from("target_refused"))
    );
}

#[test]
fn keys_are_those_of_the_file_and_their_faults_are_told() {
    let stub = Stub::start(|request| match request.method.as_str() {
        "HEAD" => Reply::status(200, ""),
        _ => Reply::status(500, ""),
    });
    let url = format!("http://{}/", stub.address());
    assert_eq!(told(&probe(&[&url, "method=HEAD", "headers.X-A=1"])).0, 0);
    let (code, _, text) = told(&probe(&[&url, "metod=HEAD", "timeout=soon"]));
    assert_eq!(code, 64);
    assert!(
        text.contains("metod: unknown key; did you mean method?"),
        "{text}"
    );
    assert!(text.contains("timeout: "), "{text}");
    // The stub listens on 127.0.0.1 alone.
    let address = stub.address();
    let address = format!("tcp:localhost:{}", address.rsplit_once(':').unwrap().1);
    for (family, code) in [("4", 0), ("6", 2), ("both", 2), ("5", 64)] {
        let family = format!("connect.family={family}");
        let (ended, text, error) = told(&probe(&[&address, &family]));
        assert_eq!(ended, code, "{family}: {text}{error}");
    }
    let (code, _, text) = told(&probe(&["pigeon:a"]));
    assert_eq!(code, 64);
    assert!(text.contains("no target"), "{text}");
}

#[test]
fn a_check_of_a_file_is_run_by_name() {
    let stub = Stub::start(|_| Reply::status(200, "ok"));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("checks.toml");
    let text = format!(
        "[[check]]\nname = \"shop\"\nhttp = \"http://{}/\"\n",
        stub.address()
    );
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(told(&probe(&["--file", path, "--check", "shop"])).0, 0);
    let (code, _, text) = told(&probe(&["--file", path, "--check", "ship"]));
    assert_eq!(code, 78);
    assert!(text.contains("there is no check \"ship\""), "{text}");
}

#[test]
fn a_handshake_is_asked_for_by_either_word() {
    let stub = Stub::start(|_| Reply::status(200, "no TLS here"));
    for kind in ["handshake", "tls"] {
        let target = format!("{kind}://{}", stub.address());
        let (code, text, _) = told(&probe(&[&target, "--json", "handshake.alpn=[\"h2\"]"]));
        let json: Json = serde_json::from_str(&text).unwrap();
        assert_eq!((code, &json["kind"]), (2, &Json::from("tls")));
        assert_eq!(json["failed_phase"], "tls");
        assert_eq!(json["certificate"], Json::Null);
    }
    let (code, _, text) = told(&probe(&[
        "tls:a.test:1",
        "tls.warning_days=7",
        "tls.critical_days=8",
    ]));
    assert_eq!(code, 64);
    assert!(
        text.contains("critical_days: is above warning_days"),
        "{text}"
    );
}
