//! A daemon that is stopped (SIGSTOP) for longer than any timeout or interval, and
//! goes on: it has learned nothing of its targets.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evenkeel_testkit::{Docker, GrpcHealth, Reply, Stub, eventually, wait_for};
use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;

use crate::Process;

/// What comes through while it is open waits while it is shut.
#[derive(Clone, Default)]
struct Gate(Arc<AtomicBool>);

impl Gate {
    fn shut(&self, shut: bool) {
        self.0.store(shut, Ordering::SeqCst);
    }

    fn pass(&self) {
        // One that stays shut for the rest of the test holds only this thread.
        let _ = wait_for(Duration::from_secs(60), || {
            (!self.0.load(Ordering::SeqCst)).then_some(())
        });
    }

    /// An address that takes connections at once, and passes them on through the
    /// gate.
    fn relay(&self, to: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (gate, to) = (self.clone(), to.to_owned());
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let (gate, to, near) = (gate.clone(), to.clone(), near.unwrap());
                std::thread::spawn(move || {
                    gate.pass();
                    if let Ok(far) = TcpStream::connect(to) {
                        let (from_far, to_near) =
                            (far.try_clone().unwrap(), near.try_clone().unwrap());
                        std::thread::spawn(move || copy(from_far, to_near));
                        copy(near, far);
                    }
                });
            }
        });
        address
    }

    /// An address that answers datagrams through the gate.
    fn datagrams(&self, answer: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) -> String {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let gate = self.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while let Ok((count, from)) = socket.recv_from(&mut buffer) {
                gate.pass();
                let _ = socket.send_to(&answer(&buffer[..count]), from);
            }
        });
        address
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Write);
}

/// To whatever question of one name: 192.0.2.1 (RFC 1035 section 4).
fn dns_answer(question: &[u8]) -> Vec<u8> {
    let name_ends = 12 + question[12..].iter().position(|byte| *byte == 0).unwrap();
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    answer.extend(&question[12..name_ends + 5]);
    answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
    answer
}

/// The answer to a request on the admin socket.
fn ask(socket: &Path, request: &str) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    let request = format!("{request} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    Some(body.to_owned())
}

/// How many checks have a latest result from after `since` that is passing.
fn well(status: &str, since: u64) -> Option<usize> {
    let status: Value = serde_json::from_str(status).ok()?;
    let is_well = |check: &&Value| {
        let observed = &check["observed"];
        observed["status"] == "passing" && observed["at"].as_u64().is_some_and(|at| at > since)
    };
    Some(status["checks"].as_array()?.iter().filter(is_well).count())
}

/// The time by the daemon's clock.
fn now(socket: &Path) -> Option<u64> {
    let status: Value = serde_json::from_str(&ask(socket, "GET /v1/status")?).ok()?;
    status["at"].as_u64()
}

// P104
#[test]
#[ignore = "stands still for as long as it takes to be late everywhere"]
fn a_pause_flips_no_check_of_any_kind() {
    let test = "a_pause_flips_no_check_of_any_kind";
    let gate = Gate::default();
    let web = Stub::start(|_| Reply::status(200, "up"));
    let grpc = GrpcHealth::start();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(Vec::new())
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let secure = GrpcHealth::start_tls(&certificate.pem(), &key.serialize_pem());
    let docker = Docker::start(test);
    let dir = tempfile::tempdir().unwrap();
    let shut = dir.path().join("shut");

    let mut kinds = vec![
        (
            "http",
            format!("http = \"http://{}/\"", gate.relay(&web.address())),
        ),
        (
            "tcp",
            format!(
                "tcp = \"{}\"\ntls = {{ skip_verify = true }}",
                gate.relay(secure.address())
            ),
        ),
        ("grpc", format!("grpc = \"{}\"", gate.relay(grpc.address()))),
        (
            "http-2",
            format!(
                "http = \"http://{}/\"\ntransport = {{ version = \"2\" }}",
                gate.relay(grpc.address())
            ),
        ),
        (
            "h2ping",
            format!("h2ping = \"{}\"", gate.relay(grpc.address())),
        ),
        (
            "tls",
            format!(
                "handshake = \"{}\"\ntls = {{ skip_verify = true }}",
                gate.relay(secure.address())
            ),
        ),
        (
            "udp",
            format!(
                "udp = {{ address = \"{}\", send = \"ping\" }}",
                gate.datagrams(<[u8]>::to_vec)
            ),
        ),
        (
            "dns",
            format!(
                "dns = {{ server = \"{}\", name = \"a.example\" }}",
                gate.datagrams(dns_answer)
            ),
        ),
        (
            "script",
            format!(
                "script = {{ command = [\"sh\", \"-c\", \"while test -e {}; do sleep 0.1; done\"] }}",
                shut.display()
            ),
        ),
        // These two cannot be held up from outside: they take nearly all of their time.
        (
            "icmp",
            "icmp = { target = \"127.0.0.1\", echoes = 20, spacing = \"150ms\" }".to_owned(),
        ),
        ("heartbeat", "heartbeat = \"4s\"".to_owned()),
        (
            "alias",
            "alias = { node = \"file\", service = \"http\" }".to_owned(),
        ),
    ];
    let mut settings = vec!["probe.scripts=file".to_owned()];
    if let Some(docker) = &docker {
        docker.container("web");
        let command = "docker = { container = \"web\", command = [\"sleep\", \"3\"] }";
        kinds.push(("docker", command.to_owned()));
        settings.push("probe.docker=file".to_owned());
        settings.push(format!("probe.docker_host={}", docker.host()));
    }
    let checks: String = kinds
        .iter()
        .map(|(kind, keys)| {
            let times = match *kind {
                "heartbeat" => "",
                "alias" => "interval = \"1s\"",
                _ => "interval = \"1s\"\ntimeout = \"6s\"",
            };
            format!("[[check]]\nname = \"{kind}\"\nservice = \"{kind}\"\ninitial_status = \"passing\"\n{times}\n{keys}\n")
        })
        .collect();
    let process = Process::start_with(&checks, None, &settings);
    let socket = process.path("admin.sock");
    let all_are_well = |since: u64| {
        let mut status = None;
        let well = wait_for(Duration::from_secs(60), || {
            ask(&socket, "PUT /v1/heartbeat/heartbeat?status=passing")?;
            status = ask(&socket, "GET /v1/status");
            (well(status.as_ref()?, since)? == kinds.len()).then_some(())
        });
        assert!(well.is_some(), "{status:?}\n{}", process.log());
    };
    all_are_well(0);

    gate.shut(true);
    std::fs::write(&shut, "").unwrap();
    let held = kinds.len() - 3;
    eventually("a probe of each kind is under way", || {
        let metrics = ask(&socket, "GET /metrics")?;
        let running = metrics
            .lines()
            .find_map(|line| line.strip_prefix("evenkeel_probes_running "))?;
        (running.parse::<usize>().ok()? >= held).then_some(())
    });
    process.signal("STOP");
    // Longer than any timeout, interval or silence.
    let _ = wait_for(Duration::from_secs(10), || None::<()>);
    process.signal("CONT");
    process.wait_for_event("paused");
    gate.shut(false);
    std::fs::remove_file(&shut).unwrap();
    let since = eventually("it answers", || now(&socket));
    all_are_well(since);
    assert_eq!(
        process.events("transition"),
        Vec::<Value>::new(),
        "{}",
        process.log()
    );
    assert_eq!(process.events("paused").len(), 1);
}
