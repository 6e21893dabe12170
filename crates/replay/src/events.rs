//! What the daemon's event log says of the past: changes of reported statuses,
//! with nothing in between.

use std::collections::BTreeMap;

use evenkeel_threshold::{Status, Timestamp};

use crate::Parsed;
use crate::json::{Object, Value};
use crate::row::Fault;

/// The most results that are made up between two events: with one every 30 s,
/// 347 days.
const MOST_FILLED: u64 = 1_000_000;

/// The most checks that are kept.
const MOST_CHECKS: usize = 1_000_000;

/// The log as a series of results: from one change to the next a check's status
/// stood, and each probe of it is taken to have found just that.
#[derive(Debug)]
pub(crate) struct EventLog {
    /// Between two results that are made up.
    interval: u64,
    /// The first time in the log.
    begun: Option<Timestamp>,
    /// The latest one.
    latest: Timestamp,
    known: BTreeMap<Box<str>, (Timestamp, Status)>,
    /// Results that are to be given out before the next line is read.
    pending: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    check: Box<str>,
    next: Timestamp,
    status: Status,
    /// Results are made up before this time,
    until: Timestamp,
    /// and this is the one at it.
    last: Option<Status>,
}

impl EventLog {
    pub(crate) fn new(interval: u64) -> Self {
        Self {
            interval: interval.max(1),
            begun: None,
            latest: Timestamp::ZERO,
            known: BTreeMap::new(),
            pending: None,
        }
    }

    /// The next result that is made up; its check goes into `name`.
    pub(crate) fn pending(&mut self, name: &mut String) -> Option<(Timestamp, Status)> {
        let pending = self.pending.as_mut()?;
        name.clear();
        name.push_str(&pending.check);
        if pending.next < pending.until {
            let at = pending.next;
            pending.next = after(at, self.interval);
            return Some((at, pending.status));
        }
        let Pending { until, last, .. } = self.pending.take()?;
        last.map(|status| (until, status))
    }

    /// Takes in a line of the log.
    pub(crate) fn line(&mut self, object: &Object<'_>, name: &mut String) -> Result<Parsed, Fault> {
        let at = object.time()?;
        self.begun.get_or_insert(at);
        self.latest = self.latest.max(at);
        let event = match &object.event {
            Some(Value::Text(event)) => event.as_ref(),
            _ => "",
        };
        match event {
            "transition" => {
                let (from, to) = object.change()?;
                object.name(name)?;
                self.change(at, name, from, to)
            }
            // What becomes of it from here on is another history.
            "check_removed" | "deregistered" if object.has_check() => {
                object.name(name)?;
                self.known.remove(name.as_str());
                Ok(Parsed::Nothing)
            }
            _ => Ok(Parsed::Nothing),
        }
    }

    fn change(
        &mut self,
        at: Timestamp,
        name: &str,
        from: Status,
        to: Status,
    ) -> Result<Parsed, Fault> {
        let begun = self.begun.unwrap_or(at);
        let full = self.known.len() >= MOST_CHECKS;
        let (next, status) = match self.known.get_mut(name) {
            Some(known) => {
                let (since, status) = std::mem::replace(known, (at, to));
                if at < since {
                    *known = (since, status);
                    return Err(Fault::Backwards);
                }
                (after(since, self.interval), status)
            }
            None if full => return Err(Fault::ManyChecks(MOST_CHECKS)),
            None => {
                self.known.insert(name.into(), (at, to));
                // The status stood when the log began, or one probe long.
                let one_before = at.as_millis().saturating_sub(self.interval);
                (begun.min(Timestamp::from_millis(one_before)), from)
            }
        };
        let far = self.interval.saturating_mul(MOST_FILLED);
        let known = at.as_millis().saturating_sub(next.as_millis()) <= far;
        self.pending = Some(Pending {
            check: name.into(),
            next: if known { next } else { at },
            status,
            until: at,
            last: Some(to),
        });
        match known {
            true => Ok(Parsed::Nothing),
            false => Err(Fault::FarEvent),
        }
    }

    /// At the end of the log each check's status still stands; makes one check's
    /// last results pending until there is none left.
    pub(crate) fn finish(&mut self) -> bool {
        let far = self.interval.saturating_mul(MOST_FILLED);
        while let Some((check, (since, status))) = self.known.pop_first() {
            let next = after(since, self.interval);
            let length = self.latest.as_millis().saturating_sub(next.as_millis());
            if next < self.latest && length <= far {
                self.pending = Some(Pending {
                    check,
                    next,
                    status,
                    until: self.latest,
                    last: None,
                });
                return true;
            }
        }
        false
    }
}

fn after(at: Timestamp, interval: u64) -> Timestamp {
    Timestamp::from_millis(at.as_millis().saturating_add(interval))
}
