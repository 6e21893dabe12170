use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{self, Process};
use crate::{http, wait_for};

/// Consul's program: `EVENKEEL_CONSUL`, or `consul` in `PATH`.
pub fn consul_binary() -> Option<PathBuf> {
    process::find("EVENKEEL_CONSUL", "consul")
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
    running: Option<Process>,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    http: u16,
    server: u16,
    serf_lan: u16,
    serf_wan: u16,
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
        self.running = None;
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
            running.signal(name);
        }
    }

    fn launch(&self) -> Result<Process, String> {
        let file = self.directory.path().join("consul.json");
        let arguments = ["agent".as_ref(), "-config-file".as_ref(), file.as_ref()];
        let process = Process::start(&self.binary, &arguments, &self.log())?;
        // It has either bound its ports or ended.
        let answers = wait_for(Duration::from_secs(30), || {
            if !process.is_alive() {
                return Some(false);
            }
            http::request(&self.address(), "GET", "/v1/status/leader", &[], "").map(|_| true)
        });
        if answers == Some(true) {
            Ok(process)
        } else {
            drop(process);
            Err(self.log_tail())
        }
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    fn log_tail(&self) -> String {
        process::tail(&self.log())
    }
}

impl Drop for Consul {
    fn drop(&mut self) {
        self.kill();
    }
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
    pub fn start(self, test: &str) -> Option<Consul> {
        let binary = process::find_for(test, "EVENKEEL_CONSUL", "consul")?;
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
