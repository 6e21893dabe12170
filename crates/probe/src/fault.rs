//! What went wrong, whose fault it is, and the words for it.

use std::io;
use std::net::IpAddr;

use crate::progress::Progress;
use crate::report::{Cause, Phase};

/// Why a probe ended before there was an answer.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// `None`: the target's fault.
    pub(crate) cause: Option<Cause>,
    /// Without the `Get "URL": ` in front.
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn critical(text: impl Into<String>) -> Self {
        Self {
            cause: None,
            text: text.into(),
        }
    }

    pub(crate) fn unprobed(cause: Cause, text: impl Into<String>) -> Self {
        Self {
            cause: Some(cause),
            text: text.into(),
        }
    }
}

/// The fault is a lack of our own that says nothing about any target.
pub(crate) fn resource_cause(error: &io::Error) -> Option<Cause> {
    if error.kind() == io::ErrorKind::OutOfMemory {
        return Some(Cause::Memory);
    }
    match error.raw_os_error()? {
        #[cfg(unix)]
        libc::EMFILE | libc::ENFILE => Some(Cause::Descriptors),
        #[cfg(unix)]
        libc::ENOBUFS => Some(Cause::Memory),
        // WSAEMFILE and WSAENOBUFS of winsock2.h.
        #[cfg(windows)]
        10024 => Some(Cause::Descriptors),
        #[cfg(windows)]
        10055 => Some(Cause::Memory),
        _ => None,
    }
}

/// Whose fault it is that a connection could not be made; `None` for the
/// target's. `immediate` says that the error came from the system call itself
/// and not from the network.
///
/// * No descriptors, ports, memory or permission: ours.
/// * "Network unreachable" at once: this machine has no route, ours. Later, it
///   is a router's word on the target's network: the target's.
/// * "No route to host": the machine on the target's address does not answer
///   (ARP, NDP) or a router says so: the target's.
/// * Refused, reset, timed out: the target's, also when `connect` itself says
///   so, which it does on loopback.
pub(crate) fn connect_cause(error: &io::Error, immediate: bool) -> Option<Cause> {
    use io::ErrorKind::{
        AddrInUse, AddrNotAvailable, ConnectionAborted, ConnectionRefused, ConnectionReset,
        HostUnreachable, NetworkUnreachable, PermissionDenied, TimedOut,
    };
    if let Some(cause) = resource_cause(error) {
        return Some(cause);
    }
    match error.kind() {
        AddrNotAvailable | AddrInUse => Some(Cause::SourcePorts),
        PermissionDenied => Some(Cause::Permission),
        NetworkUnreachable => immediate.then_some(Cause::NoRoute),
        ConnectionRefused | ConnectionReset | ConnectionAborted | TimedOut | HostUnreachable => {
            None
        }
        _ if is_family_unsupported(error) => Some(Cause::NoRoute),
        _ => immediate.then_some(Cause::System),
    }
}

/// A socket could not be given its local address, `doing` this.
pub(crate) fn bind_failure(doing: &str, source: IpAddr, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::AddrNotAvailable {
        let text = format!(
            "{doing}: bind {source}: no address of this machine: \
             correct the check's source address, or give it to an interface"
        );
        return Failure::unprobed(Cause::SourceAddress, text);
    }
    let cause = connect_cause(error, true).unwrap_or(Cause::System);
    let text = format!("{doing}: bind {source}: {}", describe(error));
    Failure::unprobed(cause, text)
}

fn is_family_unsupported(error: &io::Error) -> bool {
    match error.raw_os_error() {
        #[cfg(unix)]
        Some(libc::EAFNOSUPPORT) => true,
        // WSAEAFNOSUPPORT of winsock2.h.
        #[cfg(windows)]
        Some(10047) => true,
        _ => false,
    }
}

/// The error in Go's words, which are the C library's in lower case: people
/// match on `connection refused` and the like.
pub(crate) fn describe(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return "EOF".to_owned();
    }
    // Who writes once more after the reset is told this instead. Which of both it is depends on
    // moments, and the text is not to.
    if error.kind() == io::ErrorKind::BrokenPipe {
        return "connection reset by peer".to_owned();
    }
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    match chars.next() {
        // `Connection refused`, but not `EOF`.
        Some(first) if chars.as_str().starts_with(char::is_lowercase) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

/// What the time ran out on, in Go's words where it has any.
pub(crate) fn timed_out(progress: &Progress) -> String {
    const EXCEEDED: &str = "context deadline exceeded";
    if let Some(what) = progress.waiting_for {
        return format!("{}: {EXCEEDED}", what.as_str());
    }
    match (progress.phase(), progress.address, &progress.name) {
        (Phase::Resolve, _, Some(name)) => format!("dial tcp: lookup {name}: {EXCEEDED}"),
        (Phase::Connect, Some(address), _) => format!("dial tcp {address}: connect: {EXCEEDED}"),
        (Phase::Tls, ..) => format!("tls: handshake: {EXCEEDED}"),
        (Phase::FirstByte, ..) => {
            format!("{EXCEEDED} (Client.Timeout exceeded while awaiting headers)")
        }
        (Phase::Transfer, ..) => {
            format!("{EXCEEDED} (Client.Timeout or context cancellation while reading body)")
        }
        (Phase::Run, ..) => format!("running the command: {EXCEEDED}"),
        (Phase::Resolve | Phase::Connect, ..) => format!("dial tcp: {EXCEEDED}"),
    }
}
