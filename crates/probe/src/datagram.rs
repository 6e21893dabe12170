//! A datagram socket of a probe's own.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::UdpSocket;

use crate::fault::{Failure, bind_failure, connect_cause, describe};
use crate::progress::Progress;

/// A socket that talks to `address` and hears nobody else, from a port that was
/// chosen by the system for this probe: an answer to an earlier one goes
/// elsewhere.
pub(crate) async fn connect(
    address: SocketAddr,
    source: Option<IpAddr>,
) -> Result<UdpSocket, Failure> {
    // What is written as IPv6 and is IPv4 has a source of IPv4.
    let address = match source {
        None => address,
        Some(_) => SocketAddr::new(address.ip().to_canonical(), address.port()),
    };
    let any: IpAddr = match address.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let failed = |error: io::Error| failure(address, &error, true);
    // Bound first: a `connect` without a free port says EAGAIN on Linux, which
    // tells nothing.
    let local = SocketAddr::new(source.unwrap_or(any), 0);
    let socket = UdpSocket::bind(local).await.map_err(|error| match source {
        None => failed(error),
        Some(source) => bind_failure(&format!("udp {address}"), source, &error),
    })?;
    socket.connect(address).await.map_err(failed)?;
    Ok(socket)
}

/// The first of `addresses` that this machine can send to.
pub(crate) async fn connect_any(
    addresses: &[SocketAddr],
    progress: &mut Progress,
) -> Result<UdpSocket, Failure> {
    let source = progress.source.as_deref().copied();
    let mut first = None;
    for address in addresses {
        progress.address = Some(*address);
        match connect(*address, source).await {
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
