//! Commands on this machine.

use std::path::Path;

use evenkeel_probe::{Cause, Phase, Prober, ProberSettings, ScriptCheck};
use evenkeel_threshold::Status::{Critical, Passing, Warning};

use crate::support::*;

fn prober() -> Prober {
    let mut settings = ProberSettings::default();
    settings.scripts = true;
    Prober::new(settings).unwrap()
}

fn sh(script: &str) -> ScriptCheck {
    ScriptCheck::with_shell("/bin/sh", script).unwrap()
}

/// Waits for the end of a process, of no matter whose child.
fn gone(id: &str) {
    let proc = format!("/proc/{}", id.trim());
    evenkeel_testkit::eventually("the process is gone", || {
        (!Path::new(&proc).exists()).then_some(())
    });
}

#[tokio::test]
async fn the_exit_code_decides_and_the_output_is_the_text() {
    let prober = prober();
    for (code, status) in [
        (0, Passing),
        (1, Warning),
        (2, Critical),
        (3, Critical),
        (255, Critical),
    ] {
        let report = run_with(
            &prober,
            sh(&format!("echo said; echo too >&2; exit {code}")),
        )
        .await;
        assert_status(&report, status);
        assert_eq!(report.output, "said\ntoo");
        assert_eq!(report.failed_phase, None);
        assert!(report.phases.run.is_some());
        let report = run_with(&prober, sh(&format!("exit {code}"))).await;
        assert_eq!(report.output, format!("exit status {code}"));
    }
}

#[tokio::test]
async fn no_shell_reads_the_arguments() {
    let check = ScriptCheck::new(["echo", "$HOME; exit 2", "*"]).unwrap();
    let report = run_with(&prober(), check).await;
    assert_status(&report, Passing);
    assert_eq!(report.output, "$HOME; exit 2 *");
}

#[tokio::test]
async fn scripts_are_off_unless_enabled() {
    let report = run(sh("exit 0")).await;
    assert_unprobed(&report, Cause::Disabled);
    assert_says(&report, "script checks are not enabled");
}

#[tokio::test]
async fn environment_directory_and_descriptors_are_as_stated() {
    let prober = prober();
    // Something that must not be inherited.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let report = run_with(&prober, ScriptCheck::new(["env"]).unwrap()).await;
    assert_eq!(
        report.output,
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    );
    let check = sh("echo $A; pwd; read line || echo no input")
        .with_variable("A", "b c")
        .unwrap();
    let report = run_with(&prober, check.clone()).await;
    assert_eq!(report.output, "b c\n/\nno input");
    let report = run_with(&prober, check.with_directory("/proc")).await;
    assert_eq!(report.output, "b c\n/proc\nno input");
    // What the test itself was given without a mark to close it, a parent's lock for
    // instance, it cannot but hand on.
    let check = ScriptCheck::new(["ls", "-l", "/proc/self/fd"]).unwrap();
    let report = run_with(&prober, check).await;
    for kind in ["socket:", "anon_inode:"] {
        assert!(!report.output.contains(kind), "{}", report.output);
    }
    assert!(
        report.output.contains(" 0 -> /dev/null"),
        "{}",
        report.output
    );
    drop(listener);
}

// P101, P126
#[tokio::test]
async fn at_the_deadline_the_program_and_what_it_started_are_killed() {
    let prober = prober();
    let directory = tempfile::tempdir().unwrap();
    let ids = directory.path().join("ids");
    let check = sh("sleep 1000 & echo $! > \"$IDS\"; echo $$ >> \"$IDS\"; echo begun; sleep 1000")
        .with_variable("IDS", ids.to_str().unwrap())
        .unwrap()
        .with_timeout(SHORT);
    let report = run_with(&prober, check).await;
    assert_status(&report, Critical);
    assert_eq!(report.failed_phase, Some(Phase::Run));
    assert_eq!(
        report.output,
        "script check /bin/sh: running the command: context deadline exceeded Output: begun"
    );
    let ids = std::fs::read_to_string(ids).unwrap();
    assert_eq!(ids.lines().count(), 2);
    tokio::task::spawn_blocking(move || ids.lines().for_each(gone))
        .await
        .unwrap();
}

