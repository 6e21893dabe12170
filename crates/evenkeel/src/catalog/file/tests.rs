use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_probe::{Definition, HttpVersion};
use evenkeel_threshold::{AnyStrategy, FirstResult, Leaky, Status};
use proptest::prelude::*;
use tokio::sync::{mpsc, watch};

use super::settle::{Look, Quiet, Settling};
use super::*;
use crate::catalog::{CatalogMessage, CatalogView};
use crate::config::Settings;
use crate::document::Format;
use crate::exit::Exit;
use crate::thresholds::Resolver;

fn checks(text: &str) -> Vec<Entry> {
    let parsed = parse(text.as_bytes(), Format::Toml).unwrap_or_else(|faults| panic!("{faults:?}"));
    parsed.checks.into_iter().map(|(_, entry)| entry).collect()
}

fn faults(text: &str, format: Format) -> Vec<String> {
    let faults = parse(text.as_bytes(), format).expect_err("it has faults");
    faults.iter().map(ToString::to_string).collect()
}

fn to_view(text: &str, settings: &Settings) -> (CatalogView, Vec<FileFault>) {
    let parsed = parse(text.as_bytes(), Format::Toml).unwrap();
    view(
        &parsed,
        settings.probe.default_timeout,
        &mut Resolver::new(settings),
    )
}

#[test]
fn a_check_needs_a_name_and_a_target() {
    let text = "[[check]]\nname = \"a\"\nhttp = \"http://127.0.0.1/\"\n";
    let (view, faults) = to_view(text, &Settings::default());
    assert_eq!(faults, []);
    let check = &view.checks[0].check;
    assert_eq!(check.id.to_string(), "file//a");
    assert_eq!(check.status, Status::Critical);
    assert_eq!(check.first_result, FirstResult::Counted);
    assert_eq!(check.interval, Duration::ZERO);
    assert_eq!(check.timeout, Duration::from_secs(10));
    assert_eq!(*check.strategy, AnyStrategy::from(Leaky::new(0, 0)));
}

