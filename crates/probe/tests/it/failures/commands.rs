//! Scripts, and commands in containers of a real Docker Engine.

use std::time::Duration;

use evenkeel_probe::{
    Cause, Definition, DockerCheck, Phase, Prober, ProberSettings, Report, ScriptCheck,
};
use evenkeel_testkit::Docker;

use super::case::{Case, Expected, Row, critical, run_all, unprobed, warning};
use crate::support::*;
use crate::tls::Files;

fn scripts(enabled: bool) -> Prober {
    let mut settings = ProberSettings::default();
    settings.scripts = enabled;
    Prober::new(settings).unwrap()
}

fn of(situation: &'static str, script: &'static str, expected: Expected) -> Case {
    Case::new("script", situation, expected, async move {
        let check = ScriptCheck::with_shell("/bin/sh", script).unwrap();
        run_with(&scripts(true), check.with_timeout(expected.timeout())).await
    })
}

fn script_cases() -> Vec<Case> {
    let not_there = unprobed(Cause::System, "fork/exec: no such file or directory");
    let not_mine = unprobed(Cause::Permission, "fork/exec: permission denied");
    vec![
        of(
            "exit code 1, and an output",
            "echo low on disk; exit 1",
            warning("low on disk"),
        ),
        of(
            "exit code 2, and no output",
            "exit 2",
            critical("exit status 2"),
        ),
        of(
            "ended by a signal",
            "kill -9 $$",
            critical("ended by signal: 9").at(Phase::Run),
        ),
        of(
            "does not end",
            "echo begun; exec sleep 600",
            critical("running the command: context deadline exceeded Output: begun")
                .at(Phase::Run)
                .late(),
        ),
        Case::new(
            "script",
            "no such program",
            not_there.at(Phase::Resolve),
            async {
                let check = ScriptCheck::new(["/no/such/program"]).unwrap();
                run_with(&scripts(true), check).await
            },
        ),
        Case::new(
            "script",
            "not a program",
            not_mine.at(Phase::Resolve),
            async {
                let files = Files::new();
                let path = files.write("data", "");
                let check = ScriptCheck::new([path.to_str().unwrap()]).unwrap();
                run_with(&scripts(true), check).await
            },
        ),
        Case::new(
            "script",
            "script checks are not enabled",
            unprobed(Cause::Disabled, "not enabled").at(Phase::Resolve),
            async { run_with(&scripts(false), ScriptCheck::new(["true"]).unwrap()).await },
        ),
        Case::new(
            "Docker",
            "Docker checks are not enabled",
            unprobed(Cause::Disabled, "not enabled").at(Phase::Resolve),
            async { run(DockerCheck::new("web", ["true"]).unwrap()).await },
        ),
        Case::new(
            "Docker",
            "the Docker daemon is away",
            unprobed(Cause::Docker, "connect: ").at(Phase::Connect),
            async {
                let check = DockerCheck::new("web", ["true"]).unwrap();
                run_with(&engine("unix:///run/nowhere/docker.sock"), check).await
            },
        ),
    ]
}

pub(crate) async fn script() -> Vec<Row> {
    run_all(script_cases()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_fail_say_why() {
    script().await;
}

fn engine(host: &str) -> Prober {
    let mut settings = ProberSettings::default();
    settings.docker = Some(host.to_owned());
    Prober::new(settings).unwrap()
}

/// In this order: one depends on another.
const IN_DOCKER: [&str; 8] = [
    "exit code 1, and an output",
    "exit code 2, and no output",
    "no such program",
    "no such container",
    "does not end",
    "the command of the last probe has not ended",
    "the container has stopped",
    "the Docker daemon has gone",
];

/// On a real engine; rows without a result where there is none.
pub(crate) async fn docker(test: &str) -> Vec<Row> {
    let Some(mut docker) = tokio::task::block_in_place(|| Docker::start(test)) else {
        let absent = |situation: &&str| Row {
            kind: "Docker".into(),
            situation: (*situation).to_owned(),
            result: String::new(),
            phase: String::new(),
            text: String::new(),
        };
        return IN_DOCKER.iter().map(absent).collect();
    };
    let prober = engine(&docker.host());
    tokio::task::block_in_place(|| docker.container("web"));
    let sh = |container: &str, script: &str, timeout: Duration| -> Definition {
        let check = DockerCheck::with_shell(container, "/bin/sh", script).unwrap();
        check.with_timeout(timeout).into()
    };
    let usual = 20 * SHORT;
    let hangs = sh("web", "echo begun; sleep 3000", SHORT);
    let mut reports: Vec<Report> = Vec::new();
    for check in [
        sh("web", "echo low on disk; exit 1", usual),
        sh("web", "exit 2", usual),
        DockerCheck::new("web", ["/no/such/program"])
            .unwrap()
            .into(),
        sh("nobody", "exit 0", usual),
        hangs.clone(),
        hangs,
    ] {
        reports.push(run_with(&prober, check).await);
    }
    tokio::task::block_in_place(|| docker.end("web"));
    reports.push(run_with(&prober, sh("web", "exit 0", usual)).await);
    tokio::task::block_in_place(|| docker.kill());
    reports.push(run_with(&prober, sh("web", "exit 0", usual)).await);
    let rows = IN_DOCKER.iter().zip(&reports);
    rows.map(|(situation, report)| {
        let mut row = Row::new("Docker", situation, report);
        // The engine tells a container by its number.
        let number = regex::Regex::new("[0-9a-f]{64}").unwrap();
        row.text = number.replace_all(&row.text, "4f1c…").into_owned();
        row
    })
    .collect()
}
