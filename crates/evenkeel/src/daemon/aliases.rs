//! Checks that are the worst of others. Pure.

use std::collections::{HashMap, HashSet, VecDeque};

use evenkeel_engine::{CheckId, Finding, Outcome};
use evenkeel_threshold::Status;

use crate::catalog::Aliased;

/// A node, with partition and namespace.
type Node = (Box<str>, Box<str>, Box<str>);

/// Which checks look at which.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    targets: HashMap<CheckId, Aliased>,
    /// The checks of nodes that an alias looks at.
    members: HashMap<Node, Vec<CheckId>>,
    /// The aliases that look at a node.
    watching: HashMap<Node, Vec<CheckId>>,
    /// Aliases that look at each other in a circle. Each of them leaves the
    /// others out: once critical, they would hold each other there for ever.
    circle: HashSet<CheckId>,
    /// Aliases to be looked at again.
    stale: VecDeque<CheckId>,
}

impl Aliases {
    /// From all checks and all aliases among them.
    pub(super) fn new(
        targets: HashMap<CheckId, Aliased>,
        checks: impl Iterator<Item = CheckId>,
    ) -> Self {
        let mut watching: HashMap<Node, Vec<CheckId>> = HashMap::new();
        for (id, target) in &targets {
            watching
                .entry(looked_at(id, target))
                .or_default()
                .push(id.clone());
        }
        let mut members: HashMap<Node, Vec<CheckId>> = HashMap::new();
        if !watching.is_empty() {
            for check in checks {
                let node = node_of(&check);
                if watching.contains_key(&node) {
                    members.entry(node).or_default().push(check);
                }
            }
        }
        let mut aliases = Self {
            targets,
            members,
            watching,
            circle: HashSet::new(),
            stale: VecDeque::new(),
        };
        aliases.circle = aliases.find_circles();
        aliases
    }

    /// Aliases in a circle, each of which leaves the others out.
    pub(super) fn in_circle(&self) -> impl Iterator<Item = &CheckId> {
        self.circle.iter()
    }

    /// The checks that `alias` looks at.
    fn seen_by<'a>(&'a self, alias: &'a CheckId) -> impl Iterator<Item = &'a CheckId> {
        let target = self.targets.get(alias);
        let members = target.and_then(|target| self.members.get(&looked_at(alias, target)));
        members.into_iter().flatten().filter(move |member| {
            let service = target.map_or("", |target| &target.service);
            *member != alias && (member.service_id().is_empty() || member.service_id() == service)
        })
    }

    /// Takes away, as long as there are some, aliases that look at no other one
    /// or that no other one looks at. What is left is a circle, or between two.
    fn find_circles(&self) -> HashSet<CheckId> {
        let mut left: HashSet<CheckId> = self.targets.keys().cloned().collect();
        loop {
            let looks_at: Vec<(&CheckId, &CheckId)> = left
                .iter()
                .flat_map(|alias| {
                    let others = self.seen_by(alias).filter(|other| left.contains(*other));
                    others.map(move |other| (alias, other))
                })
                .collect();
            let from: HashSet<&CheckId> = looks_at.iter().map(|(from, _)| *from).collect();
            let to: HashSet<&CheckId> = looks_at.iter().map(|(_, to)| *to).collect();
            let stay: HashSet<CheckId> = from.intersection(&to).map(|id| (*id).clone()).collect();
            if stay.len() == left.len() {
                return left;
            }
            left = stay;
        }
    }

    /// The released status of `check` may be another one: aliases that look at it
    /// are to be asked again.
    pub(super) fn changed(&mut self, check: &CheckId) {
        if self.watching.is_empty() {
            return;
        }
        let looking = self.watching.get(&node_of(check));
        for alias in looking.into_iter().flatten() {
            if self.seen_by(alias).any(|seen| seen == check) && !self.stale.contains(alias) {
                self.stale.push_back(alias.clone());
            }
        }
    }

