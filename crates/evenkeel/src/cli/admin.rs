//! Asks a running daemon over its admin address.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::config::{Listen, default_sockets};
use crate::environment::Environment;
use crate::exit::{Exit, Failure};

/// The daemon answers from memory; one that does not is stuck.
const PATIENCE: Duration = Duration::from_secs(10);

/// A daemon with 100,000 checks answers with about 60 MB.
const MOST_BYTES: usize = 256 << 20;

/// What a daemon answers: as it came, and as it is read here. A newer daemon may
/// say more than this program knows.
pub(super) struct Told<T> {
    pub(super) text: String,
    pub(super) value: T,
}

/// Asks for a path.
pub(super) fn ask<T: DeserializeOwned>(
    path: &str,
    admin: Option<&str>,
    environment: &Environment,
) -> Result<Told<T>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Internal, format!("no runtime: {error}")))?;
    let body = runtime.block_on(ask_first(admin, path, environment))?;
    let value = serde_json::from_slice(&body).map_err(|error| {
        let text = format!(
            "the answer is not of evenkeel {}: {error}",
            env!("CARGO_PKG_VERSION")
        );
        Failure::new(Exit::Unavailable, text)
    })?;
    let mut text = String::from_utf8_lossy(&body).into_owned();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(Told { text, value })
}

/// Asks one place, of whatever program, for a path and gives the body.
pub(super) async fn fetch(address: &str, path: &str) -> Result<Bytes, Failure> {
    let place = place(address);
    let asked = tokio::time::timeout(PATIENCE, get(&place, path, None)).await;
    let told = match asked {
        Ok(Ok(body)) => return Ok(body),
        Ok(Err(text)) => text,
        Err(_) => "no answer within 10 s".to_owned(),
    };
    Err(Failure::new(
        Exit::Unavailable,
        format!("{place}{path}: {told}"),
    ))
}

/// Where a daemon may be asked.
#[derive(Debug, Clone)]
enum Place {
    Unix(PathBuf),
    Tcp(String),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => f.write_str(address),
        }
    }
}

fn place(text: &str) -> Place {
    match text.parse() {
        Ok(Listen::Unix(path)) => Place::Unix(path),
        Ok(Listen::Tcp(address)) => Place::Tcp(address.to_string()),
        // A name, or a URL.
        Err(_) => {
            let address = text.strip_prefix("http://").unwrap_or(text);
            Place::Tcp(address.trim_end_matches('/').to_owned())
        }
    }
}

fn places(admin: Option<&str>, environment: &Environment) -> Vec<Place> {
    match admin {
        Some(admin) => vec![place(admin)],
        None => match environment.get("EVENKEEL_ADMIN__LISTEN") {
            Some(listen) => listen.split(',').map(|text| place(text.trim())).collect(),
            None => default_sockets(environment)
                .into_iter()
                .map(Place::Unix)
                .collect(),
        },
    }
}

/// Asks the first place that answers for a path, and gives the body.
async fn ask_first(
    admin: Option<&str>,
    path: &str,
    environment: &Environment,
) -> Result<Bytes, Failure> {
    let token = environment.get("EVENKEEL_ADMIN__TOKEN");
    let mut tried = Vec::new();
    for place in places(admin, environment) {
        let asked = tokio::time::timeout(PATIENCE, get(&place, path, token)).await;
        match asked {
            Ok(Ok(body)) => return Ok(body),
            Ok(Err(text)) => tried.push(format!("{place}: {text}")),
            Err(_) => tried.push(format!("{place}: no answer within 10 s")),
        }
    }
    let hint = match admin {
        None => "is it running? --admin ADDRESS names another place",
        Some(_) => "is it running?",
    };
    Err(Failure::new(
        Exit::Unavailable,
        format!("no daemon answers ({}); {hint}", tried.join("; ")),
    ))
}

async fn get(place: &Place, path: &str, token: Option<&str>) -> Result<Bytes, String> {
    match place {
        Place::Unix(socket) => {
            let stream = UnixStream::connect(socket)
                .await
                .map_err(|error| error.to_string())?;
            exchange(stream, "localhost", path, token).await
        }
        Place::Tcp(address) => {
            let stream = TcpStream::connect(address.as_str())
                .await
                .map_err(|error| error.to_string())?;
            exchange(stream, address, path, token).await
        }
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    host: &str,
    path: &str,
    token: Option<&str>,
) -> Result<Bytes, String> {
    let told = |error: hyper::Error| error.to_string();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
    // Its errors come back through the request.
    tokio::spawn(connection);
    let mut request = http::Request::get(path).header("host", host);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let answer = sender.send_request(request).await.map_err(told)?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), MOST_BYTES)
        .collect()
        .await
        .map_err(|error| error.to_string())?
        .to_bytes();
    if !status.is_success() {
        let text = String::from_utf8_lossy(&body);
        return Err(format!("{status}: {}", text.trim()));
    }
    Ok(body)
}
