use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{http, wait_for};

/// Consul's program: `EVENKEEL_CONSUL`, or `consul` in `PATH`.
pub fn consul_binary() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("EVENKEEL_CONSUL").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        assert!(
            path.is_file(),
            "EVENKEEL_CONSUL names no file: {}",
            path.display()
        );
        return Some(path);
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join("consul"))
        .find(|path| path.is_file())
}

/// A Consul server of its own: one node, on disk, with the default settings
/// but for the ports and a fast election. It ends, and its directory goes,
/// when this is dropped and also when the test's process is killed.
#[derive(Debug)]
pub struct Consul {
    binary: PathBuf,
    directory: tempfile::TempDir,
    ports: Ports,
    token: Option<String>,
    running: Option<Running>,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    http: u16,
    server: u16,
    serf_lan: u16,
    serf_wan: u16,
}

#[derive(Debug)]
struct Running {
    /// A shell that ends Consul when its standard input closes.
    keeper: Child,
    pid: u32,
}

/// What a [`Consul`] is started with.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    acl: bool,
    leaderless: bool,
    extra: Option<Value>,
}

/// The management token of a server with ACLs.
const MANAGEMENT: &str = "2b778dd9-f5f1-6f29-b4b4-9a5fa948757a";

impl Consul {
    /// A server with the default settings. `None`, with a line that names the
    /// test, where there is no Consul.
    ///
    /// # Panics
    /// As [`Builder::start`].
    pub fn start(test: &str) -> Option<Self> {
        Builder::default().start(test)
    }