    /// An alias to be asked again.
    pub(super) fn next_stale(&mut self) -> Option<CheckId> {
        self.stale.pop_front()
    }

    /// What the others make of `alias`; `status` tells the released one of a
    /// check. `None` if the target has no checks that are known here.
    pub(super) fn finding(
        &self,
        alias: &CheckId,
        status: impl Fn(&CheckId) -> Option<Status>,
    ) -> Option<Finding> {
        let target = self.targets.get(alias)?;
        let service = &*target.service;
        let is_known = if service.is_empty() {
            self.members.contains_key(&looked_at(alias, target))
        } else {
            self.seen_by(alias).any(|seen| seen.service_id() == service)
        };
        if !is_known {
            return None;
        }
        let in_circle = self.circle.contains(alias);
        let seen = self
            .seen_by(alias)
            .filter(|seen| !(in_circle && self.circle.contains(*seen)))
            .filter_map(|seen| Some((status(seen)?, seen.check_id())));
        Some(worst(seen))
    }

    /// What it means for `alias` that its target has no checks anywhere.
    pub(super) fn absent(&self, alias: &CheckId) -> Finding {
        match self.targets.get(alias) {
            Some(target) => absent(target),
            None => Finding {
                outcome: Outcome::Unprobed,
                output: "not an alias".to_owned(),
            },
        }
    }
}

/// The worst of these checks, each with its id.
pub(super) fn worst<'a>(checks: impl Iterator<Item = (Status, &'a str)>) -> Finding {
    // The same one of several each time.
    let worst = checks.max_by(|(a, one), (b, other)| a.cmp(b).then_with(|| other.cmp(one)));
    let (status, output) = match worst {
        None | Some((Status::Passing, _)) => {
            (Status::Passing, "all aliased checks are passing".to_owned())
        }
        Some((status, check)) => (
            status,
            format!("aliased check \"{check}\" is {}", status.as_str()),
        ),
    };
    Finding {
        outcome: Outcome::Observed(status.into()),
        output,
    }
}

/// There is nothing that could be well.
pub(super) fn absent(target: &Aliased) -> Finding {
    let node = &target.node;
    let output = match &*target.service {
        "" => format!("node {node} has no checks"),
        service => format!("service {service} has no checks on node {node}"),
    };
    Finding {
        outcome: Outcome::Observed(Status::Critical.into()),
        output,
    }
}

fn node_of(check: &CheckId) -> Node {
    node(check, check.node())
}

fn looked_at(alias: &CheckId, target: &Aliased) -> Node {
    node(alias, &target.node)
}

