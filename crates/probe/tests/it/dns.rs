//! DNS probes: a real server, and some that lie.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use evenkeel_probe::{DnsCheck, DnsOptions, DnsTransport, Phase};
use evenkeel_threshold::Status::{self, Critical, Passing};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UdpSocket};

use crate::support::*;

fn dns(server: SocketAddr, name: &str, change: impl FnOnce(&mut DnsOptions)) -> DnsCheck {
    let mut options = DnsOptions::default();
    change(&mut options);
    DnsCheck::new(&server.to_string(), name, options).unwrap()
}

/// dnsmasq on a port of its own; it ends with the test.
struct Dnsmasq {
    address: SocketAddr,
    process: Child,
}

impl Dnsmasq {
    async fn start(test: &str) -> Option<Self> {
        let program = std::env::var_os("EVENKEEL_DNSMASQ").unwrap_or_else(|| "dnsmasq".into());
        let runs = Command::new(&program)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !runs.is_ok_and(|status| status.success()) {
            assert!(std::env::var_os("CI").is_none(), "no dnsmasq");
            println!("skipped: {test}: needs dnsmasq (in PATH or EVENKEEL_DNSMASQ)");
            return None;
        }
        // Somebody may take the port before dnsmasq does.
        for _ in 0..10 {
            let address = closed_port().await;
            let mut command = Command::new(&program);
            command
                .args([
                    "--keep-in-foreground",
                    "--conf-file=/dev/null",
                    "--pid-file",
                ])
                .args(["--no-resolv", "--no-hosts", "--bind-interfaces", "--user="])
                .args(["--listen-address=127.0.0.1", "--log-facility=/dev/null"])
                .arg(format!("--port={}", address.port()))
                .args(["--host-record=shop.example,10.0.0.1,2001:db8::1"])
                .args(["--host-record=shop.example,10.0.0.2"])
                .args(["--txt-record=shop.example,hello world"])
                .args(["--mx-host=shop.example,mail.example,10"])
                .args(["--cname=www.example,shop.example", "--local=/example/"]);
            for host in 0..200 {
                command.arg(format!("--host-record=many.example,10.1.0.{host}"));
            }
            let process = command.stderr(Stdio::null()).spawn().unwrap();
            let mut server = Self { address, process };
            let ready = dns(address, "shop.example", |options| options.timeout = SHORT);
            loop {
                if run(ready.clone()).await.status() == Some(Passing) {
                    return Some(server);
                }
                if server.process.try_wait().unwrap().is_some() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        panic!("dnsmasq does not start");
    }
}

impl Drop for Dnsmasq {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_real_server_is_judged_by_code_and_records() {
    let Some(server) = Dnsmasq::start("a_real_server_is_judged_by_code_and_records").await else {
        return;
    };
    type Change = fn(&mut DnsOptions);
    let cases: &[(&str, Change, Status, &str)] = &[
        (
            "shop.example",
            |_| (),
            Passing,
            "NOERROR, 10.0.0.1, 10.0.0.2",
        ),
        (
            "SHOP.example.",
            |o| o.transport = DnsTransport::Tcp,
            Passing,
            "10.0.0.1, 10.0.0.2",
        ),
        (
            "shop.example",
            |o| o.record_type = "AAAA".into(),
            Passing,
            "2001:db8::1",
        ),
        (
            "shop.example",
            |o| o.record_type = "mx".into(),
            Passing,
            "10 mail.example.",
        ),
        (
            "shop.example",
            |o| o.record_type = "TXT".into(),
            Passing,
            "hello world",
        ),
        ("www.example", |_| (), Passing, "10.0.0.1, 10.0.0.2"),
        (
            "www.example",
            |o| o.record_type = "CNAME".into(),
            Passing,
            "shop.example.",
        ),
        (
            "shop.example",
            |o| o.expect = vec!["10.0.0.2".into()],
            Passing,
            "",
        ),
        (
            "shop.example",
            |o| o.expect = vec!["10.0.0.3".into()],
            Critical,
            "10.0.0.3 is missing",
        ),
        (
            "shop.example",
            |o| o.min_answers = Some(3),
            Critical,
            "expected 3 or more",
        ),
        (
            "shop.example",
            |o| o.record_type = "SRV".into(),
            Critical,
            "NOERROR, no records: expected 1",
        ),
        (
            "shop.example",
            |o| {
                o.record_type = "SRV".into();
                o.min_answers = Some(0);
            },
            Passing,
            "no records",
        ),
        (
            "gone.example",
            |_| (),
            Critical,
            "NXDOMAIN, no records: expected NOERROR",
        ),
        (
            "gone.example",
            |o| o.rcode = "NXDOMAIN".into(),
            Passing,
            "NXDOMAIN",
        ),
        (
            "shop.example",
            |o| o.rcode = "NXDOMAIN".into(),
            Critical,
            "expected NXDOMAIN",
        ),
        // It has nobody to ask.
        ("elsewhere.test", |_| (), Critical, "REFUSED"),
        // 200 addresses do not fit into a datagram.
        (
            "many.example",
            |o| o.min_answers = Some(200),
            Passing,
            "and 184 more",
        ),
    ];
    for (name, change, status, says) in cases {
        let report = run(dns(server.address, name, change)).await;
        assert_status(&report, *status);
        assert_says(&report, says);
    }
}

/// What a server makes of a question.
type Lie = fn(&[u8]) -> Vec<u8>;

/// Answers the first datagram by these, made from the question.
async fn lying(answers: Vec<Lie>) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut question = [0; 512];
        let (length, from) = socket.recv_from(&mut question).await.unwrap();
        for answer in answers {
            let _ = socket.send_to(&answer(&question[..length]), from).await;
        }
        std::future::pending::<()>().await;
    });
    address
}

