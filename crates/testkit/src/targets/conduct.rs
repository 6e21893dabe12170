use std::borrow::Cow;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

use super::{Calls, Engine, engine, http2};

/// What a server does with each connection.
#[derive(Debug, Clone)]
pub enum Conduct {
    /// Reads, says nothing, and closes after the client has.
    Silent,
    /// Neither reads nor says anything, and closes after so long.
    Deaf(Duration),
    /// Closes in order, once something has come.
    Close,
    /// Ends the connection by a reset, once something has come.
    Reset,
    /// Answers to whatever comes, once, and closes after the client has.
    Answer(Cow<'static, [u8]>),
    /// Answers to whatever comes, each time, and closes after the client has.
    Answers(Cow<'static, [u8]>),
    /// As `Answer`, but the connection is reset after the answer.
    AnswerAndReset(Cow<'static, [u8]>),
    /// As `Answer`, but the server closes first.
    AnswerAndClose(Cow<'static, [u8]>),
    /// Answers with `start`, and then one `byte` each `pace` without end.
    Drip {
        /// The beginning.
        start: &'static [u8],
        /// All the rest.
        byte: u8,
        /// From one byte to the next.
        pace: Duration,
    },
    /// Speaks HTTP/2, answers pings, and calls so.
    Http2(Calls),
    /// A Docker Engine with one container, in which every command runs.
    Docker(Engine),
}

/// A connection of some sort.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// It is to be reset when it is dropped.
    fn reset(&self);
}

impl Stream for TcpStream {
    fn reset(&self) {
        // It may be gone already, which is as good.
        let _ = self.set_zero_linger();
    }
}

impl Stream for TlsStream<TcpStream> {
    fn reset(&self) {
        self.get_ref().0.reset();
    }
}

impl Stream for UnixStream {
    fn reset(&self) {}
}

pub(super) async fn run<S: Stream>(conduct: Conduct, mut stream: S) {
    match conduct {
        Conduct::Silent => until_closed(&mut stream).await,
        Conduct::Deaf(time) => tokio::time::sleep(time).await,
        Conduct::Close => {
            read(&mut stream).await;
            let _ = stream.shutdown().await;
        }
        Conduct::Reset => {
            read(&mut stream).await;
            stream.reset();
        }
        Conduct::Answer(answer) => {
            say(&mut stream, &answer).await;
            until_closed(&mut stream).await;
        }
        Conduct::Answers(answer) => {
            let mut sink = [0; 4096];
            while let Ok(1..) = stream.read(&mut sink).await {
                let _ = stream.write_all(&answer).await;
                let _ = stream.flush().await;
            }
        }
        Conduct::AnswerAndReset(answer) => {
            say(&mut stream, &answer).await;
            stream.reset();
        }
        Conduct::AnswerAndClose(answer) => {
            say(&mut stream, &answer).await;
            let _ = stream.shutdown().await;
        }
        Conduct::Drip { start, byte, pace } => drip(&mut stream, start, byte, pace).await,
        Conduct::Http2(calls) => http2::serve(stream, calls).await,
        Conduct::Docker(engine) => engine::serve(stream, engine).await,
    }
}

async fn read<S: Stream>(stream: &mut S) {
    let mut sink = [0; 4096];
    let _ = stream.read(&mut sink).await;
}

/// Waits for the client to go.
pub(super) async fn until_closed<S: AsyncRead + Unpin>(stream: &mut S) {
    let mut sink = [0; 4096];
    while let Ok(1..) = stream.read(&mut sink).await {}
}

async fn say<S: Stream>(stream: &mut S, answer: &[u8]) {
    read(stream).await;
    let _ = stream.write_all(answer).await;
    let _ = stream.flush().await;
}

async fn drip<S: Stream>(stream: &mut S, start: &[u8], byte: u8, pace: Duration) {
    say(stream, start).await;
    let (mut reading, mut writing) = tokio::io::split(stream);
    let dripping = async {
        loop {
            tokio::time::sleep(pace).await;
            if writing.write_all(&[byte]).await.is_err() || writing.flush().await.is_err() {
                return;
            }
        }
    };
    // The client may go between two bytes.
    tokio::select! {
        () = dripping => {}
        () = until_closed(&mut reading) => {}
    }
}
