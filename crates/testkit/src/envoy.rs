use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::process::{self, Process};
use crate::{eventually, http, wait_for};

/// Envoy's program: `EVENKEEL_ENVOY`, or `envoy` in `PATH`.
pub fn envoy_binary() -> Option<PathBuf> {
    process::find("EVENKEEL_ENVOY", "envoy")
}

/// An Envoy of its own, with a bootstrap that the test gives. It ends, and its
/// directory goes, when this is dropped and also when the test's process is
/// killed.
#[derive(Debug)]
pub struct Envoy {
    directory: tempfile::TempDir,
    admin: String,
    _process: Process,
}

impl Envoy {
    /// Starts it with a bootstrap (YAML or JSON), in which the admin's port is
    /// 0, and waits until its admin answers. `None`, with a line that names
    /// the test, where there is no Envoy.
    ///
    /// # Panics
    /// If it does not start, or if there is none and `CI` is `true`.
    pub fn start(test: &str, bootstrap: &str, workers: u32) -> Option<Self> {
        let binary = process::find_for(test, "EVENKEEL_ENVOY", "envoy")?;
        let directory = tempfile::Builder::new()
            .prefix("evenkeel-envoy-")
            .tempdir()
            .unwrap_or_else(|error| panic!("directory: {error}"));
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("bootstrap.yaml"), bootstrap)
            .unwrap_or_else(|error| panic!("bootstrap: {error}"));
        let (config, told) = (path("bootstrap.yaml"), path("admin"));
        let workers = workers.to_string();
        let arguments: [&OsStr; 9] = [
            "-c".as_ref(),
            config.as_ref(),
            "--admin-address-path".as_ref(),
            told.as_ref(),
            "--concurrency".as_ref(),
            workers.as_ref(),
            "--disable-hot-restart".as_ref(),
            "--log-level".as_ref(),
            "warning".as_ref(),
        ];
        let process = Process::start(&binary, &arguments, &path("log"))
            .unwrap_or_else(|error| panic!("{error}"));
        let admin = wait_for(Duration::from_secs(60), || {
            if !process.is_alive() {
                return Some(None);
            }
            let address = std::fs::read_to_string(&told).ok()?;
            let address = address.trim().to_owned();
            http::get(&address, "/ready")?;
            Some(Some(address))
        });
        let Some(Some(admin)) = admin else {
            panic!("Envoy does not start:\n{}", process::tail(&path("log")));
        };
        Some(Self {
            directory,
            admin,
            _process: process,
        })
    }

    /// Where its admin listens: `127.0.0.1:PORT`.
    pub fn admin(&self) -> &str {
        &self.admin
    }

    /// An answer of its admin.
    ///
    /// # Panics
    /// If there is none, or another status than 200.
    pub fn get(&self, path: &str) -> String {
        let answer = http::get(&self.admin, path);
        match answer {
            Some((200, body)) => body,
            other => panic!("{path}: {other:?}\n{}", self.log()),
        }
    }

    /// All counters and gauges whose name matches a regular expression.
    ///
    /// # Panics
    /// If the admin does not answer.
    pub fn stats(&self, filter: &str) -> BTreeMap<String, u64> {
        let text = self.get(&format!("/stats?filter={filter}"));
        text.lines()
            .filter_map(|line| line.rsplit_once(": "))
            .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
            .collect()
    }

    /// The value of one counter or gauge; 0 where there is none.
    ///
    /// # Panics
    /// If the admin does not answer.
    pub fn stat(&self, name: &str) -> u64 {
        let all = self.stats(&format!("^{}$", name.replace('.', "%5C.")));
        all.get(name).copied().unwrap_or(0)
    }

    /// Where a listener listens, once it does.
    ///
    /// # Panics
    /// If it does not within a minute.
    pub fn listener(&self, name: &str) -> String {
        eventually("Envoy listens", || {
            let listeners: Value =
                serde_json::from_str(&self.get("/listeners?format=json")).ok()?;
            let listeners = listeners["listener_statuses"].as_array()?;
            let found = listeners.iter().find(|found| found["name"] == name)?;
            let address = &found["local_address"]["socket_address"];
            let port = address["port_value"].as_u64().filter(|port| *port > 0)?;
            Some(format!("{}:{port}", address["address"].as_str()?))
        })
    }

    /// The last lines that it logged.
    pub fn log(&self) -> String {
        process::tail(&self.directory.path().join("log"))
    }
}

/// A text with marks in it, such as a bootstrap from the documentation, with
/// each replaced.
///
/// # Panics
/// If one of the marks is not there.
pub fn filled(template: &str, marks: &[(&str, &str)]) -> String {
    marks
        .iter()
        .fold(template.to_owned(), |text, (mark, with)| {
            assert!(text.contains(mark), "no {mark} in the template");
            text.replace(mark, with)
        })
}
