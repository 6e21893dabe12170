//! Statuses as histories spell them.

use evenkeel_threshold::Status;

/// What each word stands for, in lower case. `None`: the check could not be
/// probed, so there is no result.
const WORDS: &[(&str, Option<Status>)] = &[
    ("passing", Some(Status::Passing)),
    ("pass", Some(Status::Passing)),
    ("passed", Some(Status::Passing)),
    ("ok", Some(Status::Passing)),
    ("up", Some(Status::Passing)),
    ("good", Some(Status::Passing)),
    ("healthy", Some(Status::Passing)),
    ("success", Some(Status::Passing)),
    ("true", Some(Status::Passing)),
    ("1", Some(Status::Passing)),
    ("warning", Some(Status::Warning)),
    ("warn", Some(Status::Warning)),
    ("degraded", Some(Status::Warning)),
    ("critical", Some(Status::Critical)),
    ("crit", Some(Status::Critical)),
    ("fail", Some(Status::Critical)),
    ("failed", Some(Status::Critical)),
    ("failing", Some(Status::Critical)),
    ("failure", Some(Status::Critical)),
    ("down", Some(Status::Critical)),
    ("bad", Some(Status::Critical)),
    ("error", Some(Status::Critical)),
    ("timeout", Some(Status::Critical)),
    ("unhealthy", Some(Status::Critical)),
    ("false", Some(Status::Critical)),
    ("0", Some(Status::Critical)),
    ("unprobed", None),
    ("unknown", None),
    ("maintenance", None),
    ("skipped", None),
    ("null", None),
];

/// The longest word.
const LONGEST: usize = 16;

/// Reads a status in any case; `Some(None)` is a probe that could not be run.
pub(crate) fn parse(text: &[u8]) -> Option<Option<Status>> {
    // Nearly every row says one of these.
    match text {
        b"passing" => return Some(Some(Status::Passing)),
        b"critical" => return Some(Some(Status::Critical)),
        _ => {}
    }
    let text = text.trim_ascii();
    if text.len() > LONGEST {
        return None;
    }
    WORDS
        .iter()
        .find(|(word, _)| word.as_bytes().eq_ignore_ascii_case(text))
        .map(|(_, status)| *status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_any_case() {
        for (text, expected) in [
            ("passing", Some(Some(Status::Passing))),
            ("UP", Some(Some(Status::Passing))),
            (" Ok ", Some(Some(Status::Passing))),
            ("1", Some(Some(Status::Passing))),
            ("Warning", Some(Some(Status::Warning))),
            ("DOWN", Some(Some(Status::Critical))),
            ("0", Some(Some(Status::Critical))),
            ("unknown", Some(None)),
            ("", None),
            ("2", None),
            ("passing,", None),
            ("passingpassingpassing", None),
        ] {
            assert_eq!(parse(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn the_page_lists_every_word() {
        const PAGE: &str = include_str!("../../../docs/simulate.md");
        for (word, _) in WORDS {
            assert!(word.len() <= LONGEST);
            assert!(PAGE.contains(&format!("`{word}`")), "{word}");
        }
    }
}
