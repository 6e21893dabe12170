//! `status`: asks a running daemon over its admin address.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::{StatusArguments, output};
use crate::config::{Listen, default_sockets};
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::status::{StatusFilter, StatusReport, Style, render};

/// The daemon answers from memory; one that does not is stuck.
const PATIENCE: Duration = Duration::from_secs(10);

/// A daemon with 100,000 checks answers with about 60 MB.
const MOST_BYTES: usize = 256 << 20;

/// Shows the status, and whether the daemon is ready.
pub(super) fn run(
    arguments: &StatusArguments,
    admin: Option<&str>,
    json: bool,
    environment: &Environment,
) -> Result<Exit, Failure> {
    let filter = StatusFilter {
        node: arguments.node.clone(),
        service: arguments.service.clone(),
        check: arguments.check.clone(),
        status: arguments
            .status
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(|error| Failure::new(Exit::Usage, format!("--status: {error}")))?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Internal, format!("no runtime: {error}")))?;
    let token = environment.get("EVENKEEL_ADMIN__TOKEN");
    let body = runtime.block_on(ask(admin, &filter, token, environment))?;
    let report: StatusReport = serde_json::from_slice(&body).map_err(|error| {
        let text = format!(
            "the answer is not of evenkeel {}: {error}",
            env!("CARGO_PKG_VERSION")
        );
        Failure::new(Exit::Unavailable, text)
    })?;
    if json {
        // As it came: a newer daemon may say more than this program knows.
        let mut text = String::from_utf8_lossy(&body).into_owned();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        output::print(&text)?;
    } else {
        let style = match std::io::stdout().is_terminal() {
            true => Style::Colour,
            false => Style::Plain,
        };
        output::print(&render(&report, style))?;
    }
    Ok(Exit::Ok)
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

fn places(admin: Option<&str>, environment: &Environment) -> Vec<Place> {
    let place = |text: &str| match text.parse() {
        Ok(Listen::Unix(path)) => Place::Unix(path),
        Ok(Listen::Tcp(address)) => Place::Tcp(address.to_string()),
        // A name, or a URL.
        Err(_) => {
            let address = text.strip_prefix("http://").unwrap_or(text);
            Place::Tcp(address.trim_end_matches('/').to_owned())
        }
    };
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

/// Asks the first place that answers.
async fn ask(
    admin: Option<&str>,
    filter: &StatusFilter,
    token: Option<&str>,
    environment: &Environment,
) -> Result<Bytes, Failure> {
    let mut tried = Vec::new();
    for place in places(admin, environment) {
        let asked = tokio::time::timeout(PATIENCE, get(&place, filter, token)).await;
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

async fn get(place: &Place, filter: &StatusFilter, token: Option<&str>) -> Result<Bytes, String> {
    match place {
        Place::Unix(path) => {
            let stream = UnixStream::connect(path)
                .await
                .map_err(|error| error.to_string())?;
            exchange(stream, "localhost", filter, token).await
        }
        Place::Tcp(address) => {
            let stream = TcpStream::connect(address.as_str())
                .await
                .map_err(|error| error.to_string())?;
            exchange(stream, address, filter, token).await
        }
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    host: &str,
    filter: &StatusFilter,
    token: Option<&str>,
) -> Result<Bytes, String> {
    let told = |error: hyper::Error| error.to_string();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
    // Its errors come back through the request.
    tokio::spawn(connection);
    let query = filter.to_query();
    let mut request = http::Request::get(format!("/v1/status?{query}")).header("host", host);
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
