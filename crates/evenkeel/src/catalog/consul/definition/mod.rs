use std::time::Duration;

use evenkeel_consul::types::{CheckDefinition, HealthCheck};
use evenkeel_probe::{Definition, DefinitionError};

mod http;
mod tcp;
mod udp;

/// A kind of check as Consul defines it.
struct Kind {
    /// The definition of a probe, if the check is of this kind.
    made: fn(&CheckDefinition, Duration) -> Option<Result<Definition, DefinitionError>>,
    /// The fields that decide what a probe does, times aside: if one of them
    /// cannot be read, the check is not probed as if it were not there.
    fields: &'static [&'static str],
}

/// Of several kinds in one definition, the first counts.
const KINDS: [Kind; 3] = [http::KIND, tcp::KIND, udp::KIND];

/// How Consul's definition is probed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Probed {
    /// Like this.
    As(Definition),
    /// Not at all.
    Not {
        /// One of [`UNSUPPORTED_KINDS`](crate::metrics::UNSUPPORTED_KINDS).
        kind: &'static str,
        /// Why, for people.
        reason: String,
    },
}

/// The check that consul-esm writes for a node it pings. It is the product of a
/// monitor, not something to probe.
pub(super) const NODE_HEALTH_CHECK: &str = "externalNodeHealth";

/// The probe that a definition asks for. Of several kinds in one, HTTP goes
/// first, then TCP, as in consul-esm.
///
/// What is wrong in a definition of a known kind does not make it unsupported:
/// it is critical with that text at each probe.
pub(super) fn probed(check: &HealthCheck, default_timeout: Duration) -> Probed {
    let definition = &check.definition;
    // A probe without it would be another one than was asked for.
    if let Some(fault) = check.faults.iter().find(|fault| is_needed(&fault.path)) {
        return Probed::As(Definition::Faulty(fault.to_string().into()));
    }
    if check.faults.iter().any(|fault| fault.path == "Definition") {
        return Probed::Not {
            kind: "other",
            reason: "not probed: its definition cannot be read".to_owned(),
        };
    }
    let timeout = match definition.timeout.get() {
        Duration::ZERO => default_timeout,
        timeout => timeout,
    };
    let made = KINDS
        .iter()
        .find_map(|kind| (kind.made)(definition, timeout));
    match made {
        Some(Ok(definition)) => Probed::As(definition),
        Some(Err(error)) => Probed::As(Definition::Faulty(error.to_string().into())),
        None => not_probed(check),
    }
}

/// Whether a field decides what a probe does, times aside.
fn is_needed(path: &str) -> bool {
    let Some(field) = path.strip_prefix("Definition.") else {
        return false;
    };
    let name = field.split('.').next().unwrap_or_default();
    KINDS.iter().any(|kind| kind.fields.contains(&name))
}

