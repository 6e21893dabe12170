//! UDP and DNS: silence, refusals, and answers that are none.

use std::net::SocketAddr;
use std::sync::Arc;

use evenkeel_probe::{
    DnsCheck, DnsOptions, DnsTransport, Expected as Reply, Phase, Silence, UdpCheck,
};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::case::{Case, Expected, critical, passing, warning};
use crate::support::*;

/// Answers each datagram by these, made from it.
type Answers = Arc<dyn Fn(&[u8]) -> Vec<Vec<u8>> + Send + Sync>;

struct Answering {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Answering {
    /// With `again`, for ever.
    async fn start(answers: Answers, again: bool) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut asked = [0; 4096];
            loop {
                // A probe that has gone says so by ICMP.
                let Ok((length, from)) = socket.recv_from(&mut asked).await else {
                    continue;
                };
                loop {
                    let mut gone = false;
                    for answer in answers(&asked[..length]) {
                        gone |= socket.send_to(&answer, from).await.is_err();
                    }
                    if !again || gone {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            }
        });
        Self { address, task }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn closed() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.local_addr().unwrap()
}

fn head(says: &'static str) -> Expected {
    critical(says).at(Phase::FirstByte)
}

fn udp(address: SocketAddr, expected: &Expected) -> UdpCheck {
    let check = UdpCheck::new(&address.to_string()).unwrap();
    check
        .with_payload(*b"ping")
        .unwrap()
        .with_timeout(expected.timeout())
}

fn udp_cases() -> Vec<Case> {
    let of = |situation,
              answers: Answers,
              again,
              expected: Expected,
              change: fn(UdpCheck) -> UdpCheck| {
        let mut case = Case::new("UDP", situation, expected, async move {
            let server = Answering::start(answers, again).await;
            run(change(udp(server.address, &expected))).await
        });
        case.floods = again;
        case
    };
    let says = |bytes: &[u8]| -> Answers {
        let bytes = bytes.to_vec();
        Arc::new(move |_: &[u8]| vec![bytes.clone()])
    };
    let nothing = || -> Answers { Arc::new(|_: &[u8]| Vec::new()) };
    let wants_up: fn(UdpCheck) -> UdpCheck =
        |check| check.with_expected(Some(Reply::Bytes((*b"up").into())));
    let late = "no reply: context deadline exceeded";
    vec![
        Case::new("UDP", "nobody listens", head("connection refused"), async {
            run(udp(closed().await, &head(""))).await
        }),
        of("no reply", nothing(), false, head(late).late(), |check| {
            check
        }),
        of(
            "no reply, which is a warning",
            nothing(),
            false,
            warning(late).at(Phase::FirstByte).late(),
            |check| check.with_silence(Silence::Warning),
        ),
        of(
            "another reply than expected",
            says(b"down"),
            false,
            head("the reply has not \"up\": \"down\""),
            wants_up,
        ),
        of(
            "a reply that is no UTF-8",
            says(b"\xff\n\x1b"),
            false,
            head("the reply has not \"up\""),
            wants_up,
        ),
        of(
            "replies without end",
            says(&[b'x'; 1400]),
            true,
            passing("replied"),
            |check| check,
        ),
        of(
            "other replies without end",
            says(&[b'x'; 1400]),
            true,
            head("the reply has not \"up\""),
            wants_up,
        ),
    ]
}

/// The question as an answer without records.
fn empty(question: &[u8]) -> Vec<u8> {
    let mut answer = question.to_vec();
    answer[2] |= 0x80;
    answer
}

/// The question with a response code (RFC 1035 section 4.1.1).
fn coded(code: u8) -> Answers {
    Arc::new(move |question| {
        let mut answer = empty(question);
        answer[3] = (answer[3] & 0xf0) | code;
        vec![answer]
    })
}

/// One A record, 10.0.0.6, behind the question, and no EDNS.
fn one_record(question: &[u8]) -> Vec<u8> {
    let mut answer = empty(question);
    let name_ends = 12 + answer[12..].iter().position(|byte| *byte == 0).unwrap() + 1;
    answer.truncate(name_ends + 4);
    answer[6..12].copy_from_slice(&[0, 1, 0, 0, 0, 0]);
    answer.extend(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x0a\0\0\x06");
    answer
}

fn dns_cases() -> Vec<Case> {
    let check = |address: SocketAddr, change: fn(&mut DnsOptions), expected: &Expected| {
        let mut options = DnsOptions {
            timeout: expected.timeout() / 2,
            ..DnsOptions::default()
        };
        change(&mut options);
        DnsCheck::new(&address.to_string(), "shop.example", options).unwrap()
    };
    let of =
        |situation, answers: Answers, again, expected: Expected, change: fn(&mut DnsOptions)| {
            let mut case = Case::new("DNS", situation, expected, async move {
                let server = Answering::start(answers, again).await;
                run(check(server.address, change, &expected)).await
            });
            case.floods = again;
            case
        };
    let each =
        |answer: fn(&[u8]) -> Vec<u8>| -> Answers { Arc::new(move |asked| vec![answer(asked)]) };
    let nothing = || -> Answers { Arc::new(|_: &[u8]| Vec::new()) };
    let usual: fn(&mut DnsOptions) = |_| ();
    let none = "none with an answer to the question";
    let mut cases = vec![
        Case::new(
            "DNS",
            "nobody listens",
            head("connection refused"),
            async move { run(check(closed().await, usual, &head(""))).await },
        ),
        Case::new(
            "DNS",
            "nobody listens on TCP",
            critical("connection refused").at(Phase::Connect),
            async move {
                let over_tcp: fn(&mut DnsOptions) = |options| options.transport = DnsTransport::Tcp;
                run(check(closed_port().await, over_tcp, &head(""))).await
            },
        ),
        of(
            "no answer",
            nothing(),
            false,
            head("no answer: context deadline exceeded").late(),
            usual,
        ),
        of(
            "the name does not exist",
            coded(3),
            false,
            head("NXDOMAIN, no records: expected NOERROR"),
            usual,
        ),
        of(
            "the server fails",
            coded(2),
            false,
            head("SERVFAIL, no records: expected NOERROR"),
            usual,
        ),
        of(
            "the server refuses",
            coded(5),
            false,
            head("REFUSED, no records: expected NOERROR"),
            usual,
        ),
        of(
            "the server does not understand",
            coded(1),
            false,
            head("FORMERR"),
            usual,
        ),
        of(
            "no records",
            each(empty),
            false,
            head("NOERROR, no records: expected 1 or more"),
            usual,
        ),
        of(
            "a record is missing",
            each(one_record),
            false,
            head("10.0.0.5 is missing"),
            |options| options.expect = vec!["10.0.0.5".into()],
        ),
        of(
            "too few records",
            each(one_record),
            false,
            head("expected 2 or more"),
            |options| options.min_answers = Some(2),
        ),
        of(
            "the question comes back",
            each(<[u8]>::to_vec),
            false,
            head(none).late(),
            usual,
        ),
        of(
            "an answer to another question",
            each(|question| {
                let mut answer = empty(question);
                answer[0] ^= 1;
                answer
            }),
            false,
            head(none).late(),
            usual,
        ),
        of(
            "a datagram of rubbish",
            each(|_| vec![0xff; 700]),
            false,
            head(none).late(),
            usual,
        ),
        of(
            "rubbish without end",
            each(|_| vec![0xff; 700]),
            true,
            head(none).late(),
            usual,
        ),
    ];
    // More than fits: the rest is to be had over TCP, where nobody listens.
    cases.push(of(
        "the answer is cut, and nobody listens on TCP",
        each(|question| {
            let mut answer = empty(question);
            answer[2] |= 0x02;
            answer
        }),
        false,
        critical("connection refused").at(Phase::Connect),
        usual,
    ));
    cases
}

pub(crate) fn all() -> Vec<Case> {
    [udp_cases(), dns_cases()].into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn datagrams_that_are_no_answer_end_the_probe() {
    super::run_all(all()).await;
}
