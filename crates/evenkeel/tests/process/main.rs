//! The program as a process: signals, pauses, limits. The checks come from a
//! file, so no Consul is needed.
#![expect(
    clippy::unwrap_used,
    reason = "allow-unwrap-in-tests does not know the helpers of an integration test"
)]

mod paused;

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use evenkeel_testkit::{Reply, Stub, eventually};
use serde_json::Value;

/// A daemon on a file of checks, in a directory of its own. Killed when dropped.
struct Process {
    child: Child,
    dir: tempfile::TempDir,
}

impl Process {
    /// `limit`: how many files the process may have open.
    fn start(checks: &str, limit: Option<u32>) -> Self {
        Self::start_with(checks, limit, &[])
    }

    /// With settings as `--set` takes them.
    fn start_with(checks: &str, limit: Option<u32>, settings: &[String]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("checks.toml"), checks).unwrap();
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        let limit = limit.map_or_else(String::new, |limit| format!("ulimit -n {limit} && "));
        let child = Command::new("sh")
            .args(["-c", &format!("{limit}exec \"$@\""), "sh"])
            .arg(env!("CARGO_BIN_EXE_evenkeel"))
            .arg("run")
            .arg("--json")
            .arg("--file")
            .arg(dir.path().join("checks.toml"))
            .arg("--state-dir")
            .arg(dir.path().join("state"))
            .arg("--set")
            .arg(format!(
                "admin.listen=unix:{}",
                dir.path().join("admin.sock").display()
            ))
            .args(settings.iter().flat_map(|setting| ["--set", setting]))
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, dir }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([format!("-{name}"), self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap()
    }

    fn events(&self, kind: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("state/events.jsonl")).unwrap_or_default();
        text.lines()
            // The last line may still be under way.
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|event| event["event"] == kind)
            .collect()
    }

    fn wait(&mut self) -> ExitStatus {
        eventually("it ends", || self.child.try_wait().unwrap())
    }

    fn wait_for_event(&self, kind: &str) -> Value {
        eventually(&format!("{kind}\n{}", self.log()), || {
            self.events(kind).pop()
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In place of a status: no answer.
const SILENT: u16 = 0;

/// A target that answers with the status in the number, and a count of requests.
fn target() -> (Stub, Arc<AtomicU16>, Arc<AtomicU64>) {
    let (status, count) = (Arc::new(AtomicU16::new(200)), Arc::new(AtomicU64::new(0)));
    let (answer, counted) = (Arc::clone(&status), Arc::clone(&count));
    let stub = Stub::start(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        match answer.load(Ordering::SeqCst) {
            SILENT => Reply::Silence,
            status => Reply::status(status, "body"),
        }
    });
    (stub, status, count)
}

fn check(name: &str, address: &str, more: &str) -> String {
    format!(
        "[[check]]\nname = \"{name}\"\nhttp = \"http://{address}/\"\ninterval = \"1s\"\n\
         timeout = \"1s\"\ninitial_status = \"passing\"\n{more}\n"
    )
}

#[test]
fn sigterm_ends_it_in_order() {
    let (stub, _, count) = target();
    let mut process = Process::start(&check("a", &stub.address(), ""), None);
    eventually("it probes", || {
        (count.load(Ordering::SeqCst) > 1).then_some(())
    });
    process.signal("TERM");
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
    assert_eq!(process.events("stopped").len(), 1);
    let state = std::fs::read_to_string(process.path("state/checks.state")).unwrap();
    assert!(state.ends_with("{\"checks\":1}\n"), "{state}");
    assert!(!process.path("admin.sock").exists());
    for line in process.log().lines() {
        assert!(
            serde_json::from_str::<Value>(line).is_ok(),
            "not JSON: {line}"
        );
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let stub = Stub::start(|_| Reply::Silence);
    let slow = check("a", &stub.address(), "").replace("timeout = \"1s\"", "timeout = \"1h\"");
    let mut process = Process::start(&slow, None);
    eventually("a probe is under way", || {
        (!stub.requests().is_empty()).then_some(())
    });
    process.signal("TERM");
    eventually("it is stopping", || {
        process.log().contains("stopping").then_some(())
    });
    assert!(
        process.child.try_wait().unwrap().is_none(),
        "it did not wait for its probe"
    );
    process.signal("TERM");
    let code = process.wait().code();
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
}

// P104: a process that stood still has learned nothing of its targets. The probe
// under way could not be answered in time, for it was not there to listen.
#[test]
fn a_stopped_process_flips_nothing() {
    let (stub, status, count) = target();
    let patient = check("a", &stub.address(), "").replace("timeout = \"1s\"", "timeout = \"5s\"");
    let process = Process::start(&patient, None);
    eventually("it probes", || {
        (count.load(Ordering::SeqCst) > 1).then_some(())
    });
    status.store(SILENT, Ordering::SeqCst);
    let before = count.load(Ordering::SeqCst);
    eventually("a probe is under way", || {
        (count.load(Ordering::SeqCst) > before).then_some(())
    });
    process.signal("STOP");
    status.store(200, Ordering::SeqCst);
    // Longer than the timeout of the check.
    evenkeel_testkit::wait_for(std::time::Duration::from_secs(6), || None::<()>);
    process.signal("CONT");
    process.wait_for_event("paused");
    let before = count.load(Ordering::SeqCst);
    eventually("it probes on", || {
        (count.load(Ordering::SeqCst) > before + 2).then_some(())
    });
    assert_eq!(process.events("transition"), Vec::<Value>::new());
}

#[test]
fn the_log_has_a_line_per_change_and_none_per_failing_probe() {
    let (stub, status, count) = target();
    let process = Process::start(&check("a", &stub.address(), ""), None);
    eventually("it probes", || {
        (count.load(Ordering::SeqCst) > 0).then_some(())
    });
    status.store(503, Ordering::SeqCst);
    let transition = process.wait_for_event("transition");
    assert_eq!(transition["from"], "passing");
    assert_eq!(transition["to"], "critical");
    assert_eq!(transition["seen"], 1);
    assert!(
        transition["phases_ms"]["connect"].is_number(),
        "{transition}"
    );
    let before = count.load(Ordering::SeqCst);
    eventually("five more", || {
        (count.load(Ordering::SeqCst) > before + 5).then_some(())
    });
    assert_eq!(
        process.log().matches("status changed").count(),
        1,
        "{}",
        process.log()
    );
}

// P070: a threshold changed by SIGHUP applies to the count there is.
#[test]
fn sighup_changes_the_threshold_and_keeps_the_count() {
    let (stub, status, _) = target();
    status.store(503, Ordering::SeqCst);
    let dir = tempfile::tempdir().unwrap();
    let config = |threshold: u32| {
        let text = format!(
            "state_dir = \"{0}/state\"\n[file]\npath = \"{0}/checks.toml\"\n\
             [threshold]\ncritical_threshold = {threshold}\n\
             [probe]\nmax_concurrent = {threshold}\n\
             [admin]\nlisten = [\"unix:{0}/admin.sock\"]\n",
            dir.path().display()
        );
        std::fs::write(dir.path().join("evenkeel.toml"), text).unwrap();
    };
    std::fs::write(
        dir.path().join("checks.toml"),
        check("a", &stub.address(), ""),
    )
    .unwrap();
    config(1000);
    let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .arg("run")
        .arg("--config-file")
        .arg(dir.path().join("evenkeel.toml"))
        .env_clear()
        .stderr(std::fs::File::create(dir.path().join("log")).unwrap())
        .spawn()
        .unwrap();
    let before = stub.requests().len();
    eventually("five failures", || {
        (stub.requests().len() >= before + 5).then_some(())
    });
    config(3);
    let hup = Command::new("kill")
        .args(["-HUP", &child.id().to_string()])
        .status();
    assert!(hup.unwrap().success());
    let events = dir.path().join("state/events.jsonl");
    let flipped = evenkeel_testkit::wait_for(std::time::Duration::from_secs(60), || {
        let text = std::fs::read_to_string(&events).unwrap_or_default();
        text.contains("\"event\":\"transition\"").then_some(text)
    });
    let _ = child.kill();
    let _ = child.wait();
    let text = flipped.unwrap();
    let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
    for said in [
        "in_force=\"threshold.critical_threshold\"",
        "keys=\"probe.max_concurrent\"",
    ] {
        assert!(log.contains(said), "{said}: {log}");
    }
    // At the next failure, a second later, and not after four more.
    let time = |kind: &str| {
        let line = text.lines().find(|line| line.contains(kind)).unwrap();
        let event: Value = serde_json::from_str(line).unwrap();
        humantime::parse_rfc3339(event["time"].as_str().unwrap()).unwrap()
    };
    let took = time("\"transition\"")
        .duration_since(time("thresholds_changed"))
        .unwrap();
    assert!(
        took < std::time::Duration::from_millis(2900),
        "{took:?}: {text}"
    );
}

// P128: few descriptors are our own trouble. Fewer probes run at once, so that
// the rest of the daemon keeps some.
#[test]
fn a_lack_of_descriptors_flips_no_check() {
    let (stub, _, _) = target();
    let silent = Stub::start(|_| Reply::Silence);
    let mut checks = String::new();
    for n in 0..40 {
        let slow = check(
            &format!("slow-{n}"),
            &silent.address(),
            "failures_before_critical = 1000",
        );
        checks += &slow.replace("timeout = \"1s\"", "timeout = \"30s\"");
    }
    for n in 0..10 {
        checks += &check(&format!("well-{n}"), &stub.address(), "");
    }
    let process = Process::start(&checks, Some(40));
    let event = process.wait_for_event("unprobed_started");
    let log = process.log();
    assert!(log.contains("fewer probes run at once"), "{log}");
    assert!(!event.to_string().contains("open files"), "{event}");
    eventually("several wait for a place in vain", || {
        (process.events("unprobed_started").len() > 5).then_some(())
    });
    assert_eq!(
        process.events("transition"),
        Vec::<Value>::new(),
        "{}",
        process.log()
    );
}

// A broken state file is set aside and said, and the daemon starts.
#[test]
fn a_damaged_state_is_set_aside() {
    let (stub, _, count) = target();
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("state")).unwrap();
    std::fs::write(dir.path().join("state/checks.state"), "{\"format\":\"evenk").unwrap();
    std::fs::write(
        dir.path().join("checks.toml"),
        check("a", &stub.address(), ""),
    )
    .unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .arg("run")
        .arg("--file")
        .arg(dir.path().join("checks.toml"))
        .arg("--state-dir")
        .arg(dir.path().join("state"))
        .arg("--set")
        .arg(format!(
            "admin.listen=unix:{}",
            dir.path().join("admin.sock").display()
        ))
        .env_clear()
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let probed = evenkeel_testkit::wait_for(std::time::Duration::from_secs(60), || {
        (count.load(Ordering::SeqCst) > 0).then_some(())
    });
    let _ = child.kill();
    let _ = child.wait();
    assert!(probed.is_some());
    assert!(dir.path().join("state/checks.state.damaged").exists());
    let events = std::fs::read_to_string(dir.path().join("state/events.jsonl")).unwrap();
    assert!(events.contains("state_damaged"), "{events}");
}

// Two daemons would replace each other's snapshot and mix their events.
#[test]
fn a_state_directory_is_for_one_daemon() {
    let (stub, _, count) = target();
    let mut first = Process::start(&check("a", &stub.address(), ""), None);
    eventually("it probes", || {
        (count.load(Ordering::SeqCst) > 0).then_some(())
    });
    let dir = first.dir.path().to_owned();
    let again = |name: &str| {
        Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .arg("run")
            .arg("--file")
            .arg(dir.join("checks.toml"))
            .arg("--state-dir")
            .arg(dir.join("state"))
            .arg("--set")
            .arg(format!("admin.listen=unix:{}", dir.join(name).display()))
            .env_clear()
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(dir.join("log-again")).unwrap())
            .spawn()
            .unwrap()
    };
    let mut second = again("second.sock");
    let status = eventually("the second is refused", || second.try_wait().unwrap());
    let log = std::fs::read_to_string(first.path("log-again")).unwrap();
    assert_eq!(status.code(), Some(73), "{log}");
    assert!(log.contains("is in use by another evenkeel"), "{log}");
    assert_eq!(first.events("started").len(), 1, "it left no trace");

    // A daemon that was killed has let go of it.
    first.signal("KILL");
    assert_eq!(first.wait().code(), None);
    let mut third = again("third.sock");
    let started = evenkeel_testkit::wait_for(std::time::Duration::from_secs(60), || {
        let ended = third.try_wait().unwrap().is_some();
        (ended || first.events("started").len() == 2).then_some(!ended)
    });
    let _ = third.kill();
    let _ = third.wait();
    let log = std::fs::read_to_string(dir.join("log-again")).unwrap();
    assert_eq!(started, Some(true), "{log}");
}

// P053, P120
#[test]
fn a_heartbeat_is_reported_and_an_alias_follows_at_once_until_it_is_late() {
    let process = Process::start(
        "[[check]]\nname = \"ran\"\nservice = \"backup\"\nheartbeat = \"2s\"\n\
         [[check]]\nname = \"with\"\nnode = \"other\"\ninterval = \"1h\"\n\
         alias = { node = \"file\", service = \"backup\" }\n",
        None,
    );
    let socket = process.path("admin.sock");
    let put = |path: &str| -> Option<String> {
        use std::io::{Read as _, Write as _};
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).ok()?;
        let request = format!("PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\ndone");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    };
    let changes = |check: &str, to: &str| {
        let name = |event: &Value| event["check"]["check_id"] == check && event["to"] == to;
        process
            .events("transition")
            .into_iter()
            .filter(name)
            .count()
    };
    eventually("it takes a report", || {
        put("/v1/heartbeat/ran?status=passing").filter(|answer| answer.starts_with("HTTP/1.1 200"))
    });
    for check in ["ran", "with"] {
        eventually(&format!("{check} is passing\n{}", process.log()), || {
            (changes(check, "passing") > 0).then_some(())
        });
    }
    let answer = put("/v1/heartbeat/with").unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    let answer = put("/v1/heartbeat/ran?status=fine").unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    // Nobody reports any more.
    for check in ["ran", "with"] {
        eventually(&format!("{check} is critical\n{}", process.log()), || {
            (changes(check, "critical") > 0).then_some(())
        });
    }
}