    /// For other settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Where its HTTP API listens: `127.0.0.1:PORT`. The same after a restart.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ports.http)
    }

    /// The management token, on a server with ACLs.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// A request with the management token: the status and the body.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        self.try_ask(method, path, body)
            .unwrap_or_else(|| panic!("no answer to {method} {path}\n{}", self.log_tail()))
    }

    /// As [`ask`](Self::ask) with GET.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", path, "")
    }

    /// As [`get`](Self::get), for an answer of JSON.
    ///
    /// # Panics
    /// If there is no answer, or another status than 200.
    pub fn get_json(&self, path: &str) -> Value {
        let (status, body) = self.get(path);
        assert_eq!(status, 200, "GET {path}: {body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("GET {path}: {error}: {body}"))
    }

    /// As [`ask`](Self::ask) with PUT.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn put(&self, path: &str, body: &str) -> (u16, String) {
        self.ask("PUT", path, body)
    }

    /// Registers through `/v1/catalog/register`.
    ///
    /// # Panics
    /// If Consul refuses it.
    pub fn register(&self, registration: &Value) {
        let (status, body) = self.put("/v1/catalog/register", &registration.to_string());
        assert_eq!(status, 200, "{body}: {registration}");
    }

    /// Removes through `/v1/catalog/deregister`.
    ///
    /// # Panics
    /// If Consul refuses it.
    pub fn deregister(&self, what: &Value) {
        let (status, body) = self.put("/v1/catalog/deregister", &what.to_string());
        assert_eq!(status, 200, "{body}: {what}");
    }

    /// One check of a node, as `/v1/health/node` shows it.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn check(&self, node: &str, check: &str) -> Option<Value> {
        let checks = self.get_json(&format!("/v1/health/node/{node}"));
        checks
            .as_array()?
            .iter()
            .find(|found| found["CheckID"] == check)
            .cloned()
    }

    /// Ends it at once, as by `kill -9`. The data stay.
    pub fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.end();
        }
    }

    /// Starts it again after [`kill`](Self::kill), with the same data and
    /// ports. Does not wait for a leader.
    ///
    /// # Panics
    /// If it does not start.
    pub fn restart(&mut self) {
        self.kill();
        let started = wait_for(Duration::from_secs(30), || self.launch().ok());
        self.running = Some(started.unwrap_or_else(|| panic!("{}", self.log_tail())));
    }

    /// Stops it where it is (SIGSTOP): connections stay open, nothing answers.
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Lets it go on after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.signal("CONT");
    }

    /// Waits until there is a leader; after a restart that takes up to 10 s.
    ///
    /// # Panics
    /// If there is none within a minute.
    pub fn wait_for_leader(&self) {
        crate::eventually("Consul has a leader", || self.has_leader().then_some(()));
    }

    /// Whether it knows a leader now.
    pub fn has_leader(&self) -> bool {
        // A write is the surest sign: the address of a leader is known before
        // the leader is ready.
        self.try_ask("PUT", "/v1/kv/evenkeel-testkit", "")
            .is_some_and(|(status, _)| status == 200)
    }

    fn try_ask(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        let token = self.token.as_deref().unwrap_or_default();
        http::request(
            &self.address(),
            method,
            path,
            &[("X-Consul-Token", token)],
            body,
        )
    }

    fn signal(&self, name: &str) {
        if let Some(running) = &self.running {
            // The standard library knows no other signal than SIGKILL.
            let status = Command::new("kill")
                .arg(format!("-{name}"))
                .arg(running.pid.to_string())
                .status();
            assert!(status.is_ok_and(|status| status.success()), "kill -{name}");
        }
    }

    fn launch(&self) -> Result<Running, String> {
        let log = self.directory.path().join("log");
        let log = File::options()
            .create(true)
            .append(true)
            .open(log)
            .map_err(|error| format!("log: {error}"))?;
        // The pipe to the shell closes when this process ends, however that
        // comes about; then Consul is ended.
        let script =
            r#""$@" </dev/null >&2 & pid=$!; echo "$pid"; read -r _; kill -9 "$pid"; wait "$pid""#;
        let mut keeper = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(&self.binary)
            .arg("agent")
            .arg("-config-file")
            .arg(self.directory.path().join("consul.json"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("sh: {error}"))?;
        let mut line = String::new();
        if let Some(output) = keeper.stdout.take() {
            let read = BufReader::new(output).read_line(&mut line);
            read.map_err(|error| format!("sh: {error}"))?;
        }
        let pid = line
            .trim()
            .parse()
            .map_err(|_| format!("no process number: {line:?}"))?;
        let running = Running { keeper, pid };
        // It has either bound its ports or ended.
        let answers = wait_for(Duration::from_secs(30), || {
            if !process_is_alive(pid) {
                return Some(false);
            }
            http::request(&self.address(), "GET", "/v1/status/leader", &[], "").map(|_| true)
        });
        if answers == Some(true) {
            Ok(running)
        } else {
            running.end();
            Err(self.log_tail())
        }
    }

    fn log_tail(&self) -> String {
        let log = std::fs::read(self.directory.path().join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Consul {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Running {
    fn end(mut self) {
        drop(self.keeper.stdin.take());
        // The shell waits for Consul, so that its ports are free afterwards.
        let _ = self.keeper.wait();
    }
}

fn process_is_alive(pid: u32) -> bool {
    Command::new("kill")
        .arg("-0")
        .arg(pid.to_string())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

impl Builder {
    /// With ACLs: nothing is allowed without a token.
    #[must_use]
    pub fn acl(mut self) -> Self {
        self.acl = true;
        self
    }

    /// With further settings, as in Consul's configuration file.
    #[must_use]
    pub fn settings(mut self, settings: Value) -> Self {
        self.extra = Some(settings);
        self
    }

    /// Without waiting for a leader: for settings with which there is none.
    #[must_use]
    pub fn without_leader(mut self) -> Self {
        self.leaderless = true;
        self
    }

    /// Starts it and waits for the leader. `None`, with a line that names the
    /// test, where there is no Consul.
    ///
    /// # Panics
    /// If it does not start, or if there is none and `CI` is `true`.
    #[expect(clippy::print_stderr, reason = "a test that does nothing must say so")]
    pub fn start(self, test: &str) -> Option<Consul> {
        let Some(binary) = consul_binary() else {
            let ci = std::env::var("CI").is_ok_and(|value| value == "true");
            assert!(!ci, "{test}: no consul, and with CI=true it must be there");
            eprintln!("skipped: no consul: {test}");
            return None;
        };
        let mut failures = BTreeSet::new();
        // Somebody else may take a port between our asking and Consul's.
        for _ in 0..5 {
            match self.try_start(binary.clone()) {
                Ok(consul) => {
                    if !self.leaderless {
                        consul.wait_for_leader();
                    }
                    return Some(consul);
                }
                Err(log) => failures.insert(log),
            };
        }
        panic!("Consul does not start:\n{failures:?}");
    }

    fn try_start(&self, binary: PathBuf) -> Result<Consul, String> {
        let ports = free_ports();
        let directory = tempfile::Builder::new()
            .prefix("evenkeel-consul-")
            .tempdir()
            .map_err(|error| format!("directory: {error}"))?;
        let mut settings = json!({
            "server": true,
            "bootstrap_expect": 1,
            "node_name": "server",
            "bind_addr": "127.0.0.1",
            "client_addr": "127.0.0.1",
            "data_dir": directory.path().join("data"),
            "disable_update_check": true,
            "performance": {"raft_multiplier": 1},
            "ports": {
                "http": ports.http, "server": ports.server, "serf_lan": ports.serf_lan,
                "serf_wan": ports.serf_wan, "dns": -1, "grpc": -1
            },
        });
        if self.acl {
            settings["acl"] = json!({
                "enabled": true, "default_policy": "deny", "tokens": {"master": MANAGEMENT}
            });
        }
        if let (Some(extra), Some(settings)) = (
            self.extra.as_ref().and_then(Value::as_object),
            settings.as_object_mut(),
        ) {
            settings.extend(extra.clone());
        }
        std::fs::write(directory.path().join("consul.json"), settings.to_string())
            .map_err(|error| format!("settings: {error}"))?;
        let mut consul = Consul {
            binary,
            directory,
            ports,
            token: self.acl.then(|| MANAGEMENT.to_owned()),
            running: None,
        };
        consul.running = Some(consul.launch()?);
        Ok(consul)
    }
}

fn free_ports() -> Ports {
    // All at once, so that they differ.
    let listeners: Vec<TcpListener> = (0..4)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("{error}")))
        .collect();
    let port = |index: usize| {
        listeners[index]
            .local_addr()
            .unwrap_or_else(|error| panic!("{error}"))
            .port()
    };
    Ports {
        http: port(0),
        server: port(1),
        serf_lan: port(2),
        serf_wan: port(3),
    }
}
