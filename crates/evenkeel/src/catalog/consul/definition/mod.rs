use std::time::Duration;

use evenkeel_consul::types::{CheckDefinition, HealthCheck};
use evenkeel_probe::DefinitionError;

use crate::catalog::{Aliased, Definition};
use crate::config::{CommandChecks, ProbeSettings};

mod docker;
mod fields;
mod grpc;
mod h2ping;
mod http;
mod script;
mod tcp;
mod udp;

/// A kind of check as Consul defines it.
struct Kind {
    /// The word for it, as [`Definition::kind`] has it.
    word: &'static str,
    /// The definition of a probe, if the check is of this kind.
    made: fn(
        &CheckDefinition,
        Duration,
    ) -> Option<Result<evenkeel_probe::Definition, DefinitionError>>,
    /// The fields that decide what a probe does, times aside: if one of them
    /// cannot be read, the check is not probed as if it were not there.
    fields: &'static [&'static str],
}

/// Of several kinds in one definition, the first counts.
const KINDS: [Kind; 7] = [
    http::KIND,
    tcp::KIND,
    grpc::KIND,
    udp::KIND,
    h2ping::KIND,
    docker::KIND,
    script::KIND,
];

/// Whether checks of the catalog may run commands. Who may register a check
/// says what is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Commands {
    /// In containers.
    pub(super) docker: bool,
    /// On this machine.
    pub(super) scripts: bool,
}

