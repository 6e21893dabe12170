use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Metadata as far as thresholds are in it.
pub(super) type Meta = Arc<BTreeMap<String, String>>;

/// Keys that matter: ours, and Consul's bare names.
fn matters(key: &str) -> bool {
    key.starts_with("evenkeel-")
        || matches!(
            key,
            "failures_before_critical" | "failures_before_warning" | "success_before_passing"
        )
}

/// The part of `metadata` that matters; none if there is nothing.
pub(super) fn relevant(metadata: BTreeMap<String, String>) -> Option<Meta> {
    let kept: BTreeMap<_, _> = metadata
        .into_iter()
        .filter(|(key, _)| matters(key))
        .collect();
    (!kept.is_empty()).then(|| Arc::new(kept))
}

/// Who a node or an instance of a service is, in one allocation: its names, each
/// ended by a byte that no name in Consul has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Name(Box<str>);

impl Name {
    pub(super) fn node(partition: &str, node: &str) -> Self {
        Self([partition, "\0", node].concat().into())
    }

    pub(super) fn instance(partition: &str, namespace: &str, node: &str, service: &str) -> Self {
        Self(
            [partition, "\0", namespace, "\0", node, "\0", service]
                .concat()
                .into(),
        )
    }
}

/// What is known of the metadata of nodes and service instances.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    nodes: HashMap<Name, Option<Meta>>,
    instances: HashMap<Name, Option<Meta>>,
    /// Instances of each service, so that those that are gone can be forgotten.
    services: HashMap<String, Vec<Name>>,
    /// Services that nobody can read, whatever their metadata.
    unreadable: HashSet<String>,
}

/// Whether anything is known of something, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known<'a> {
    /// It was never seen.
    No,
    /// This is its metadata, as far as it matters.
    Yes(Option<&'a Meta>),
}

impl Metadata {
    /// All nodes there are. True if one came, went or changed.
    pub(super) fn set_nodes(&mut self, nodes: HashMap<Name, Option<Meta>>) -> bool {
        let changed = self.nodes != nodes;
        self.nodes = nodes;
        changed
    }

    /// All instances of one service. True if the metadata of one that was known
    /// changed.
    pub(super) fn set_service(
        &mut self,
        service: &str,
        instances: Vec<(Name, Option<Meta>)>,
    ) -> bool {
        let mut changed = false;
        let mut names = Vec::with_capacity(instances.len());
        for (name, meta) in instances {
            if let Some(old) = self.instances.get(&name) {
                changed |= *old != meta;
            }
            names.push(name.clone());
            self.instances.insert(name, meta);
        }
        let before = if names.is_empty() {
            self.services.remove(service)
        } else {
            self.services.insert(service.to_owned(), names)
        };
        let now = self.services.get(service).map_or(&[][..], Vec::as_slice);
        let now: std::collections::HashSet<&Name> = now.iter().collect();
        for gone in before.into_iter().flatten() {
            if !now.contains(&gone) {
                self.instances.remove(&gone);
            }
        }
        changed
    }

    /// As [`set_service`](Self::set_service); none for one that cannot be read.
    pub(super) fn take_service(
        &mut self,
        service: &str,
        instances: Option<Vec<(Name, Option<Meta>)>>,
    ) -> bool {
        if instances.is_some() {
            self.unreadable.remove(service);
        } else {
            self.unreadable.insert(service.to_owned());
        }
        self.set_service(service, instances.unwrap_or_default())
    }

    /// Whether a service is one that nobody can read.
    pub(super) fn is_unreadable(&self, service: &str) -> bool {
        self.unreadable.contains(service)
    }

    /// Forgets those that cannot be read and are not in `names`.
    pub(super) fn keep_unreadable(&mut self, names: impl Fn(&str) -> bool) {
        self.unreadable.retain(|name| names(name));
    }

    /// Services of which something is known and that are not in `names`.
    pub(super) fn services_beside(&self, mut names: impl FnMut(&str) -> bool) -> Vec<String> {
        self.services
            .keys()
            .filter(|name| !names(name))
            .cloned()
            .collect()
    }

    pub(super) fn node(&self, partition: &str, node: &str) -> Known<'_> {
        known(self.nodes.get(&Name::node(partition, node)))
    }

    pub(super) fn instance(
        &self,
        partition: &str,
        namespace: &str,
        node: &str,
        service: &str,
    ) -> Known<'_> {
        known(
            self.instances
                .get(&Name::instance(partition, namespace, node, service)),
        )
    }
}

fn known(entry: Option<&Option<Meta>>) -> Known<'_> {
    entry.map_or(Known::No, |meta| Known::Yes(meta.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(pairs: &[(&str, &str)]) -> Option<Meta> {
        relevant(
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn only_what_thresholds_need_is_kept() {
        assert_eq!(meta(&[("external-node", "true"), ("zone", "a")]), None);
        let kept = meta(&[
            ("evenkeel-critical-threshold", "3"),
            ("failures_before_critical", "2"),
            ("owner", "x"),
        ]);
        assert_eq!(kept.unwrap().len(), 2);
    }

    #[test]
    fn a_change_of_a_known_instance_is_told_and_a_gone_one_forgotten() {
        let mut metadata = Metadata::default();
        let a = Name::instance("", "", "n", "a");
        let b = Name::instance("", "", "n", "b");
        assert!(!metadata.set_service("web", vec![(a.clone(), None), (b, None)]));
        assert!(!metadata.set_service("web", vec![(a.clone(), None)]));
        assert_eq!(metadata.instance("", "", "n", "b"), Known::No);
        assert_eq!(metadata.instance("", "", "n", "a"), Known::Yes(None));
        let three = meta(&[("evenkeel-critical-threshold", "3")]);
        assert!(metadata.set_service("web", vec![(a, three)]));
        assert!(!metadata.set_service("web", vec![]));
        assert_eq!(metadata.instance("", "", "n", "a"), Known::No);
    }

    #[test]
    fn names_do_not_run_into_each_other() {
        assert_ne!(Name::node("a", "b"), Name::node("", "ab"));
        assert_ne!(
            Name::instance("", "a", "b", "c"),
            Name::instance("", "", "ab", "c")
        );
    }
}
