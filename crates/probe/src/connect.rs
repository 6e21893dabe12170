//! From a host to a connection.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::net::{TcpSocket, TcpStream};

use crate::definition::{Family, Host};
use crate::fault::{Failure, bind_failure, connect_cause, describe};
use crate::policy::TargetPolicy;
use crate::prober::Shared;
use crate::progress::Progress;
use crate::report::{Cause, Phase};
use crate::resolve::{Resolve, ResolveError};

/// How long one address may keep the next waiting (RFC 8305 section 8,
/// "Connection Attempt Delay").
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

/// The most addresses of one name that are tried. A name with more is a pool,
/// of which one member is enough.
const MAX_ADDRESSES: usize = 16;

/// Connects to `host`. A literal address takes the short way: no resolver, no
/// race, no allocation.
pub(crate) async fn connect(
    host: &Host,
    port: u16,
    policy: &TargetPolicy,
    resolver: &dyn Resolve,
    progress: &mut Progress,
) -> Result<TcpStream, Failure> {
    match host {
        Host::Ip(ip) => {
            admit(*ip, policy, progress)?;
            progress.enter(Phase::Connect);
            let address = SocketAddr::new(*ip, port);
            progress.address = Some(address);
            match progress.source.as_deref() {
                None => connect_to(address).await,
                Some(source) => Box::pin(connect_from(*source, address)).await,
            }
        }
        Host::Name(name) => Box::pin(connect_by_name(name, port, policy, resolver, progress)).await,
    }
}

async fn connect_by_name(
    name: &str,
    port: u16,
    policy: &TargetPolicy,
    resolver: &dyn Resolve,
    progress: &mut Progress,
) -> Result<TcpStream, Failure> {
    let allowed = lookup(name, port, policy, resolver, progress).await?;
    progress.enter(Phase::Connect);
    race(&allowed, progress).await
}

/// The addresses of `host` that may be probed, at least one, for kinds that
/// connect in their own way.
pub(crate) async fn addresses(
    host: &Host,
    port: u16,
    shared: &Shared,
    progress: &mut Progress,
) -> Result<Vec<SocketAddr>, Failure> {
    match host {
        Host::Ip(ip) => {
            admit(*ip, &shared.policy, progress)?;
            Ok(vec![SocketAddr::new(*ip, port)])
        }
        Host::Name(name) => {
            let (policy, resolver) = (&shared.policy, &*shared.resolver);
            Box::pin(lookup(name, port, policy, resolver, progress)).await
        }
    }
}

/// Whether a literal address may be connected to.
fn admit(ip: IpAddr, policy: &TargetPolicy, progress: &Progress) -> Result<(), Failure> {
    policy
        .check(ip)
        .map_err(|refused| Failure::unprobed(Cause::TargetRefused, refused.to_string()))?;
    // That of the check itself has one that is wanted: a redirect led here.
    let wanted = progress.family;
    if wanted.takes(ip) {
        return Ok(());
    }
    let text = format!("dial tcp {ip}: not {}", wanted.an_address());
    Err(Failure::critical(text))
}

/// The addresses of a name that may be probed, in the order of trying.
async fn lookup(
    name: &str,
    port: u16,
    policy: &TargetPolicy,
    resolver: &dyn Resolve,
    progress: &mut Progress,
) -> Result<Vec<SocketAddr>, Failure> {
    progress.enter(Phase::Resolve);
    progress.name = Some(name.into());
    progress.address = None;
    let found = resolve(name, progress.family, resolver).await?;
    let allowed: Vec<SocketAddr> = found
        .iter()
        .filter(|ip| policy.check(**ip).is_ok())
        .map(|ip| SocketAddr::new(*ip, port))
        .collect();
    if allowed.is_empty() {
        let refusal = found.iter().find_map(|ip| policy.check(*ip).err());
        return Err(match refusal {
            Some(refused) => {
                Failure::unprobed(Cause::TargetRefused, format!("lookup {name}: {refused}"))
            }
            None => Failure::critical(not_found(name, progress.family)),
        });
    }
    Ok(alternate(&allowed))
}

