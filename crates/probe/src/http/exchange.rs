//! One request and its answer on one connection.
//!
//! Why there is no HTTP client library here: each probe makes a new connection
//! for one request, and CPU per probe is a goal of the project. hyper's client,
//! with the least settings and without any of what a probe does beside the
//! exchange, costs 6 to 18 µs more per probe than all of this, where the kernel
//! needs 40 to 50 (`probe_cost` in `benches/`, figures in
//! `docs/performance.md`). The parser is `httparse`, the one that hyper is
//! built on.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::body::{Decoder, Framing};
use super::head::{self, Head, MAX_HEAD};
use super::redirect::Redirect;
use crate::definition::HttpCheck;
use crate::fault::Failure;
use crate::progress::{Answer, BodyEnd, HeadBytes};

/// Room for one read; most answers of health endpoints come whole within it.
const READ: usize = 4096;

/// An answer as it comes in.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// What has been read and not been taken in yet.
    bytes: Vec<u8>,
    head: Option<Head>,
    /// The head as it came, if it is to be kept.
    kept: Option<Box<HeadBytes>>,
    /// Bytes of interim heads, which count toward [`MAX_HEAD`].
    interim: usize,
    /// The connection can carry another request.
    reusable: bool,
}

impl Reply {
    /// For an answer to `check`.
    pub(super) fn new(check: &HttpCheck) -> Self {
        let demands = check.demands();
        let keep_head = demands.is_some_and(|demands| !demands.headers.is_empty());
        Self {
            kept: keep_head.then(Box::default),
            ..Self::default()
        }
    }

