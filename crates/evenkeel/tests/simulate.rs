//! `simulate` from outside: what it prints, and that its pages say what is so.
#![allow(clippy::unwrap_used, reason = "only tests are compiled with this")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;

const PAGES: [(&str, &str); 2] = [
    ("README.md", include_str!("../../../README.md")),
    (
        "docs/simulate.md",
        include_str!("../../../docs/simulate.md"),
    ),
];

const SAMPLE: &str = "crates/replay/data/sample.csv.gz";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `evenkeel simulate` in the root of the repository, as the pages have it.
fn simulate(arguments: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .arg("simulate")
        .args(arguments)
        .current_dir(root())
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_owned();
    // It may end without having read all.
    let writer = std::thread::spawn(move || pipe.write_all(&stdin).is_ok());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it was not killed")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(output: &Output) -> Json {
    assert_eq!(code(output), 0, "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Each command of a page that simulates, with the output that follows it.
fn shown(page: &str) -> Vec<(Vec<String>, String)> {
    let mut shown = Vec::new();
    let mut blocks = page.split("```").skip(1).step_by(2).peekable();
    while let Some(block) = blocks.next() {
        let Some(command) = block.strip_prefix("sh\n") else {
            continue;
        };
        let command = command.replace("\\\n", " ");
        let Some((_, arguments)) = command.split_once("-p evenkeel -- simulate ") else {
            continue;
        };
        let arguments = arguments.split_whitespace().map(str::to_owned).collect();
        let output = blocks.peek().and_then(|next| next.strip_prefix("text\n"));
        shown.push((arguments, output.unwrap_or_default().to_owned()));
    }
    shown
}

// P147: what a setting does with a history has to be seen, and stay so.
#[test]
fn the_pages_show_what_is_printed() {
    let mut seen = 0;
    for (name, page) in PAGES {
        for (arguments, expected) in shown(page) {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            if expected.is_empty() {
                continue;
            }
            let output = simulate(&arguments, b"");
            assert_eq!(code(&output), 0, "{}", text(&output.stderr));
            let printed = text(&output.stdout);
            assert_eq!(printed, expected, "{name}: {arguments:?}");
            seen += 1;
        }
    }
    assert!(seen >= 4, "{seen} outputs");
}

#[test]
fn the_pictures_of_the_page_are_what_is_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let drawn = directory.path().to_str().unwrap();
    let output = simulate(
        &[SAMPLE, "--svg", drawn, "--timelines", "12", "--json"],
        b"",
    );
    let written = json(&output)["pictures"].as_array().unwrap().len();
    assert_eq!(written, 13);
    for name in ["delay-writes.svg", "timeline-search.svg"] {
        let shown = std::fs::read_to_string(root().join("docs/pictures").join(name)).unwrap();
        let drawn = std::fs::read_to_string(directory.path().join(name)).unwrap();
        assert!(
            shown == drawn,
            "docs/pictures/{name} is not what --svg writes"
        );
    }
}

#[test]
fn json_has_the_strategies_at_its_top() {
    let output = simulate(
        &[
            "-",
            "--strategy",
            "raw",
            "--strategy",
            "consecutive:down=3,up=3",
            "--json",
        ],
        b"1,a,up\n2,a,down\n3,a,up\n4,a,up\n5,a,down\n6,a,down\n7,a,down\n8,a,down\n9,a,down\n",
    );
    let json = json(&output);
    let strategies = json["strategies"].as_array().unwrap();
    let told: Vec<(&str, u64)> = strategies
        .iter()
        .map(|it| (it["name"].as_str().unwrap(), it["writes"].as_u64().unwrap()))
        .collect();
    assert_eq!(told, [("raw", 3), ("consecutive:down=3,up=3", 1)]);
    assert_eq!(strategies[0]["false_flips"], 1);
    assert_eq!(strategies[1]["failures"]["mean_delay_ms"], 2000);
    assert_eq!(json["history"]["results"], 9);
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn several_files_are_one_history() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("first.csv");
    std::fs::write(&path, "1,a,up\n2,a,down\n").unwrap();
    let first = path.to_str().unwrap();
    let second = b"{\"time\":2,\"check\":\"a\",\"status\":\"down\"}\n\
                   {\"time\":3,\"check\":\"a\",\"status\":\"up\"}\n";
    let json = json(&simulate(
        &[first, "-", "--json", "--strategy", "raw"],
        second,
    ));
    assert_eq!(json["history"]["results"], 3);
    assert_eq!(json["strategies"][0]["writes"], 2);
    assert_eq!(json["bad_rows"]["kinds"]["duplicate"], 1);
    assert_eq!(json["bad_rows"]["named"][0]["file"], "standard input");
}

#[test]
fn advice_comes_with_what_is_predicted_and_what_is_replayed() {
    let output = simulate(&[SAMPLE, "--json", "--advise", "--strategy", "raw"], b"");
    let json = json(&output);
    let advice = &json["advice"];
    assert_eq!(advice["checks"].as_array().unwrap().len(), 12);
    let proposals = advice["proposals"].as_array().unwrap();
    assert!(!proposals.is_empty());
    for proposal in proposals {
        assert!(proposal["predicted"]["false_alarms"].as_f64().unwrap() > 0.0);
        let of_it = |it: &&Json| it["name"] == proposal["strategy"];
        let replayed = json["strategies"].as_array().unwrap().iter().find(of_it);
        assert!(replayed.unwrap()["writes"].as_u64().unwrap() > 0);
    }
    // One that is compared anyway is not replayed twice.
    let name = proposals[0]["strategy"].as_str().unwrap();
    let again = simulate(&[SAMPLE, "--json", "--advise", "--strategy", name], b"");
    let strategies = self::json(&again)["strategies"].as_array().unwrap().len();
    assert_eq!(strategies, proposals.len());
}

#[test]
fn bad_rows_are_named_counted_and_left_out_or_refused() {
    let file = b"time,check,status\r\n60,a,up\r\n50,a,up\r\n60,a,up\r\nx,a,up\r\n70,a,down\r\n";
    let named = "evenkeel: standard input: line 3: before the row before it of this check; \
                 sort the history by time\n\
                 evenkeel: standard input: line 4: the same as the row before it of this check\n";
    let skipped = simulate(&["-", "--show-bad-rows", "2", "--strategy", "raw"], file);
    assert_eq!(code(&skipped), 0);
    assert_eq!(
        text(&skipped.stderr),
        format!("{named}evenkeel: 1 more bad rows\n")
    );
    let told = text(&skipped.stdout);
    assert!(
        told.contains("3 bad rows left out: backwards 1, duplicate 1, time 1"),
        "{told}"
    );
    assert!(told.starts_with("2 results of 1 checks"), "{told}");

    let refused = simulate(&["-", "--bad-rows", "refuse", "--show-bad-rows", "2"], file);
    assert_eq!((code(&refused), text(&refused.stdout).as_str()), (65, ""));
    assert_eq!(
        text(&refused.stderr),
        format!(
            "{named}evenkeel: 1 more bad rows\n\
             evenkeel: refused for its bad rows; --bad-rows skip leaves them out\n"
        )
    );

    let as_json = json(&simulate(&["-", "--json"], file));
    assert_eq!(as_json["bad_rows"]["total"], 3);
    assert_eq!(as_json["bad_rows"]["kinds"]["duplicate"], 1);
    assert_eq!(as_json["bad_rows"]["named"][2]["line"], 5);
}

#[test]
fn wrong_arguments_are_told_all_at_once() {
    let output = simulate(
        &[
            "-",
            "-",
            "--advise",
            "--gap",
            "soon",
            "--truth",
            "0",
            "--event-interval",
            "0s",
            "--strategy",
            "raw",
            "--strategy",
            "raw",
            "--strategy",
            "wndow:m=3",
            "--strategy",
            "leaky:up=x",
            "--strategy",
            "raw:down=2",
        ],
        b"",
    );
    assert_eq!((code(&output), text(&output.stdout).as_str()), (64, ""));
    let told = text(&output.stderr);
    for fault in [
        "--gap: `soon`",
        "--truth: a window of 0 results",
        "--event-interval: more than 0s",
        "--strategy raw: given twice",
        "did you mean `window`?",
        "`raw` is no damping",
        "--strategy leaky:up=x: passing-threshold: `x`",
        "--strategy raw:down=2: raw has no parameters",
        "-: standard input can be read once",
        "--advise reads the history twice",
    ] {
        assert!(told.contains(fault), "{fault}: {told}");
    }
}

#[test]
fn exit_codes_tell_what_went_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("empty"), "").unwrap();
    std::fs::write(path("header"), "time,check\n1,a\n").unwrap();
    std::fs::write(path("xz"), b"\xfd7zXZ\0").unwrap();
    std::fs::write(path("cut"), b"\x1f\x8b\x08\0\0\0\0\0\0\x03abc").unwrap();
    std::fs::write(path("good"), "1,a,up\n").unwrap();
    for (arguments, expected, told) in [
        (vec![path("missing")], 74, "No such file"),
        (
            vec![directory.path().to_str().unwrap().to_owned()],
            74,
            "after line 0: ",
        ),
        (vec![path("empty")], 65, "no result in "),
        (vec![path("header")], 65, "no column for the status"),
        (vec![path("xz")], 65, "xz -dc"),
        (vec![path("cut")], 74, "after line 0: "),
        (
            vec![path("good"), "--svg".into(), path("good")],
            73,
            "exists",
        ),
        (
            vec![path("good"), "--timelines".into(), "3".into()],
            64,
            "--svg",
        ),
        (vec![], 64, "FILE"),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = simulate(&arguments, b"");
        let stderr = text(&output.stderr);
        assert_eq!(code(&output), expected, "{arguments:?}: {stderr}");
        assert!(stderr.contains(told), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["simulate", SAMPLE, "--json"])
        .current_dir(root())
        .env_clear()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), text(&output.stderr).as_str()), (0, ""));
}

/// What the daemon writes is what is read, line for line of its page.
#[test]
fn the_event_log_of_the_daemon_is_read() {
    let page = include_str!("../../../docs/events.md");
    let lines: Vec<&str> = page.lines().filter(|line| line.starts_with('{')).collect();
    let log = lines.join("\n");
    let json = json(&simulate(
        &["-", "--json", "--strategy", "raw"],
        log.as_bytes(),
    ));
    assert_eq!(json["history"]["event_log_lines"], lines.len());
    assert_eq!(json["bad_rows"]["total"], 0, "{json}");
    let transitions = lines
        .iter()
        .filter(|line| line.contains("\"transition\""))
        .count();
    assert_eq!(json["strategies"][0]["writes"], transitions);
}
