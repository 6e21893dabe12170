//! Checks whose results somebody reports.

use std::collections::HashMap;
use std::time::Duration;

use evenkeel_engine::{CheckId, Finding, Outcome};
use evenkeel_threshold::{Status, Timestamp};

use crate::admin::{CheckPath, ReportRefused};
use crate::config::duration;

/// Since when reports could have come.
#[derive(Debug)]
pub(super) struct Heartbeats {
    /// Since when each check is known.
    known: HashMap<CheckId, Timestamp>,
    /// Checks by the id within their service, by which they are called.
    called: HashMap<Box<str>, Vec<CheckId>>,
    /// Since when this process listens without a gap.
    listening: Timestamp,
}

impl Heartbeats {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            known: HashMap::new(),
            called: HashMap::new(),
            listening: now,
        }
    }

    /// Takes in which checks there are.
    pub(super) fn list(&mut self, now: Timestamp, checks: impl Iterator<Item = CheckId>) {
        let before = std::mem::take(&mut self.known);
        self.called.clear();
        for id in checks {
            let since = before.get(&id).copied().unwrap_or(now);
            let called = self.called.entry(id.check_id().into()).or_default();
            called.push(id.clone());
            self.known.insert(id, since);
        }
    }

    /// The process stood still until now: reports may wait in its sockets. (P104)
    pub(super) fn paused(&mut self, now: Timestamp) {
        self.listening = now;
    }

    /// What it means that a report is due. Silence counts only while there was
    /// somebody to listen.
    pub(super) fn silent(&self, id: &CheckId, silence: Duration, now: Timestamp) -> Finding {
        let known = self.known.get(id).copied().unwrap_or(now);
        let heard = now.saturating_since(known.max(self.listening));
        let silence_text = duration::format(silence);
        if heard < silence {
            return Finding {
                outcome: Outcome::Unprobed,
                output: format!("not waited for {silence_text} yet"),
            };
        }
        Finding {
            outcome: Outcome::Observed(Status::Critical.into()),
            output: format!("no report within {silence_text}"),
        }
    }

    /// The one check that `path` means.
    pub(super) fn find(&self, path: &CheckPath) -> Result<CheckId, ReportRefused> {
        let called = self.called.get(&*path.check).map_or(&[][..], Vec::as_slice);
        let mut fitting = called.iter().filter(|id| path.fits(id));
        match (fitting.next(), fitting.next()) {
            (Some(id), None) => Ok(id.clone()),
            (None, _) => Err(ReportRefused::Unknown),
            (Some(_), Some(_)) => Err(ReportRefused::Ambiguous),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1000)
    }

    fn id(node: &str) -> CheckId {
        CheckId::new("", "", node, "backup", "ran")
    }

    fn path(node: Option<&str>) -> CheckPath {
        CheckPath {
            check: "ran".into(),
            node: node.map(Into::into),
            ..CheckPath::default()
        }
    }

    // P104
    #[test]
    fn silence_counts_only_while_somebody_listened() {
        let critical = |beats: &Heartbeats, now| {
            beats.silent(&id("a"), SILENCE, now).outcome != Outcome::Unprobed
        };
        let mut beats = Heartbeats::new(at(0));
        beats.list(at(10), [id("a")].into_iter());
        assert!(!critical(&beats, at(39)));
        assert!(critical(&beats, at(40)));
        // Read again, it is as old as before.
        beats.list(at(50), [id("a")].into_iter());
        assert!(critical(&beats, at(50)));
        beats.paused(at(100));
        assert!(!critical(&beats, at(129)));
        assert!(critical(&beats, at(130)));
    }

    #[test]
    fn a_check_is_found_by_as_much_of_its_name_as_tells_it_from_others() {
        let mut beats = Heartbeats::new(at(0));
        beats.list(at(0), [id("a"), id("b")].into_iter());
        assert_eq!(beats.find(&path(Some("a"))), Ok(id("a")));
        assert_eq!(beats.find(&path(None)), Err(ReportRefused::Ambiguous));
        assert_eq!(beats.find(&path(Some("c"))), Err(ReportRefused::Unknown));
        beats.list(at(0), [id("b")].into_iter());
        assert_eq!(beats.find(&path(None)), Ok(id("b")));
    }
}
