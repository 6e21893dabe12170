use std::collections::HashMap;

use evenkeel_threshold::Timestamp;

use crate::CheckId;

/// Services that are being removed from the catalog, by identity (a check's,
/// without the check id).
#[derive(Debug, Default)]
pub(crate) struct Removals {
    services: HashMap<CheckId, Removal>,
    next_ticket: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Removal {
    /// The check that decided.
    pub(crate) check: CheckId,
    /// The unanswered request.
    pub(crate) ticket: Option<u64>,
    /// It worked; what is left is that the catalog drops the checks.
    pub(crate) done: bool,
    /// After it worked, and after `not_before`, the catalog still listed the
    /// registration: it did not work after all.
    pub(crate) listed_since: bool,
    /// No other request earlier. While one is unanswered: when it is taken for
    /// failed.
    pub(crate) not_before: Timestamp,
    /// Failures in a row.
    pub(crate) attempts: u32,
    /// When it was asked for the last time.
    asked_at: Timestamp,
}

impl Removals {
    pub(crate) fn get(&self, service: &CheckId) -> Option<&Removal> {
        self.services.get(service)
    }

    /// Notes a new request for `service`, decided by `check`, which has been
    /// critical since `since`. Gives its ticket, and whether it is the first one
    /// since then.
    pub(crate) fn ask(
        &mut self,
        service: CheckId,
        check: CheckId,
        since: Timestamp,
        now: Timestamp,
        answer_by: Timestamp,
    ) -> (u64, bool) {
        self.next_ticket += 1;
        let removal = self.services.entry(service).or_insert(Removal {
            check: check.clone(),
            ticket: None,
            done: false,
            listed_since: false,
            not_before: answer_by,
            attempts: 0,
            asked_at: now,
        });
        if removal.ticket.is_some() {
            removal.attempts = removal.attempts.saturating_add(1);
        }
        // It was well in the meantime.
        if since > removal.asked_at {
            removal.attempts = 0;
        }
        removal.asked_at = now;
        removal.check = check;
        removal.ticket = Some(self.next_ticket);
        removal.done = false;
        removal.listed_since = false;
        removal.not_before = answer_by;
        (self.next_ticket, removal.attempts == 0)
    }

    /// The service that the request `ticket` is for.
    pub(crate) fn answered(&mut self, ticket: u64) -> Option<&mut Removal> {
        let removal = self
            .services
            .values_mut()
            .find(|removal| removal.ticket == Some(ticket))?;
        removal.ticket = None;
        Some(removal)
    }

    /// The catalog lists the registration of `service` that was removed.
    pub(crate) fn listed(&mut self, service: &CheckId, now: Timestamp) {
        if let Some(removal) = self.services.get_mut(service)
            && removal.done
            && removal.not_before <= now
        {
            removal.listed_since = true;
        }
    }

    pub(crate) fn forget(&mut self, service: &CheckId) {
        self.services.remove(service);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// Whether an answer is still to be expected.
    pub(crate) fn unanswered(&self, now: Timestamp) -> bool {
        self.services
            .values()
            .any(|removal| removal.ticket.is_some() && removal.not_before > now)
    }

    /// Drops services of which nothing is left.
    pub(crate) fn retain(&mut self, alive: impl Fn(&CheckId) -> bool) {
        self.services
            .retain(|service, removal| removal.ticket.is_some() || alive(service));
    }
}
