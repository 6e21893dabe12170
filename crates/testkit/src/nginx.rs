use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::{self, Process};
use crate::wait_for;

/// Somebody may take a port between its choice and nginx's start.
const TRIES: usize = 5;

/// An nginx of its own, in one process, with servers that the test describes.
/// It ends, and its directory goes, when this is dropped and also when the
/// test's process is killed.
#[derive(Debug)]
pub struct Nginx {
    directory: tempfile::TempDir,
    ports: BTreeMap<String, u16>,
    _process: Process,
}

impl Nginx {
    /// Starts it with these `server` blocks (and what else may be in `http`),
    /// and waits until it listens. A mark of small letters, `<plain>`, stands
    /// for an address with a free port of loopback, the same at each place;
    /// `<DIR>` for the directory, in which `files` are written first. Each
    /// request is a line of [`log`](Self::requests): protocol, method, URI,
    /// status, and its number on its connection.
    ///
    /// `None`, with a line that names the test, where there is no nginx.
    ///
    /// # Panics
    /// If it does not start, or if there is none and `CI` is `true`.
    pub fn start(test: &str, servers: &str, files: &[(&str, &[u8])]) -> Option<Self> {
        let program = process::find_for(test, "EVENKEEL_NGINX", "nginx")?;
        let directory = tempfile::Builder::new()
            .prefix("evenkeel-nginx-")
            .tempdir()
            .unwrap_or_else(|error| panic!("directory: {error}"));
        write(&directory.path().join("empty"), b"");
        for (name, bytes) in files {
            write(&directory.path().join(name), bytes);
        }
        for _ in 0..TRIES {
            let ports = free_ports(&marks(servers));
            if let Some(process) = run(&program, directory.path(), servers, &ports) {
                return Some(Self {
                    directory,
                    ports,
                    _process: process,
                });
            }
        }
        let log = process::tail(&directory.path().join("log"));
        panic!("nginx does not start:\n{log}");
    }

    /// Where the mark `name` stood.
    ///
    /// # Panics
    /// If there was none.
    pub fn address(&self, name: &str) -> SocketAddr {
        let port = self.ports.get(name);
        let port = port.unwrap_or_else(|| panic!("no <{name}> in the servers"));
        (Ipv4Addr::LOCALHOST, *port).into()
    }

    /// A file in its directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The requests that it has answered and logged so far.
    pub fn requests(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.path("requests")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

fn write(path: &Path, bytes: &[u8]) {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(path, bytes))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// The names in angle brackets.
fn marks(text: &str) -> Vec<&str> {
    text.split('<')
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('>')?.0))
        .filter(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()))
        .collect()
}

fn free_ports(names: &[&str]) -> BTreeMap<String, u16> {
    // All are held until the last is chosen, so that they differ.
    let mut held = BTreeMap::new();
    for name in names {
        held.entry((*name).to_owned()).or_insert_with(|| {
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap_or_else(|error| panic!("{error}"))
        });
    }
    let port = |listener: TcpListener| listener.local_addr().map_or(0, |local| local.port());
    held.into_iter()
        .map(|(name, listener)| (name, port(listener)))
        .collect()
}

fn run(
    program: &Path,
    directory: &Path,
    servers: &str,
    ports: &BTreeMap<String, u16>,
) -> Option<Process> {
    let at = directory.display().to_string();
    let mut servers = servers.replace("<DIR>", &at);
    for (name, port) in ports {
        servers = servers.replace(&format!("<{name}>"), &format!("127.0.0.1:{port}"));
    }
    // One process, so that its end is the end. The temporary places are compiled in otherwise,
    // and are not writable.
    let config = format!(
        "daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log stderr notice;\n\
         events {{ worker_connections 256; }}\n\
         http {{\n\
         client_body_temp_path {at}/body;\nproxy_temp_path {at}/proxy;\n\
         fastcgi_temp_path {at}/fastcgi;\nuwsgi_temp_path {at}/uwsgi;\nscgi_temp_path {at}/scgi;\n\
         log_format line '$server_protocol $request_method $request_uri $status $connection_requests';\n\
         access_log {at}/requests line;\ndefault_type text/plain;\n\
         {servers}\n}}\n"
    );
    write(&directory.join("nginx.conf"), config.as_bytes());
    let (pid, log) = (directory.join("pid"), directory.join("log"));
    let _ = std::fs::remove_file(&pid);
    let conf = directory.join("nginx.conf");
    let arguments: [&OsStr; 6] = [
        "-p".as_ref(),
        directory.as_ref(),
        "-c".as_ref(),
        conf.as_ref(),
        "-e".as_ref(),
        "stderr".as_ref(),
    ];
    let process =
        Process::start(program, &arguments, &log).unwrap_or_else(|error| panic!("{error}"));
    // Written once all listeners are open.
    let listens = || std::fs::read(&pid).is_ok_and(|text| !text.is_empty());
    wait_for(Duration::from_secs(60), || {
        (listens() || !process.is_alive()).then_some(())
    });
    listens().then_some(process)
}
