//! The table in `docs/probes.md`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use regex::Regex;

use super::case::Row;

const BEGIN: &str =
    "<!-- The table of texts: made by a test (crates/probe/tests/it/failures). -->\n";
const END: &str = "<!-- The end of the table of texts. -->\n";
const HEAD: &str = "| situation | result | phase | text |\n|---|---|---|---|\n";

/// The text with the test's own addresses and files replaced by usual ones.
pub(crate) fn neutral(text: &str) -> String {
    let with = |pattern: &str, text: &str, with: &str| {
        let pattern = Regex::new(pattern).unwrap();
        pattern.replace_all(text, with).into_owned()
    };
    let directory = regex::escape(&std::env::temp_dir().display().to_string());
    let text = with(r"127\.0\.0\.1:\d+", text, "10.0.0.5:80");
    let text = with(r"localhost:\d+", &text, "app.example:80");
    let text = with(r"\.test:\d+", &text, ".test:80");
    let text = with(r"127\.0\.0\.1", &text, "10.0.0.5");
    // A limit that nothing keeps.
    let text = with("than 1ns", &text, "than 500ms");
    let text = with(&format!(r"{directory}/[^/ :]+/"), &text, "/etc/evenkeel/");
    shortened(&text.replace(['\r', '\n'], " "))
}

/// What comes over and over is shown a few times.
fn shortened(text: &str) -> String {
    let over = Regex::new(r"x{12,}|(\\0){12,}").unwrap();
    let few = |found: &regex::Captures<'_>| format!("{}…", &found[0][..10]);
    over.replace_all(text, few).into_owned()
}

/// The rows, those of a kind together and those of one text in one line.
pub(crate) fn render(rows: &[Row]) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for row in rows {
        if !kinds.contains(&&*row.kind) {
            kinds.push(&row.kind);
        }
    }
    let mut text = String::new();
    for kind in kinds {
        let mut lines: Vec<(Vec<&str>, &Row)> = Vec::new();
        for row in rows.iter().filter(|row| row.kind == kind) {
            let same = |other: &Row| {
                (&row.result, &row.phase, &row.text) == (&other.result, &other.phase, &other.text)
            };
            match lines.iter_mut().find(|(_, other)| same(other)) {
                Some((situations, _)) if situations.contains(&&*row.situation) => {}
                Some((situations, _)) => situations.push(&row.situation),
                None => lines.push((vec![&row.situation], row)),
            }
        }
        let _ = write!(text, "\n### {kind}\n\n{HEAD}");
        for (situations, row) in lines {
            let (result, phase) = (&row.result, &row.phase);
            let situations = situations.join("; ");
            let shown = code(&row.text);
            let _ = writeln!(text, "| {situations} | {result} | {phase} | {shown} |");
        }
    }
    text.push('\n');
    text
}

fn code(text: &str) -> String {
    let text = text.replace('|', "\\|");
    if text.contains('`') {
        format!("`` {text} ``")
    } else {
        format!("`{text}`")
    }
}

fn plain(code: &str) -> String {
    let text = code.trim_matches('`').replace("\\|", "|");
    if code.starts_with("`` ") {
        text.trim().to_owned()
    } else {
        text
    }
}

pub(crate) struct Page {
    path: PathBuf,
    before: String,
    table: String,
    after: String,
}

impl Page {
    pub(crate) fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/probes.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(BEGIN).expect("the table begins");
        let (table, after) = rest.split_once(END).expect("the table ends");
        Self {
            before: before.to_owned(),
            table: table.to_owned(),
            after: after.to_owned(),
            path,
        }
    }

    fn rows(&self) -> Vec<Row> {
        let (mut kind, mut rows) = ("", Vec::new());
        for line in self.table.lines() {
            if let Some(heading) = line.strip_prefix("### ") {
                kind = heading;
            }
            let inner = line
                .strip_prefix("| ")
                .and_then(|line| line.strip_suffix(" |"));
            let cells: Vec<&str> =
                inner.map_or(Vec::new(), |inner| inner.splitn(4, " | ").collect());
            let [situations, result, phase, text] = cells[..] else {
                continue;
            };
            rows.extend(situations.split("; ").map(|situation| Row {
                kind: kind.to_owned(),
                situation: situation.to_owned(),
                result: result.to_owned(),
                phase: phase.to_owned(),
                text: plain(text),
            }));
        }
        rows
    }

    /// What could not be had here (a peer is missing, or a right) is taken as the
    /// page has it.
    pub(crate) fn with_absent(&self, rows: Vec<Row>) -> Vec<Row> {
        let known = self.rows();
        let found = |row: Row| {
            if !row.result.is_empty() {
                return Some(row);
            }
            let same =
                |other: &&Row| (&other.kind, &other.situation) == (&row.kind, &row.situation);
            known.iter().find(same).cloned()
        };
        rows.into_iter().filter_map(found).collect()
    }

    /// Compares, or writes if asked to.
    pub(crate) fn compare(&self, table: &str) {
        if std::env::var_os("EVENKEEL_WRITE_DOCS").is_some() {
            let page = [&self.before, BEGIN, table, END, &self.after].concat();
            return std::fs::write(&self.path, page).unwrap();
        }
        let differing = |one: &str, other: &str| -> String {
            let lines = one
                .lines()
                .filter(|line| !other.lines().any(|other| other == *line));
            lines.fold(String::new(), |all, line| all + "\n  " + line)
        };
        assert!(
            self.table == table,
            "docs/probes.md has another table of texts; EVENKEEL_WRITE_DOCS=1 writes it.\n\
             only there:{}\nonly here:{}",
            differing(&self.table, table),
            differing(table, &self.table)
        );
    }
}

/// Words by which a reader knows the phase.
fn words(phase: &str) -> &'static [&'static str] {
    match phase {
        "resolve" => &["lookup", "target policy", "not enabled", "fork/exec"],
        "connect" => &["connect", "dial", "exec", "Docker", "target policy"],
        "tls" => &["tls", "TLS", "x509"],
        "first_byte" => &[
            "headers", "http", "HTTP", "answer", "replied", "reply", "udp ", "rpc", "gRPC",
            "NOERROR", "NXDOMAIN", "SERVFAIL", "REFUSED", "redirect", "ICMP",
        ],
        "transfer" => &["body", "captured"],
        "run" => &["command", "program", "exit status"],
        _ => &[],
    }
}

/// What is wrong with a text that should be one line, and name the cause and the
/// phase and nothing that is another with each probe.
pub(crate) fn fault(row: &Row) -> Option<String> {
    let time = Regex::new(r"\b\d+(\.\d+)?(µs|ms)\b").unwrap();
    let port = Regex::new(r":[1-9]\d{4}\b").unwrap();
    let words = words(&row.phase);
    let why = if row.text.contains(char::is_control) {
        "has more than one line"
    } else if row.text.is_empty() || row.text.len() > 400 {
        "is empty or long"
    } else if time.is_match(&row.text) && !row.text.contains("took longer than") {
        "has a time in it"
    } else if port.is_match(&row.text) {
        "has a port in it"
    } else if !words.is_empty() && !words.iter().any(|word| row.text.contains(word)) {
        "has no word for the phase"
    } else {
        return None;
    };
    Some(format!("{why}: {row:?}"))
}
