//! The program from outside: what it prints, what it logs, how it ends.
#![allow(clippy::unwrap_used, reason = "only tests are compiled with this")]

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use serde_json::Value as Json;

/// The program with an environment of its own.
fn evenkeel(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str]) -> Output {
    outcome(evenkeel(arguments))
}

/// What a program that ends by itself has written. One that does not is killed.
fn outcome(mut command: Command) -> Output {
    let child = command.spawn().unwrap();
    let id = child.id().to_string();
    let (ended, watched) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        if watched.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-KILL", &id]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(ended);
    watch.join().unwrap();
    output
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it was not killed")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Each line is a JSON object with a level and a message (P068).
fn json_lines(bytes: &[u8]) -> Vec<Json> {
    text(bytes)
        .lines()
        .map(|line| {
            let value: Json = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?}"));
            assert!(value["message"].is_string(), "{line}");
            assert!(value["level"].is_string(), "{line}");
            value
        })
        .collect()
}

/// A program that is killed when the test ends, however it ends.
struct Running(Child);

impl Running {
    fn terminate(&self) {
        let status = Command::new("kill").arg(self.0.id().to_string()).status();
        assert!(status.unwrap().success());
    }

    /// How it ended, with what it wrote to standard output and error.
    fn end(mut self) -> (Option<i32>, Vec<u8>, Vec<u8>) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        self.0.stdout.take().unwrap().read_to_end(&mut out).unwrap();
        self.0.stderr.take().unwrap().read_to_end(&mut err).unwrap();
        (self.0.wait().unwrap().code(), out, err)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn without_configuration_run_says_what_to_do() {
    let output = run(&["run"]);
    assert_eq!(code(&output), 78);
    assert_eq!(text(&output.stdout), "");
    let told = text(&output.stderr);
    for hint in [
        "run --consul",
        "run --file",
        "--config-file",
        "config example",
        "demo",
    ] {
        assert!(told.contains(hint), "{hint}: {told}");
    }
}

#[test]
fn exit_codes_are_as_documented() {
    let directory = tempfile::tempdir().unwrap();
    let wrong = write(directory.path(), "wrong.toml", "nonsense = 1\n");
    let socket = format!("unix:{}/no.sock", directory.path().display());
    for (arguments, expected) in [
        (&["--help"][..], 0),
        (&["--version"], 0),
        (&["-v"], 0),
        (&["-version"], 0),
        (&["run", "--help"], 0),
        (&[], 64),
        (&["no-such-command"], 64),
        (&["run", "--no-such-flag"], 64),
        (&["run", "--consul", "a:1", "--file", "b"], 64),
        (&["run", "--critical-threshold", "-1"], 64),
        (&["status", "--status", "unwell"], 64),
        (&["status", "--admin", &socket], 69),
        (&["status", "--admin", "127.0.0.1:1"], 69),
        (&["run", "--config-file", &wrong], 78),
        (&["-config-file", &wrong], 78),
        (&[&format!("-config-file={wrong}")], 78),
        (&["run", "--file", "/no/such/file"], 78),
        (&["config", "check", "--config-file", &wrong], 78),
        (&["config", "show", "--config-file", &wrong], 78),
        (&["config", "check"], 78),
        (&["config", "check", "--consul", "127.0.0.1:8500"], 0),
        (&["config", "show"], 0),
        (&["config", "example"], 0),
        (&["config", "schema"], 0),
        (&["config", "schema", "--checks"], 0),
    ] {
        let output = run(arguments);
        assert_eq!(
            code(&output),
            expected,
            "{arguments:?}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn config_check_names_every_fault_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let checks = write(directory.path(), "checks.toml", "[[check]]\nname = \"a\"\n");
    let config = write(
        directory.path(),
        "c.toml",
        &format!("[log]\nlevle = \"info\"\n[file]\npath = \"{checks}\"\n[write]\nbatch_size = 0\n"),
    );
    let output = run(&["config", "check", "--config-file", &config]);
    assert_eq!(code(&output), 78);
    assert_eq!(text(&output.stdout), "");
    let told = text(&output.stderr);
    let expected = format!(
        "evenkeel: {config}:2: log.levle: unknown key; did you mean log.level?\n\
         evenkeel: {config}:6: write.batch_size: 0 is less than 1\n\
         evenkeel: {checks}: line 1: check \"a\": has none of http, tcp, udp, dns, icmp, grpc, h2ping, handshake, docker, script, heartbeat, alias\n"
    );
    assert_eq!(told, expected);

    let output = run(&["--json", "config", "check", "--config-file", &config]);
    assert_eq!(code(&output), 78);
    let value: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["ok"], false);
    assert_eq!(value["faults"].as_array().unwrap().len(), 3);
    assert_eq!(value["faults"][0]["key"], "log.levle");
}

#[test]
fn config_check_looks_for_the_files_that_are_named() {
    let output = run(&[
        "config",
        "check",
        "--consul",
        "a:1",
        "--set",
        "consul.token_file=/no/such/token",
    ]);
    assert_eq!(code(&output), 78);
    assert_eq!(
        text(&output.stderr),
        "evenkeel: --set consul.token_file: consul.token_file: /no/such/token: No such file or \
         directory (os error 2)\n"
    );
}

#[test]
fn config_show_says_where_each_value_comes_from() {
    let directory = tempfile::tempdir().unwrap();
    let config = write(
        directory.path(),
        "c.toml",
        "[consul]\ndatacenter = \"dc2\"\n",
    );
    let arguments = [
        "config",
        "show",
        "-config-file",
        &config,
        "--critical-threshold",
        "3",
    ];
    let mut command = evenkeel(&arguments);
    command
        .env("CONSUL_HTTP_TOKEN", "5e5e5e5e")
        .env("EVENKEEL_LOG__LEVEL", "debug");
    let output = outcome(command);
    let shown = text(&output.stdout);
    for line in [
        &format!("consul.datacenter = \"dc2\"  # {config}:2"),
        "consul.token = \"********\"  # CONSUL_HTTP_TOKEN",
        "log.level = \"debug\"  # EVENKEEL_LOG__LEVEL",
        "threshold.critical_threshold = 3  # --critical-threshold",
        "consul.wait = \"45s\"  # default",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
    assert!(!shown.contains("5e5e5e5e"));

    let output = run(&["config", "show", "--config-file", &config, "--json"]);
    let value: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["consul.datacenter"]["value"], "dc2");
    assert_eq!(value["consul.wait"]["origin"], "default");
}

#[test]
fn the_example_can_be_used_as_it_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let example = text(&run(&["config", "example"]).stdout);
    let config = write(directory.path(), "c.toml", &example);
    let output = run(&[
        "config",
        "check",
        "--config-file",
        &config,
        "--consul",
        "a:1",
    ]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn the_schemas_are_json_schemas() {
    for (arguments, key) in [
        (&["config", "schema"][..], "consul"),
        (&["config", "schema", "--checks"], "check"),
    ] {
        let schema: Json = serde_json::from_slice(&run(arguments).stdout).unwrap();
        assert_eq!(
            schema["$schema"],
            "https://json-schema.org/draft/2020-12/schema"
        );
        assert!(schema["properties"][key].is_object(), "{schema:#}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = evenkeel(&["config", "example"]).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

// P068
#[test]
fn with_a_json_log_every_line_is_json_whatever_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let asks = "[log]\nformat = \"json\"\n";
    let wrong = write(
        directory.path(),
        "wrong.toml",
        &format!("{asks}[consul]\nx = 1\ny = 2\n"),
    );
    let damaged = write(
        directory.path(),
        "damaged.toml",
        &format!("{asks}[consul\nx = = 1\n"),
    );
    let json = r#"{"log": {"format": "json"}, }"#;
    let damaged_json = write(directory.path(), "damaged.json", json);
    let nothing = write(directory.path(), "nothing.toml", asks);
    let check = write(directory.path(), "checks.toml", "[[check]]\nname = \"a\"\n");
    for (arguments, expected, least) in [
        (&["run", "--json", "--no-such-flag"][..], 64, 1),
        (
            &["run", "--log-format", "json", "--critical-threshold", "x"],
            64,
            1,
        ),
        (&["run", "--set=log.format=json", "--file"], 64, 1),
        (&["run", "--json"], 78, 1),
        (&["run", "--json", "--set", "nonsense=1"], 78, 1),
        (&["run", "--config-file", &nothing], 78, 1),
        (&["run", "--config-file", &wrong], 78, 2),
        (&["-config-file", &damaged], 78, 2),
        (&["run", "--config-file", &damaged_json], 78, 1),
        (&["run", "--config-file", &nothing, "--file", &check], 78, 1),
        (&["run", "--json", "--file", "/no/such/file"], 78, 1),
        (
            &[
                "run",
                "--json",
                "--consul",
                "https://a:1",
                "--set",
                "consul.ca_file=/no/such/file",
            ],
            78,
            1,
        ),
        (
            &["run", "--json", "--file", &check, "--state-dir", "/proc/no"],
            78,
            1,
        ),
    ] {
        let output = run(arguments);
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
        let lines = json_lines(&output.stderr);
        assert!(lines.len() >= least, "{arguments:?}: {lines:?}");
        assert!(
            lines.iter().any(|line| line["level"] == "ERROR"),
            "{arguments:?}: {lines:?}"
        );
        let code = code(&output);
        assert!(
            code == expected || code == 73,
            "{arguments:?}: {code} {lines:?}"
        );
    }

    let mut by_variable = evenkeel(&["run", "--no-such-flag"]);
    by_variable.env("EVENKEEL_LOG__FORMAT", "json");
    let output = outcome(by_variable);
    assert_eq!(json_lines(&output.stderr).len(), 1);
}

#[test]
fn a_daemon_on_a_file_runs_is_asked_and_ends_in_order() {
    let directory = tempfile::tempdir().unwrap();
    // Nobody listens there: the port was given back.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let checks = write(
        directory.path(),
        "checks.toml",
        &format!(
            "[[check]]\nname = \"a\"\ntcp = \"127.0.0.1:{port}\"\ninterval = \"1s\"\n\
             initial_status = \"passing\"\ncritical_threshold = 1\n"
        ),
    );
    let socket = format!("unix:{}/admin.sock", directory.path().display());
    let state = directory.path().join("state");
    let daemon = evenkeel(&[
        "run",
        "--json",
        "--file",
        &checks,
        "--state-dir",
        state.to_str().unwrap(),
        "--set",
        &format!("admin.listen={socket}"),
    ]);
    let daemon = Running({ daemon }.spawn().unwrap());

    let mut found = None;
    for _ in 0..300 {
        let output = run(&["status", "--json", "--admin", &socket]);
        let report: Json = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if report["checks"][0]["reported"] == "critical" {
            found = Some(report);
            break;
        }
        // Asking takes a while itself; this is no wait for a fixed time.
        let (_sender, never) = std::sync::mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_millis(100));
    }
    let report = found.expect("the check never became critical");
    assert_eq!(report["checks"].as_array().unwrap().len(), 1);

    let output = run(&["status", "--admin", &socket]);
    assert_eq!(code(&output), 0);
    let table = text(&output.stdout);
    assert!(
        table.contains("file//a") || table.contains("file/a"),
        "{table}"
    );
    assert!(table.contains("critical"), "{table}");
    let none = run(&["status", "--json", "--node", "other", "--admin", &socket]);
    let none: Json = serde_json::from_slice(&none.stdout).unwrap();
    assert_eq!(none["checks"].as_array().map(Vec::len), Some(0));

    daemon.terminate();
    let (code, out, err) = daemon.end();
    assert_eq!(code, Some(0), "{}", text(&err));
    assert_eq!(text(&out), "");
    let lines = json_lines(&err);
    assert!(
        lines.iter().all(|line| line["level"] != "ERROR"),
        "{lines:?}"
    );
    assert!(state.is_dir());
}
