use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::Failable;

/// A running daemon. It ends when this is dropped.
pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts it with its state in `directory`, with the settings that it has
    /// by itself.
    pub(crate) fn start(directory: &Path, catalog: &[String]) -> Failable<Self> {
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
        Ok(Self { child, log })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails with the end of its log if it has ended.
    pub(crate) fn is_running(&mut self) -> Failable<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("the daemon ended, {status}\n{}", self.log_tail()).into()),
        }
    }

    pub(crate) fn log_tail(&self) -> String {
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