impl From<&ProbeSettings> for Commands {
    fn from(settings: &ProbeSettings) -> Self {
        Self {
            docker: settings.docker == CommandChecks::All,
            scripts: settings.scripts == CommandChecks::All,
        }
    }
}

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
pub(super) fn probed(check: &HealthCheck, default_timeout: Duration, commands: Commands) -> Probed {
    let definition = &check.definition;
    // A probe without it would be another one than was asked for.
    if let Some(fault) = check.faults.iter().find(|fault| is_needed(&fault.path)) {
        return faulty(fault);
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
        .find_map(|kind| Some((kind.word, (kind.made)(definition, timeout)?)));
    match made {
        Some((kind @ "docker", _)) if !commands.docker => off(check, kind, "probe.docker"),
        Some((kind @ "script", _)) if !commands.scripts => off(check, kind, "probe.scripts"),
        Some((_, Ok(definition))) => Probed::As(definition.into()),
        Some((_, Err(error))) => faulty(&error),
        None => match without_probes(check) {
            Some(definition) => Probed::As(definition),
            None => not_probed(check),
        },
    }
}

fn faulty(fault: &impl ToString) -> Probed {
    let text = fault.to_string().into();
    Probed::As(evenkeel_probe::Definition::Faulty(text).into())
}

/// What comes to its results in another way.
fn without_probes(check: &HealthCheck) -> Option<Definition> {
    let definition = &check.definition;
    let (node, service) = (&definition.alias_node, &definition.alias_service);
    if !node.is_empty() || !service.is_empty() {
        // As Consul's agent has it, which means its own node then.
        let node = if node.is_empty() { &check.node } else { node };
        return Some(Definition::Alias(Aliased {
            node: node.as_str().into(),
            service: service.as_str().into(),
        }));
    }
    // Something that somebody else probes has no silence of its own.
    let is_probed = !definition.shell.is_empty() || !definition.os_service.is_empty();
    let silence = definition.ttl.get();
    (!is_probed && !silence.is_zero()).then_some(Definition::Heartbeat { silence })
}

/// Fields that are set and have no effect on how the check is watched, so that
/// nobody waits for one: another kind goes before theirs, or nobody knows them.
pub(super) fn without_effect(check: &HealthCheck) -> Vec<&str> {
    let definition = &check.definition;
    let unused = |used: &[&str]| -> Vec<&str> {
        let mut names: Vec<&str> = fields::given(definition)
            .filter(|name| !fields::ANY_KIND.contains(name) && !used.contains(name))
            .collect();
        names.extend(definition.extra.keys().map(String::as_str));
        names
    };
    let kind = KINDS
        .iter()
        .find(|kind| (kind.made)(definition, Duration::ZERO).is_some());
    match (kind, without_probes(check)) {
        (Some(kind), _) => unused(kind.fields),
        (None, Some(Definition::Heartbeat { .. })) => unused(&["TTL", "Interval", "Timeout"]),
        (None, Some(_)) => unused(&["AliasNode", "AliasService"]),
        // The check as a whole is reported.
        (None, None) => Vec::new(),
    }
}

fn off(check: &HealthCheck, kind: &'static str, key: &str) -> Probed {
    Probed::Not {
        kind,
        reason: format!(
            "not probed: {kind} checks of the catalog run commands and are off ({key} is not \"all\"), so its status {:?} stays as it was registered",
            check.status
        ),
    }
}

/// How much of an output is kept, in every kind that has one.
fn output_max_size(definition: &CheckDefinition) -> u32 {
    u32::try_from(definition.output_max_size).unwrap_or(u32::MAX)
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
    let (kind, name) = if set(&definition.shell) {
        ("script", "a shell without a command")
    } else if set(&definition.os_service) {
        ("os_service", "a check of an operating system's service")
    } else if check.kind == "ttl" {
        ("ttl", "a TTL check without a TTL")
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
mod table;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::UNSUPPORTED_KINDS;

    const TIMEOUT: Duration = Duration::from_secs(10);

    const OFF: Commands = Commands {
        docker: false,
        scripts: false,
    };

    const ON: Commands = Commands {
        docker: true,
        scripts: true,
    };

    fn as_probe(json: &str) -> evenkeel_probe::Definition {
        match probed(&check(json), TIMEOUT, ON) {
            Probed::As(Definition::Probe(probe)) => (*probe).clone(),
            other => panic!("{json}: {other:?}"),
        }
    }

    // P051, P055, P094, P096
    #[test]
    fn every_field_of_the_other_kinds_reaches_the_probe() {
        let tls = || evenkeel_probe::TlsOptions {
            skip_verify: true,
            server_name: "b.test".into(),
            ..evenkeel_probe::TlsOptions::default()
        };
        let grpc = as_probe(
            r#"{"Definition":{"GRPC":"10.0.0.1:5/a/b","GRPCUseTLS":true,"TLSSkipVerify":true,
                "TLSServerName":"b.test","Timeout":"2s"}}"#,
        );
        let expected = evenkeel_probe::GrpcCheck::new("10.0.0.1:5/a/b").unwrap();
        let expected = expected.with_timeout(Duration::from_secs(2));
        assert_eq!(grpc, expected.clone().with_tls(tls()).unwrap().into());
        let plain = as_probe(r#"{"Definition":{"GRPC":"10.0.0.1:5/a/b","Timeout":"2s"}}"#);
        assert_eq!(plain, expected.into());

        let ping = as_probe(
            r#"{"Definition":{"H2PING":"a:1","H2PingUseTLS":true,"TLSSkipVerify":true,
                "TLSServerName":"b.test"}}"#,
        );
        let expected = evenkeel_probe::H2PingCheck::new("a:1").unwrap();
        let expected = expected.with_timeout(TIMEOUT);
        assert_eq!(ping, expected.clone().with_tls(tls()).unwrap().into());
        for plain in [
            r#"{"Definition":{"H2PING":"a:1","H2PingUseTLS":false}}"#,
            // So a server says the same.
            r#"{"Definition":{"H2PING":"a:1"}}"#,
        ] {
            assert_eq!(as_probe(plain), expected.clone().into(), "{plain}");
        }

        let docker = as_probe(
            r#"{"Definition":{"DockerContainerID":"web","Shell":"/bin/bash","ScriptArgs":["x","y z"],
                "OutputMaxSize":100,"Timeout":"2s"}}"#,
        );
        let expected = evenkeel_probe::DockerCheck::new("web", ["x", "y z"]).unwrap();
        let expected = expected.with_timeout(Duration::from_secs(2));
        assert_eq!(docker, expected.with_output_max_size(100).into());

        let script = as_probe(r#"{"Definition":{"ScriptArgs":["x","y z"],"OutputMaxSize":100}}"#);
        let expected = evenkeel_probe::ScriptCheck::new(["x", "y z"]).unwrap();
        let expected = expected.with_timeout(TIMEOUT).with_output_max_size(100);
        assert_eq!(script, expected.into());
    }

    fn check(json: &str) -> HealthCheck {
        serde_json::from_str(json).unwrap()
    }

    fn probe(check: &HealthCheck) -> std::sync::Arc<evenkeel_probe::Definition> {
        match probed(check, TIMEOUT, OFF) {
            Probed::As(Definition::Probe(probe)) => probe,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_needs_no_probe_is_watched_all_the_same() {
        let heartbeat = check(r#"{"Definition":{"TTL":"30s"}}"#);
        let silence = Duration::from_secs(30);
        assert_eq!(
            probed(&heartbeat, TIMEOUT, OFF),
            Probed::As(Definition::Heartbeat { silence })
        );
        for (json, node, service) in [
            (
                r#"{"Node":"n","Definition":{"AliasService":"s"}}"#,
                "n",
                "s",
            ),
            (r#"{"Node":"n","Definition":{"AliasNode":"m"}}"#, "m", ""),
            (
                r#"{"Definition":{"AliasNode":"m","AliasService":"s"}}"#,
                "m",
                "s",
            ),
        ] {
            let (node, service) = (node.into(), service.into());
            let alias = Definition::Alias(Aliased { node, service });
            assert_eq!(
                probed(&check(json), TIMEOUT, OFF),
                Probed::As(alias),
                "{json}"
            );
        }
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
        let probe_definition = probe(&check);
        let evenkeel_probe::Definition::Http(probe) = &*probe_definition else {
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
            matches!(&*probe(&both), evenkeel_probe::Definition::Http(http)
            if http.timeout() == TIMEOUT)
        );
    }

    // P050
    #[test]
    fn tcp_with_tls_is_not_plain_tcp() {
        let tls = check(r#"{"Definition":{"TCP":"a:1","TCPUseTLS":true}}"#);
        assert!(matches!(&*probe(&tls), evenkeel_probe::Definition::Tcp(tcp)
            if tcp.tls().is_some()));
    }

    #[test]
    fn a_wrong_definition_is_probed_as_faulty() {
        for json in [
            r#"{"Definition":{"HTTP":"10.0.0.1"}}"#,
            r#"{"Definition":{"HTTP":"http://a/","Method":"G T"}}"#,
            r#"{"Definition":{"TCP":"nowhere"}}"#,
        ] {
            assert!(
                matches!(&*probe(&check(json)), evenkeel_probe::Definition::Faulty(_)),
                "{json}"
            );
        }
    }

    // P051
    #[test]
    fn what_is_not_supported_is_named() {
        for (json, expected) in [
            (
                r#"{"Definition":{"DockerContainerID":"c","ScriptArgs":["x"],"Shell":"sh"}}"#,
                "docker",
            ),
            (r#"{"Definition":{"ScriptArgs":["x"]}}"#, "script"),
            (r#"{"Definition":{"OSService":"s"}}"#, "os_service"),
            (r#"{"Type":"ttl"}"#, "ttl"),
            ("{}", "none"),
            (r#"{"Definition":{"Carrier":"pigeon"}}"#, "other"),
        ] {
            let Probed::Not { kind, reason } = probed(&check(json), TIMEOUT, OFF) else {
                panic!("{json} is probed")
            };
            assert_eq!(kind, expected, "{json}");
            assert!(UNSUPPORTED_KINDS.contains(&kind));
            assert!(reason.contains("not probed"), "{reason}");
        }
    }
}
