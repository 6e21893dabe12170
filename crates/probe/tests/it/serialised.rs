//! The form in files and APIs.

use std::path::PathBuf;
use std::time::Duration;

use evenkeel_probe::{
    ConnectOptions, Definition, Family, HttpCheck, TcpCheck, TlsCheck, TlsOptions,
};

fn read(json: &str) -> Result<Definition, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

#[test]
fn a_definition_has_a_kind_and_only_what_differs_from_the_defaults() {
    for (json, definition) in [
        (
            r#"{"kind":"http","url":"http://h:80/x"}"#,
            HttpCheck::new("http://h:80/x").unwrap().into(),
        ),
        (
            r#"{"kind":"http","url":"https://h/","method":"POST","headers":{"A":"1","B":["2","3"]},"body":"b","timeout":"1m30s","follow_redirects":false,"output_max_size":10,"tls":{"skip_verify":true,"server_name":"a.test","ca_file":"/ca"}}"#,
            HttpCheck::new("https://h/")
                .unwrap()
                .with_method("POST")
                .unwrap()
                .with_header("B", "2")
                .unwrap()
                .with_header("A", "1")
                .unwrap()
                .with_header("B", "3")
                .unwrap()
                .with_body("b")
                .with_timeout(Duration::from_secs(90))
                .with_follow_redirects(false)
                .with_output_max_size(10)
                .with_tls(TlsOptions {
                    skip_verify: true,
                    server_name: "a.test".into(),
                    ca_file: PathBuf::from("/ca"),
                    ..TlsOptions::default()
                })
                .unwrap()
                .into(),
        ),
        (
            r#"{"kind":"tcp","address":"[::1]:80","timeout":"500ms","tls":{},"abortive_close":true}"#,
            TcpCheck::new("[::1]:80")
                .unwrap()
                .with_timeout(Duration::from_millis(500))
                .with_tls(TlsOptions::default())
                .unwrap()
                .with_abortive_close(true)
                .into(),
        ),
        (
            r#"{"kind":"tls","address":"h:443","timeout":"2s","alpn":["h2"],"tls":{"warning_days":21,"critical_days":0,"resumption":true}}"#,
            TlsCheck::new("h:443")
                .unwrap()
                .with_timeout(Duration::from_secs(2))
                .with_protocols(["h2"])
                .unwrap()
                .with_tls(TlsOptions {
                    warning_days: Some(21),
                    critical_days: Some(0),
                    resumption: true,
                    ..TlsOptions::default()
                })
                .unwrap()
                .into(),
        ),
        (
            r#"{"kind":"tls","address":"h:443"}"#,
            TlsCheck::new("h:443").unwrap().into(),
        ),
        (
            r#"{"kind":"tcp","address":"a:80","connect":{"family":"both"}}"#,
            TcpCheck::new("a:80")
                .unwrap()
                .with_connect(ConnectOptions {
                    family: Family::Both,
                    source: None,
                })
                .unwrap()
                .into(),
        ),
        (
            r#"{"kind":"http","url":"http://h:80/x","connect":{"family":"6","source":"::1"}}"#,
            HttpCheck::new("http://h:80/x")
                .unwrap()
                .with_connect(ConnectOptions {
                    family: Family::V6,
                    source: Some("::1".parse().unwrap()),
                })
                .unwrap()
                .into(),
        ),
        (
            r#"{"kind":"faulty","fault":"why"}"#,
            Definition::Faulty("why".into()),
        ),
    ] {
        assert_eq!(read(json).as_ref(), Ok(&definition));
        assert_eq!(serde_json::to_string(&definition).unwrap(), json);
    }
}

#[test]
fn faults_are_told() {
    for (json, says) in [
        (r#"{"url":"http://h/"}"#, "missing field `kind`"),
        (
            r#"{"kind":"smtp","url":"http://h/"}"#,
            "unknown variant `smtp`",
        ),
        (r#"{"kind":"http"}"#, "missing field `url`"),
        (
            r#"{"kind":"http","url":"h:80/x"}"#,
            "unsupported protocol scheme",
        ),
        (
            r#"{"kind":"http","url":"http://h/","metod":"GET"}"#,
            "unknown field `metod`",
        ),
        (
            r#"{"kind":"http","url":"http://h/","method":"A B"}"#,
            "invalid method",
        ),
        (
            r#"{"kind":"http","url":"http://h/","headers":{"a b":"1"}}"#,
            "invalid header field name",
        ),
        (
            r#"{"kind":"http","url":"http://h/","headers":{"a":"1\n2"}}"#,
            "invalid header field value for \"a\"",
        ),
        (
            r#"{"kind":"http","url":"http://h/","headers":{"a":1}}"#,
            "a text or a list of texts",
        ),
        (
            r#"{"kind":"http","url":"http://h/","timeout":10}"#,
            "expected a duration such as \"10s\"",
        ),
        (
            r#"{"kind":"http","url":"http://h/","timeout":"10"}"#,
            "has no unit",
        ),
        (
            r#"{"kind":"http","url":"http://h/","tls":{"cert_file":"c"}}"#,
            "go together",
        ),
        (
            r#"{"kind":"http","url":"http://h/","tls":{"server_name":"a b"}}"#,
            "invalid server name",
        ),
        (r#"{"kind":"tcp","address":"h"}"#, "missing port in address"),
    ] {
        let error = read(json).expect_err(json);
        assert!(error.contains(says), "{json}: {error}");
    }
}