#[test]
fn every_key_reaches_the_probe() {
    let text = r#"
[[check]]
node = "web-1"
service = "shop"
id = "shop-http"
name = "shop answers"
http = "https://shop.example/health"
method = "POST"
headers = { Host = "other.example", X-Tag = ["a", "b"] }
body = "ping"
follow_redirects = false
output_max_size = 512
interval = "5s"
timeout = "2s"
initial_status = "passing"
notes = "[evenkeel passing-threshold=2]"
critical_threshold = 3
tls = { skip_verify = true, server_name = "name.example", ca_file = "/ca", cert_file = "/c", key_file = "/k" }

[[check]]
name = "db"
tcp = "db.example:5432"
tls = {}

[[check]]
name = "plain"
tcp = "[::1]:53"
"#;
    let (view, faults) = to_view(text, &Settings::default());
    assert_eq!(faults, []);
    let check = &view.checks[0].check;
    assert_eq!(check.id.to_string(), "web-1/shop/shop-http");
    assert_eq!(
        (check.interval, check.timeout),
        (Duration::from_secs(5), Duration::from_secs(2))
    );
    assert_eq!(check.status, Status::Passing);
    assert_eq!(*check.strategy, AnyStrategy::from(Leaky::new(3, 2)));
    let Some(Definition::Http(http)) = check.definition.probe() else {
        panic!("{:?}", check.definition)
    };
    assert_eq!(http.url(), "https://shop.example/health");
    assert_eq!((http.method(), http.body()), ("POST", b"ping".as_slice()));
    let headers: Vec<_> = http
        .headers()
        .map(|(name, value)| (name.to_lowercase(), value))
        .collect();
    assert_eq!(
        headers,
        [
            ("host".to_owned(), "other.example"),
            ("x-tag".to_owned(), "a"),
            ("x-tag".to_owned(), "b")
        ]
    );
    assert!(!http.follow_redirects());
    assert_eq!(
        (http.output_max_size(), http.timeout()),
        (512, Duration::from_secs(2))
    );
    assert!(http.tls().skip_verify);
    assert_eq!(http.tls().server_name, "name.example");
    assert_eq!(http.tls().ca_file, Path::new("/ca"));
    assert_eq!(http.tls().key_file, Path::new("/k"));
    let tls: Vec<bool> = view.checks[1..]
        .iter()
        .map(|watched| match watched.check.definition.probe() {
            Some(Definition::Tcp(tcp)) => tcp.tls().is_some(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(tls, [true, false]);
}

#[test]
fn how_a_target_is_connected_to_reaches_the_probe_or_is_a_fault() {
    let text = r#"
[[check]]
name = "http"
http = "http://a.example/"
connect = { family = "4", source = "10.0.0.1" }

[[check]]
name = "tcp"
tcp = "a.example:1"
connect = { family = "6" }

[[check]]
name = "udp"
udp = "a.example:1"
connect = { family = "both" }

[[check]]
name = "dns"
dns = { server = "a.example", name = "a" }
connect = { source = "::1" }

[[check]]
name = "icmp"
icmp = "a.example"
connect = { family = "6" }

[[check]]
name = "grpc"
grpc = "a.example:1"
connect = { family = "any" }

[[check]]
name = "h2ping"
h2ping = "a.example:1"
connect = { family = "4" }

[[check]]
name = "handshake"
handshake = "a.example:1"
connect = { source = "10.0.0.1" }
"#;
    let (view, faults) = to_view(text, &Settings::default());
    assert_eq!(faults, []);
    let told: Vec<String> = view
        .checks
        .iter()
        .map(|watched| {
            let options = match watched.check.definition.probe() {
                Some(Definition::Http(check)) => check.connect(),
                Some(Definition::Tcp(check)) => check.connect(),
                Some(Definition::Udp(check)) => check.connect(),
                Some(Definition::Dns(check)) => check.connect(),
                Some(Definition::Icmp(check)) => check.connect(),
                Some(Definition::Grpc(check)) => check.connect(),
                Some(Definition::H2Ping(check)) => check.connect(),
                Some(Definition::Tls(check)) => check.connect(),
                other => panic!("{other:?}"),
            };
            format!("{:?} {:?}", options.family, options.source)
        })
        .collect();
    let expected = [
        "V4 Some(10.0.0.1)",
        "V6 None",
        "Both None",
        "Any Some(::1)",
        "V6 None",
        "Any None",
        "V4 None",
        "Any Some(10.0.0.1)",
    ];
    assert_eq!(told, expected);

    let text = r#"
[[check]]
name = "http"
http = "http://10.0.0.1/"
connect = { family = "6" }

[[check]]
name = "tcp"
tcp = "a.example:1"
connect = { family = "4", source = "::1" }

[[check]]
name = "udp"
udp = "a.example:1"
connect = { family = "5" }

[[check]]
name = "dns"
dns = { server = "a.example", name = "a" }
connect = { source = "eth0" }

[[check]]
name = "icmp"
icmp = "a.example"
connect = { source = "10.0.0.1" }

[[check]]
name = "script"
script = { command = ["true"] }
connect = { family = "6" }
"#;
    let found = self::faults(text, Format::Toml);
    let expected = [
        "line 5: check \"http\": connect: family: the target 10.0.0.1 is an IPv4 address",
        "line 10: check \"tcp\": connect: source: ::1 is an IPv6 address, which the family excludes",
        "line 15: check \"udp\": connect.family: ",
        "line 19: check \"dns\": dns: source: \"eth0\" is no IP address",
        "line 24: check \"icmp\": icmp: source: cannot be chosen for ICMP",
        "line 30: check \"script\": connect: script has no use for it",
    ];
    for fault in expected {
        assert!(
            found.iter().any(|found| found.starts_with(fault)),
            "{fault}\n{found:#?}"
        );
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

// P088
#[test]
fn the_way_of_a_request_reaches_the_probe_or_is_a_fault() {
    let check = |rest: &str| format!("[[check]]\nname = \"a\"\nhttp = \"http://h/\"\n{rest}\n");
    let text = check(
        r#"redirects = { max = 3, same_host_only = true }
transport = { version = "negotiated", unix_socket = "/run/a", reuse = true }
credentials = { user = "me", password_file = "/run/p" }"#,
    );
    let (view, faults) = to_view(&text, &Settings::default());
    assert_eq!(faults, []);
    let Some(Definition::Http(http)) = view.checks[0].check.definition.probe() else {
        panic!("not HTTP")
    };
    let redirects = http.redirects().unwrap();
    assert_eq!((redirects.max, redirects.same_host_only), (3, true));
    assert!(!redirects.allow_downgrade);
    let transport = http.transport().unwrap();
    assert_eq!(transport.version, HttpVersion::Negotiated);
    assert_eq!(transport.unix_socket.as_deref(), Some(Path::new("/run/a")));
    assert!(transport.reuse);
    assert_eq!(http.credentials().unwrap().file(), Path::new("/run/p"));

    for (rest, key, says) in [
        (
            "transport = { version = \"3\" }",
            "transport.version",
            "negotiated",
        ),
        (
            "transport = { proxy = \"https://p/\" }",
            "transport",
            "without TLS",
        ),
        (
            "transport = { proxy = \"http://p/x\" }",
            "transport",
            "no path",
        ),
        (
            "transport = { proxy = \"http://p/\", unix_socket = \"/s\" }",
            "transport",
            "together",
        ),
        (
            "transport = { version = \"2\", reuse = true }",
            "transport",
            "HTTP/1.1 only",
        ),
        (
            "credentials = { user = \"me\" }",
            "credentials",
            "user and password_file",
        ),
        (
            "credentials = { header = \"a b\", value_file = \"/f\" }",
            "credentials",
            "header field name",
        ),
        ("redirects = { max = -1 }", "redirects.max", ""),
        ("credential = { }", "credential", "credentials"),
    ] {
        let faults = parse(check(rest).as_bytes(), Format::Toml).expect_err(rest);
        assert_eq!(faults.len(), 1, "{rest}: {faults:?}");
        assert_eq!(faults[0].key, key, "{faults:?}");
        assert!(faults[0].text.contains(says), "{faults:?}");
    }
}

#[test]
fn faults_of_tls_and_of_connecting_are_told_at_once_and_where_they_stand() {
    for kind in [
        "tcp = \"10.0.0.1:1\"",
        "handshake = \"10.0.0.1:1\"",
        "grpc = \"10.0.0.1:1\"",
        "h2ping = \"10.0.0.1:1\"",
    ] {
        let check = format!(
            "[[check]]\nname = \"a\"\n{kind}\nconnect = {{ family = \"6\" }}\ntls = {{ server_name = \"a b\" }}\n"
        );
        let told = faults(&check, Format::Toml);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].contains("connect: ") && told[0].contains("10.0.0.1"),
            "{told:?}"
        );
        assert!(
            told[1].contains("tls: ") && told[1].contains("\"a b\""),
            "{told:?}"
        );
    }
}

#[test]
fn a_dialogue_over_tcp_reaches_the_probe_or_is_a_fault() {
    let check =
        |keys: &str| format!("[[check]]\nname = \"a\"\ntcp = {{ address = \"h:1\", {keys} }}\n");
    for (keys, steps) in [
        (
            r#"send = "PING\r\n", expect = "+PONG", abortive_close = true"#,
            1,
        ),
        (
            r#"abortive_close = true, steps = [{ expect_regex = "^220 " }, { send = "QUIT\r\n" }]"#,
            2,
        ),
    ] {
        let (view, faults) = to_view(&check(keys), &Settings::default());
        assert_eq!(faults, []);
        let Some(Definition::Tcp(tcp)) = view.checks[0].check.definition.probe() else {
            panic!("not TCP")
        };
        assert_eq!(tcp.dialogue().len(), steps);
        assert!(tcp.abortive_close());
    }
    for (keys, says) in [
        (
            r#"send = "a", steps = [{ send = "b" }]"#,
            "make these its first step",
        ),
        (r#"expect = "a", expect_regex = "b""#, "take one of them"),
        (r#"expect_regex = "(""#, "unclosed group"),
        (r#"steps = [{ say = "a" }]"#, "say"),
    ] {
        let told = faults(&check(keys), Format::Toml);
        assert!(told.len() == 1 && told[0].contains(says), "{told:?}");
    }
}

#[test]
fn what_is_expected_of_an_answer_reaches_the_probe_or_is_a_fault() {
    let text = r#"
[[check]]
name = "a"
http = "http://127.0.0.1/"
expect = { status = "200-299,401", body = "up", not_body = "down", json = { "/a" = "b" }, headers = { Server = "nginx" }, warning_after = "500ms", critical_after = "2s" }
"#;
    let (view, _) = to_view(text, &Settings::default());
    let Some(Definition::Http(http)) = view.checks[0].check.definition.probe() else {
        panic!("not HTTP")
    };
    let expect = http.expect().unwrap();
    assert_eq!(expect.status, "200-299,401");
    assert_eq!(expect.body.as_deref(), Some("up"));
    assert_eq!(expect.not_body.as_deref(), Some("down"));
    assert_eq!(expect.json["/a"], "b");
    assert_eq!(expect.headers["Server"], "nginx");
    assert_eq!(expect.warning_after, Duration::from_millis(500));
    assert_eq!(expect.critical_after, Duration::from_secs(2));
    let wrong = "[[check]]\nname = \"a\"\nhttp = \"http://a/\"\nexpect = { body = \"(\" }\n";
    let told = faults(wrong, Format::Toml);
    assert!(
        told[0].starts_with("line 4: check \"a\": expect: expect.body: (: "),
        "{told:?}"
    );
}

#[test]
fn json_says_the_same_as_toml() {
    let json = r#"{"check": [
        {"name": "a", "http": "http://a/", "headers": {"X": ["1", "2"]}, "critical_threshold": 3},
        {"name": "b", "tcp": "b:1", "interval": "5s", "service": null}
    ]}"#;
    let toml = "[[check]]\nname = \"a\"\nhttp = \"http://a/\"\nheaders.X = [\"1\", \"2\"]\n\
                critical_threshold = 3\n[[check]]\nname = \"b\"\ntcp = \"b:1\"\ninterval = \"5s\"\n";
    let from_json = parse(json.as_bytes(), Format::Json).unwrap();
    let entries: Vec<Entry> = from_json
        .checks
        .into_iter()
        .map(|(_, entry)| entry)
        .collect();
    assert_eq!(entries, checks(toml));
}

#[test]
fn all_faults_are_named_at_once_with_check_and_key() {
    let text = r#"[[check]]
name = "a"
http = "ftp://a/"
method = "G T"
interva = "5s"
headers = { "b d" = "x", ok = ["y", "\u0001"] }

[[check]]
name = "b"
tcp = "nowhere"
body = "x"
timeout = "0s"
interval = 5

[[check]]
http = "http://c/"

[[check]]
name = "d"

[[check]]
name = "e"
http = "http://e/"
tcp = "e:1"
failures_before_critical = 3
failures_before_warning = 5

[[check]]
name = "e"
url = "http://e/"
http = "http://e/"
tls = { cert_file = "/c" }
critical_threshold = -1

[[check]]
name = "f"
http = "http://f/"
notes = "[evenkeel] [evenkeel]"
strategy = "leaky"
failures_before_critical = 1

[[checks]]
name = "g"
"#;
    let found = faults(text, Format::Toml);
    let expected = [
        "line 3: check \"a\": http: \"ftp://a/\": unsupported protocol scheme \"ftp\"",
        "line 4: check \"a\": method: net/http: invalid method \"G T\"",
        "line 5: check \"a\": interva: unknown key; did you mean interval?",
        "line 6: check \"a\": headers: net/http: invalid header field name \"b d\"",
        "line 6: check \"a\": headers: net/http: invalid header field value for \"ok\"",
        "line 10: check \"b\": tcp: ",
        "line 11: check \"b\": body: is for http, and this check has tcp",
        "line 12: check \"b\": timeout: must be more than zero",
        "line 13: check \"b\": interval: expected a duration such as \"10s\", found a whole number",
        "line 15: check \"#2\": name: missing",
        "line 18: check \"d\": has none of http, tcp, udp, dns, icmp, grpc, h2ping, handshake, docker, script, heartbeat, alias",
        "line 21: check \"e\": has both http and tcp",
        "line 26: check \"e\": failures_before_warning: failures-before-warning 5 (definition) must not be more",
        "line 28: check \"e\": the check in line 21 has the same node, service and id; give one of them an id of its own",
        "line 30: check \"e\": url: unknown key; did you mean http?",
        "line 32: check \"e\": tls: tls: cert_file and key_file go together",
        "line 33: check \"e\": critical_threshold: -1 is less than 0",
        "line 40: check \"f\": failures_before_critical: not a parameter of the strategy leaky",
        "line 42: checks: unknown key; did you mean check?",
    ];
    for fault in expected {
        assert!(
            found.iter().any(|found| found.starts_with(fault)),
            "{fault}\n{found:#?}"
        );
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn kinds_that_are_not_there_yet_are_named_as_such() {
    let found = faults(
        "[[check]]\nname = \"a\"\nos_service = \"a\"\n",
        Format::Toml,
    );
    assert_eq!(
        found[1],
        "line 3: check \"a\": os_service: unknown key; this kind of check is not supported yet; there \
         are http, tcp, udp, dns, icmp, grpc, h2ping, handshake, docker, script, heartbeat, alias"
    );
}

#[test]
fn a_file_without_any_check_must_say_so() {
    for text in ["", "\n# nothing\n"] {
        assert_eq!(
            faults(text, Format::Toml),
            ["the file is empty; to watch nothing, write check = []"]
        );
    }
    assert_eq!(faults("{}", Format::Json).len(), 1);
    assert_eq!(checks("check = []"), []);
}

#[test]
fn the_same_name_may_be_used_on_other_nodes_and_services() {
    let text = "[[check]]\nname = \"a\"\ntcp = \"a:1\"\n[[check]]\nname = \"a\"\nnode = \"n\"\ntcp = \"a:1\"\n\
                [[check]]\nname = \"a\"\nservice = \"s\"\ntcp = \"a:1\"\n[[check]]\nname = \"a\"\nid = \"b\"\ntcp = \"a:1\"\n";
    assert_eq!(checks(text).len(), 4);
}

// P113
#[test]
fn a_timeout_above_the_interval_is_a_warning() {
    let text = "[[check]]\nname = \"a\"\ntcp = \"a:1\"\ninterval = \"2s\"\ntimeout = \"5s\"\n";
    let parsed = parse(text.as_bytes(), Format::Toml).unwrap();
    assert_eq!(
        parsed.warnings[0].to_string(),
        "line 5: check \"a\": timeout: longer than the interval: a hanging target is probed less \
         often"
    );
}

#[test]
fn faults_in_notes_and_of_the_merged_thresholds_are_faults_of_the_file() {
    let text = "[[check]]\nname = \"a\"\ntcp = \"a:1\"\nnotes = \"[evenkeel critcal-threshold=1]\"\n\
                [[check]]\nname = \"b\"\ntcp = \"b:1\"\nfailures_before_warning = 5\n";
    let (_, faults) = to_view(text, &Settings::default());
    let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "line 1: check \"a\": notes: critcal-threshold: not a known key; did you mean \
             critical-threshold?",
            "line 5: check \"b\": failures-before-warning: failures-before-warning 5 (definition) \
             must not be more than failures-before-critical 1 (default)",
        ]
    );
}

#[test]
fn secrets_of_a_check_are_not_printed() {
    let text = "[[check]]\nname = \"a\"\nhttp = \"http://u:hunter2@a/\"\nheaders.Authorization = \"hunter2\"\n\
                body = \"hunter2\"\n";
    let parsed = parse(text.as_bytes(), Format::Toml).unwrap();
    assert!(!format!("{parsed:?}").contains("hunter2"), "{parsed:?}");
    let text = "[[check]]\nname = \"a\"\nhttp = \"http://a/\"\nheaders.Authorization = \"hunter2\\u0001\"\n";
    let found = faults(text, Format::Toml);
    assert!(!found[0].contains("hunter2"), "{found:?}");
}

#[test]
fn a_version_is_judged_when_it_has_stopped_changing() {
    let mut settling = Settling::after(b"old");
    let mut look = |text: &str| settling.look(Ok(text.as_bytes().to_vec()));
    assert_eq!(look("old"), Look::Same);
    assert_eq!(look("ne"), Look::Unsettled);
    assert_eq!(look("new"), Look::Unsettled);
    assert_eq!(look("new"), Look::Settled(b"new".to_vec()));
    assert_eq!(look("new"), Look::Same);
    // A change that is taken back was none.
    assert_eq!(look("other"), Look::Unsettled);
    assert_eq!(look("new"), Look::Same);
    assert_eq!(look("other"), Look::Unsettled);
    assert_eq!(
        settling.look(Err("gone".to_owned())),
        Look::Unreadable("gone".to_owned())
    );
    assert_eq!(settling.look(Ok(b"other".to_vec())), Look::Unsettled);
}

#[test]
fn a_file_that_looks_the_same_is_read_a_few_times_more_and_then_left_alone() {
    let mut quiet = Quiet::new();
    let reads = |quiet: &mut Quiet<u8>, stamp| (0..10).filter(|_| quiet.must_read(stamp)).count();
    assert_eq!(reads(&mut quiet, Some(1)), 4);
    assert_eq!(reads(&mut quiet, Some(1)), 0);
    assert_eq!(reads(&mut quiet, Some(2)), 4);
    quiet.disturb();
    assert_eq!(reads(&mut quiet, Some(2)), 3);
    assert_eq!(reads(&mut quiet, None), 10);
}

/// A file that is watched, and what is said of it.
struct Watching {
    directory: tempfile::TempDir,
    settings: watch::Sender<Arc<Settings>>,
    messages: mpsc::Receiver<CatalogMessage>,
}

const ONE: &str = "[[check]]\nname = \"one\"\ntcp = \"127.0.0.1:1\"\n";
const TWO: &str = "[[check]]\nname = \"two\"\ntcp = \"127.0.0.1:2\"\nnode = \"n\"\n";

impl Watching {
    /// Watches `name` in a new directory, of which `prepare` has made the file.
    fn start(prepare: impl FnOnce(&Path) -> PathBuf) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        settings.file.path = Some(prepare(directory.path()));
        settings.file.poll_interval = Duration::from_millis(10);
        let catalog = FileCatalog::open(&settings).unwrap();
        let (settings, changes) = watch::channel(Arc::new(settings));
        let (sender, messages) = mpsc::channel(1);
        tokio::spawn(catalog.watch(changes, sender));
        Self {
            directory,
            settings,
            messages,
        }
    }

    fn write(&self, text: &str) {
        std::fs::write(self.directory.path().join("c.toml"), text).unwrap();
    }

    async fn message(&mut self) -> CatalogMessage {
        tokio::time::timeout(Duration::from_secs(30), self.messages.recv())
            .await
            .expect("nothing is said")
            .expect("the watch has ended")
    }

    async fn view(&mut self) -> CatalogView {
        match self.message().await {
            CatalogMessage::View(view) => view,
            other => panic!("{other:?}"),
        }
    }
}

fn plain(directory: &Path) -> PathBuf {
    let path = directory.join("c.toml");
    std::fs::write(&path, ONE).unwrap();
    path
}

fn ids(view: &CatalogView) -> Vec<String> {
    let ids = view.checks.iter();
    ids.map(|watched| watched.check.id.to_string()).collect()
}

#[tokio::test]
async fn a_change_of_the_file_is_taken_in() {
    let mut watching = Watching::start(plain);
    assert_eq!(ids(&watching.view().await), ["file//one"]);
    watching.write(&format!("{ONE}{TWO}"));
    assert_eq!(ids(&watching.view().await), ["file//one", "n//two"]);
    // Of the same size, and perhaps within the clock tick of the last change.
    watching.write(&format!("{ONE}{}", TWO.replace("two", "six")));
    assert_eq!(ids(&watching.view().await), ["file//one", "n//six"]);
    watching.write("check = []\n");
    assert!(watching.view().await.checks.is_empty());
}

#[tokio::test]
async fn a_faulty_version_is_refused_and_the_old_one_stays() {
    let mut watching = Watching::start(plain);
    watching.view().await;
    watching.write("[[check]]\nname = \"x\"\n[[check]]\nnaem = \"y\"\ntcp = \"a:1\"\n");
    let view = watching.view().await;
    assert_eq!(ids(&view), ["file//one"]);
    assert_eq!(view.faults.len(), 3, "{:?}", view.faults);
    assert!(
        view.faults[0]
            .text
            .contains("line 1: check \"x\": has none of http, tcp")
    );
    let degraded = view.degraded.unwrap();
    assert!(degraded.contains("3 faults"), "{degraded}");

    watching.write(TWO);
    let view = watching.view().await;
    assert_eq!(ids(&view), ["n//two"]);
    assert!(view.faults.is_empty() && view.degraded.is_none());
}

#[tokio::test]
async fn an_emptied_file_drops_nothing() {
    let mut watching = Watching::start(plain);
    watching.view().await;
    watching.write("");
    let view = watching.view().await;
    assert_eq!(ids(&view), ["file//one"]);
    assert!(view.degraded.is_some());
}

#[tokio::test]
async fn a_file_that_is_gone_is_trouble_until_it_is_back() {
    let mut watching = Watching::start(plain);
    watching.view().await;
    let path = watching.directory.path().join("c.toml");
    std::fs::remove_file(&path).unwrap();
    let CatalogMessage::Trouble(text) = watching.message().await else {
        panic!("no trouble")
    };
    assert!(text.contains("cannot be read"), "{text}");
    watching.write(ONE);
    let view = watching.view().await;
    assert_eq!(ids(&view), ["file//one"]);
    assert!(view.degraded.is_none());
}

#[tokio::test]
async fn a_pipe_in_the_place_of_the_file_is_trouble_until_a_file_is_back() {
    let mut watching = Watching::start(plain);
    assert_eq!(ids(&watching.view().await), ["file//one"]);
    let path = watching.directory.path().join("c.toml");
    let pipe = watching.directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    std::fs::rename(&pipe, &path).unwrap();
    let CatalogMessage::Trouble(text) = watching.message().await else {
        panic!("not told")
    };
    assert!(text.contains("a pipe, not a regular file"), "{text}");
    let new = watching.directory.path().join("new");
    std::fs::write(&new, TWO).unwrap();
    std::fs::rename(&new, &path).unwrap();
    assert_eq!(ids(&watching.view().await), ["n//two"]);
}

#[tokio::test]
async fn a_file_replaced_by_renaming_is_taken_in() {
    let mut watching = Watching::start(plain);
    watching.view().await;
    let new = watching.directory.path().join("new");
    std::fs::write(&new, TWO).unwrap();
    std::fs::rename(&new, watching.directory.path().join("c.toml")).unwrap();
    assert_eq!(ids(&watching.view().await), ["n//two"]);
}

/// As kubelet updates a ConfigMap: the file is a link through `..data`, which is
/// replaced by renaming.
#[tokio::test]
async fn a_config_map_that_changes_is_taken_in() {
    use std::os::unix::fs::symlink;

    let mut watching = Watching::start(|directory| {
        std::fs::create_dir(directory.join("..v1")).unwrap();
        std::fs::write(directory.join("..v1/c.toml"), ONE).unwrap();
        symlink("..v1", directory.join("..data")).unwrap();
        symlink("..data/c.toml", directory.join("c.toml")).unwrap();
        directory.join("c.toml")
    });
    watching.view().await;
    let directory = watching.directory.path();
    std::fs::create_dir(directory.join("..v2")).unwrap();
    std::fs::write(directory.join("..v2/c.toml"), TWO).unwrap();
    symlink("..v2", directory.join("..data_tmp")).unwrap();
    std::fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
    std::fs::remove_dir_all(directory.join("..v1")).unwrap();
    assert_eq!(ids(&watching.view().await), ["n//two"]);
}

#[tokio::test]
async fn changed_thresholds_of_the_daemon_reach_the_checks() {
    let mut watching = Watching::start(plain);
    watching.view().await;
    let mut settings = (**watching.settings.borrow()).clone();
    settings.threshold.set("critical_threshold", 4);
    watching.settings.send(Arc::new(settings)).unwrap();
    let view = watching.view().await;
    assert_eq!(
        *view.checks[0].check.strategy,
        AnyStrategy::from(Leaky::new(4, 0))
    );
}

#[test]
fn the_first_version_must_be_right() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.file.path = Some(directory.path().join("c.toml"));
    let failure = FileCatalog::open(&settings).unwrap_err();
    assert_eq!(failure.exit, Exit::Config);
    assert!(
        failure.messages[0].contains("cannot be read"),
        "{failure:?}"
    );

    std::fs::write(directory.path().join("c.toml"), "[[check]]\nx = 1\n").unwrap();
    let failure = FileCatalog::open(&settings).unwrap_err();
    assert_eq!(failure.messages.len(), 2, "{failure:?}");

    settings.file.max_size = crate::config::ByteSize(10);
    let failure = FileCatalog::open(&settings).unwrap_err();
    assert!(
        failure.messages[0].ends_with("larger than 10B"),
        "{failure:?}"
    );
}

/// A file of a reasonable size that is made to cost much.
#[test]
fn a_hostile_file_costs_bounded_memory_and_time() {
    let many = "[[check]]\n".repeat(20_000);
    assert_eq!(faults(&many, Format::Toml).len(), parse::MOST_FAULTS);
    let twins = "[[check]]\nname = \"a\"\ntcp = \"a:1\"\n".repeat(5_000);
    assert_eq!(faults(&twins, Format::Toml).len(), parse::MOST_FAULTS);
    let long = format!("[[check]]\nname = \"{}\"\n", "x".repeat(1_000_000));
    assert!(faults(&long, Format::Toml)[0].len() < 1_000);
}

proptest! {
    #[test]
    fn garbage_never_panics(
        text in "(\\[\\[check\\]\\]|\n|name|http|tcp|interval|notes|tls|headers| = |\"|\"a:1\"|\"http://a/\"|\"5s\"|\\{|\\}|[0-9]|\\PC){0,40}",
        bytes in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        for format in [Format::Toml, Format::Json] {
            let _ = parse(text.as_bytes(), format);
            let _ = parse(&bytes, format);
        }
    }

    /// Whatever is cut off, a prefix is refused or holds whole checks.
    #[test]
    fn a_file_cut_short_never_makes_up_a_check(end in 0..200_usize) {
        let whole = format!("{ONE}{TWO}critical_threshold = 3\nnotes = \"x\"\n");
        let known = checks(&whole);
        let end = end.min(whole.len());
        if let Ok(parsed) = parse(&whole.as_bytes()[..end], Format::Toml) {
            for ((_, entry), known) in parsed.checks.iter().zip(&known) {
                prop_assert_eq!(&entry.name, &known.name);
            }
        }
    }
}
