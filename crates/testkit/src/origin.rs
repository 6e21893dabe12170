use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A server behind a proxy, which answers each request with its name. It
/// listens on a loopback address of its own (127.0.0.x) and a free port.
#[derive(Debug)]
pub struct Origin {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
}

impl Origin {
    /// Starts one. `host` is the last part of its address.
    ///
    /// # Panics
    /// If it cannot listen.
    pub fn start(name: &str, host: u8) -> Self {
        let listener = TcpListener::bind((std::net::Ipv4Addr::new(127, 0, 0, host), 0))
            .unwrap_or_else(|error| panic!("{error}"));
        let address = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("{error}"));
        let ended = Arc::new(AtomicBool::new(false));
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{name}",
            name.len()
        );
        let seen = Arc::clone(&ended);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if seen.load(Ordering::SeqCst) {
                    return;
                }
                let (answer, seen) = (answer.clone(), Arc::clone(&seen));
                std::thread::spawn(move || answer_all(&stream, &answer, &seen));
            }
        });
        Self { address, ended }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes it, so that its port is free.
        let _ = TcpStream::connect(self.address);
    }
}

fn answer_all(stream: &TcpStream, answer: &str, ended: &AtomicBool) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    let mut writer = stream;
    loop {
        line.clear();
        if reader.read_line(&mut line).is_ok_and(|read| read > 0) && !ended.load(Ordering::SeqCst) {
            // The empty line after the head; the requests have no bodies.
            if line == "\r\n" && writer.write_all(answer.as_bytes()).is_err() {
                return;
            }
        } else {
            return;
        }
    }
}

/// A client with one connection.
#[derive(Debug)]
pub struct Caller {
    reader: BufReader<TcpStream>,
}

impl Caller {
    /// Connects.
    ///
    /// # Panics
    /// If it cannot.
    pub fn connect(address: &str) -> Self {
        let stream =
            TcpStream::connect(address).unwrap_or_else(|error| panic!("{address}: {error}"));
        let limit = Some(Duration::from_secs(30));
        stream
            .set_read_timeout(limit)
            .and_then(|()| stream.set_nodelay(true))
            .unwrap_or_else(|error| panic!("{error}"));
        Self {
            reader: BufReader::new(stream),
        }
    }

    /// One GET: the status and the body.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn get(&mut self, path: &str) -> (u16, String) {
        self.try_get(path)
            .unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }

    fn try_get(&mut self, path: &str) -> std::io::Result<(u16, String)> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n");
        self.reader.get_mut().write_all(request.as_bytes())?;
        let (mut status, mut length, mut line) = (0, 0, String::new());
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let text = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = text.strip_prefix("http/1.1 ") {
                status = rest.get(..3).and_then(|it| it.parse().ok()).unwrap_or(0);
            } else if let Some(value) = text.strip_prefix("content-length: ") {
                length = value.parse().unwrap_or(0);
            } else if text.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }
}
