use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::document::Shape;

/// A configuration read from texts.
#[derive(Default)]
struct Case {
    files: Vec<(&'static str, String)>,
    variables: Vec<(String, String)>,
    flags: Vec<(String, String, String)>,
}

impl Case {
    fn file(mut self, name: &'static str, text: &str) -> Self {
        self.files.push((name, text.to_owned()));
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn flag(mut self, key: &str, value: &str) -> Self {
        let typed = format!("--set {key}");
        self.flags.push((key.to_owned(), value.to_owned(), typed));
        self
    }

    fn load(self) -> Loaded {
        let directory = tempfile::tempdir().unwrap();
        let mut files = Vec::new();
        for (name, text) in self.files {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            files.push(path);
        }
        let inputs = Inputs {
            files,
            directories: Vec::new(),
            flags: self.flags,
        };
        let mut loaded = load(&inputs, &self.variables.into_iter().collect());
        // The directory has another name each time.
        for fault in loaded.faults.iter_mut().chain(&mut loaded.warnings) {
            if let Origin::File(path, _) = &mut fault.origin {
                *path = PathBuf::from(path.file_name().unwrap());
            }
        }
        loaded
    }

    fn faults(self) -> Vec<String> {
        self.load().faults.iter().map(ToString::to_string).collect()
    }
}

fn toml(text: &str) -> Case {
    Case::default().file("c.toml", text)
}

#[test]
fn without_anything_the_defaults_apply_and_nothing_is_watched() {
    let loaded = Case::default().load();
    assert_eq!(loaded.settings, Settings::default());
    assert!(loaded.faults.is_empty() && loaded.warnings.is_empty());
    assert!(loaded.nothing_to_watch);
    assert_eq!(loaded.origin("consul.address"), Origin::Default);
}

#[test]
fn layers_win_in_the_order_that_is_documented() {
    let base = || {
        Case::default()
            .variable("CONSUL_HTTP_ADDR", "one:1")
            .variable("CONSUL_NAMESPACE", "one")
    };
    let files = || {
        base()
            .file(
                "a.toml",
                "[consul]\naddress = \"two:2\"\ndatacenter = \"two\"\n",
            )
            .file(
                "b.json",
                r#"{"consul": {"address": "three:3", "partition": "three"}}"#,
            )
    };
    let ours = || files().variable("EVENKEEL_CONSUL__ADDRESS", "four:4");
    let flags = || ours().flag("consul.address", "five:5");

    assert_eq!(base().load().settings.consul.address, "one:1");
    assert_eq!(files().load().settings.consul.address, "three:3");
    assert_eq!(ours().load().settings.consul.address, "four:4");
    let loaded = flags().load();
    assert_eq!(loaded.faults, []);
    let consul = &loaded.settings.consul;
    assert_eq!(consul.address, "five:5");
    assert_eq!(consul.namespace.as_deref(), Some("one"));
    assert_eq!(consul.datacenter.as_deref(), Some("two"));
    assert_eq!(consul.partition.as_deref(), Some("three"));

    assert_eq!(
        loaded.origin("consul.address").to_string(),
        "--set consul.address"
    );
    assert_eq!(
        loaded.origin("consul.namespace").to_string(),
        "CONSUL_NAMESPACE"
    );
    assert!(
        loaded
            .origin("consul.datacenter")
            .to_string()
            .ends_with("a.toml:3")
    );
    assert!(
        loaded
            .origin("consul.partition")
            .to_string()
            .ends_with("b.json:1")
    );
    assert_eq!(loaded.origin("consul.wait"), Origin::Default);
}

#[test]
fn a_map_is_replaced_and_not_mixed() {
    let case = || toml("[consul.external_node_meta]\nesm = \"yes\"\n");
    let meta = |loaded: &Loaded| -> Vec<String> {
        loaded
            .settings
            .consul
            .external_node_meta
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(meta(&Case::default().load()), ["external-node"]);
    assert_eq!(meta(&case().load()), ["esm"]);
    let over = case().variable("EVENKEEL_CONSUL__EXTERNAL_NODE_META", "a=1, b=2");
    assert_eq!(meta(&over.load()), ["a", "b"]);
}

#[test]
fn the_later_one_of_a_pair_counts() {
    let file = || toml("[consul]\ntoken_file = \"/etc/token\"\n");
    let loaded = file().variable("CONSUL_HTTP_TOKEN", "early").load();
    assert_eq!(loaded.settings.consul.token, None);
    assert!(loaded.settings.consul.token_file.is_some());

    let loaded = file().variable("EVENKEEL_CONSUL__TOKEN", "late").load();
    assert_eq!(loaded.settings.consul.token, Some(Secret::new("late")));
    assert_eq!(loaded.settings.consul.token_file, None);

    let both = toml("[consul]\ntoken = \"x\"\ntoken_file = \"/etc/token\"\n").faults();
    assert_eq!(
        both,
        ["c.toml:2: consul.token: consul.token_file is set as well; only one of them can be used"]
    );
}

#[test]
fn a_secret_of_digits_stays_text_and_is_not_shown() {
    let digits = "0012345678901234567890";
    for case in [
        Case::default().variable("EVENKEEL_CONSUL__TOKEN", digits),
        Case::default().variable("CONSUL_HTTP_TOKEN", digits),
        Case::default().flag("consul.token", digits),
        toml(&format!("consul.token = \"{digits}\"")),
    ] {
        let loaded = case.load();
        assert_eq!(loaded.faults, []);
        assert_eq!(loaded.settings.consul.token, Some(Secret::new(digits)));
        for shown in [
            show_as_text(&loaded),
            show_as_json(&loaded).to_string(),
            format!("{:?}", loaded.settings),
        ] {
            assert!(!shown.contains(digits), "{shown}");
        }
        assert!(show_as_text(&loaded).contains(&format!("consul.token = \"{}\"", text::MASK)));
    }
    let wrong = toml("consul.token = 987654321\n").faults();
    assert_eq!(
        wrong,
        ["c.toml:1: consul.token: expected text, found a whole number"]
    );
}

#[test]
fn the_catalog_is_the_one_that_is_configured() {
    let kind = |case: Case| {
        let loaded = case.load();
        assert_eq!(loaded.faults, []);
        loaded.settings.catalog
    };
    let file = "file.path = \"/c.toml\"\n";
    assert_eq!(kind(toml(file)), Some(CatalogKind::File));
    assert_eq!(
        kind(toml("[consul]\nstale = true\n")),
        Some(CatalogKind::Consul)
    );
    assert_eq!(kind(toml("[consul]\n")), None);
    let both = toml(file).variable("CONSUL_HTTP_ADDR", "a:1");
    assert_eq!(kind(both), Some(CatalogKind::File));
    let both = toml(file).variable("EVENKEEL_CONSUL__ADDRESS", "a:1");
    assert_eq!(kind(both), Some(CatalogKind::Consul));
    let said = toml("catalog = \"consul\"\nfile.path = \"/c.toml\"\nconsul.stale = true");
    assert_eq!(kind(said), Some(CatalogKind::Consul));

    let undecided = toml("file.path = \"/c.toml\"\nconsul.stale = true\n").faults();
    assert_eq!(
        undecided,
        [
            "c.toml:1: file.path: [consul] is configured as well: say catalog = \"consul\" or \"file\""
        ]
    );
    assert_eq!(
        toml("catalog = \"file\"\n").faults(),
        ["file.path: missing, and catalog is \"file\""]
    );
}

#[test]
fn top_level_thresholds_are_aliases() {
    for case in [
        toml("critical_threshold = 3\npassing_threshold = 1\n"),
        Case::default().file(
            "c.json",
            r#"{"critical_threshold": 3, "passing_threshold": 1}"#,
        ),
        Case::default()
            .variable("EVENKEEL_CRITICAL_THRESHOLD", "3")
            .variable("EVENKEEL_PASSING_THRESHOLD", "1"),
    ] {
        let loaded = case.load();
        assert_eq!(loaded.faults, []);
        assert_eq!(
            loaded.settings.threshold.get("critical_threshold"),
            Some("3")
        );
        assert_eq!(
            loaded.settings.threshold.get("passing_threshold"),
            Some("1")
        );
    }
    assert_eq!(
        toml("critical_threshold = 3\n[threshold]\ncritical_threshold = 3\n").faults(),
        [
            "c.toml:1: critical_threshold: threshold.critical_threshold is set as well, and they are \
          the same"
        ]
    );
}

// P057
#[test]
fn consul_esms_ping_type_is_an_alias_with_its_own_words() {
    for (word, sockets) in [
        ("udp", IcmpSockets::Datagram),
        ("socket", IcmpSockets::Raw),
        ("datagram", IcmpSockets::Datagram),
        ("auto", IcmpSockets::Auto),
    ] {
        for case in [
            toml(&format!("ping_type = \"{word}\"\n")),
            Case::default().file("c.json", &format!("{{\"ping_type\": \"{word}\"}}")),
            Case::default().variable("EVENKEEL_PING_TYPE", word),
        ] {
            let loaded = case.load();
            assert_eq!(loaded.faults, []);
            assert_eq!(loaded.settings.probe.icmp, sockets, "{word}");
        }
    }
    assert_eq!(
        toml("ping_type = \"icmp\"\n[probe]\nhold_addresses = \"2h\"\n").faults(),
        ["c.toml:1: probe.icmp: \"icmp\" is none of auto, raw, datagram"]
    );
    let faults = toml("[probe]\nicmp = \"udp\"\nhold_addresses = \"25h\"\n").faults();
    let keys: Vec<_> = faults
        .iter()
        .filter_map(|fault| fault.split(": ").nth(1))
        .collect();
    assert_eq!(keys, ["probe.icmp", "probe.hold_addresses"], "{faults:?}");
}

/// One file with a fault of each kind: all are told at once (P070).
#[test]
fn every_fault_is_told_at_once_with_its_place() {
    let text = r#"http_addr = "127.0.0.1:8500"
adress = "x"
log_json = true
consul = { adress = "a:1", wait = "20m", token = 5, external_node_meta = {}, cert_file = "/c" }
threshold = { failures_before_critical = 3, failures_before_warning = 5 }
override = [
  { critical_threshold = 1 },
  { node = "" , critical_threshold = 1 },
  { node = "x", critical_threshold = 1, failures_before_critical = 1 },
  { node = "x" },
]

[probe]
allow = ["10.0.0.0/8", "10.0.0.0/99"]
max_concurrent = 0
default_timeout = 10

[admin]
listen = ["0.0.0.0:80", "unix:relative"]
mode = "rwx"

[log]
format = "jsno"
level = "info,,="

[events]
rotate_size = "1B"

[write]
batch_size = 65

[run]
snapshot_period = "1m"
"#;
    let faults = toml(text)
        .variable("EVENKEEL_CONSUL_ADDRESS", "a:1")
        .variable("EVENKEEL_WRITE__BATCH_SIZE", "many")
        .variable("CONSUL_HTTP_SSL", "maybe")
        .flag("consul.addres", "a:1")
        .faults();
    let expected = [
        "CONSUL_HTTP_SSL: expected true or false",
        "EVENKEEL_CONSUL_ADDRESS: no setting; did you mean EVENKEEL_CONSUL__ADDRESS?",
        "EVENKEEL_WRITE__BATCH_SIZE: expected a whole number",
        "--set consul.addres: consul.addres: unknown key; did you mean consul.address?",
        "c.toml:1: http_addr: unknown key; did you mean consul.address?",
        "c.toml:2: adress: unknown key",
        "c.toml:3: log_json: unknown key; did you mean log.format = \"json\"?",
        "c.toml:4: consul.adress: unknown key; did you mean consul.address?",
        "c.toml:4: consul.token: expected text, found a whole number",
        "c.toml:8: override[1].node: a pattern must not be empty: write \"*\" for any name",
        "c.toml:14: probe.allow[1]: `10.0.0.0/99` is not an address range such as \"10.0.0.0/8\" or \"fd00::/8\"",
        "c.toml:15: probe.max_concurrent: 0 is less than 1",
        "c.toml:16: probe.default_timeout: expected a duration such as \"10s\", found a whole number",
        "c.toml:19: admin.listen[1]: `unix:relative`: the socket's path must be absolute",
        "c.toml:20: admin.mode: `rwx` is not a file mode in octal such as \"0660\"",
        "c.toml:23: log.format: \"jsno\" is none of text, json; did you mean \"json\"?",
        "c.toml:30: write.batch_size: 65 is more than 64",
        "c.toml:4: consul.external_node_meta: must not be empty: every node of the catalog would count as external",
        "c.toml:4: consul.cert_file: needs consul.key_file",
        "c.toml:4: consul.wait: 20m is more than 10m",
        "c.toml:5: threshold.failures_before_warning: failures-before-warning 5 ([threshold]) must not be more than failures-before-critical 3 ([threshold])",
        "c.toml:7: override[0]: has none of node, service and check; for all checks write node = \"*\"",
        "c.toml:8: override[1]: has none of node, service and check; for all checks write node = \"*\"",
        "c.toml:9: override[2].strategy: no strategy has all of critical-threshold and failures-before-critical",
        "c.toml:10: override[3]: sets nothing",
        "c.toml:33: run.snapshot_period: 1m is more than 10s",
        "c.toml:19: admin.listen: 0.0.0.0:80 is not loopback: set admin.token or admin.token_file, without which anybody who reaches it could change state",
        "c.toml:27: events.rotate_size: less than 4KiB, which is a few events",
    ];
    for fault in expected {
        assert!(
            faults.iter().any(|found| found == fault),
            "{fault}\n{faults:#?}"
        );
    }
    let others: Vec<&String> = faults
        .iter()
        .filter(|fault| !expected.contains(&fault.as_str()))
        .collect();
    assert_eq!(others.len(), 1, "{others:#?}");
    assert!(
        others[0].starts_with("c.toml:24: log.level: \"info,,=\" is no level"),
        "{others:?}"
    );
}

#[test]
fn days_of_certificates_that_would_never_warn_are_a_fault() {
    let faults = |critical: u32| {
        let days =
            format!("certificate_warning_days = 7\ncertificate_critical_days = {critical}\n");
        toml(&format!("file.path = \"checks.toml\"\n[probe]\n{days}")).faults()
    };
    assert_eq!(faults(7), [""; 0]);
    assert_eq!(
        faults(8),
        [
            "c.toml:4: probe.certificate_critical_days: is above certificate_warning_days, so that a \
          warning would never come"
        ]
    );
}

#[test]
fn all_syntax_faults_of_all_files_are_told() {
    let case = Case::default()
        .file("a.toml", "x = \n[log]\nformat = \"json\"\nlevel = 3 3\n")
        .file("b.json", "{\"log\" : {\"format\": \"json\"},,}")
        .file("c.hcl", "log_level = \"INFO\"");
    let loaded = case.load();
    // P068: the faults have to be told in the form that the damaged files ask for.
    assert_eq!(loaded.settings.log.format, LogFormat::Json);
    let faults: Vec<String> = loaded.faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults.len(), 4, "{faults:#?}");
    assert!(faults[0].starts_with("a.toml:1: "), "{faults:?}");
    assert!(faults[1].starts_with("a.toml:4: "), "{faults:?}");
    assert!(faults[2].starts_with("b.json:1: "), "{faults:?}");
    assert!(
        faults[3].starts_with("c.hcl: HCL is not read yet"),
        "{faults:?}"
    );
}

#[test]
fn a_file_that_is_not_there_or_too_large_is_a_fault() {
    let inputs = Inputs {
        files: vec![PathBuf::from("/nowhere/c.toml")],
        directories: vec![PathBuf::from("/nowhere/else")],
        flags: Vec::new(),
    };
    let faults = load(&inputs, &Environment::default()).faults;
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults.iter().any(|fault| {
        fault
            .to_string()
            .starts_with("/nowhere/c.toml: cannot be read")
    }));
    assert!(faults.iter().any(|fault| {
        fault
            .to_string()
            .starts_with("/nowhere/else: cannot be read")
    }));