    /// Sends `request` and reads up to the end of the answer's head.
    pub(super) async fn head<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        request: &[u8],
    ) -> Result<(), Failure> {
        match send_at_once(stream, request).await {
            Ok(sent) if sent == request.len() => self.read_head(stream).await,
            Ok(sent) => self.head_while_sending(stream, &request[sent..]).await,
            Err(error) => self.head_after(error, stream).await,
        }
    }

    /// The request is larger than what the connection takes at once. A server
    /// may answer before it has read all, and then stop reading.
    async fn head_while_sending<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        rest: &[u8],
    ) -> Result<(), Failure> {
        let (mut reader, mut writer) = tokio::io::split(&mut *stream);
        let sending = async {
            writer.write_all(rest).await?;
            writer.flush().await
        };
        let error = tokio::select! {
            result = self.read_head(&mut reader) => return result,
            sent = sending => match sent {
                Ok(()) => return self.read_head(&mut reader).await,
                Err(error) => error,
            },
        };
        self.head_after(error, stream).await
    }

    /// The request could not be sent. A server that has answered and closed
    /// has been heard all the same.
    async fn head_after<S: AsyncRead + Unpin>(
        &mut self,
        error: io::Error,
        stream: &mut S,
    ) -> Result<(), Failure> {
        match self.read_head(stream).await {
            Ok(()) => Ok(()),
            // A reset is one, whether it was met in writing or in reading.
            Err(_) if is_reset(&error) => Err(failure(&error, "read")),
            Err(_) => Err(failure(&error, "write")),
        }
    }

    async fn read_head<S: AsyncRead + Unpin>(&mut self, stream: &mut S) -> Result<(), Failure> {
        let mut searched = 0;
        loop {
            if !head::may_be_http(&self.bytes) {
                return Err(Failure::critical(head::malformed(&self.bytes, "")));
            }
            // Told by the bytes alone, however they were cut on the way.
            let end = head::end_of_head(&self.bytes, searched);
            if self.interim + end.unwrap_or(self.bytes.len()) > MAX_HEAD {
                return Err(Failure::critical(format!(
                    "net/http: server response headers exceeded {MAX_HEAD} bytes; aborted"
                )));
            }
            if let Some(end) = end {
                let head = head::parse(&self.bytes[..end]).map_err(Failure::critical)?;
                let came = self.bytes.drain(..end);
                match &mut self.kept {
                    Some(kept) => kept.0 = came.collect(),
                    None => drop(came),
                }
                searched = 0;
                // 101 ends HTTP on this connection: it is the answer.
                if (100..200).contains(&head.code) && head.code != 101 {
                    self.interim += end;
                    continue;
                }
                self.head = Some(head);
                return Ok(());
            }
            searched = self.bytes.len();
            match read_more(stream, &mut self.bytes).await {
                Ok(0) if self.bytes.is_empty() => {
                    return Err(Failure::critical("EOF (while awaiting headers)"));
                }
                Ok(0) => return Err(Failure::critical("unexpected EOF (in the headers)")),
                Ok(_) => {}
                Err(error) => return Err(failure(&error, "read")),
            }
        }
    }

    /// Whether anything of an answer has come.
    pub(super) fn has_begun(&self) -> bool {
        !self.bytes.is_empty() || self.interim > 0 || self.head.is_some()
    }

    /// Whether nothing came behind the head.
    pub(super) fn is_drained(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether the connection can carry another request, once the body is read.
    pub(super) fn is_reusable(&self) -> bool {
        self.reusable
    }

    /// Code and reason of the head.
    pub(super) fn status_line(&self) -> (u16, &str) {
        let head = self.head.as_ref();
        head.map_or((0, ""), |head| (head.code, &*head.reason))
    }

    /// Where the answer leads, if it is a redirect.
    pub(super) fn redirect(&mut self) -> Option<Redirect> {
        let head = self.head.as_mut()?;
        Redirect::of(head.code, head.location.take()?)
    }

    /// The answer, of which the body is still to be read.
    pub(super) fn answer(&mut self) -> Answer {
        let head = self.head.as_mut();
        Answer {
            code: head.as_ref().map_or(0, |head| head.code),
            head: self.kept.take(),
            length: head.as_ref().and_then(|head| match head.framing {
                Framing::Length(length) => Some(length),
                _ => None,
            }),
            reason: head.map_or_else(String::new, |head| std::mem::take(&mut head.reason)),
            ..Answer::default()
        }
    }

    /// Reads the body until it ends or `limit` bytes of it are kept. What goes
    /// wrong here is told in `answer`: the status is decided.
    pub(super) async fn body<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        answer: &mut Answer,
        to_head_request: bool,
        limit: usize,
    ) {
        let framing = match &self.head {
            _ if to_head_request => Framing::None,
            Some(Head {
                code: 101 | 204 | 304,
                ..
            })
            | None => Framing::None,
            Some(head) => head.framing,
        };
        let persistent = self
            .head
            .as_ref()
            .is_some_and(|head| head.persistent && head.code != 101);
        let mut decoder = Decoder::new(framing);
        loop {
            decoder.feed(&self.bytes, answer, limit);
            if answer.end != BodyEnd::Open {
                let complete = answer.end == BodyEnd::Complete;
                self.reusable = persistent && complete && decoder.ended_clean();
                return;
            }
            self.bytes.clear();
            match read_more(stream, &mut self.bytes).await {
                Ok(0) => return decoder.finish(answer),
                Ok(_) => {}
                // Without a close_notify, but the connection was ended in order.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return decoder.finish(answer);
                }
                Err(error) => {
                    answer.end = BodyEnd::Broken(crate::tls::describe(&error, "read"));
                    return;
                }
            }
        }
    }
}

/// One write, which takes all of a usual request.
async fn send_at_once<S: AsyncWrite + Unpin>(stream: &mut S, request: &[u8]) -> io::Result<usize> {
    let sent = stream.write(request).await?;
    if sent == request.len() {
        stream.flush().await?;
    }
    Ok(sent)
}

async fn read_more<S: AsyncRead + Unpin>(stream: &mut S, into: &mut Vec<u8>) -> io::Result<usize> {
    // Doubles, so that a long head is not copied again and again.
    into.reserve(READ.max(into.len()));
    stream.read_buf(into).await
}

fn is_reset(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

fn failure(error: &io::Error, doing: &str) -> Failure {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return Failure::critical("EOF (while awaiting headers)");
    }
    Failure {
        cause: crate::fault::resource_cause(error),
        text: format!(
            "{} (while awaiting headers)",
            crate::tls::describe(error, doing)
        ),
    }
}
