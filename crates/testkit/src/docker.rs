use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::wait_for;

/// A Docker Engine of its own, with one image (`busybox`) and no network. It
/// ends, with its containers, when this is dropped.
#[derive(Debug)]
pub struct Docker {
    programs: PathBuf,
    directory: tempfile::TempDir,
    process: Option<Child>,
    /// A port of loopback that it listens on, too.
    port: Option<u16>,
}

/// The version of the API that all engines from 20.10 to 28 speak.
const API: &str = "/v1.41";

/// The image.
const IMAGE: &str = "busybox";

/// What busybox is called by in it.
const APPLETS: [&str; 7] = ["sh", "sleep", "echo", "yes", "cat", "true", "kill"];

impl Docker {
    /// Starts the engine that `EVENKEEL_DOCKER` names, a directory with
    /// `usr/sbin/dockerd`, `usr/bin/containerd` and so on, and `bin/busybox`.
    /// `None`, with a line that names the test and the reason, where there is
    /// none or it cannot run, which takes root and control groups.
    ///
    /// # Panics
    /// With `CI=true`, if `EVENKEEL_DOCKER` is not set.
    pub fn start(test: &str) -> Option<Self> {
        Self::start_with(test, None)
    }

    /// As [`start`](Self::start), and [`host`](Self::host) is a port of loopback.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn start_on_port(test: &str) -> Option<Self> {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("its address").port();
        drop(free);
        Self::start_with(test, Some(port))
    }

    #[expect(clippy::print_stderr, reason = "a test that does nothing must say so")]
    fn start_with(test: &str, port: Option<u16>) -> Option<Self> {
        let skipped = |why: &str| {
            eprintln!("skipped: {test}: {why}");
            None
        };
        let Some(programs) = std::env::var_os("EVENKEEL_DOCKER").map(PathBuf::from) else {
            let on_ci = std::env::var("CI").is_ok_and(|value| value == "true");
            assert!(!on_ci, "{test}: EVENKEEL_DOCKER is not set");
            return skipped("no Docker Engine (EVENKEEL_DOCKER)");
        };
        if programs.as_os_str().is_empty() {
            return skipped("the Docker Engine cannot run on this machine");
        }
        let directory = tempfile::Builder::new()
            .prefix("docker.")
            .tempdir()
            .expect("a directory for Docker");
        let mut docker = Self {
            programs,
            directory,
            process: None,
            port,
        };
        docker.launch();
        docker.import();
        Some(docker)
    }

    /// Where it listens: `unix:///…` or `tcp://…`.
    pub fn host(&self) -> String {
        match self.port {
            Some(port) => format!("tcp://127.0.0.1:{port}"),
            None => self.local(),
        }
    }

    fn local(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("docker.sock")
    }

    /// Starts the engine, again after [`kill`](Self::kill).
    ///
    /// # Panics
    /// If it does not answer within a minute.
    pub fn launch(&mut self) {
        let place = self.directory.path();
        let at = |name: &str| place.join(name);
        let [sbin, bin] = ["usr/sbin", "usr/bin"].map(|name| self.programs.join(name));
        let path = std::env::var("PATH").unwrap_or_default();
        let log = std::fs::File::create(at("log")).expect("a log for Docker");
        // In a process namespace of its own, with which the engine's containerd, the shims of
        // its containers and the containers end, however the engine ends.
        let process = Command::new("unshare")
            .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
            .arg(sbin.join("dockerd"))
            .env(
                "PATH",
                format!("{}:{}:{path}", sbin.display(), bin.display()),
            )
            .args(["--bridge=none", "--iptables=false", "--ip6tables=false"])
            .args(["--storage-driver=vfs", "--shutdown-timeout=1"])
            .arg("--data-root")
            .arg(at("data"))
            .arg("--exec-root")
            .arg(at("exec"))
            .arg("--pidfile")
            .arg(at("pid"))
            .arg("--host")
            .arg(self.local())
            // Said so, it does not wait some seconds for second thoughts.
            .args(self.port.map(|_| "--tls=false"))
            .args(self.port.map(|_| format!("--host={}", self.host())))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log"))
            .stderr(log)
            .spawn()
            .expect("dockerd starts");
        self.process = Some(process);
        let answers = wait_for(Duration::from_secs(60), || {
            self.try_ask("GET", "/_ping", &[])
                .filter(|(status, _)| *status == 200)
        });
        assert!(answers.is_some(), "dockerd does not answer: {}", self.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Ends the engine and its containers at once.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        // The next engine would wait for a containerd of this number.
        for file in [
            "pid",
            "exec/containerd/containerd.pid",
            "exec/containerd/containerd.sock",
        ] {
            let _ = std::fs::remove_file(self.directory.path().join(file));
        }
    }

    fn import(&self) {
        let busybox = std::fs::read(self.programs.join("bin/busybox")).expect("busybox");
        let image = image(&busybox);
        let path = format!("/images/create?fromSrc=-&repo={IMAGE}");
        let (status, said) = self.ask("POST", &path, &image);
        assert_eq!(status, 200, "{said}");
    }

    /// Makes a container that sleeps, and starts it.
    ///
    /// # Panics
    /// If Docker refuses it.
    pub fn container(&self, name: &str) {
        let body = json!({
            "Image": IMAGE,
            "Cmd": ["/bin/sleep", "1000000"],
            "HostConfig": { "NetworkMode": "none" },
        });
        let path = format!("/containers/create?name={name}");
        let (status, said) = self.ask("POST", &path, body.to_string().as_bytes());
        assert_eq!(status, 201, "{said}");
        let (status, said) = self.ask("POST", &format!("/containers/{name}/start"), &[]);
        assert_eq!(status, 204, "{said}");
    }

    /// Ends a container at once.
    ///
    /// # Panics
    /// If Docker refuses it.
    pub fn end(&self, name: &str) {
        let (status, said) = self.ask("POST", &format!("/containers/{name}/kill"), &[]);
        assert_eq!(status, 204, "{said}");
    }

    /// Whether a program with this argument runs in a container.
    pub fn runs(&self, name: &str, argument: &str) -> bool {
        let (_, said) = self.ask("GET", &format!("/containers/{name}/top"), &[]);
        said.contains(argument)
    }

    /// A request: the status and the body.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn ask(&self, method: &str, path: &str, body: &[u8]) -> (u16, String) {
        self.try_ask(method, path, body)
            .unwrap_or_else(|| panic!("no answer to {method} {path}: {}", self.log()))
    }

    fn try_ask(&self, method: &str, path: &str, body: &[u8]) -> Option<(u16, String)> {
        let mut stream = UnixStream::connect(self.socket()).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .ok()?;
        let kind = if serde_json::from_slice::<Value>(body).is_ok() {
            "application/json"
        } else {
            "application/x-tar"
        };
        // Version 1.0, so that the answer's end is the connection's.
        let head = format!(
            "{method} {API}{path} HTTP/1.0\r\nHost: docker\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let status = answer.split(' ').nth(1)?.parse().ok()?;
        let (_, said) = answer.split_once("\r\n\r\n")?;
        Some((status, said.to_owned()))
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        if let Some((200, said)) = self.try_ask("GET", "/containers/json?all=1", &[]) {
            let list: Value = serde_json::from_str(&said).unwrap_or_default();
            for container in list.as_array().into_iter().flatten() {
                let id = container["Id"].as_str().unwrap_or_default();
                self.try_ask("DELETE", &format!("/containers/{id}?force=1"), &[]);
            }
        }
        self.kill();
    }
}

/// A tape archive (POSIX ustar) with busybox and its names.
fn image(busybox: &[u8]) -> Vec<u8> {
    let mut archive = Vec::new();
    archive.extend(entry(Path::new("bin/busybox"), busybox.len(), None));
    archive.extend(busybox);
    archive.resize(archive.len().next_multiple_of(512), 0);
    for applet in APPLETS {
        archive.extend(entry(&Path::new("bin").join(applet), 0, Some("busybox")));
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

fn entry(path: &Path, size: usize, link: Option<&str>) -> [u8; 512] {
    let mut header = [0; 512];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, &path.to_string_lossy());
    put(100, "0000755\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, if link.is_some() { "2" } else { "0" });
    put(157, link.unwrap_or_default());
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}
