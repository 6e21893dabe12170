use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// One HTTP/1.0 request: the status and the body. `None` if there is no whole
/// answer within 10 s.
///
/// A few lines instead of a client, so that what a test says of the crate's
/// client does not depend on it.
pub fn request(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Option<(u16, String)> {
    let answer = exchange(address, "1.0", method, path, headers, body)?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((status(head)?, body.to_owned()))
}

/// A GET over HTTP/1.1, for servers that take nothing older.
pub(crate) fn get(address: &str, path: &str) -> Option<(u16, String)> {
    let answer = exchange(address, "1.1", "GET", path, &[], "")?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let chunked = head.to_ascii_lowercase().contains("chunked");
    let body = if chunked {
        unchunked(body)?
    } else {
        body.to_owned()
    };
    Some((status(head)?, body))
}

fn exchange(
    address: &str,
    version: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .ok()?;
    let mut head =
        format!("{method} {path} HTTP/{version}\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer).into_owned())
}

fn status(head: &str) -> Option<u16> {
    head.split(' ').nth(1)?.parse().ok()
}

fn unchunked(mut body: &str) -> Option<String> {
    let mut whole = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n")?;
        let size = usize::from_str_radix(size.split(';').next()?, 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.push_str(rest.get(..size)?);
        body = rest.get(size..)?.strip_prefix("\r\n")?;
    }
}