/// The question as an answer without records.
fn empty(question: &[u8]) -> Vec<u8> {
    let mut answer = question.to_vec();
    answer[2] |= 0x80;
    answer
}

#[tokio::test]
async fn what_is_no_answer_to_the_question_is_passed_over() {
    let lies: Vec<Lie> = vec![
        |_| Vec::new(),
        |_| vec![0xff; 700],
        // The question itself, another id, another name, cut short.
        <[u8]>::to_vec,
        |question| {
            let mut answer = empty(question);
            answer[0] ^= 1;
            answer
        },
        |question| {
            let mut answer = empty(question);
            answer[13] ^= 1;
            answer
        },
        |question| empty(question)[..20].to_vec(),
        // More records announced than there are.
        |question| {
            let mut answer = empty(question);
            answer[6..8].fill(0xff);
            answer
        },
    ];
    let server = lying(lies.clone()).await;
    let report = run(dns(server, "a.example", |options| {
        options.timeout = SHORT / 4;
    }))
    .await;
    assert_status(&report, Critical);
    assert_says(&report, "none with an answer to the question");
    assert_eq!(report.failed_phase, Some(Phase::FirstByte));
    let mut then_the_truth = lies;
    then_the_truth.push(empty);
    let server = lying(then_the_truth).await;
    let report = run(dns(server, "a.example", |o| o.min_answers = Some(0))).await;
    assert_status(&report, Passing);
}

#[tokio::test]
async fn a_server_that_is_not_there_or_silent_is_critical() {
    let closed = closed_port().await;
    for transport in [DnsTransport::Udp, DnsTransport::Tcp] {
        let report = run(dns(closed, "a.example", |o| o.transport = transport)).await;
        assert_status(&report, Critical);
        assert_says(&report, "connection refused");
    }
    let silent = lying(Vec::new()).await;
    let report = run(dns(silent, "a.example", |o| o.timeout = SHORT / 4)).await;
    assert_status(&report, Critical);
    assert_says(&report, "no answer: context deadline exceeded");
}

#[tokio::test]
async fn over_tcp_a_broken_answer_is_critical_and_a_silent_one_at_the_deadline() {
    let tcp = |o: &mut DnsOptions| {
        o.transport = DnsTransport::Tcp;
        o.timeout = SHORT;
    };
    for (answer, says) in [
        (&b""[..], "EOF"),
        (b"\x00", "EOF"),
        (b"\x00\x10short", "EOF"),
        (b"\x00\x02no", "no answer to the question"),
        (b"\xff\xff", "EOF"),
    ] {
        let server = Server::start(move |mut stream| async move {
            let _ = stream.read(&mut [0; 512]).await;
            let _ = stream.write_all(answer).await;
        })
        .await;
        let report = run(dns(server.address, "a.example", tcp)).await;
        assert_status(&report, Critical);
        assert_says(&report, says);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let report = run(dns(listener.local_addr().unwrap(), "a.example", tcp)).await;
    assert_status(&report, Critical);
    assert_says(&report, "deadline exceeded");
}