    let large = toml(&format!("# {}", "x".repeat(1 << 20))).faults();
    assert_eq!(large, ["c.toml: larger than 1MiB"]);
}

#[test]
fn a_directory_is_read_by_name_and_only_what_is_ours() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write(
        "10.toml",
        "[consul]\ndatacenter = \"a\"\nnamespace = \"a\"\n",
    );
    write("20.json", r#"{"consul": {"datacenter": "b"}}"#);
    write("30.toml~", "broken");
    write("README", "broken");
    std::fs::create_dir(directory.path().join("sub.toml")).unwrap();
    for (inputs, environment) in [
        (
            Inputs {
                directories: vec![directory.path().to_owned()],
                ..Inputs::default()
            },
            Environment::default(),
        ),
        (
            Inputs::default(),
            Environment::from_iter([(
                "EVENKEEL_CONFIG_DIR".to_owned(),
                directory.path().to_str().unwrap().to_owned(),
            )]),
        ),
    ] {
        let loaded = load(&inputs, &environment);
        assert_eq!(loaded.faults, []);
        assert_eq!(loaded.settings.consul.datacenter.as_deref(), Some("b"));
        assert_eq!(loaded.settings.consul.namespace.as_deref(), Some("a"));
    }
}

#[test]
fn variables_that_are_not_for_us_are_passed_over() {
    let case = Case::default()
        // What Kubernetes sets for a service of that name.
        .variable("EVENKEEL_SERVICE_HOST", "10.0.0.1")
        .variable("EVENKEEL_SERVICE_PORT", "80")
        .variable("EVENKEEL_SERVICE_PORT_ADMIN", "80")
        .variable("EVENKEEL_PORT", "tcp://10.0.0.1:80")
        .variable("EVENKEEL_PORT_80_TCP_ADDR", "10.0.0.1")
        .variable("EVENKEEL_CONSUL", "/usr/bin/consul")
        .variable("EVENKEEL_LOG__LEVEL", "")
        .variable("CONSUL_HTTP_ADDR", "");
    let loaded = case.load();
    assert_eq!(loaded.faults, []);
    assert_eq!(loaded.settings, Settings::default());
    let wrong = Case::default().variable("EVENKEEL_PORT_X", "1").faults();
    assert_eq!(wrong.len(), 1);
}

#[test]
fn consuls_variables_mean_what_they_mean_to_consul() {
    let loaded = Case::default()
        .variable("CONSUL_HTTP_SSL", "1")
        .variable("CONSUL_HTTP_SSL_VERIFY", "false")
        .variable("CONSUL_HTTP_AUTH", "user:password")
        .variable("CONSUL_CACERT", "/ca")
        .variable("CONSUL_CLIENT_CERT", "/cert")
        .variable("CONSUL_CLIENT_KEY", "/key")
        .variable("CONSUL_TLS_SERVER_NAME", "name")
        .variable("CONSUL_PARTITION", "part")
        .load();
    assert_eq!(loaded.faults, []);
    let consul = loaded.settings.consul;
    assert!(consul.tls && consul.tls_skip_verify);
    assert_eq!(consul.http_auth, Some(Secret::new("user:password")));
    assert_eq!(consul.ca_file, Some(PathBuf::from("/ca")));
    assert_eq!(consul.cert_file, Some(PathBuf::from("/cert")));
    assert_eq!(consul.key_file, Some(PathBuf::from("/key")));
    assert_eq!(consul.tls_server_name.as_deref(), Some("name"));
    assert_eq!(consul.partition.as_deref(), Some("part"));
    // All that the client knows, so that none is forgotten here.
    for name in evenkeel_consul::config::VARIABLES {
        let value = if name.contains("SSL") { "false" } else { "a:1" };
        let loaded = Case::default().variable(name, value).load();
        let named = super::names::keys(&Shape::of::<Settings>())
            .iter()
            .filter(|key| loaded.origin(key).to_string() == name)
            .count();
        assert_eq!(named, 1, "{name}");
    }
}

#[test]
fn systemds_directories_are_used() {
    let environment: Environment = [
        ("STATE_DIRECTORY", "/var/lib/evenkeel:/var/lib/other"),
        ("RUNTIME_DIRECTORY", "/run/evenkeel"),
        ("XDG_RUNTIME_DIR", "/run/user/1000"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    let loaded = load(&Inputs::default(), &environment);
    assert_eq!(
        loaded.settings.state_dir,
        Some(PathBuf::from("/var/lib/evenkeel"))
    );
    assert!(loaded.nothing_to_watch);
    assert_eq!(
        default_sockets(&environment),
        [
            PathBuf::from("/run/evenkeel/admin.sock"),
            PathBuf::from("/run/user/1000/evenkeel/admin.sock")
        ]
    );
}

// P113
#[test]
fn a_timeout_above_the_interval_is_a_warning() {
    let loaded = toml("[probe]\ndefault_timeout = \"40s\"\n").load();
    assert_eq!(loaded.faults, []);
    assert_eq!(
        loaded.warnings[0].to_string(),
        "c.toml:2: probe.default_timeout: 40s is longer than schedule.default_interval (30s): a \
         hanging target is probed less often"
    );
}

#[test]
fn a_list_comes_from_a_variable_in_either_form() {
    for text in ["10.0.0.0/8, fd00::/8", "[\"10.0.0.0/8\", \"fd00::/8\"]"] {
        let loaded = Case::default()
            .variable("EVENKEEL_PROBE__ALLOW", text)
            .load();
        assert_eq!(loaded.faults, [], "{text}");
        assert_eq!(loaded.settings.probe.allow.len(), 2, "{text}");
    }
    for text in [
        "[{node = \"db-*\", critical_threshold = 3}]",
        "[{\"node\": \"db-*\", \"critical_threshold\": 3}]",
    ] {
        let loaded = Case::default().variable("EVENKEEL_OVERRIDE", text).load();
        assert_eq!(loaded.faults, [], "{text}");
        assert_eq!(
            loaded.settings.overrides[0]
                .thresholds
                .get("critical_threshold"),
            Some("3")
        );
    }
    let wrong = Case::default()
        .variable("EVENKEEL_OVERRIDE", "node=x")
        .faults();
    assert_eq!(wrong.len(), 1, "{wrong:?}");
}

/// For each key a value that is valid and is not the default.
fn other_value(key: &str, shape: &Shape) -> serde_json::Value {
    let is_on = |key: &str| {
        serde_json::to_value(Settings::default())
            .unwrap()
            .pointer(&format!("/{}", key.replace('.', "/")))
            == Some(&serde_json::Value::Bool(true))
    };
    match shape {
        Shape::Text(format) => match format.as_deref() {
            Some("duration-text") => "7s".into(),
            Some("byte-size") => "7MiB".into(),
            Some("file-mode") => "0600".into(),
            Some("secret") => "user:12345".into(),
            _ if key == "log.level" => "debug".into(),
            _ => "other:7".into(),
        },
        Shape::Choice(words) => words[words.len() - 1].clone().into(),
        Shape::Integer(..) => 7.into(),
        Shape::Number(_) => 0.5.into(),
        Shape::Boolean => (!is_on(key)).into(),
        Shape::Map(_) => serde_json::json!({ "other": "7" }),
        Shape::List(inner) => match &**inner {
            Shape::Table(_) => serde_json::json!([{ "node": "x", "critical_threshold": 7 }]),
            Shape::Text(format) if format.as_deref() == Some("network") => {
                serde_json::json!(["10.7.0.0/16"])
            }
            Shape::Text(_) => serde_json::json!(["127.0.0.1:7"]),
            other => panic!("{key}: {other:?}"),
        },
        Shape::Table(_) | Shape::Texts | Shape::TextOr(_) | Shape::Any => {
            panic!("{key}: {shape:?}")
        }
    }
}

// P069
#[test]
fn every_documented_key_changes_the_effective_configuration_from_every_layer() {
    let shape = Shape::of::<Settings>();
    let keys = super::names::keys(&shape);
    assert!(keys.len() > 50, "{keys:?}");
    let defaults = show(&Case::default().load());
    for key in &keys {
        let path: Vec<&str> = key.split('.').collect();
        let value = other_value(key, shape.find(&path).unwrap());
        let nested = path.iter().rev().fold(
            value.clone(),
            |inner, step| serde_json::json!({ *step: inner }),
        );
        let as_toml: toml::Table = serde_json::from_value(nested.clone()).unwrap();
        let text = match &value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let variable = format!("EVENKEEL_{}", key.replace('.', "__").to_uppercase());
        for case in [
            toml(&as_toml.to_string()),
            Case::default().file("c.json", &nested.to_string()),
            Case::default().variable(&variable, &text),
            Case::default().flag(key, &text),
        ] {
            let loaded = case.load();
            // The catalog "file" wants a path, a certificate its key, a count
            // of warnings one of failures, and some counts a strategy.
            let incomplete = [
                "needs ",
                "missing",
                "could each be meant",
                // Does not go with a default.
                "(default)",
            ];
            let fault = loaded
                .faults
                .iter()
                .find(|fault| !incomplete.iter().any(|part| fault.text.contains(part)));
            assert_eq!(fault, None, "{key}");
            for (shown, default) in show(&loaded).iter().zip(&defaults) {
                if shown.key == *key {
                    assert_ne!(shown.value, default.value, "{key}");
                    assert_ne!(shown.origin, Origin::Default, "{key}");
                } else if shown.key != "catalog" {
                    // The catalog follows from what is configured.
                    assert_eq!(shown.value, default.value, "{key} changes {}", shown.key);
                }
            }
        }
    }
}

#[test]
fn the_example_is_complete_and_says_what_the_defaults_are() {
    let text = example();
    let loaded = toml(&text).load();
    assert_eq!(loaded.faults, []);
    assert_eq!(loaded.settings, Settings::default());

    // What is commented out, in two files: the defaults, and the examples.
    let mut with_defaults = String::new();
    let mut with_examples = String::new();
    let mut is_example = false;
    let mut is_override = false;
    for line in text.lines() {
        let setting = line
            .strip_prefix('#')
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '['));
        match setting {
            Some(setting) => {
                is_override |= setting == "[[override]]";
                let file = match is_example || is_override {
                    true => &mut with_examples,
                    false => &mut with_defaults,
                };
                file.push_str(&format!("{setting}\n"));
                is_example = false;
            }
            None => {
                assert!(line.chars().count() <= 78, "{line}");
                is_example = line == "# For example:";
                is_override &= !line.starts_with('[');
                with_defaults.push_str(&format!("{line}\n"));
                with_examples.push_str(&format!("{line}\n"));
            }
        }
    }
    let loaded = toml(&with_defaults).load();
    let faults: Vec<String> = loaded.faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults, [""; 0], "{with_defaults}");
    let expected = Settings {
        catalog: Some(CatalogKind::Consul), // since [consul] is written out
        ..Settings::default()
    };
    assert_eq!(loaded.settings, expected, "{with_defaults}");

