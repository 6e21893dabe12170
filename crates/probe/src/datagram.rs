//! A datagram socket of a probe's own.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::UdpSocket;

use crate::fault::{Failure, connect_cause, describe};
use crate::progress::Progress;

/// A socket that talks to `address` and hears nobody else, from a port that was
/// chosen by the system for this probe: an answer to an earlier one goes
/// elsewhere.
pub(crate) async fn connect(address: SocketAddr) -> Result<UdpSocket, Failure> {
    let any: IpAddr = match address.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let failed = |error: io::Error| failure(address, &error, true);
    // Bound first: a `connect` without a free port says EAGAIN on Linux, which
    // tells nothing.
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))
        .await
        .map_err(failed)?;
    socket.connect(address).await.map_err(failed)?;
    Ok(socket)
}

/// The first of `addresses` that this machine can send to.
pub(crate) async fn connect_any(
    addresses: &[SocketAddr],
    progress: &mut Progress,
) -> Result<UdpSocket, Failure> {
    let mut first = None;
    for address in addresses {
        progress.address = Some(*address);
        match connect(*address).await {
            Ok(socket) => return Ok(socket),
            Err(failure) => first = first.or(Some(failure)),
        }
    }
    Err(first.unwrap_or_else(|| Failure::critical("dial udp: no address")))
}

/// Of an exchange with `address`.
pub(crate) fn failure(address: SocketAddr, error: &io::Error, immediate: bool) -> Failure {
    Failure {
        cause: connect_cause(error, immediate),
        text: format!("udp {address}: {}", describe(error)),
    }
}
