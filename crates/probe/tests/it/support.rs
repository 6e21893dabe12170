//! Scripted servers and short ways to run a probe.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_probe::{
    Cause, Definition, HttpCheck, Outcome, Prober, ProberSettings, Report, Resolve, ResolveError,
    TcpCheck,
};
use evenkeel_threshold::Status;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Nothing here takes that long unless it hangs.
const GENEROUS: Duration = Duration::from_secs(60);

/// A probe's timeout where the test is about what happens at it.
pub(crate) const SHORT: Duration = Duration::from_secs(1);

pub(crate) async fn run(definition: impl Into<Definition>) -> Report {
    run_with(&Prober::new(ProberSettings::default()).unwrap(), definition).await
}

pub(crate) async fn run_with(prober: &Prober, definition: impl Into<Definition>) -> Report {
    let definition = definition.into();
    tokio::time::timeout(GENEROUS, prober.run(&definition))
        .await
        .expect("the probe hangs")
}

pub(crate) fn http(url: impl AsRef<str>) -> HttpCheck {
    HttpCheck::new(url.as_ref()).unwrap()
}

pub(crate) fn tcp(address: impl ToString) -> TcpCheck {
    TcpCheck::new(&address.to_string()).unwrap()
}

/// Every name has these addresses.
struct Fixed(Vec<IpAddr>);

#[async_trait]
impl Resolve for Fixed {
    async fn resolve(&self, _: &str) -> Result<Vec<IpAddr>, ResolveError> {
        Ok(self.0.clone())
    }
}

pub(crate) fn resolving_to(addresses: &[&str]) -> Prober {
    let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
    let mut settings = ProberSettings::default();
    settings.resolver = Arc::new(Fixed(addresses));
    Prober::new(settings).unwrap()
}

#[track_caller]
pub(crate) fn assert_status(report: &Report, status: Status) {
    assert_eq!(report.status(), Some(status), "{report:#?}");
}

#[track_caller]
pub(crate) fn assert_unprobed(report: &Report, cause: Cause) {
    assert_eq!(report.outcome, Outcome::Unprobed(cause), "{report:#?}");
}

#[track_caller]
pub(crate) fn assert_says(report: &Report, part: &str) {
    assert!(report.output.contains(part), "no {part:?} in {report:#?}");
    assert!(
        report.status() == Some(Status::Passing) || !report.output.contains('\n'),
        "more than one line: {report:#?}"
    );
}

/// A server on a loopback port of the system's choice; it ends with the test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Each connection is handed to `script`.
    pub(crate) async fn start<F, R>(script: F) -> Self
    where
        F: Fn(TcpStream) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        Self::start_on("127.0.0.1:0", script).await
    }

    pub(crate) async fn start_on<F, R>(address: &str, script: F) -> Self
    where
        F: Fn(TcpStream) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(script(stream));
            }
        });
        Self { address, task }
    }

    /// Reads the request, answers with these bytes and keeps the connection
    /// open until the client closes it.
    pub(crate) async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        Self::recording(answer).await.0
    }

    /// As `answering`, and the requests are kept.
    pub(crate) async fn recording(answer: impl Into<Vec<u8>>) -> (Self, Requests) {
        let requests = Requests::default();
        let kept = requests.clone();
        let answer: Arc<[u8]> = answer.into().into();
        let server = Self::start(move |mut stream| {
            let (answer, kept) = (answer.clone(), kept.clone());
            async move {
                let request = read_request(&mut stream).await;
                kept.0.lock().unwrap().push(request);
                let _ = stream.write_all(&answer).await;
                until_closed(&mut stream).await;
            }
        })
        .await;
        (server, requests)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The requests that a server has seen.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<Vec<String>>>);

impl Requests {
    pub(crate) fn push(&self, request: String) {
        self.0.lock().unwrap().push(request);
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn only(&self) -> String {
        let all = self.all();
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    }
}

/// A request with the body that its `Content-Length` announces.
pub(crate) async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> String {
    let mut request = Vec::new();
    let head = loop {
        if let Some(at) = request.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        let mut byte = [0];
        if stream.read_exact(&mut byte).await.is_err() {
            return String::from_utf8(request).unwrap();
        }
        request.push(byte[0]);
    };
    let length = String::from_utf8_lossy(&request[..head])
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    request.extend(body);
    String::from_utf8(request).unwrap()
}

/// Waits for the client to go.
pub(crate) async fn until_closed<S: AsyncRead + Unpin>(stream: &mut S) {
    let mut sink = [0; 1024];
    while let Ok(1..) = stream.read(&mut sink).await {}
}

/// Ends the connection by a reset.
pub(crate) fn reset(stream: TcpStream) {
    stream.set_zero_linger().unwrap();
    drop(stream);
}

/// An address on which nobody listens.
pub(crate) async fn closed_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}