    // Every key is there, with its explanation, and the examples are of the
    // right type.
    for key in super::names::keys(&Shape::of::<Settings>()) {
        let name = key.rsplit('.').next().unwrap();
        let there =
            text.contains(&format!("\n#{name} = ")) || text.contains(&format!("\n#[[{name}]]"));
        assert!(there, "{key}");
    }
    let types: Vec<String> = toml(&with_examples)
        .faults()
        .into_iter()
        .filter(|fault| fault.contains("expected ") || fault.contains("unknown"))
        .collect();
    assert_eq!(types, [""; 0], "{with_examples}");
}

#[test]
fn what_is_shown_reads_back_as_the_same() {
    let loaded = toml(
        "[probe]\nallow = [\"10.0.0.0/8\"]\n[[override]]\nnode = \"a*\"\ncritical_threshold = 1\n",
    )
    .load();
    let shown = show_as_text(&loaded);
    let again = toml(&shown).load();
    assert_eq!(again.faults, []);
    assert_eq!(
        Settings {
            catalog: None,
            ..again.settings
        },
        loaded.settings
    );
}

#[test]
fn the_schema_describes_every_key_and_refuses_others() {
    let schema = crate::document::schema::<Settings>();
    assert_eq!(schema["additionalProperties"], false);
    fn walk(shape: &Shape, path: &str) {
        match shape {
            Shape::Table(fields) => {
                for field in fields {
                    let path = format!("{path}.{}", field.name);
                    assert!(!field.description.is_empty(), "{path} is not described");
                    walk(&field.shape, &path);
                }
            }
            Shape::List(inner) | Shape::Map(inner) => walk(inner, path),
            Shape::Any => panic!("{path} may be anything"),
            _ => {}
        }
    }
    walk(&Shape::of::<Settings>(), "");
}

