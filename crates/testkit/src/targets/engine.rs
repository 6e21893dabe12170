use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::conduct::{Stream, until_closed};

/// How a Docker Engine answers its API's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Every command says `ok` and ends with 0.
    Good,
    /// As `Good`, but requests with this in their path are never answered.
    SilentAt(&'static str),
    /// Commands begin and never end.
    Endless,
}

pub(super) async fn serve<S: Stream>(mut stream: S, engine: Engine) {
    while let Some(path) = request(&mut stream).await {
        if let Engine::SilentAt(at) = engine
            && path.contains(at)
        {
            return until_closed(&mut stream).await;
        }
        let answer = if path.contains("/start") {
            // What follows is the command's output, until the end.
            let upgraded = "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.multiplexed-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";
            let _ = stream.write_all(upgraded.as_bytes()).await;
            if engine == Engine::Endless {
                return until_closed(&mut stream).await;
            }
            let _ = stream.write_all(b"\x01\0\0\0\0\0\0\x03ok\n").await;
            let _ = stream.shutdown().await;
            return;
        } else if path.contains("/version") {
            json("200 OK", r#"{"ApiVersion":"1.41"}"#)
        } else if path.contains("/containers/") {
            json("201 Created", r#"{"Id":"abc"}"#)
        } else if engine == Engine::Endless {
            json("200 OK", r#"{"Running":true,"ExitCode":null}"#)
        } else {
            json("200 OK", r#"{"Running":false,"ExitCode":0}"#)
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn json(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The path of the next request, once its body has been read, too.
async fn request<S: Stream>(stream: &mut S) -> Option<String> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let length: usize = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok())
        .unwrap_or(0);
    while bytes.len() < head + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(text.split(' ').nth(1)?.to_owned())
}
