//! What is probed: an HTTP server with a health per path.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// How a target answers.
#[derive(Debug, Clone)]
pub(crate) enum Health {
    /// 200.
    Up,
    /// 500.
    Down,
    /// One result per probe, `P` or `F`, over and over.
    Cycle(&'static str),
    /// One result per probe; the last one for ever.
    Script(&'static str),
}

#[derive(Debug)]
struct Target {
    health: Health,
    probes: u64,
    /// Probes since the health was set.
    step: usize,
    /// Results given since the health was set.
    given: String,
    varying: bool,
}

impl Default for Target {
    fn default() -> Self {
        Self {
            health: Health::Up,
            probes: 0,
            step: 0,
            given: String::new(),
            varying: false,
        }
    }
}

impl Target {
    fn probed(&mut self) -> (bool, String) {
        self.probes += 1;
        let letter = |script: &str, at: usize| script.as_bytes().get(at) == Some(&b'P');
        let up = match &self.health {
            Health::Up => true,
            Health::Down => false,
            Health::Cycle(script) => letter(script, self.step % script.len()),
            Health::Script(script) => letter(script, self.step.min(script.len() - 1)),
        };
        self.step += 1;
        self.given.push(if up { 'P' } else { 'F' });
        let body = if self.varying {
            format!("probe {}", self.probes)
        } else {
            "body".to_owned()
        };
        (up, body)
    }
}

type Table = Arc<Mutex<HashMap<String, Target>>>;

/// The server. It ends when it is dropped.
pub(crate) struct Targets {
    address: SocketAddr,
    table: Table,
    _stop: oneshot::Sender<()>,
}

impl Targets {
    pub(crate) fn start() -> Self {
        let table = Table::default();
        let served = Arc::clone(&table);
        let (tell, told) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                tokio::select! {
                    _ = stopped => {}
                    () = serve(listener, served) => {}
                }
            });
        });
        Self {
            address: told.recv().unwrap(),
            table,
            _stop: stop,
        }
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn set(&self, name: &str, health: Health) {
        self.with(name, |target| {
            target.health = health;
            target.step = 0;
            target.given.clear();
        });
    }

    /// From now on each body is another one.
    pub(crate) fn vary(&self, name: &str) {
        self.with(name, |target| target.varying = true);
    }

    pub(crate) fn probes(&self, name: &str) -> u64 {
        self.with(name, |target| target.probes)
    }

    /// Results given since the health was set, oldest first.
    pub(crate) fn given(&self, name: &str) -> String {
        self.with(name, |target| target.given.clone())
    }

    pub(crate) fn all_probes(&self) -> u64 {
        self.table
            .lock()
            .unwrap()
            .values()
            .map(|target| target.probes)
            .sum()
    }

    fn with<T>(&self, name: &str, use_it: impl FnOnce(&mut Target) -> T) -> T {
        use_it(
            self.table
                .lock()
                .unwrap()
                .entry(name.to_owned())
                .or_default(),
        )
    }
}

async fn serve(listener: TcpListener, table: Table) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let table = Arc::clone(&table);
        tokio::spawn(async move {
            let _ = answer(stream, &table).await;
        });
    }
}

async fn answer(mut stream: TcpStream, table: &Table) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            // A TCP check.
            return Ok(());
        }
        head.extend_from_slice(&buffer[..read]);
    }
    let head = String::from_utf8_lossy(&head);
    let name = head
        .split(' ')
        .nth(1)
        .unwrap_or("/")
        .trim_start_matches('/');
    let (up, body) = table
        .lock()
        .unwrap()
        .entry(name.to_owned())
        .or_default()
        .probed();
    let status = if up {
        "200 OK"
    } else {
        "500 Internal Server Error"
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
