//! ICMP echoes: as root, as nobody, over real sockets in a network of their own.

use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_probe::{
    Cause, ConnectOptions, Family, IcmpCheck, IcmpOptions, IcmpSockets, Prober, ProberSettings,
};
use evenkeel_threshold::Status::{Critical, Passing};

use crate::support::*;
use crate::unprobed::in_own_network;

const OPEN: &str = "echo '0 2147483647' > /proc/sys/net/ipv4/ping_group_range";
/// No group is in it, as in every new network namespace.
const SHUT: &str = "echo '1 0' > /proc/sys/net/ipv4/ping_group_range";
/// What is run after it has neither root's user nor any capability.
const NOBODY: &str = "set -- setpriv --reuid 65534 --regid 65534 --clear-groups \
     --inh-caps=-all --bounding-set=-all \"$0\" \"$@\"; exec \"$@\"";

/// Two machines: this one, and `10.9.0.2` behind a cable, a router that can reach
/// neither 198.51.100.0/24, which it says, nor 203.0.113.0/24, which it does not.
const ROUTER: &str = "
setpriv --pdeathsig KILL unshare -n sleep 300 &
router=$!
while [ \"$(readlink /proc/$router/ns/net)\" = \"$(readlink /proc/$$/ns/net)\" ]; do :; done
ip link add near type veth peer name far netns $router
ip addr add 10.9.0.1/24 dev near
ip link set near up
nsenter -t $router -n sh -e -c '
    ip addr add 10.9.0.2/24 dev far
    ip link set far up
    echo 1 > /proc/sys/net/ipv4/ip_forward
    echo 0 > /proc/sys/net/ipv4/icmp_ratelimit
    ip route add unreachable 198.51.100.0/24
    ip route add blackhole 203.0.113.0/24
'
ip route add 198.51.100.0/24 via 10.9.0.2
ip route add 203.0.113.0/24 via 10.9.0.2
";

fn prober(sockets: IcmpSockets) -> Prober {
    let mut settings = ProberSettings::default();
    settings.icmp = sockets;
    Prober::new(settings).unwrap()
}

fn icmp(target: &str, change: impl FnOnce(&mut IcmpOptions)) -> IcmpCheck {
    let mut options = IcmpOptions {
        spacing: Duration::from_millis(5),
        ..IcmpOptions::default()
    };
    change(&mut options);
    IcmpCheck::new(target, options).unwrap()
}

// P167, P131
#[test]
fn both_kinds_of_sockets_ping_both_families() {
    in_own_network("both_kinds_of_sockets_ping_both_families", OPEN, async {
        for sockets in [IcmpSockets::Raw, IcmpSockets::Datagram] {
            let prober = prober(sockets);
            for target in [
                "127.0.0.1",
                "::1",
                "localhost",
                "0.0.0.0",
                "::ffff:127.0.0.1",
            ] {
                let report = run_with(&prober, icmp(target, |_| ())).await;
                assert_status(&report, Passing);
                assert_says(&report, "3 of 3 answered");
                let trips = report.round_trips.unwrap();
                assert_eq!((trips.sent, trips.answered), (3, 3));
                assert!(trips.shortest <= trips.average && trips.average <= trips.longest);
            }
            let large = icmp("127.0.0.1", |options| options.payload = 1452);
            assert_status(&run_with(&prober, large).await, Passing);
        }
    });
}

#[test]
fn echoes_go_to_the_family_that_is_asked_for() {
    in_own_network(
        "icmp::echoes_go_to_the_family_that_is_asked_for",
        OPEN,
        async {
            let over = |target: &str, family| {
                let options = ConnectOptions {
                    family,
                    source: None,
                };
                icmp(target, |_| ()).with_connect(options)
            };
            for (family, says) in [
                (Family::V4, "localhost (127.0.0.1): 3 of 3 answered"),
                (Family::V6, "localhost (::1): 3 of 3 answered"),
                (Family::Both, "IPv4 and IPv6: ICMP echo localhost"),
            ] {
                let report = run(over("localhost", family).unwrap()).await;
                assert_status(&report, Passing);
                assert_says(&report, says);
            }
            let prober = resolving_to(&["127.0.0.1"]);
            let report = run_with(&prober, over("a.test", Family::Both).unwrap()).await;
            assert_status(&report, Critical);
            assert_says(
                &report,
                "IPv6: dial tcp: lookup a.test: no such host with an IPv6 address",
            );
            assert!(over("127.0.0.1", Family::V6).is_err());
            let source = ConnectOptions {
                family: Family::Any,
                source: Some("127.0.0.1".parse().unwrap()),
            };
            assert!(icmp("127.0.0.1", |_| ()).with_connect(source).is_err());
        },
    );
}

// P167: two checks to one host, all at once and often.
#[test]
fn rounds_to_one_host_do_not_take_each_others_answers() {
    in_own_network(
        "rounds_to_one_host_do_not_take_each_others_answers",
        OPEN,
        async {
            for sockets in [IcmpSockets::Raw, IcmpSockets::Datagram] {
                let prober = prober(sockets);
                for target in ["127.0.0.1", "::1"] {
                    let check = icmp(target, |options| options.spacing = Duration::from_millis(2));
                    let round = || async {
                        for _ in 0..5 {
                            let report = run_with(&prober, check.clone()).await;
                            assert_eq!(report.round_trips.unwrap().answered, 3, "{report:?}");
                        }
                    };
                    futures_util::future::join_all((0..100).map(|_| round())).await;
                }
            }
        },
    );
}

// P013, P056, P060: not even a target that is there is passing.
#[test]
fn without_permission_nothing_is_said_of_any_target() {
    in_own_network(
        "without_permission_nothing_is_said_of_any_target",
        &format!("{SHUT}\n{NOBODY}"),
        async {
            for target in ["127.0.0.1", "::1", "192.0.2.1"] {
                let report = run(icmp(target, |_| ())).await;
                assert_unprobed(&report, Cause::Permission);
                assert_says(&report, "net.ipv4.ping_group_range");
                assert_says(&report, "CAP_NET_RAW");
            }
        },
    );
}

#[test]
fn nobody_may_ping_where_the_group_range_is_open() {
    in_own_network(
        "nobody_may_ping_where_the_group_range_is_open",
        &format!("{OPEN}\n{NOBODY}"),
        async {
            for target in ["127.0.0.1", "::1"] {
                assert_status(&run(icmp(target, |_| ())).await, Passing);
            }
            let raw = prober(IcmpSockets::Raw);
            let report = run_with(&raw, icmp("127.0.0.1", |_| ())).await;
            assert_unprobed(&report, Cause::Permission);
        },
    );
}

#[test]
fn a_router_that_knows_better_is_quoted_and_silence_lasts_to_the_deadline() {
    in_own_network(
        "a_router_that_knows_better_is_quoted_and_silence_lasts_to_the_deadline",
        &format!("{OPEN}\n{ROUTER}"),
        async {
            let raw = prober(IcmpSockets::Raw);
            assert_status(&run_with(&raw, icmp("10.9.0.2", |_| ())).await, Passing);
            let report = run_with(&raw, icmp("198.51.100.1", |_| ())).await;
            assert_status(&report, Critical);
            assert_says(&report, "0 of 3 answered, 10.9.0.2 says: host unreachable");
            assert!(report.took < Duration::from_secs(5), "{report:?}");
            for sockets in [IcmpSockets::Raw, IcmpSockets::Datagram] {
                let check = icmp("203.0.113.1", |options| options.timeout = SHORT);
                let report = run_with(&prober(sockets), check).await;
                assert_status(&report, Critical);
                assert_says(&report, "0 of 3 answered: context deadline exceeded");
                assert!(report.took >= SHORT, "{report:?}");
            }
            // This machine itself has no way there.
            let report = run_with(&raw, icmp("192.0.2.1", |_| ())).await;
            assert_unprobed(&report, Cause::NoRoute);
        },
    );
}

/// Answers echoes in the place of the system.
struct Responder {
    session: Mutex<Session>,
}

/// What a firewall on the way thinks of echoes.
#[derive(Clone, Copy, PartialEq)]
enum Session {
    Live,
    /// The next identifier that is seen is the one that gets no answer from then
    /// on.
    Dying,
    Dead(u16),
}

impl Responder {
    fn start() -> Arc<Self> {
        let responder = Arc::new(Self {
            session: Mutex::new(Session::Live),
        });
        let socket = socket2::Socket::new(
            socket2::Domain::IPV4,
            socket2::Type::RAW,
            Some(socket2::Protocol::ICMPV4),
        )
        .unwrap();
        let answering = responder.clone();
        // It ends with the process, which is the test's own.
        std::thread::spawn(move || {
            loop {
                let mut bytes = [0; 2048];
                let length = (&socket).read(&mut bytes).unwrap();
                let header = usize::from(bytes[0] & 0xf) * 4;
                let from = <[u8; 4]>::try_from(&bytes[12..16]).unwrap();
                let message = &mut bytes[header..length];
                let id = u16::from_be_bytes([message[4], message[5]]);
                if message[0] == 8 && answering.lets_through(id) {
                    // From request to reply; the sum of RFC 1071 grows by as much as the type shrinks.
                    message[0] = 0;
                    let sum = u32::from(u16::from_be_bytes([message[2], message[3]])) + 0x800;
                    let sum = (sum & 0xffff) + (sum >> 16);
                    message[2..4].copy_from_slice(&u16::try_from(sum).unwrap().to_be_bytes());
                    let to = std::net::SocketAddr::from((from, 0)).into();
                    socket.send_to(message, &to).unwrap();
                }
            }
        });
        responder
    }

    fn lets_through(&self, id: u16) -> bool {
        let mut session = self.session.lock().unwrap();
        if *session == Session::Dying {
            *session = Session::Dead(id);
        }
        *session != Session::Dead(id)
    }

    fn dies(&self) {
        *self.session.lock().unwrap() = Session::Dying;
    }
}

// P130
#[test]
fn an_identifier_that_a_firewall_holds_dead_is_left_within_two_rounds() {
    in_own_network(
        "icmp::an_identifier_that_a_firewall_holds_dead_is_left_within_two_rounds",
        &format!("{OPEN}\necho 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all"),
        async {
            let responder = Responder::start();
            for sockets in [IcmpSockets::Raw, IcmpSockets::Datagram] {
                let prober = prober(sockets);
                let check = icmp("127.0.0.1", |options| options.timeout = SHORT / 4);
                let round = async || run_with(&prober, check.clone()).await;
                for _ in 0..2 {
                    assert_status(&round().await, Passing);
                    // A socket that is younger is kept. No socket waits meanwhile.
                    tokio::time::pause();
                    tokio::time::advance(Duration::from_secs(31)).await;
                    tokio::time::resume();
                    responder.dies();
                    assert_status(&round().await, Critical);
                    assert_status(&round().await, Passing);
                }
            }
        },
    );
}

/// The system answers echoes itself; an address that it does not own and that
/// leads to loopback gets none. So one socket can play a target that lies.
#[test]
fn a_flood_of_messages_that_are_not_ours_changes_nothing() {
    in_own_network(
        "a_flood_of_messages_that_are_not_ours_changes_nothing",
        OPEN,
        async {
            let raw = prober(IcmpSockets::Raw);
            assert_status(&run_with(&raw, icmp("127.0.0.1", |_| ())).await, Passing);
            let flood = std::thread::spawn(|| {
                let socket = socket2::Socket::new(
                    socket2::Domain::IPV4,
                    socket2::Type::RAW,
                    Some(socket2::Protocol::ICMPV4),
                )
                .unwrap();
                let to = std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into();
                // Echo replies with a right checksum (ffff - 0 - 0), to nobody.
                let message = [0, 0, 0xff, 0xff, 0, 0, 0, 0];
                for _ in 0..50_000 {
                    let _ = socket.send_to(&message, &to);
                }
            });
            while !flood.is_finished() {
                let report = run_with(&raw, icmp("127.0.0.1", |_| ())).await;
                assert_status(&report, Passing);
            }
            flood.join().unwrap();
        },
    );
}