#[test]
fn no_setting_lasts_longer_than_its_bounds() {
    for (key, value, ok) in [
        ("run.snapshot_period", "10s", true),
        ("run.snapshot_period", "10001ms", false),
        ("schedule.minimum_interval", "9ms", false),
        ("schedule.default_interval", "500ms", false),
        ("consul.wait", "500ms", false),
        ("write.output_period", "25h", false),
        ("consul.address", "http://user:hunter2@host", false),
        ("consul.http_auth", "nobody", false),
        (
            "admin.listen",
            "[::1]:80,127.1.2.3:80,[::ffff:127.0.0.1]:80",
            true,
        ),
        ("admin.listen", "[::]:80", false),
        ("admin.token", " ", false),
        ("log.level", "evenkeel::catalog=debug,info", true),
    ] {
        let faults = Case::default().flag(key, value).faults();
        assert_eq!(faults.is_empty(), ok, "{key} = {value}: {faults:?}");
        assert!(!format!("{faults:?}").contains("hunter2"), "{faults:?}");
    }
    assert_eq!(
        Settings::default().write.batch_gap,
        Duration::from_millis(100)
    );
}

proptest! {
    #[test]
    fn garbage_never_panics(
        text in "([a-z_]{1,12}|consul|threshold|override|admin|\\[|\\]|=|\"|\\{|\\}|[0-9]{1,3}|\n|,|\\.|\\PC){0,60}",
        variable in "(CONSUL|LOG|OVERRIDE|PROBE)__?[A-Z_]{0,12}",
        value in "\\PC{0,20}",
    ) {
        Case::default()
            .file("a.toml", &text)
            .file("b.json", &text)
            .variable(&format!("EVENKEEL_{variable}"), &value)
            .flag(&variable.to_lowercase(), &value)
            .load();
    }
}

