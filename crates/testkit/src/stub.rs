use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::wait_for;

/// An HTTP/1.1 server that answers as a function of the test says.
///
/// It ends, with all its connections, when it is dropped.
pub struct Stub {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<thread::JoinHandle<()>>,
}

struct Shared {
    answer: Box<dyn Fn(&Request) -> Reply + Send + Sync>,
    requests: Mutex<Vec<Request>>,
    connections: Mutex<BTreeMap<usize, TcpStream>>,
    most_connections: AtomicUsize,
    ended: AtomicBool,
}

/// A request that has come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// GET, PUT, ….
    pub method: String,
    /// The path with its query.
    pub target: String,
    /// The headers; names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
    /// How many requests came before it, on any connection.
    pub number: usize,
    /// Which connection it came on.
    pub connection: usize,
}

/// What the server does with a request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A proper answer.
    Answer {
        /// The status.
        status: u16,
        /// Headers besides `Content-Length`.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// These bytes, then the connection is closed.
    Raw(Vec<u8>),
    /// The first bytes, then the others again and again until the client has
    /// enough.
    Endless {
        /// Sent once.
        first: Vec<u8>,
        /// Sent for ever.
        then: Vec<u8>,
    },
    /// These bytes, then nothing; the connection stays open.
    Stall(Vec<u8>),
    /// Nothing; the connection stays open.
    Silence,
    /// Nothing; the connection is closed.
    Close,
    /// The other reply after a while.
    After(Duration, Box<Reply>),
}

impl Reply {
    /// 200 with JSON.
    pub fn json(body: impl Into<String>) -> Self {
        Self::status(200, body)
    }

    /// Any status.
    pub fn status(status: u16, body: impl Into<String>) -> Self {
        Self::Answer {
            status,
            headers: Vec::new(),
            body: body.into().into_bytes(),
        }
    }

    /// With a header more.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_string()));
        }
        self
    }

    /// 200 with a body of which only the first `sent` bytes come.
    pub fn cut(body: &str, sent: usize) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&body.as_bytes()[..sent.min(body.len())]);
        Self::Raw(bytes)
    }
}

impl Request {
    /// The path without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The body as JSON; `null` if it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Stub {
    /// A server on a free port of loopback.
    ///
    /// # Panics
    /// If there is no free port.
    pub fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("{error}"));
        let address = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("{error}"));
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            requests: Mutex::default(),
            connections: Mutex::default(),
            most_connections: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        });
        let in_thread = Arc::clone(&shared);
        let accepting = Some(thread::spawn(move || in_thread.accept(&listener)));
        Self {
            address,
            shared,
            accepting,
        }
    }

    /// Where it listens: `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The requests so far, in the order in which they came in.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.requests).clone()
    }

    /// How many connections are open.
    pub fn open_connections(&self) -> usize {
        lock(&self.shared.connections).len()
    }

    /// How many connections were open at the same time, at most.
    pub fn most_connections(&self) -> usize {
        self.shared.most_connections.load(Ordering::SeqCst)
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        // Wakes the accepting thread. When it has ended, nobody listens.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        for stream in lock(&self.shared.connections).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for (number, stream) in listener.incoming().enumerate() {
            if self.ended.load(Ordering::SeqCst) {
                return;
            }
            let Ok(stream) = stream else { continue };
            let Ok(handle) = stream.try_clone() else {
                continue;
            };
            let open = {
                let mut connections = lock(&self.connections);
                connections.insert(number, handle);
                connections.len()
            };
            self.most_connections.fetch_max(open, Ordering::SeqCst);
            let shared = Arc::clone(self);
            thread::spawn(move || {
                // An error here is the client's going away.
                let _ = shared.serve(number, &stream);
                let _ = stream.shutdown(Shutdown::Both);
                lock(&shared.connections).remove(&number);
            });
        }
    }

    fn serve(&self, connection: usize, stream: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        while let Some(mut request) = read_request(&mut reader)? {
            request.connection = connection;
            {
                let mut requests = lock(&self.requests);
                request.number = requests.len();
                requests.push(request.clone());
            }
            let mut reply = (self.answer)(&request);
            while let Reply::After(delay, then) = reply {
                // The end of the stub ends the wait too.
                wait_for(delay, || self.ended.load(Ordering::SeqCst).then_some(()));
                reply = *then;
            }
            let last = request
                .headers
                .get("connection")
                .is_some_and(|value| value == "close");
            if !send(&reply, stream)? || last {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Sends a reply; whether the connection can go on.
fn send(reply: &Reply, mut stream: &TcpStream) -> std::io::Result<bool> {
    match reply {
        Reply::Answer {
            status,
            headers,
            body,
        } => {
            let mut head = format!(
                "HTTP/1.1 {status} Status\r\nContent-Length: {}\r\n",
                body.len()
            );
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            head.push_str("\r\n");
            stream.write_all(&[head.as_bytes(), body].concat())?;
            Ok(true)
        }
        Reply::Raw(bytes) => {
            stream.write_all(bytes)?;
            Ok(false)
        }
        Reply::Endless { first, then } => {
            stream.write_all(first)?;
            loop {
                stream.write_all(then)?;
            }
        }
        Reply::Stall(bytes) => {
            stream.write_all(bytes)?;
            send(&Reply::Silence, stream)
        }
        Reply::Silence => {
            // Until the client goes, or the stub ends.
            let _ = stream.read(&mut [0])?;
            Ok(false)
        }
        Reply::Close | Reply::After(..) => Ok(false),
    }
}

fn read_request(reader: &mut impl BufRead) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default().to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    let length = headers
        .get("content-length")
        .and_then(|text: &String| text.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok(Some(Request {
        method,
        target,
        headers,
        body,
        number: 0,
        connection: 0,
    }))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request;

    #[test]
    fn it_answers_and_remembers() {
        let stub = Stub::start(|request| Reply::json(format!("\"{}\"", request.path())));
        let answer = request(&stub.address(), "PUT", "/a?b=c", &[("X", "y")], "body").unwrap();
        assert_eq!(answer, (200, "\"/a\"".to_owned()));
        let requests = stub.requests();
        assert_eq!(requests[0].target, "/a?b=c");
        assert_eq!(requests[0].headers["x"], "y");
        assert_eq!(requests[0].body, b"body");
    }

    #[test]
    fn it_ends_with_its_connections() {
        let stub = Stub::start(|_| Reply::Silence);
        let mut stream = TcpStream::connect(stub.address()).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        crate::eventually("connected", || (stub.requests().len() == 1).then_some(()));
        drop(stub);
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    }
}