async fn resolve(
    name: &str,
    wanted: Family,
    resolver: &dyn Resolve,
) -> Result<Vec<IpAddr>, Failure> {
    if is_localhost(name) {
        let mut both = vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        both.retain(|ip| wanted.takes(*ip));
        return Ok(both);
    }
    let answer = match wanted {
        Family::Any | Family::Both => resolver.resolve(name).await,
        Family::V4 | Family::V6 => resolver.resolve_family(name, wanted).await,
    };
    answer.map_err(|error| match error {
        ResolveError::NotFound => Failure::critical(not_found(name, wanted)),
        ResolveError::Failed(_) => {
            Failure::unprobed(Cause::Resolver, format!("dial tcp: lookup {name}: {error}"))
        }
    })
}

fn not_found(name: &str, wanted: Family) -> String {
    match wanted {
        Family::Any | Family::Both => format!("dial tcp: lookup {name}: no such host"),
        Family::V4 | Family::V6 => {
            let address = wanted.an_address();
            format!("dial tcp: lookup {name}: no such host with {address}")
        }
    }
}

/// RFC 6761 section 6.3: such names are the loopback addresses, and no name
/// server is to be asked.
fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// The families take turns (RFC 8305 section 4), beginning with that of the
/// first address, without repetitions.
fn alternate(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<SocketAddr>, Vec<SocketAddr>) = addresses
        .iter()
        .partition(|address| address.is_ipv6() == first_is_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut ordered = Vec::with_capacity(addresses.len().min(MAX_ADDRESSES));
    loop {
        let turn = [first.next(), second.next()];
        if turn == [None, None] || ordered.len() >= MAX_ADDRESSES {
            ordered.truncate(MAX_ADDRESSES);
            return ordered;
        }
        for address in turn.into_iter().flatten() {
            if !ordered.contains(&address) {
                ordered.push(address);
            }
        }
    }
}

/// Tries the addresses in turn: the next one when the one before has failed or
/// has taken [`NEXT_ADDRESS_AFTER`]. The first connection wins.
async fn race(addresses: &[SocketAddr], progress: &mut Progress) -> Result<TcpStream, Failure> {
    let source = progress.source.as_deref().copied();
    let mut waiting = addresses.iter().copied().enumerate();
    let mut running = FuturesUnordered::new();
    let mut failures: Vec<(usize, Failure)> = Vec::new();
    loop {
        if let Some((index, address)) = waiting.next() {
            progress.address.get_or_insert(address);
            running.push(async move {
                let result = match source {
                    None => connect_to(address).await,
                    Some(source) => connect_from(source, address).await,
                };
                (index, address, result)
            });
        }
        let result = if waiting.len() == 0 {
            running.next().await
        } else {
            tokio::time::timeout(NEXT_ADDRESS_AFTER, running.next())
                .await
                .unwrap_or(None)
        };
        match result {
            Some((_, address, Ok(stream))) => {
                progress.own_fault = None;
                progress.address = Some(address);
                return Ok(stream);
            }
            Some((index, address, Err(failure))) => {
                if let Some(cause) = failure.cause.filter(|cause| is_hard(*cause, address)) {
                    progress
                        .own_fault
                        .get_or_insert((cause, failure.text.clone()));
                }
                failures.push((index, failure));
            }
            None if waiting.len() == 0 => break,
            None => {}
        }
    }
    failures.sort_by_key(|(index, _)| *index);
    Err(verdict(failures, progress))
}

/// Of several failures: a fault of our own that could have hidden a working
/// address decides, then the target's, and a lack of a route only if there is
/// nothing else (a machine without IPv6 still has a say on the IPv4 address).
fn verdict(failures: Vec<(usize, Failure)>, progress: &Progress) -> Failure {
    if let Some((cause, text)) = &progress.own_fault {
        return Failure::unprobed(*cause, text.clone());
    }
    let tried = failures.len();
    let mut failures = failures.into_iter().map(|(_, failure)| failure);
    let mut decides = failures.next();
    if decides.as_ref().is_some_and(|first| first.cause.is_some()) {
        decides = failures.find(|failure| failure.cause.is_none()).or(decides);
    }
    let mut failure = decides.unwrap_or_else(|| Failure::critical("dial tcp: no address"));
    if tried > 1 {
        failure.text = format!("{} ({tried} addresses tried)", failure.text);
    }
    failure
}

/// Whether a fault of our own says nothing about the address's family as such.
/// `EADDRNOTAVAIL` on IPv6 may mean no more than that it is switched off here.
fn is_hard(cause: Cause, address: SocketAddr) -> bool {
    match cause {
        Cause::NoRoute => false,
        Cause::SourcePorts => address.is_ipv4(),
        _ => true,
    }
}