#[test]
fn variables_that_are_not_text_are_faults_if_they_are_for_us() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    let broken = || OsString::from_vec(b"a\xff".to_vec());
    let environment = Environment::from_os([
        ("CONSUL_HTTP_TOKEN".into(), broken()),
        ("EVENKEEL_CONSUL__ADDRESS".into(), broken()),
        (OsString::from_vec(b"EVENKEEL_\xff".to_vec()), "1".into()),
        // Not for us.
        ("PS1".into(), broken()),
        (broken(), "1".into()),
    ]);
    let faults = load(&Inputs::default(), &environment).faults;
    let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "CONSUL_HTTP_TOKEN: is not UTF-8",
            "EVENKEEL_CONSUL__ADDRESS: is not UTF-8",
            "EVENKEEL_\u{fffd}: is not UTF-8",
        ]
    );
}

#[test]
fn a_wrong_value_for_a_table_is_told_whatever_is_set_in_it_later() {
    let case = Case::default().flag("consul", "5");
    let faults = case.flag("consul.address", "h:1").faults();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].contains("expected a table"), "{faults:?}");
    let case = Case::default().flag("consul", "{ datacenter = \"a\" }");
    let loaded = case.flag("consul.address", "h:1").load();
    assert_eq!(loaded.faults, []);
    assert_eq!(loaded.settings.consul.datacenter.as_deref(), Some("a"));
}
