use std::time::Duration;

use evenkeel_threshold::Timestamp;

use crate::status::Readiness;

/// Failed writes in a row from which on the daemon is not ready. (P029)
const STREAK: u32 = 4;

/// A check counts as unprobed from so many probes in a row on that could not be
/// run: one or two happen to anybody.
pub(super) const UNPROBED_RUN: u32 = 3;

/// Share of unprobed checks, one in so many, from which on the trouble is ours.
const UNPROBED_SHARE: usize = 10;

/// Consul may be without a leader for so long before it is said: an election
/// takes 5 to 6 s. (P106)
const LEADERLESS: Duration = Duration::from_secs(8);

/// What readiness depends on.
#[derive(Debug, Default)]
pub(super) struct Condition {
    /// A list of checks has been seen.
    pub(super) catalog_seen: bool,
    /// Why the latest list is not to be trusted, or cannot be read.
    pub(super) catalog_trouble: Option<String>,
    /// Since when writes are held, and why.
    pub(super) held: Option<(Timestamp, String)>,
    /// Failed writes in a row, and the latest error.
    pub(super) failed_writes: u32,
    pub(super) write_error: Option<String>,
    /// Why the latest removal of a service failed, if it did.
    pub(super) removal_error: Option<String>,
    /// Checks, and those of them that could not be probed lately.
    pub(super) checks: usize,
    pub(super) unprobed: usize,
    /// The process is ending.
    pub(super) stopping: bool,
}

impl Condition {
    /// The verdict, with every reason there is.
    pub(super) fn readiness(&self, now: Timestamp) -> Readiness {
        let mut reasons = Vec::new();
        if self.stopping {
            reasons.push("the daemon is stopping".to_owned());
        }
        match &self.catalog_trouble {
            Some(trouble) if self.catalog_seen => {
                reasons.push(format!("the last list of checks is kept: {trouble}"));
            }
            Some(trouble) => reasons.push(format!("no list of checks yet: {trouble}")),
            None if !self.catalog_seen => reasons.push("no list of checks yet".to_owned()),
            None => {}
        }
        if let Some((since, why)) = &self.held
            && now.saturating_since(*since) >= LEADERLESS
        {
            reasons.push(format!("writes are held: {why}"));
        }
        if self.failed_writes >= STREAK {
            let error = self.write_error.as_deref().unwrap_or("no reason given");
            reasons.push(format!(
                "{} writes in a row have failed: {error}",
                self.failed_writes
            ));
        }
        if self.unprobed > 0 && self.unprobed * UNPROBED_SHARE >= self.checks {
            reasons.push(format!(
                "{} of {} checks cannot be probed",
                self.unprobed, self.checks
            ));
        }
        Readiness {
            ready: reasons.is_empty(),
            reasons,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn well() -> Condition {
        Condition {
            catalog_seen: true,
            checks: 100,
            ..Condition::default()
        }
    }

    #[test]
    fn all_well_is_ready_and_the_start_is_not() {
        assert!(well().readiness(NOW).ready);
        assert!(!Condition::default().readiness(NOW).ready);
    }

    #[test]
    fn each_trouble_is_named() {
        let ago = |seconds: u64| Timestamp::from_millis(NOW.as_millis() - seconds * 1000);
        let cases: [(Condition, Option<&str>); 9] = [
            (
                Condition {
                    catalog_trouble: Some("500".into()),
                    ..well()
                },
                Some("the last list of checks is kept: 500"),
            ),
            (
                Condition {
                    catalog_seen: false,
                    catalog_trouble: Some("refused".into()),
                    ..well()
                },
                Some("no list of checks yet: refused"),
            ),
            // P106
            (
                Condition {
                    held: Some((ago(6), "no leader".into())),
                    ..well()
                },
                None,
            ),
            (
                Condition {
                    held: Some((ago(9), "no leader".into())),
                    ..well()
                },
                Some("writes are held: no leader"),
            ),
            // P029
            (
                Condition {
                    failed_writes: 3,
                    ..well()
                },
                None,
            ),
            (
                Condition {
                    failed_writes: 4,
                    write_error: Some("403".into()),
                    ..well()
                },
                Some("4 writes in a row have failed: 403"),
            ),
            (
                Condition {
                    unprobed: 9,
                    ..well()
                },
                None,
            ),
            (
                Condition {
                    unprobed: 10,
                    ..well()
                },
                Some("10 of 100 checks cannot be probed"),
            ),
            (
                Condition {
                    stopping: true,
                    ..well()
                },
                Some("the daemon is stopping"),
            ),
        ];
        for (condition, reason) in cases {
            let readiness = condition.readiness(NOW);
            assert_eq!(readiness.reasons.first().map(String::as_str), reason);
            assert_eq!(readiness.ready, reason.is_none());
        }
    }
}