// P051, P053: never left silently passing.
fn not_probed(check: &HealthCheck) -> Probed {
    let definition = &check.definition;
    let set = |text: &String| !text.is_empty();
    let (kind, name) = if set(&definition.grpc) {
        ("grpc", "a gRPC check")
    } else if set(&definition.h2ping) {
        ("h2ping", "an HTTP/2 ping check")
    } else if set(&definition.docker_container_id) {
        ("docker", "a Docker check")
    } else if !definition.script_args.is_empty() || set(&definition.shell) {
        ("script", "a script check")
    } else if set(&definition.alias_node) || set(&definition.alias_service) {
        ("alias", "an alias check")
    } else if set(&definition.os_service) {
        ("os_service", "a check of an operating system's service")
    } else if !definition.ttl.is_zero() || check.kind == "ttl" {
        ("ttl", "a TTL check, which somebody else has to report")
    } else if definition == &CheckDefinition::default() {
        return Probed::Not {
            kind: "none",
            reason: format!(
                "not probed: the check has no definition, so its status {:?} stays as it was registered",
                check.status
            ),
        };
    } else {
        ("other", "a check of an unknown kind")
    };
    Probed::Not {
        kind,
        reason: format!(
            "not probed: {name} is not supported yet, so its status {:?} stays as it was registered",
            check.status
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::UNSUPPORTED_KINDS;

    const TIMEOUT: Duration = Duration::from_secs(10);

    fn check(json: &str) -> HealthCheck {
        serde_json::from_str(json).unwrap()
    }

    // P055: each field is honoured or reported.
    #[test]
    fn every_field_of_an_http_check_reaches_the_probe() {
        let check = check(
            r#"{"Definition":{"HTTP":"https://10.0.0.1/h","Method":"POST","Body":"ping",
                "Header":{"Host":["a.test"],"X":["1","2"]},"TLSSkipVerify":true,
                "TLSServerName":"b.test","DisableRedirects":true,"OutputMaxSize":100,
                "Interval":"5s","Timeout":"2s"}}"#,
        );
        let Probed::As(Definition::Http(probe)) = probed(&check, TIMEOUT) else {
            panic!("not HTTP")
        };
        assert_eq!(probe.url(), "https://10.0.0.1/h");
        assert_eq!(probe.method(), "POST");
        assert_eq!(probe.body(), b"ping");
        assert_eq!(
            probe.headers().collect::<Vec<_>>(),
            [("Host", "a.test"), ("X", "1"), ("X", "2")]
        );
        assert!(probe.tls().skip_verify);
        assert_eq!(probe.tls().server_name, "b.test");
        assert!(!probe.follow_redirects());
        assert_eq!(probe.output_max_size(), 100);
        assert_eq!(probe.timeout(), Duration::from_secs(2));
    }

    #[test]
    fn http_goes_before_tcp_and_the_timeout_has_a_default() {
        let both = check(r#"{"Definition":{"HTTP":"http://a/","TCP":"a:1"}}"#);
        assert!(
            matches!(probed(&both, TIMEOUT), Probed::As(Definition::Http(http))
            if http.timeout() == TIMEOUT)
        );
    }

    // P050
    #[test]
    fn tcp_with_tls_is_not_plain_tcp() {
        let tls = check(r#"{"Definition":{"TCP":"a:1","TCPUseTLS":true}}"#);
        assert!(
            matches!(probed(&tls, TIMEOUT), Probed::As(Definition::Tcp(tcp))
            if tcp.tls().is_some())
        );
    }

    #[test]
    fn a_wrong_definition_is_probed_as_faulty() {
        for json in [
            r#"{"Definition":{"HTTP":"10.0.0.1"}}"#,
            r#"{"Definition":{"HTTP":"http://a/","Method":"G T"}}"#,
            r#"{"Definition":{"TCP":"nowhere"}}"#,
        ] {
            assert!(
                matches!(
                    probed(&check(json), TIMEOUT),
                    Probed::As(Definition::Faulty(_))
                ),
                "{json}"
            );
        }
    }

    // P051
    #[test]
    fn what_is_not_supported_is_named() {
        for (json, expected) in [
            (r#"{"Definition":{"GRPC":"a:1/s"}}"#, "grpc"),
            (r#"{"Definition":{"H2PING":"a:1"}}"#, "h2ping"),
            (
                r#"{"Definition":{"DockerContainerID":"c","ScriptArgs":["x"],"Shell":"sh"}}"#,
                "docker",
            ),
            (r#"{"Definition":{"ScriptArgs":["x"]}}"#, "script"),
            (r#"{"Definition":{"AliasService":"s"}}"#, "alias"),
            (r#"{"Definition":{"OSService":"s"}}"#, "os_service"),
            (r#"{"Definition":{"TTL":"30s"}}"#, "ttl"),
            (r#"{"Type":"ttl"}"#, "ttl"),
            ("{}", "none"),
            (r#"{"Definition":{"Carrier":"pigeon"}}"#, "other"),
        ] {
            let Probed::Not { kind, reason } = probed(&check(json), TIMEOUT) else {
                panic!("{json} is probed")
            };
            assert_eq!(kind, expected, "{json}");
            assert!(UNSUPPORTED_KINDS.contains(&kind));
            assert!(reason.contains("not probed"), "{reason}");
        }
    }
}
