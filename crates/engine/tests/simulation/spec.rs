//! What has to come out: the rules once more, slow and plain. Every decision is
//! derived from the whole story of a check, over and over.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use evenkeel_engine::CheckId;
use evenkeel_threshold::{AnyStrategy, Consecutive, Counts, Leaky, Status};

use crate::catalog::{Entry, List};

/// A threshold rule: so many contrary results flip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    /// An agreeing result takes one off the count, else all.
    pub(crate) leaky: bool,
    pub(crate) failures: u32,
    pub(crate) successes: u32,
}

impl Rule {
    pub(crate) fn strategy(self) -> Arc<AnyStrategy> {
        Arc::new(if self.leaky {
            Leaky::new(self.failures - 1, self.successes - 1).into()
        } else {
            let counts = Counts {
                failures_before_critical: self.failures,
                failures_before_warning: None,
                success_before_passing: self.successes,
            };
            Consecutive::new(counts).expect("valid").into()
        })
    }

    fn needed(self, reported: Status) -> u32 {
        if reported == Status::Critical {
            self.successes
        } else {
            self.failures
        }
    }
}

/// Everything that bears upon the reported status of a check.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    base: Status,
    rule: Rule,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Result(Status),
    Rule(Rule),
}

impl Story {
    fn new(base: Status, rule: Rule) -> Self {
        Self {
            base,
            rule,
            steps: Vec::new(),
        }
    }

    /// The reported status and the count toward the other one.
    pub(crate) fn told(&self) -> (Status, u32) {
        let (mut reported, mut rule, mut count) = (self.base, self.rule, 0);
        for step in &self.steps {
            match *step {
                Step::Result(result) if result == reported => {
                    count = if rule.leaky {
                        u32::saturating_sub(count, 1)
                    } else {
                        0
                    };
                }
                Step::Result(result) => {
                    count += 1;
                    if count >= rule.needed(reported) {
                        (reported, count) = (result, 0);
                    }
                }
                Step::Rule(other) => {
                    count = if other.leaky == rule.leaky {
                        count.min(other.needed(reported) - 1)
                    } else {
                        0
                    };
                    rule = other;
                }
            }
        }
        (reported, count)
    }

    fn reported(&self) -> Status {
        self.told().0
    }

