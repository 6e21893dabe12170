use std::fmt::Write as _;

use serde_json::json;

use crate::demo::scene::{CRITICAL, PASSING};
use crate::demo::track::{Change, News, Track, words};

pub(super) fn heading(track: &Track, socket: &str) -> String {
    let mut text = format!(
        "{} targets, probed twice a second. Critical after {} failures, passing again after {} successes.\n",
        track.targets.len(),
        CRITICAL + 1,
        PASSING + 1
    );
    for target in &track.targets {
        let _ = writeln!(text, "  {:9} {}", target.name, target.what);
    }
    let _ = writeln!(text, "Ask it: evenkeel status --admin {socket}\n");
    text
}

pub(super) fn line(news: &News) -> String {
    let after = news.after.as_secs_f64();
    match news.what {
        Change::Raw {
            to,
            reported,
            pending,
        } => {
            let pending =
                pending.map_or_else(String::new, |pending| format!(", {}", words(pending)));
            format!(
                "{after:5.1} s  {:9} result {to:9} reported: still {reported}{pending}\n",
                news.target
            )
            // The result that brings a change about is not held back.
            .replace(&format!("still {to}"), &to.to_string())
        }
        Change::Reported { from, to } => {
            format!("{after:5.1} s  {:9} REPORTED {from} -> {to}\n", news.target)
        }
    }
}

pub(super) fn summary(track: &Track) -> String {
    let mut text = String::from("\n            raw changes  reported\n");
    for target in &track.targets {
        let _ = writeln!(
            text,
            "  {:9} {:11}  {:8}",
            target.name, target.raw_changes, target.changes
        );
    }
    text + &saved(track)
}

/// The sum, in a sentence.
pub(super) fn saved(track: &Track) -> String {
    let (raw, reported) = track.totals();
    let times = |count: u32, one: &str, more: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {more}"),
    };
    format!(
        "\nIn {} s the raw results changed {}. {} reported; {} saved.\n",
        track.elapsed.as_secs(),
        times(raw, "time", "times"),
        times(reported, "change was", "changes were"),
        times(raw.saturating_sub(reported), "write was", "writes were")
    )
}

pub(super) fn json(news: &News) -> String {
    let millis = u64::try_from(news.after.as_millis()).unwrap_or(u64::MAX);
    let value = match news.what {
        Change::Raw { to, reported, .. } => {
            json!({"after_ms": millis, "target": news.target, "result": to, "reported": reported})
        }
        Change::Reported { from, to } => {
            json!({"after_ms": millis, "target": news.target, "from": from, "to": to})
        }
    };
    format!("{value}\n")
}

pub(super) fn json_summary(track: &Track) -> String {
    let (raw, reported) = track.totals();
    let value = json!({
        "seconds": track.elapsed.as_secs(),
        "raw_changes": raw,
        "reported_changes": reported,
        "writes_saved": raw.saturating_sub(reported),
    });
    format!("{value}\n")
}