fn failure(address: SocketAddr, error: &io::Error, immediate: bool) -> Failure {
    Failure {
        cause: connect_cause(error, immediate),
        text: format!("dial tcp {address}: connect: {}", describe(error)),
    }
}

/// Connects from wherever the system chooses.
async fn connect_to(address: SocketAddr) -> Result<TcpStream, Failure> {
    let connecting = pin!(TcpStream::connect(address));
    established(connecting)
        .await
        .map_err(|(error, immediate)| failure(address, &error, immediate))
}

/// Connects from the address `source`, which is of the same family.
async fn connect_from(source: IpAddr, address: SocketAddr) -> Result<TcpStream, Failure> {
    // What is written as IPv6 and is IPv4 has a source of IPv4.
    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
    let socket = match source {
        IpAddr::V4(_) => TcpSocket::new_v4(),
        IpAddr::V6(_) => TcpSocket::new_v6(),
    };
    let socket = socket.map_err(|error| failure(address, &error, true))?;
    leave_port_to_connect(&socket);
    socket
        .bind(SocketAddr::new(source, 0))
        .map_err(|error| bind_failure(&format!("dial tcp {address}"), source, &error))?;
    let connecting = pin!(socket.connect(address));
    established(connecting)
        .await
        .map_err(|(error, immediate)| failure(address, &error, immediate))
}

/// Without it, `bind` takes one of this machine's ports for each connection,
/// which no other may have meanwhile, to whatever target. So it is enough that no
/// two connections to one target have the same port, as without `bind`. (Linux
/// 4.2; an older one has fewer connections at once.)
#[cfg(any(target_os = "linux", target_os = "android"))]
fn leave_port_to_connect(socket: &TcpSocket) {
    use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
    let _ = setsockopt(socket, IpBindAddressNoPort, &true);
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn leave_port_to_connect(_: &TcpSocket) {}

/// Tells of an error whether it came from the system call itself or from the
/// network: the first poll is before any waiting.
fn established(
    mut connecting: Pin<&mut impl Future<Output = io::Result<TcpStream>>>,
) -> impl Future<Output = Result<TcpStream, (io::Error, bool)>> {
    let mut immediate = true;
    poll_fn(move |cx| match connecting.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(result.map_err(|error| (error, immediate))),
        Poll::Pending => {
            immediate = false;
            Poll::Pending
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts
            .iter()
            .map(|text| text.parse().expect("address"))
            .collect()
    }

    #[test]
    fn the_families_take_turns() {
        let given = addresses(&[
            "[::1]:1",
            "[::2]:1",
            "[::3]:1",
            "1.0.0.1:1",
            "1.0.0.2:1",
            "[::1]:1",
        ]);
        let turns = addresses(&["[::1]:1", "1.0.0.1:1", "[::2]:1", "1.0.0.2:1", "[::3]:1"]);
        assert_eq!(alternate(&given), turns);
        assert_eq!(alternate(&[]), []);
    }

    #[test]
    fn only_loopback_names_are_localhost() {
        for name in ["localhost", "localhost.", "a.localhost", "a.b.localhost."] {
            assert!(is_localhost(name), "{name}");
        }
        for name in ["localhost.example", "notlocalhost", "", "."] {
            assert!(!is_localhost(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn each_address_comes_once_and_not_too_many(hosts in proptest::collection::vec((any::<bool>(), 0..30_u8), 0..60)) {
            let given: Vec<SocketAddr> = hosts
                .iter()
                .map(|(v6, host)| {
                    let ip: IpAddr = if *v6 {
                        Ipv6Addr::from(u128::from(*host)).into()
                    } else {
                        Ipv4Addr::from(u32::from(*host)).into()
                    };
                    SocketAddr::new(ip, 1)
                })
                .collect();
            let mut distinct = given.clone();
            distinct.sort();
            distinct.dedup();
            let mut ordered = alternate(&given);
            prop_assert_eq!(ordered.len(), distinct.len().min(MAX_ADDRESSES));
            ordered.sort();
            ordered.dedup();
            prop_assert_eq!(ordered.len(), distinct.len().min(MAX_ADDRESSES));
        }
    }
}
