use std::fmt::Write as _;
use std::io::Write;

use evenkeel_threshold::Status;

use crate::demo::lines::saved;
use crate::demo::scene::{CRITICAL, PASSING};
use crate::demo::track::{HISTORY, Target, Track, words};

/// Hides the cursor.
pub(super) const BEGIN: &str = "\u{1b}[?25l";
/// Shows it again.
pub(super) const END: &str = "\u{1b}[?25h";

const RESET: &str = "\u{1b}[0m";
const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";

/// One picture of the state, at most 100 columns wide.
pub(super) fn frame(track: &Track, socket: &str, unicode: bool) -> String {
    let mut text = String::new();
    let out = &mut text;
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "\n {BOLD}evenkeel demo{RESET}  {:3} s   critical after {} failures, passing again after {} successes\n",
        track.elapsed.as_secs(),
        CRITICAL + 1,
        PASSING + 1
    );
    let _ = writeln!(
        out,
        " {DIM}{:9} {:31} {:HISTORY$}  {:>7}  {:8}  {:>7}{RESET}",
        "target", "", "raw results", "changes", "reported", "changes"
    );
    for target in &track.targets {
        row(out, target, unicode);
    }
    let _ = writeln!(out, "{BOLD}{}{RESET}", saved(track).trim_end());
    let _ = writeln!(
        out,
        " {DIM}evenkeel status --admin {socket}   Ctrl-C ends{RESET}"
    );
    text
}

fn row(out: &mut String, target: &Target, unicode: bool) {
    let _ = write!(out, " {BOLD}{:9}{RESET} {:31} ", target.name, target.what);
    for _ in target.results.len()..HISTORY {
        out.push(' ');
    }
    for result in &target.results {
        let mark = match (result, unicode) {
            (Status::Passing, true) => '▇',
            (Status::Warning, true) => '▄',
            (Status::Critical, true) => '▁',
            (Status::Passing, false) => '+',
            (Status::Warning, false) => '~',
            (Status::Critical, false) => '-',
        };
        let _ = write!(out, "{}{mark}", colour(*result));
    }
    let pending = target.pending.map(words).unwrap_or_default();
    let _ = writeln!(
        out,
        "{RESET}  {:7}  {}{:8}{RESET}  {:7}  {DIM}{pending}{RESET}",
        target.raw_changes,
        colour(target.reported),
        target.reported,
        target.changes
    );
}

fn colour(status: Status) -> &'static str {
    match status {
        Status::Passing => "\u{1b}[32m",
        Status::Warning => "\u{1b}[33m",
        Status::Critical => "\u{1b}[31m",
    }
}

/// Draws `frame` over the one before, which had `before` lines.
pub(super) fn draw(out: &mut impl Write, frame: &str, before: usize) -> std::io::Result<()> {
    let mut text = String::with_capacity(frame.len() + 64);
    if before > 0 {
        let _ = write!(text, "\u{1b}[{before}A\r");
    }
    for line in frame.lines() {
        // The rest of a longer line before.
        let _ = writeln!(text, "{line}\u{1b}[K");
    }
    out.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The text without its colours.
    fn plain(text: &str) -> String {
        let mut plain = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('\u{1b}') {
            plain.push_str(before);
            let end = after.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
            rest = &after[end + 1..];
        }
        plain + rest
    }

    #[test]
    fn a_frame_is_no_wider_than_a_terminal_and_says_what_was_saved() {
        let mut track = Track::new([("flapping", "every other answer fails")].into_iter());
        track.elapsed = Duration::from_secs(12);
        let target = &mut track.targets[0];
        target.results.extend([Status::Passing, Status::Critical]);
        target.raw_changes = 23;
        let frame = plain(&frame(
            &track,
            "unix:/tmp/evenkeel-demo-abcdef/admin.sock",
            false,
        ));
        assert!(
            frame.contains("                      +-       23  passing         0"),
            "{frame}"
        );
        assert!(frame.contains("23 writes were saved"), "{frame}");
        for line in frame.lines() {
            assert!(line.chars().count() <= 120, "{line}");
        }
    }
}