    fn follow(&mut self, rule: Rule) {
        let now = self.steps.iter().rev().find_map(|step| match step {
            Step::Rule(rule) => Some(*rule),
            Step::Result(_) => None,
        });
        if now.unwrap_or(self.rule) != rule {
            self.steps.push(Step::Rule(rule));
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct SpecCheck {
    pub(crate) story: Story,
    pub(crate) entry: Entry,
    /// Of the entry, as far as it is known.
    pub(crate) known: (u64, Status),
    /// News that came while a write was on its way.
    heard: Option<(u64, Status)>,
    pub(crate) probed: bool,
    pub(crate) verified: bool,
    pub(crate) unprobed: bool,
    pub(crate) critical_since: Option<u64>,
    pub(crate) next_due: u64,
}

/// What a snapshot holds.
#[derive(Debug, Clone)]
pub(crate) struct SpecSaved {
    story: Story,
    critical_since: Option<u64>,
    next_due: u64,
}

#[derive(Default)]
pub(crate) struct Spec {
    pub(crate) checks: BTreeMap<CheckId, SpecCheck>,
    pub(crate) restored: HashMap<CheckId, SpecSaved>,
    /// Services that were removed at our word.
    removed: HashSet<(String, String)>,
    pub(crate) transitions: u64,
    pub(crate) outdated: HashSet<CheckId>,
}

pub(crate) fn service(id: &CheckId) -> (String, String) {
    (id.node().to_owned(), id.service_id().to_owned())
}

impl Spec {
    pub(crate) fn saved(&self) -> HashMap<CheckId, SpecSaved> {
        let mut saved = self.restored.clone();
        for (id, check) in &self.checks {
            let check = SpecSaved {
                story: check.story.clone(),
                critical_since: check.critical_since,
                next_due: check.next_due,
            };
            saved.insert(id.clone(), check);
        }
        saved
    }

    /// Gives the newcomers, in order.
    pub(crate) fn list(
        &mut self,
        list: &List,
        keep: &HashSet<CheckId>,
        flying: impl Fn(&CheckId) -> bool,
        now: u64,
    ) -> Vec<CheckId> {
        let mut newcomers = Vec::new();
        for (id, entry) in list {
            if let Some(check) = self.checks.get_mut(id) {
                let newer = entry.index > check.known.0;
                let again = newer && self.removed.remove(&service(id));
                if check.list(entry, again, flying(id), now) {
                    self.outdated.insert(id.clone());
                }
            } else {
                self.removed.remove(&service(id));
                let saved = self.restored.remove(id);
                if saved.is_none() {
                    newcomers.push(id.clone());
                }
                self.outdated.insert(id.clone());
                let mut check = SpecCheck::new(entry, saved, now);
                // Of the check that was dropped before.
                check.heard = flying(id).then_some(check.known);
                self.checks.insert(id.clone(), check);
            }
        }
        self.checks
            .retain(|id, _| list.contains_key(id) || keep.contains(id));
        let alive: HashSet<_> = self.checks.keys().map(service).collect();
        self.removed.retain(|service| alive.contains(service));
        newcomers
    }

    pub(crate) fn deregistering(&mut self, id: &CheckId) {
        self.removed.remove(&service(id));
    }

    pub(crate) fn deregistered(&mut self, id: &CheckId) {
        self.removed.insert(service(id));
    }

    pub(crate) fn result(&mut self, id: &CheckId, status: Status, now: u64) {
        let Some(check) = self.checks.get_mut(id) else {
            return;
        };
        let before = check.story.reported();
        check.story.steps.push(Step::Result(status));
        let after = check.story.reported();
        if before != after {
            self.transitions += 1;
            check.critical_since = (after == Status::Critical).then_some(now);
        }
        check.probed = true;
        check.verified = true;
        check.unprobed = false;
    }

    pub(crate) fn pause(&mut self, now: u64) {
        for check in self.checks.values_mut() {
            check.verified = false;
            while check.next_due <= now {
                check.next_due += check.entry.interval * 1000;
            }
        }
    }

    /// A write was answered: what the entry is now, if that is known.
    pub(crate) fn written(
        &mut self,
        id: &CheckId,
        answer: Option<(u64, Status)>,
        done: bool,
        now: u64,
    ) {
        let Some(check) = self.checks.get_mut(id) else {
            return;
        };
        if let Some(answer) = answer
            && (!done || answer.0 >= check.known.0)
        {
            let newer = answer.0 > check.known.0;
            check.known = answer;
            if !done && newer && self.removed.remove(&service(id)) {
                check.restart(now);
            }
        }
        check.agree(now);
        if let Some(heard) = check.heard.take()
            && heard.0 > check.known.0
        {
            check.known = heard;
            check.agree(now);
        }
    }
}

impl SpecCheck {
    fn new(entry: &Entry, saved: Option<SpecSaved>, now: u64) -> Self {
        let mut check = Self {
            story: Story::new(entry.status, entry.rule),
            entry: entry.clone(),
            known: (entry.index, entry.status),
            heard: None,
            probed: false,
            verified: false,
            unprobed: false,
            critical_since: (entry.status == Status::Critical).then_some(now),
            next_due: now,
        };
        if let Some(mut saved) = saved {
            check.next_due = phase(saved.next_due, entry.interval * 1000, now);
            saved.story.follow(entry.rule);
            if saved.story.reported() == entry.status {
                check.story = saved.story;
                check.critical_since = check
                    .critical_since
                    .map(|fresh| saved.critical_since.unwrap_or(fresh));
            }
        }
        check
    }

    /// Whether a running probe is outdated.
    fn list(&mut self, entry: &Entry, again: bool, flying: bool, now: u64) -> bool {
        self.story.follow(entry.rule);
        self.entry.rule = entry.rule;
        if entry.index < self.known.0 {
            return false;
        }
        let newer = entry.index > self.known.0;
        let changed =
            entry.definition != self.entry.definition || entry.interval != self.entry.interval;
        self.entry = entry.clone();
        let news = (entry.index, entry.status);
        if changed || again {
            if newer {
                self.known = news;
            }
            self.restart(now);
            self.next_due = phase(self.next_due, entry.interval * 1000, now);
        }
        if newer && flying {
            self.heard = self.heard.max_by_index(news);
        } else if newer {
            self.known = news;
            self.agree(now);
        }
        changed
    }

    /// Before a probe has been answered the catalog is right.
    fn agree(&mut self, now: u64) {
        if !self.probed && self.known.1 != self.story.reported() {
            self.restart(now);
        }
    }

    fn restart(&mut self, now: u64) {
        self.story = Story::new(self.known.1, self.entry.rule);
        self.probed = false;
        self.verified = false;
        self.unprobed = false;
        self.critical_since = (self.known.1 == Status::Critical).then_some(now);
    }
}

trait Newest {
    fn max_by_index(self, other: (u64, Status)) -> Self;
}

impl Newest for Option<(u64, Status)> {
    fn max_by_index(self, other: (u64, Status)) -> Self {
        match self {
            Some(mine) if mine.0 >= other.0 => Some(mine),
            _ => Some(other),
        }
    }
}

/// The next time at which a check with a tick at `due` is probed.
fn phase(due: u64, step: u64, now: u64) -> u64 {
    if due >= now && due <= now + step {
        return due;
    }
    (now..now + step)
        .find(|at| at.abs_diff(due) % step == 0)
        .expect("one of them")
}
