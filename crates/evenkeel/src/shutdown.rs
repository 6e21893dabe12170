//! Signals of the operating system, as the daemon understands them.
//!
//! * SIGTERM and SIGINT: end in order. The second one ends the process at once.
//! * SIGHUP: read the configuration again.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// What the daemon is asked to do from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// No new probes, let the running ones end, flush, save, leave.
    Shutdown,
    /// Read the configuration again.
    Reload,
}

/// Listens for signals from now on.
///
/// `at_once` is run at the second SIGTERM or SIGINT; it is expected to end the
/// process.
///
/// # Errors
///
/// When the runtime cannot install a handler.
pub fn requests(
    at_once: impl FnOnce() + Send + 'static,
) -> std::io::Result<mpsc::Receiver<Request>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let (send, receive) = mpsc::channel(4);
    tokio::spawn(async move {
        let mut asked = false;
        loop {
            let request = tokio::select! {
                _ = terminate.recv() => Request::Shutdown,
                _ = interrupt.recv() => Request::Shutdown,
                _ = hangup.recv() => Request::Reload,
            };
            if request == Request::Shutdown {
                if asked {
                    break at_once();
                }
                asked = true;
            }
            // The last free place is kept for the one shutdown. A closed channel
            // means that the daemon is past listening; a second signal still has
            // to work then.
            if request == Request::Shutdown || send.capacity() > 1 {
                let _ = send.try_send(request);
            }
        }
    });
    Ok(receive)
}
