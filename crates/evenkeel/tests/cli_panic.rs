//! A panic in a process whose log is JSON. The hook is the process's, so the
//! test is a process of its own.

use std::process::Command;

use evenkeel::config::{LogFormat, LogSettings};
use evenkeel::logging;

#[test]
#[ignore = "the other half of the test below, which runs it"]
fn a_thread_panics() {
    logging::start(&LogSettings {
        format: LogFormat::Json,
        ..LogSettings::default()
    });
    let panicked = std::thread::spawn(|| panic!("it went\nwrong")).join();
    assert!(panicked.is_err());
}

// P068
#[test]
fn a_panic_is_one_json_line() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "a_thread_panics"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1, "{text}");
    let line: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(line["level"], "ERROR");
    assert_eq!(line["message"], "panic: it went\nwrong");
    assert!(line["place"].as_str().unwrap().contains("cli_panic.rs:"));
}
