use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;

use evenkeel_benches::floor;
use evenkeel_benches::peers::Peers;
use evenkeel_probe::{
    Definition, DnsCheck, DnsOptions, IcmpCheck, IcmpOptions, Prober, ProberSettings, UdpCheck,
};

use crate::run::Run;
use crate::{BASE, Contender, Failable};

/// A datagram and its echo.
pub(crate) fn udp<'a>(run: Run, peers: &Peers, program: &'a Path) -> Failable<Vec<Contender<'a>>> {
    let address = peers.address("udp")?;
    let check = UdpCheck::new(&address.to_string())?.with_payload(*b"hello")?;
    both(
        run,
        program,
        ["floor udp", "prober udp"],
        "udp",
        address,
        check,
    )
}

/// A question for one address.
pub(crate) fn dns<'a>(run: Run, peers: &Peers, program: &'a Path) -> Failable<Vec<Contender<'a>>> {
    let address = peers.address("dns")?;
    let check = DnsCheck::new(&address.to_string(), "www.test", DnsOptions::default())?;
    both(
        run,
        program,
        ["floor dns", "prober dns"],
        "dns",
        address,
        check,
    )
}

/// Rounds of a single echo, which the kernel itself answers.
pub(crate) fn icmp(run: Run, program: &Path) -> Failable<Vec<Contender<'_>>> {
    let address = SocketAddr::from((u32::from(BASE).wrapping_add(1).to_be_bytes(), 0));
    let options = IcmpOptions {
        echoes: 1,
        ..IcmpOptions::default()
    };
    let check = IcmpCheck::new(&address.ip().to_string(), options)?;
    both(
        run,
        program,
        ["floor icmp", "prober icmp"],
        "icmp",
        address,
        check,
    )
}

fn both<'a>(
    run: Run,
    program: &'a Path,
    names: [&'static str; 2],
    mode: &'static str,
    address: SocketAddr,
    check: impl Into<Definition>,
) -> Failable<Vec<Contender<'a>>> {
    let definitions = [Rc::new(check.into())];
    let prober = Prober::new(ProberSettings::default())?;
    Ok(vec![
        Contender::new(names[0], move || {
            Ok(floor::cost(
                program, mode, address, 1, run.probes, run.rate,
            )?)
        }),
        Contender::new(names[1], move || run.prober(&prober, &definitions)),
    ])
}
