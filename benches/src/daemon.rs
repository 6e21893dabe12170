//! The built daemon as a process.

use std::error::Error;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

type Failable<T> = Result<T, Box<dyn Error>>;

/// A running daemon. It ends when this is dropped.
pub struct Daemon {
    child: Child,
    log: PathBuf,
    socket: PathBuf,
}

impl Daemon {
    /// Starts it with its state in `directory`, with the settings that it has
    /// by itself.
    ///
    /// # Errors
    /// There is no `evenkeel` beside this program, nor where `EVENKEEL` says.
    pub fn start(directory: &Path, catalog: &[String]) -> Failable<Self> {
        let program = match std::env::var_os("EVENKEEL") {
            Some(path) => path.into(),
            None => std::env::current_exe()?.with_file_name("evenkeel"),
        };
        if !program.is_file() {
            let program = program.display();
            return Err(format!("no {program}: cargo build --release -p evenkeel").into());
        }
        let log = directory.join("log");
        let socket = directory.join("admin.sock");
        let child = Command::new(program)
            .arg("run")
            .args(catalog)
            .arg("--state-dir")
            .arg(directory.join("state"))
            .arg("--set")
            .arg(format!("admin.listen=unix:{}", socket.display()))
            // Whatever is set for others would be settings.
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        Ok(Self { child, log, socket })
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// It has ended; the end of its log.
    pub fn is_running(&mut self) -> Failable<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("the daemon ended, {status}\n{}", self.log_tail()).into()),
        }
    }

    /// What it shows Prometheus.
    ///
    /// # Errors
    /// It does not answer.
    pub fn metrics(&self) -> Failable<String> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: evenkeel\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// The end of its log.
    pub fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already; there is nobody left to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
