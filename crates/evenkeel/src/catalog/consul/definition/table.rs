//! docs/consul-definition.md, row by row.

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_consul::types::{CheckDefinition, HealthCheck};
use serde_json::{Value, json};

use super::{Commands, Probed, fields, probed, without_effect};

const PAGE: &str = include_str!("../../../../../../docs/consul-definition.md");

/// Field and what is done, as the page says.
fn rows() -> BTreeMap<&'static str, &'static str> {
    PAGE.lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(field, rest)| (field, rest.split(" |").next().unwrap_or(rest)))
        .collect()
}

/// A value of the field that is not its default, and a definition in which it
/// counts.
fn example(field: &str) -> (Value, Value) {
    let http = json!({"HTTP": "https://a.test/"});
    match field {
        "HTTP" => (json!("https://b.test/"), http),
        "Header" => (json!({"X": ["1"]}), http),
        "Method" => (json!("PUT"), http),
        "Body" => (json!("b"), http),
        "DisableRedirects" | "TLSSkipVerify" => (json!(true), http),
        "TLSServerName" => (json!("b.test"), http),
        "TCP" | "UDP" | "GRPC" | "H2PING" => (json!("b.test:1"), json!({})),
        "TCPUseTLS" => (json!(true), json!({"TCP": "a.test:1"})),
        "GRPCUseTLS" => (json!(true), json!({"GRPC": "a.test:1"})),
        "H2PingUseTLS" => (json!(true), json!({"H2PING": "a.test:1"})),
        "ScriptArgs" => (json!(["true"]), json!({})),
        "TTL" => (json!("30s"), json!({})),
        "DockerContainerID" => (json!("b"), json!({"ScriptArgs": ["true"]})),
        "Shell" | "OSService" | "AliasNode" | "AliasService" => (json!("b"), json!({})),
        "Interval" | "Timeout" | "DeregisterCriticalServiceAfter" => (json!("7s"), http),
        "OutputMaxSize"
        | "SuccessBeforePassing"
        | "FailuresBeforeWarning"
        | "FailuresBeforeCritical" => (json!(7), http),
        _ => panic!("{field}: no example of it"),
    }
}

fn check(definition: &Value) -> HealthCheck {
    serde_json::from_value(json!({"Node": "n", "CheckID": "c", "Definition": definition})).unwrap()
}

fn watched(check: &HealthCheck) -> Probed {
    let commands = Commands {
        docker: true,
        scripts: true,
    };
    probed(check, Duration::from_secs(10), commands)
}

#[test]
fn every_field_of_the_catalog_has_a_row_and_every_row_is_a_field() {
    let definition = CheckDefinition::default();
    let mut fields: Vec<&str> = fields::all(&definition).map(|(name, _)| name).into();
    fields.sort_unstable();
    assert_eq!(rows().into_keys().collect::<Vec<_>>(), fields);
}

// P051, P055
#[test]
fn every_row_is_true() {
    for (field, done) in rows() {
        let (value, mut definition) = example(field);
        let without = watched(&check(&definition));
        definition[field] = value;
        let with_it = check(&definition);
        assert!(fields::given(&with_it.definition).any(|given| given == field));
        let with = watched(&with_it);
        match done {
            "reported" => assert!(matches!(with, Probed::Not { .. }), "{field}: {with:?}"),
            "honoured" => {
                assert_eq!(without_effect(&with_it), [""; 0], "{field}");
                // These are not the probe's; the list of checks takes them.
                let elsewhere = fields::ANY_KIND.contains(&field)
                    && !["Timeout", "OutputMaxSize"].contains(&field);
                assert!(matches!(with, Probed::As(_)), "{field}: {with:?}");
                assert_eq!(with == without, elsewhere, "{field}: {with:?}");
            }
            other => panic!("{field}: {other}"),
        }
    }
}

#[test]
fn what_has_no_effect_is_named() {
    for (definition, named) in [
        (json!({"HTTP": "http://a/", "TCP": "a:1"}), &["TCP"][..]),
        (
            json!({"HTTP": "http://a/", "Carrier": "pigeon"}),
            &["Carrier"],
        ),
        (
            json!({"UDP": "a:1", "Method": "PUT", "TTL": "5s"}),
            &["Method", "TTL"],
        ),
        (json!({"TTL": "5s", "Interval": "5s"}), &[]),
        (json!({"AliasNode": "m", "OSService": "s"}), &["OSService"]),
        (
            json!({"TCP": "a:1", "TLSSkipVerify": true, "TCPUseTLS": true}),
            &[],
        ),
    ] {
        assert_eq!(without_effect(&check(&definition)), named, "{definition}");
    }
}
