use evenkeel_engine::CheckId;
use evenkeel_probe::Phases;

use crate::events::{CheckName, PhasesMs};

impl From<&CheckId> for CheckName {
    fn from(id: &CheckId) -> Self {
        Self {
            partition: id.partition().to_owned(),
            namespace: id.namespace().to_owned(),
            node: id.node().to_owned(),
            service_id: id.service_id().to_owned(),
            check_id: id.check_id().to_owned(),
        }
    }
}

impl From<Phases> for PhasesMs {
    fn from(phases: Phases) -> Self {
        // Microseconds are as fine as the timing is.
        let millis =
            |took: Option<std::time::Duration>| took.map(|took| took.as_micros() as f64 / 1000.0);
        Self {
            resolve: millis(phases.resolve),
            connect: millis(phases.connect),
            tls: millis(phases.tls),
            first_byte: millis(phases.first_byte),
            transfer: millis(phases.transfer),
            run: millis(phases.run),
        }
    }
}

/// The beginning of a text on one line, for a log.
pub(super) fn excerpt(text: &str) -> String {
    const MOST: usize = 200;
    let mut short: String = text
        .chars()
        .take(MOST)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short.truncate(short.trim_end().len());
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short_and_on_one_line() {
        assert_eq!(excerpt("a\nb\u{1b}[2J\r\n"), "a b [2J");
        let long = excerpt(&"é".repeat(5000));
        assert_eq!(long.chars().count(), 201);
        assert!(long.ends_with('…'));
    }
}
