//! Peers that answer or hang, in a process of their own, so that neither their
//! CPU time nor their descriptors are counted as the prober's.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use evenkeel_testkit::targets::{Calls, Conduct, Datagrams, Engine, Said, Targets};

use crate::{namespace, process};

const MARK: &str = "EVENKEEL_BENCH_PEERS";

/// Addresses of one peer, from 127.1.0.1 on, in a network of one's own: many
/// probes of one address would measure the kernel's search for a free port
/// among those in TIME_WAIT.
pub const ADDRESSES: u32 = 4990;

const EVERY_SECOND: Duration = Duration::from_secs(1);

/// The program goes on as the peers if it was started as such, and then returns
/// `true` at their end. To be called first in `main`.
///
/// # Errors
/// The peers cannot be started.
pub fn serve() -> io::Result<bool> {
    let Some(directory) = env::var_os(MARK) else {
        return Ok(false);
    };
    process::allow_descriptors()?;
    let targets = Targets::start_on(if namespace::is_own() {
        Ipv4Addr::UNSPECIFIED
    } else {
        Ipv4Addr::LOCALHOST
    });
    let directory = PathBuf::from(directory);
    fs::copy(targets.ca_file(), directory.join("ca.pem"))?;
    engines(&targets, &directory);
    let addresses = serde_json::to_string(&addresses(&targets))?;
    writeln!(io::stdout(), "{addresses}")?;
    io::stdout().flush()?;
    // Until nobody holds the other end.
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(true)
}

fn addresses(targets: &Targets) -> BTreeMap<&'static str, SocketAddr> {
    let answer = |bytes: &'static [u8]| Conduct::Answer(bytes.into());
    let ok = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";
    let drip = |start, byte| Conduct::Drip {
        start,
        byte,
        pace: EVERY_SECOND,
    };
    // An empty SETTINGS frame (RFC 9113 section 6.5), and of a PING's 17 bytes 13.
    let settings = b"\0\0\0\x04\0\0\0\0\0";
    let half_a_ping = b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x06\x01\0\0\0\0abcd";
    BTreeMap::from([
        ("https", targets.tls(answer(ok))),
        ("tls", targets.tls(Conduct::Silent)),
        ("h2", targets.tcp(Conduct::Http2(Calls::Serving))),
        ("h2 over tls", targets.tls(Conduct::Http2(Calls::Serving))),
        ("udp", targets.udp(Datagrams::Echo)),
        ("dns", targets.dns(Said::Address, Said::Address)),
        // From here on they hang.
        ("silent", targets.tcp(Conduct::Silent)),
        ("full backlog", targets.full_backlog()),
        (
            "endless head",
            targets.tcp(drip(b"HTTP/1.1 200 OK\r\nX: ", b'x')),
        ),
        (
            "endless body",
            targets.tcp(drip(b"HTTP/1.1 200 OK\r\n\r\n", b'x')),
        ),
        // The head of a record of TLS of 16 KiB.
        (
            "endless tls",
            targets.tcp(drip(b"\x16\x03\x03\x40\0\x02\0\x3f\xfc", 3)),
        ),
        ("silent in tls", targets.tls(Conduct::Silent)),
        (
            "unanswered call",
            targets.tcp(Conduct::Http2(Calls::Unanswered)),
        ),
        ("no pong", targets.tcp(answer(settings))),
        ("half a pong", targets.tcp(answer(half_a_ping))),
        ("silent udp", targets.udp(Datagrams::Silent)),
        ("silent dns", targets.dns(Said::Nothing, Said::Nothing)),
        (
            "truncating dns",
            targets.dns(Said::Truncated, Said::Nothing),
        ),
    ])
}

/// Docker Engines, by the names of their sockets.
fn engines(targets: &Targets, directory: &Path) {
    for (name, engine) in [
        ("good", Engine::Good),
        ("silent", Engine::SilentAt("/version")),
        ("silent at create", Engine::SilentAt("/containers/")),
        ("silent at start", Engine::SilentAt("/start")),
        ("silent at inspect", Engine::SilentAt("/json")),
        ("endless", Engine::Endless),
    ] {
        targets.unix(&directory.join(name), Conduct::Docker(engine));
    }
}

/// The running peers. They end when this is dropped.
pub struct Peers {
    child: Child,
    addresses: BTreeMap<String, SocketAddr>,
    directory: tempfile::TempDir,
}

impl Peers {
    /// Starts them, as this very program.
    ///
    /// # Errors
    /// They do not start.
    pub fn start() -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut child = Command::new(env::current_exe()?)
            .env(MARK, directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        Ok(Self {
            child,
            addresses: serde_json::from_str(&line)?,
            directory,
        })
    }

    /// The first address of a peer.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn address(&self, name: &str) -> io::Result<SocketAddr> {
        let address = self.addresses.get(name).copied();
        address.ok_or_else(|| io::Error::other(format!("no peer {name}")))
    }

    /// Address number `index` of a peer on TCP; they count around.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn one_of(&self, name: &str, index: u32) -> io::Result<SocketAddr> {
        let mut address = self.address(name)?;
        if namespace::is_own() {
            let first = u32::from(Ipv4Addr::new(127, 1, 0, 1));
            address.set_ip(Ipv4Addr::from(first + index % ADDRESSES).into());
        }
        Ok(address)
    }

    /// The PEM file of the CA of the peers' certificate, which is for
    /// `localhost`.
    pub fn ca_file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// A Docker Engine.
    pub fn engine(&self, name: &str) -> String {
        format!("unix://{}", self.directory.path().join(name).display())
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // They may have ended already; there is nobody left to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
