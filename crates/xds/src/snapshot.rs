use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::assignment::{Assignment, AssignmentError, Assignments, Audience};
use crate::message;

/// One cluster's assignment, encoded.
#[derive(Debug, Clone)]
pub(crate) struct Resource {
    pub(crate) bytes: Bytes,
    /// The version with which it came to be as it is.
    pub(crate) changed: u64,
    assignment: Arc<Assignment>,
}

type Resources = BTreeMap<Arc<str>, Resource>;

/// What is published now, immutable.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// 0 before the first one is published.
    pub(crate) version: u64,
    everyone: Resources,
    audiences: BTreeMap<Audience, Resources>,
}

/// What a publication came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Published {
    /// The version that proxies acknowledge. Unchanged if nothing is new.
    pub version: u64,
    /// How many assignments were encoded.
    pub encoded: usize,
    /// How many bytes they have.
    pub bytes: usize,
    /// How many are no longer there.
    pub removed: usize,
}

impl Snapshot {
    /// The resource of a cluster as this audience sees it.
    pub(crate) fn get(&self, audience: &Audience, cluster: &str) -> Option<&Resource> {
        let own = self.audiences.get(audience);
        own.and_then(|own| own.get(cluster))
            .or_else(|| self.everyone.get(cluster))
    }

    /// All clusters that this audience sees.
    pub(crate) fn clusters(&self, audience: &Audience) -> impl Iterator<Item = &Arc<str>> {
        let own = self.audiences.get(audience);
        let shared = self.everyone.keys();
        own.into_iter()
            .flat_map(|own| own.keys())
            .chain(shared.filter(move |name| !own.is_some_and(|own| own.contains_key(*name))))
    }

    /// The next one, with only what has changed encoded anew.
    pub(crate) fn next(
        &self,
        version: u64,
        assignments: &Assignments,
    ) -> Result<(Self, Published), AssignmentError> {
        let mut published = Published {
            version,
            ..Published::default()
        };
        let nothing = Resources::new();
        let everyone = encode(&self.everyone, &assignments.everyone, &mut published)?;
        let mut audiences = BTreeMap::new();
        for (audience, new) in &assignments.audiences {
            let old = self.audiences.get(audience).unwrap_or(&nothing);
            audiences.insert(audience.clone(), encode(old, new, &mut published)?);
        }
        let gone = self.audiences.iter();
        published.removed += gone
            .filter(|(audience, _)| !assignments.audiences.contains_key(*audience))
            .map(|(_, resources)| resources.len())
            .sum::<usize>();
        let snapshot = Self {
            version,
            everyone,
            audiences,
        };
        Ok((snapshot, published))
    }
}

fn encode(
    old: &Resources,
    new: &BTreeMap<Arc<str>, Arc<Assignment>>,
    published: &mut Published,
) -> Result<Resources, AssignmentError> {
    let mut kept = 0;
    let mut resources = Resources::new();
    for (name, assignment) in new {
        let before = old.get(name);
        kept += usize::from(before.is_some());
        let same = before.filter(|before| {
            Arc::ptr_eq(&before.assignment, assignment) || before.assignment == *assignment
        });
        let resource = if let Some(same) = same {
            same.clone()
        } else {
            assignment.validate().map_err(|fault| AssignmentError {
                cluster: name.to_string(),
                fault,
            })?;
            let bytes = message::resource(name, assignment);
            published.encoded += 1;
            published.bytes += bytes.len();
            Resource {
                bytes,
                changed: published.version,
                assignment: Arc::clone(assignment),
            }
        };
        resources.insert(Arc::clone(name), resource);
    }
    published.removed += old.len() - kept;
    Ok(resources)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assignment::{Endpoint, Health, Locality};

    fn of(port: u16) -> Assignment {
        let mut assignment = Assignment::default();
        let endpoint = Endpoint {
            address: "127.0.0.1".to_owned(),
            port,
            health: Health::Healthy,
            weight: None,
        };
        assignment.insert(0, &Locality::default(), endpoint);
        assignment
    }

    #[test]
    fn only_what_changed_is_encoded_and_the_rest_is_the_same_memory() {
        let mut assignments = Assignments::new();
        assignments.insert("a", of(1));
        assignments.insert("b", of(2));
        let (first, published) = Snapshot::default().next(1, &assignments).unwrap();
        assert_eq!((published.encoded, published.removed), (2, 0));

        // An equal value, not the same one.
        assignments.insert("a", of(1));
        assignments.insert("b", of(3));
        let (second, published) = first.next(2, &assignments).unwrap();
        assert_eq!((published.encoded, published.removed), (1, 0));
        let anyone = Audience::default();
        let bytes = |snapshot: &Snapshot, name| snapshot.get(&anyone, name).unwrap().bytes.clone();
        assert_eq!(bytes(&first, "a").as_ptr(), bytes(&second, "a").as_ptr());
        assert_ne!(bytes(&first, "b"), bytes(&second, "b"));
        assert_eq!(second.get(&anyone, "a").unwrap().changed, 1);
        assert_eq!(second.get(&anyone, "b").unwrap().changed, 2);

        let (_, published) = second.next(3, &Assignments::new()).unwrap();
        assert_eq!((published.encoded, published.removed), (0, 2));
    }

    #[test]
    fn an_audience_sees_its_own_and_for_the_rest_what_everyone_sees() {
        let shop = Audience {
            callers: "shop".to_owned(),
            locality: Locality::new("r", "a", ""),
        };
        let mut assignments = Assignments::new();
        assignments.insert("web", of(1));
        assignments.insert("db", of(2));
        assignments.insert_for(shop.clone(), "web", of(3));
        let (snapshot, _) = Snapshot::default().next(1, &assignments).unwrap();
        let seen = |audience: &Audience, name| snapshot.get(audience, name).unwrap().bytes.clone();
        assert_ne!(seen(&shop, "web"), seen(&Audience::default(), "web"));
        assert_eq!(seen(&shop, "db"), seen(&Audience::default(), "db"));
        let mut names: Vec<_> = snapshot.clusters(&shop).map(|name| name.as_ref()).collect();
        names.sort_unstable();
        assert_eq!(names, ["db", "web"]);
    }
}
