//! A target process with thousands of addresses.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

/// A running target. It ends when this is dropped.
pub struct Target {
    child: Child,
    control: SocketAddr,
    base: Ipv4Addr,
    count: u32,
    port: u16,
}

impl Target {
    /// Starts `program` for `http` or `tcp` on the `count` addresses after
    /// `base`, which lies in 127.0.0.0/8.
    ///
    /// # Errors
    /// It does not start or does not answer within some seconds.
    pub fn start(program: &Path, kind: &str, base: Ipv4Addr, count: u32) -> io::Result<Self> {
        let port = free_port()?;
        let control = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let child = Command::new(program)
            .arg(kind)
            .args([
                base.to_string(),
                count.to_string(),
                port.to_string(),
                control.port().to_string(),
            ])
            .spawn()?;
        let mut target = Self {
            child,
            control,
            base,
            count,
            port,
        };
        for _ in 0..200 {
            if target.ask("ping").is_ok() {
                return Ok(target);
            }
            if target.child.try_wait()?.is_some() {
                return Err(io::Error::other("the target ended at its start"));
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        Err(io::Error::other("the target does not answer"))
    }

    /// One command of the control protocol and its answer; see the source.
    ///
    /// # Errors
    /// The target is gone.
    pub fn ask(&self, command: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.control)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        writeln!(stream, "{command}")?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        Ok(line)
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The address of target `index`, which counts around.
    pub fn address(&self, index: u32) -> SocketAddr {
        let ip = u32::from(self.base) + 1 + index % self.count;
        SocketAddr::from((Ipv4Addr::from(ip), self.port))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // It may have ended already; there is nobody left to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}