fn node(check: &CheckId, node: &str) -> Node {
    (
        check.partition().into(),
        check.namespace().into(),
        node.into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::RefCell;

    fn id(node: &str, service: &str, check: &str) -> CheckId {
        CheckId::new("", "", node, service, check)
    }

    fn to(node: &str, service: &str) -> Aliased {
        Aliased {
            node: node.into(),
            service: service.into(),
        }
    }

    fn aliases(targets: &[(CheckId, Aliased)], others: &[CheckId]) -> Aliases {
        let checks = targets.iter().map(|(id, _)| id).chain(others).cloned();
        Aliases::new(targets.iter().cloned().collect(), checks)
    }

    fn found(
        aliases: &Aliases,
        alias: &CheckId,
        statuses: &[(CheckId, Status)],
    ) -> (Outcome, String) {
        let finding = aliases.finding(alias, |id| {
            let known = statuses.iter().find(|(known, _)| known == id);
            known.map(|(_, status)| *status)
        });
        let finding = finding.unwrap_or_else(|| aliases.absent(alias));
        (finding.outcome, finding.output)
    }

    // P053, P120
    #[test]
    fn the_worst_of_the_services_and_the_nodes_checks_counts() {
        let alias = id("a", "web", "alias");
        let (one, other) = (id("b", "db", "one"), id("b", "db", "other"));
        let (of_node, elsewhere) = (id("b", "", "disk"), id("b", "cache", "c"));
        let aliases = aliases(
            &[(alias.clone(), to("b", "db"))],
            &[
                one.clone(),
                other.clone(),
                of_node.clone(),
                elsewhere.clone(),
            ],
        );
        let with = |a, b, c, d| {
            let statuses = [(&one, a), (&other, b), (&of_node, c), (&elsewhere, d)]
                .map(|(i, s)| (i.clone(), s));
            found(&aliases, &alias, &statuses)
        };
        use Status::{Critical as C, Passing as P, Warning as W};
        let observed = |status: Status| Outcome::Observed(status.into());
        assert_eq!(with(P, P, P, C).0, observed(P));
        assert_eq!(
            with(P, W, P, P),
            (observed(W), "aliased check \"other\" is warning".into())
        );
        assert_eq!(
            with(C, W, P, P),
            (observed(C), "aliased check \"one\" is critical".into())
        );
        assert_eq!(with(P, P, C, P).0, observed(C));
    }

    // P053
    #[test]
    fn a_service_that_is_not_there_is_told() {
        let alias = id("a", "web", "alias");
        let aliases = aliases(
            &[(alias.clone(), to("b", "db"))],
            &[id("b", "", "disk"), id("c", "db", "x")],
        );
        let (outcome, text) = found(&aliases, &alias, &[]);
        assert_eq!(outcome, Outcome::Observed(Status::Critical.into()));
        assert_eq!(text, "service db has no checks on node b");
    }

    #[test]
    fn an_alias_of_its_own_service_leaves_itself_out() {
        let (alias, other) = (id("a", "web", "alias"), id("a", "web", "http"));
        let aliases = aliases(
            &[(alias.clone(), to("a", "web"))],
            std::slice::from_ref(&other),
        );
        let statuses = [(alias.clone(), Status::Critical), (other, Status::Passing)];
        assert_eq!(
            found(&aliases, &alias, &statuses).0,
            Outcome::Observed(Status::Passing.into())
        );
        assert_eq!(aliases.in_circle().count(), 0);
    }

    proptest! {
        /// Whatever looks at whatever: after everything has become well, and each
        /// alias has been asked as often as it wants to be, all are passing.
        #[test]
        fn no_alias_stays_critical_for_another_alias(edges in proptest::collection::vec((0..6_u8, 0..8_u8), 1..12)) {
            let name = |number: u8| number.to_string();
            let mut targets: HashMap<CheckId, Aliased> = HashMap::new();
            for (from, to_) in &edges {
                let alias = id(&name(*from), "s", &format!("{from}-{to_}"));
                targets.insert(alias, to(&name(*to_), "s"));
            }
            let real: Vec<CheckId> = (0..8).map(|number| id(&name(number), "s", "real")).collect();
            let checks = real.iter().chain(targets.keys()).cloned();
            let mut aliases = Aliases::new(targets.clone(), checks);
            let statuses: RefCell<HashMap<CheckId, Status>> = RefCell::default();
            statuses.borrow_mut().extend(real.iter().map(|id| (id.clone(), Status::Passing)));
            statuses.borrow_mut().extend(targets.keys().map(|id| (id.clone(), Status::Critical)));
            for alias in targets.keys() {
                aliases.changed(alias);
            }
            for check in &real {
                aliases.changed(check);
            }
            let mut asked = 0;
            while let Some(alias) = aliases.next_stale() {
                asked += 1;
                prop_assert!(asked < 10_000, "no end");
                let known = |id: &CheckId| statuses.borrow().get(id).copied();
                let Some(Finding { outcome: Outcome::Observed(found), .. }) = aliases.finding(&alias, known) else {
                    continue;
                };
                if statuses.borrow_mut().insert(alias.clone(), found.status) != Some(found.status) {
                    aliases.changed(&alias);
                }
            }
            for alias in targets.keys() {
                prop_assert_eq!(statuses.borrow()[alias], Status::Passing, "{:?}", alias);
            }
        }
    }
}