// P166
#[tokio::test]
async fn a_child_that_keeps_the_output_open_does_not_hold_the_result() {
    let check = sh("sleep 1000 & echo $!; exit 1");
    let report = run_with(&prober(), check).await;
    assert_status(&report, Warning);
    let id = report.output.clone();
    tokio::task::spawn_blocking(move || gone(&id))
        .await
        .unwrap();
}

// P085, P101
#[tokio::test]
async fn of_a_long_output_both_ends_are_kept_and_the_program_is_not_held_up() {
    let check = sh("echo first; i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done; echo last; exit 2")
        .with_output_max_size(64);
    let report = run_with(&prober(), check).await;
    assert_status(&report, Critical);
    assert!(report.output.starts_with("first\n"), "{}", report.output);
    assert!(report.output.ends_with("last"), "{}", report.output);
    assert!(
        report.output.contains("bytes left out]"),
        "{}",
        report.output
    );
    assert!(report.output.len() < 200);
}

#[tokio::test]
async fn an_endless_output_ends_at_the_timeout() {
    let check = ScriptCheck::new(["yes"]).unwrap().with_timeout(SHORT);
    let report = run_with(&prober(), check).await;
    assert_status(&report, Critical);
    assert!(report.output.len() < 5000);
    assert!(report.took < 2 * SHORT);
}

#[tokio::test]
async fn a_program_that_dies_of_a_signal_is_critical() {
    let report = run_with(&prober(), sh("kill -SEGV $$")).await;
    assert_status(&report, Critical);
    assert_says(&report, "the program ended by signal: 11");
}

#[tokio::test]
async fn a_program_that_cannot_be_run_says_nothing_of_the_target() {
    let prober = prober();
    let missing = ScriptCheck::new(["/nowhere/check"]).unwrap();
    let report = run_with(&prober, missing).await;
    assert_unprobed(&report, Cause::System);
    assert_says(
        &report,
        "script check /nowhere/check: fork/exec: no such file or directory",
    );
    let report = run_with(&prober, ScriptCheck::new(["/etc/passwd"]).unwrap()).await;
    assert_unprobed(&report, Cause::Permission);
    let report = run_with(&prober, sh("true").with_directory("/nowhere")).await;
    assert_unprobed(&report, Cause::System);
}

#[test]
fn what_cannot_be_a_command_is_refused() {
    assert!(ScriptCheck::new(Vec::<&str>::new()).is_err());
    assert!(ScriptCheck::new([""]).is_err());
    assert!(ScriptCheck::new(["a", "b\0"]).is_err());
    for name in ["", "A=B", "A\0"] {
        assert!(sh("true").with_variable(name, "x").is_err());
    }
}

/// So many run at once; the rest is not the target's fault.
#[tokio::test]
async fn a_script_that_finds_no_place_is_unprobed_by_half_of_its_time() {
    const PLACES: usize = 64;
    let prober = prober();
    let hangs = sh("sleep 1000").with_timeout(2 * SHORT);
    let all = (0..PLACES + 8).map(|_| run_with(&prober, hangs.clone()));
    let reports = futures_util::future::join_all(all).await;
    let (waited, ran): (Vec<_>, Vec<_>) = reports
        .iter()
        .partition(|report| report.phases.run.is_none());
    assert_eq!((ran.len(), waited.len()), (PLACES, 8));
    for report in ran {
        assert_status(report, Critical);
    }
    for report in waited {
        assert_unprobed(report, Cause::System);
        assert_says(report, "too many scripts run already");
        assert!(report.took < 2 * SHORT, "{report:?}");
    }
}
