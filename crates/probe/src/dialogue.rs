//! What is said on a connection that has no protocol of ours.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout_at;

use crate::capture::line;
use crate::definition::{Expected, TcpStep};
use crate::fault::{Failure, resource_cause};
use crate::progress::Progress;
use crate::report::Phase;

/// The most of one answer that is read, in bytes. It is searched as a whole
/// whenever more has come.
const MOST_ANSWER: usize = 16 * 1024;

/// Takes the steps one after the other.
pub(crate) async fn hold<S: AsyncRead + AsyncWrite + Unpin>(
    steps: &[TcpStep],
    stream: &mut S,
    progress: &mut Progress,
) -> Result<(), Failure> {
    progress.enter(Phase::FirstByte);
    for step in steps {
        if !step.send.is_empty() {
            let sending = async {
                stream.write_all(&step.send).await?;
                stream.flush().await
            };
            sending.await.map_err(|error| broken(&error, "write"))?;
        }
        if let Some(expected) = &step.expected {
            answer(expected, stream, progress).await?;
        }
    }
    Ok(())
}

/// Reads until what is expected has come.
async fn answer<S: AsyncRead + Unpin>(
    expected: &Expected,
    stream: &mut S,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let mut came = Vec::with_capacity(512);
    let missing = |came: &[u8], why: &str| {
        let came = String::from_utf8_lossy(came);
        let came = match line(&came) {
            came if came.is_empty() => "nothing came".to_owned(),
            came => format!("what came is {came:?}"),
        };
        Failure::critical(format!("the answer has not {expected}: {why}, {came}"))
    };
    loop {
        // What has come so far is told, so that the deadline is minded here.
        let reading = timeout_at(progress.deadline, stream.read_buf(&mut came));
        match reading.await {
            Ok(Ok(0)) => return Err(missing(&came, "EOF")),
            Ok(Ok(_)) if expected.is_met(&came) => return Ok(()),
            Ok(Ok(_)) if came.len() >= MOST_ANSWER => {
                return Err(missing(&came, "it is longer than 16 KiB"));
            }
            Ok(Ok(_)) => {}
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(missing(&came, "EOF"));
            }
            Ok(Err(error)) => return Err(broken(&error, "read")),
            Err(_) => return Err(missing(&came, "context deadline exceeded")),
        }
    }
}

fn broken(error: &io::Error, doing: &str) -> Failure {
    Failure {
        cause: resource_cause(error),
        text: crate::tls::describe(error, doing),
    }
}
