//! Commands in containers of a real Docker Engine.

use std::time::Duration;

use evenkeel_probe::{Cause, DockerCheck, Phase, Prober, ProberSettings};
use evenkeel_testkit::Docker;
use evenkeel_threshold::Status::{Critical, Passing, Warning};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;

use crate::support::*;

fn prober(host: &str) -> Prober {
    let mut settings = ProberSettings::default();
    settings.docker = Some(host.to_owned());
    Prober::new(settings).unwrap()
}

fn sh(container: &str, script: &str) -> DockerCheck {
    DockerCheck::with_shell(container, "/bin/sh", script)
        .unwrap()
        .with_timeout(Duration::from_secs(20))
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_in_a_container_of_a_real_engine() {
    let Some(docker) = Docker::start("commands_in_a_container_of_a_real_engine") else {
        return;
    };
    let prober = prober(&docker.host());
    docker.container("web");

    for (code, status) in [(0, Passing), (1, Warning), (2, Critical), (3, Critical)] {
        let check = sh("web", &format!("echo said; echo too >&2; exit {code}"));
        let report = run_with(&prober, check).await;
        assert_status(&report, status);
        assert!(
            report.output == "said\ntoo" || report.output == "too\nsaid",
            "{report:#?}"
        );
        assert!(report.phases.connect.is_some() && report.phases.run.is_some());
        let report = run_with(&prober, sh("web", &format!("exit {code}"))).await;
        assert_eq!(report.output, format!("exit status {code}"));
    }
    let report = run_with(
        &prober,
        DockerCheck::new("web", ["echo", "$HOME", "*"]).unwrap(),
    )
    .await;
    assert_eq!(report.output, "$HOME *");

    // P101: the end of a long output is not lost.
    let check = sh(
        "web",
        "echo first; i=0; while [ $i -lt 5000 ]; do echo 0123456789; i=$((i+1)); done; echo last; exit 2",
    );
    let report = run_with(&prober, check.with_output_max_size(64)).await;
    assert_status(&report, Critical);
    assert!(
        report.output.starts_with("first\n") && report.output.ends_with("last"),
        "{report:#?}"
    );
    assert!(report.output.len() < 200);

    // P166: a process in the background holds the output.
    let report = run_with(&prober, sh("web", "sleep 2000 & echo ok; exit 1")).await;
    assert_status(&report, Warning);
    assert_eq!(report.output, "ok");
    assert!(report.took < Duration::from_secs(10), "{report:#?}");

    let missing = DockerCheck::new("web", ["/no/such/program"]).unwrap();
    let report = run_with(&prober, missing).await;
    assert_status(&report, Critical);
    assert!(
        report.output.contains("no such file or directory"),
        "{report:#?}"
    );
    let report = run_with(&prober, sh("nobody", "exit 0")).await;
    assert_status(&report, Critical);
    assert_says(
        &report,
        "docker check nobody: create exec: No such container: nobody",
    );

    // P098, P101: one that hangs is not started again beside itself.
    let hangs = sh("web", "echo begun; sleep 3000").with_timeout(SHORT);
    let report = run_with(&prober, hangs.clone()).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::Run));
    assert_eq!(
        report.output,
        "docker check web: running the command: context deadline exceeded Output: begun"
    );
    let report = run_with(&prober, hangs.clone()).await;
    assert_status(&report, Critical);
    assert_says(&report, "the command of an earlier probe is still running");
    assert!(docker.runs("web", "3000"));
    // Another check of the container is not held up.
    assert_status(&run_with(&prober, sh("web", "exit 0")).await, Passing);

    // A container that stops while the command runs.
    let stopping = sh("web", "echo begun; sleep 4000");
    let running = {
        let prober = prober.clone();
        tokio::spawn(async move { run_with(&prober, stopping).await })
    };
    tokio::task::block_in_place(|| {
        let began = evenkeel_testkit::wait_for(Duration::from_secs(30), || {
            docker.runs("web", "4000").then_some(())
        });
        assert!(began.is_some());
        docker.end("web");
    });
    let report = running.await.unwrap();
    assert_status(&report, Critical);
    assert!(report.took < Duration::from_secs(15), "{report:#?}");
    let report = run_with(&prober, sh("web", "exit 0")).await;
    assert_status(&report, Critical);
    assert!(report.output.contains("is not running"), "{report:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_goes_away_says_nothing_of_the_container() {
    let test = "an_engine_that_goes_away_says_nothing_of_the_container";
    let Some(mut docker) = Docker::start(test) else {
        return;
    };
    let prober = prober(&docker.host());
    docker.container("web");
    let check = sh("web", "sleep 3");
    assert_status(&run_with(&prober, sh("web", "exit 0")).await, Passing);
    let running = {
        let (prober, check) = (prober.clone(), check.clone());
        tokio::spawn(async move { run_with(&prober, check).await })
    };
    tokio::task::block_in_place(|| {
        let began = evenkeel_testkit::wait_for(Duration::from_secs(30), || {
            docker.runs("web", "sleep 3").then_some(())
        });
        assert!(began.is_some());
        docker.kill();
    });
    assert_unprobed(&running.await.unwrap(), Cause::Docker);
    let report = run_with(&prober, check).await;
    assert_unprobed(&report, Cause::Docker);
    assert_says(&report, "docker check web: ");
}

