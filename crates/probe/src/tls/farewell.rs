use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::client::TlsStream;

use super::describe;
use crate::fault::Failure;

/// How long a server is given to object to the handshake or to end the
/// connection in order.
const FAREWELL: Duration = Duration::from_secs(1);

/// Says goodbye and listens to the end, but not for long, nor past `deadline`:
/// the handshake was good, and that is all that the probe's time was for. In TLS 1.3 the server
/// judges the client's certificate after the client has ended its part of the
/// handshake: only now does an alert tell that it was refused.
pub(crate) async fn farewell(
    stream: &mut TlsStream<TcpStream>,
    deadline: Instant,
) -> Result<(), Failure> {
    let until = deadline.min(Instant::now() + FAREWELL);
    match timeout_at(until, say_and_listen(stream)).await {
        Ok(result) => result,
        Err(_) => Ok(()),
    }
}

async fn say_and_listen(stream: &mut TlsStream<TcpStream>) -> Result<(), Failure> {
    // An error here shows again below.
    let _ = stream.shutdown().await;
    let mut sink = [0; 1024];
    loop {
        match stream.read(&mut sink).await {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) => {
                let alert = error
                    .get_ref()
                    .and_then(|inner| inner.downcast_ref::<rustls::Error>());
                return match alert {
                    Some(rustls::Error::AlertReceived(_)) => {
                        Err(Failure::critical(describe(&error, "tls")))
                    }
                    // Reset or no close_notify: rude, but the handshake was done.
                    _ => Ok(()),
                };
            }
        }
    }
}
