use std::collections::{BTreeSet, HashSet};

use evenkeel_consul::types::AclQuestion;
use evenkeel_engine::CheckId;

/// Checks that the list had before and has no more, with the name of the
/// service of each.
///
/// A token that has lost its rights gets shorter lists, or empty ones, without
/// a word. So a check is only believed to be gone if the token could see it.
#[derive(Debug, Default)]
pub(super) struct Missing {
    checks: Vec<(CheckId, String)>,
    rights: Vec<Right>,
}

/// The right to read one thing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    resource: &'static str,
    name: String,
    namespace: String,
    partition: String,
}

impl Right {
    fn to_node(id: &CheckId) -> Self {
        Self {
            resource: "node",
            name: id.node().to_owned(),
            namespace: String::new(),
            partition: id.partition().to_owned(),
        }
    }

    fn to_service(id: &CheckId, name: &str) -> Self {
        Self {
            resource: "service",
            name: name.to_owned(),
            namespace: id.namespace().to_owned(),
            partition: id.partition().to_owned(),
        }
    }
}

impl Missing {
    pub(super) fn new(checks: Vec<(CheckId, String)>) -> Self {
        let mut rights = BTreeSet::new();
        for (id, service) in &checks {
            rights.insert(Right::to_node(id));
            if !id.service_id().is_empty() {
                rights.insert(Right::to_service(id, service));
            }
        }
        Self {
            checks,
            rights: rights.into_iter().collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.checks.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.checks.len()
    }

    /// What is to be asked of Consul.
    pub(super) fn questions(&self) -> Vec<AclQuestion> {
        self.rights
            .iter()
            .map(|right| AclQuestion {
                namespace: right.namespace.clone(),
                partition: right.partition.clone(),
                ..AclQuestion::new(right.resource, right.name.as_str(), "read")
            })
            .collect()
    }

    /// The checks that must be kept, given the answers to the questions in their
    /// order. An answer that is missing is a no.
    pub(super) fn kept(&self, allowed: &[bool]) -> HashSet<CheckId> {
        let allows = |right: &Right| {
            self.rights
                .binary_search(right)
                .ok()
                .and_then(|at| allowed.get(at).copied())
                .unwrap_or(false)
        };
        self.checks
            .iter()
            .filter(|(id, service)| {
                let node = allows(&Right::to_node(id));
                let service = id.service_id().is_empty() || allows(&Right::to_service(id, service));
                !(node && service)
            })
            .map(|(id, _)| id.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(node: &str, service: &str) -> CheckId {
        CheckId::new("", "", node, service, "c")
    }

    fn missing() -> Missing {
        Missing::new(vec![
            (id("a", "web-1"), "web".into()),
            (id("a", "db-1"), "db".into()),
            (id("b", ""), String::new()),
        ])
    }

    fn question(resource: &str, name: &str) -> AclQuestion {
        AclQuestion::new(resource, name, "read")
    }

    #[test]
    fn each_node_and_service_is_asked_for_once() {
        assert_eq!(
            missing().questions(),
            [
                question("node", "a"),
                question("node", "b"),
                question("service", "db"),
                question("service", "web"),
            ]
        );
    }

    #[test]
    fn only_what_could_have_been_seen_is_gone() {
        let missing = missing();
        assert!(missing.kept(&[true; 4]).is_empty());
        assert_eq!(missing.kept(&[]).len(), 3);
        assert_eq!(missing.kept(&[false; 4]).len(), 3);
        assert_eq!(
            missing.kept(&[true, true, false, true]),
            HashSet::from([id("a", "db-1")])
        );
        assert_eq!(
            missing.kept(&[false, true, true, true]),
            HashSet::from([id("a", "web-1"), id("a", "db-1")])
        );
    }
}