// P098, P100, P101
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_on_a_port_is_as_good_as_one_on_a_socket() {
    let test = "an_engine_on_a_port_is_as_good_as_one_on_a_socket";
    let Some(mut docker) = Docker::start_on_port(test) else {
        return;
    };
    assert!(docker.host().starts_with("tcp://"));
    let prober = prober(&docker.host());
    docker.container("web");
    for (code, status) in [(0, Passing), (1, Warning), (2, Critical)] {
        let report = run_with(&prober, sh("web", &format!("echo said; exit {code}"))).await;
        assert_status(&report, status);
        assert_eq!(report.output, "said");
    }
    let hangs = sh("web", "echo begun; sleep 3000").with_timeout(SHORT);
    let report = run_with(&prober, hangs).await;
    assert_status(&report, Critical);
    assert_says(&report, "context deadline exceeded Output: begun");

    let begin = |argument: &'static str| {
        let (prober, check) = (prober.clone(), sh("web", &format!("sleep {argument}")));
        let running = tokio::spawn(async move { run_with(&prober, check).await });
        tokio::task::block_in_place(|| {
            evenkeel_testkit::eventually("the command runs", || {
                docker.runs("web", argument).then_some(())
            });
        });
        running
    };
    let running = begin("4000");
    docker.end("web");
    assert_status(&running.await.unwrap(), Critical);
    let (status, said) = docker.ask("POST", "/containers/web/start", &[]);
    assert_eq!(status, 204, "{said}");

    let running = begin("5000");
    docker.kill();
    assert_unprobed(&running.await.unwrap(), Cause::Docker);
    let report = run_with(&prober, sh("web", "exit 0")).await;
    assert_unprobed(&report, Cause::Docker);
    assert_says(&report, "docker check web: connect: ");
    // And it is asked again when it is back.
    tokio::task::block_in_place(|| docker.launch());
    let (status, said) = docker.ask("POST", "/containers/web/start", &[]);
    assert_eq!(status, 204, "{said}");
    assert_status(&run_with(&prober, sh("web", "exit 0")).await, Passing);
}

// P100: an engine that hangs at one of its calls.
#[tokio::test]
async fn an_engine_that_does_not_answer_leaves_the_check_unprobed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("docker.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let json = |status: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    let version = json("200 OK", r#"{"ApiVersion":"1.41"}"#);
    let created = json("201 Created", r#"{"Id":"abc"}"#);
    let upgraded =
        "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n".to_owned();
    let hang_at = std::sync::Arc::new(std::sync::Mutex::new(""));
    let hanging = hang_at.clone();
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = read_request_head(&mut stream).await;
            let hang = *hanging.lock().unwrap();
            let answer = if request.contains(hang) {
                ""
            } else if request.contains("/version") {
                &version
            } else if request.contains("/start") {
                &upgraded
            } else {
                &created
            };
            let _ = stream.write_all(answer.as_bytes()).await;
            if answer.is_empty() {
                tokio::spawn(async move { until_closed(&mut stream).await });
            }
        }
    });
    for call in ["/version", "/containers/web/exec", "/start", "/json"] {
        *hang_at.lock().unwrap() = call;
        let prober = prober(&format!("unix://{}", path.display()));
        let check = sh("web", "exit 0").with_timeout(SHORT);
        let report = run_with(&prober, check).await;
        assert_unprobed(&report, Cause::Docker);
        assert_says(&report, "the Docker daemon does not answer");
        assert!(
            report.took <= SHORT + Duration::from_millis(500),
            "{report:#?}"
        );
    }
    serving.abort();
}

async fn read_request_head(stream: &mut tokio::net::UnixStream) -> String {
    use tokio::io::AsyncReadExt;
    let mut request = vec![0; 4096];
    let count = stream.read(&mut request).await.unwrap_or(0);
    request.truncate(count);
    String::from_utf8_lossy(&request).into_owned()
}

#[tokio::test]
async fn docker_checks_are_off_unless_enabled() {
    let report = run(sh("web", "exit 0")).await;
    assert_unprobed(&report, Cause::Disabled);
    assert_says(&report, "Docker checks are not enabled");
    let nowhere = prober("unix:///nowhere/docker.sock");
    let report = run_with(&nowhere, sh("web", "exit 0")).await;
    assert_unprobed(&report, Cause::Docker);
    assert_says(&report, "/nowhere/docker.sock");
}

#[test]
fn what_cannot_be_a_container_is_refused() {
    for name in ["", "/", "a b", "a/../b", "a?x", "-a", "é"] {
        assert!(DockerCheck::new(name, ["true"]).is_err(), "{name}");
    }
    assert_eq!(
        DockerCheck::new("/web-1.x_y", ["true"])
            .unwrap()
            .container(),
        "web-1.x_y"
    );
    let mut settings = ProberSettings::default();
    settings.docker = Some("ssh://host".into());
    assert!(Prober::new(settings).is_err());
}
