use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A program that ends when this is dropped, and also when the test's process
/// is killed.
#[derive(Debug)]
pub(crate) struct Process {
    /// A shell that ends the program when its standard input closes.
    keeper: Child,
    pid: u32,
}

impl Process {
    /// Starts it, with its output added to `log`.
    pub(crate) fn start(program: &Path, arguments: &[&OsStr], log: &Path) -> Result<Self, String> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(log)
            .map_err(|error| format!("log: {error}"))?;
        // The pipe to the shell closes when this process ends, however that
        // comes about; then the program is ended.
        let script =
            r#""$@" </dev/null >&2 & pid=$!; echo "$pid"; read -r _; kill -9 "$pid"; wait "$pid""#;
        let mut keeper = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(program)
            .args(arguments)
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
        Ok(Self { keeper, pid })
    }

    pub(crate) fn is_alive(&self) -> bool {
        Command::new("kill")
            .arg("-0")
            .arg(self.pid.to_string())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// Sends it a signal, by name.
    pub(crate) fn signal(&self, name: &str) {
        // The standard library knows no other signal than SIGKILL.
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.pid.to_string())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "kill -{name}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // The shell waits for the program, so that its ports are free afterwards.
        let _ = self.keeper.wait();
    }
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    let log = std::fs::read(log).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// The program that `variable` names, else the one called `name` in `PATH`.
pub(crate) fn find(variable: &str, name: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(variable).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        assert!(
            path.is_file(),
            "{variable} names no file: {}",
            path.display()
        );
        return Some(path);
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

/// As [`find`]; `None` after a line that names the test.
///
/// # Panics
/// If there is none and `CI` is `true`.
#[expect(clippy::print_stderr, reason = "a test that does nothing must say so")]
pub(crate) fn find_for(test: &str, variable: &str, name: &str) -> Option<PathBuf> {
    let found = find(variable, name);
    if found.is_none() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!ci, "{test}: no {name}, and with CI=true it must be there");
        eprintln!("skipped: no {name}: {test}");
    }
    found
}
