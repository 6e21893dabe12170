use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Where endpoints are. All three parts are compared as text, as Envoy does;
/// any of them may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Locality {
    /// The widest part.
    pub region: String,
    /// What most people mean by a zone.
    pub zone: String,
    /// A part of a zone: a rack, for example.
    pub sub_zone: String,
}

impl Locality {
    /// A locality by its parts.
    pub fn new(
        region: impl Into<String>,
        zone: impl Into<String>,
        sub_zone: impl Into<String>,
    ) -> Self {
        Self {
            region: region.into(),
            zone: zone.into(),
            sub_zone: sub_zone.into(),
        }
    }
}

impl fmt::Display for Locality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.region, self.zone, self.sub_zone)
    }
}

/// The health of an endpoint, as Envoy is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Health {
    /// Gets traffic.
    #[default]
    Healthy,
    /// Gets traffic when the healthy ones are too few.
    Degraded,
    /// Gets none.
    Unhealthy,
    /// Gets no new requests.
    Draining,
}

/// One endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// An IP address. Envoy resolves no names in assignments and refuses the
    /// whole assignment for one (the NACK is then in the
    /// [status](crate::Subscriber)).
    pub address: String,
    /// The TCP port.
    pub port: u16,
    /// Whether it gets traffic.
    pub health: Health,
    /// Its weight within its locality; `None` is Envoy's default of 1. Zero,
    /// which Envoy refuses, is taken for 1: who wants no traffic says so by
    /// the health.
    pub weight: Option<u32>,
}

/// The endpoints of one locality and priority.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// The weight of the locality among those of its priority, for clusters
    /// with `locality_weighted_lb_config`. A group of weight zero is left out,
    /// since Envoy refuses the value. Others ignore it.
    pub weight: Option<u32>,
    /// In the order in which they are sent.
    pub endpoints: Vec<Endpoint>,
}

/// The endpoints of one cluster, by priority and locality.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assignment {
    /// By priority (0 is the first choice, without gaps) and locality.
    pub groups: BTreeMap<(u32, Locality), Group>,
    /// Percent by which the healthy part is multiplied before a priority
    /// counts as short of hosts; `None` is Envoy's default of 140.
    pub overprovisioning_factor: Option<u32>,
}

impl Assignment {
    /// Adds an endpoint.
    pub fn insert(&mut self, priority: u32, locality: &Locality, endpoint: Endpoint) {
        self.groups
            .entry((priority, locality.clone()))
            .or_default()
            .endpoints
            .push(endpoint);
    }

    /// Sets the weight of a locality, which is made if it is not there.
    pub fn set_weight(&mut self, priority: u32, locality: &Locality, weight: u32) {
        self.groups
            .entry((priority, locality.clone()))
            .or_default()
            .weight = Some(weight);
    }

    /// How many endpoints there are.
    pub fn len(&self) -> usize {
        self.groups
            .values()
            .map(|group| group.endpoints.len())
            .sum()
    }

    /// Whether there is no endpoint.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What Envoy would refuse and can be seen without it.
    ///
    /// # Errors
    /// If the weights of the localities of a priority, or of the endpoints of
    /// a locality, add up to more than Envoy's limit of `u32::MAX`; if a
    /// priority is above Envoy's limit of 128 or comes after a gap; if the
    /// overprovisioning factor is zero.
    pub fn validate(&self) -> Result<(), Fault> {
        if self.overprovisioning_factor == Some(0) {
            return Err(Fault::NoOverprovisioning);
        }
        let limit = u64::from(u32::MAX);
        let mut localities = BTreeMap::<u32, u64>::new();
        for ((priority, locality), group) in &self.groups {
            *localities.entry(*priority).or_default() += u64::from(group.weight.unwrap_or(0));
            let endpoints = group.endpoints.iter();
            let sum: u64 = endpoints
                .map(|endpoint| u64::from(endpoint.weight.unwrap_or(1).max(1)))
                .sum();
            if sum > limit {
                return Err(Fault::EndpointWeights {
                    locality: locality.clone(),
                    sum,
                });
            }
        }
        for (expected, (priority, sum)) in (0..).zip(localities) {
            if priority != expected || priority > HIGHEST_PRIORITY {
                return Err(Fault::Priority { priority, expected });
            }
            if sum > limit {
                return Err(Fault::LocalityWeights { priority, sum });
            }
        }
        Ok(())
    }
}

/// From Envoy's definition of `LocalityLbEndpoints.priority`, 1.40.
const HIGHEST_PRIORITY: u32 = 128;

/// An assignment that Envoy would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cluster {cluster:?}: {fault}")]
pub struct AssignmentError {
    /// The cluster it is for.
    pub cluster: String,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with an assignment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Above Envoy's limit.
    #[error("the weights of the endpoints in {locality} add up to {sum}, more than 4294967295")]
    EndpointWeights {
        /// Where.
        locality: Locality,
        /// What they add up to.
        sum: u64,
    },
    /// Above Envoy's limit.
    #[error(
        "the weights of the localities of priority {priority} add up to {sum}, more than 4294967295"
    )]
    LocalityWeights {
        /// Which priority.
        priority: u32,
        /// What they add up to.
        sum: u64,
    },
    /// Priorities are 0, 1, 2 and so on, up to 128.
    #[error(
        "priority {priority} comes where {expected} should; they go from 0 to 128 without gaps"
    )]
    Priority {
        /// The one found.
        priority: u32,
        /// The one that should be there.
        expected: u32,
    },
    /// A factor of zero.
    #[error("the overprovisioning factor is 0; it is a percentage above 0")]
    NoOverprovisioning,
}

/// For whom an assignment is: the proxies of a calling service in one
/// locality, which in weights mode have weights of their own. As a proxy's
/// bootstrap says under `node`: `cluster` and `locality`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Audience {
    /// `node.cluster`: the service that calls.
    pub callers: String,
    /// `node.locality`.
    pub locality: Locality,
}

/// Everything that is to be published: a whole list each time. What has not
/// changed (the same `Arc`, or an equal value) is not encoded again.
#[derive(Debug, Clone, Default)]
pub struct Assignments {
    pub(crate) everyone: BTreeMap<Arc<str>, Arc<Assignment>>,
    pub(crate) audiences: BTreeMap<Audience, BTreeMap<Arc<str>, Arc<Assignment>>>,
}

impl Assignments {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a cluster's assignment for whoever has none of their own.
    pub fn insert(&mut self, cluster: impl Into<Arc<str>>, assignment: impl Into<Arc<Assignment>>) {
        self.everyone.insert(cluster.into(), assignment.into());
    }

    /// Sets a cluster's assignment for an audience.
    pub fn insert_for(
        &mut self,
        audience: Audience,
        cluster: impl Into<Arc<str>>,
        assignment: impl Into<Arc<Assignment>>,
    ) {
        self.audiences
            .entry(audience)
            .or_default()
            .insert(cluster.into(), assignment.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(weight: u32) -> Endpoint {
        Endpoint {
            address: "127.0.0.1".to_owned(),
            port: 80,
            health: Health::Healthy,
            weight: Some(weight),
        }
    }

    #[test]
    fn sums_of_weights_above_envoys_limit_are_refused_with_the_place() {
        let here = Locality::new("r", "a", "");
        let mut assignment = Assignment::default();
        assignment.insert(0, &here, endpoint(u32::MAX));
        assert_eq!(assignment.validate(), Ok(()));
        assignment.insert(0, &here, endpoint(1));
        let error = assignment.validate().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the weights of the endpoints in r/a/ add up to 4294967296, more than 4294967295"
        );

        let mut assignment = Assignment::default();
        assignment.set_weight(0, &here, u32::MAX);
        assignment.set_weight(0, &Locality::new("r", "b", ""), 1);
        let error = assignment.validate().unwrap_err();
        assert!(matches!(error, Fault::LocalityWeights { priority: 0, .. }));
    }

    #[test]
    fn a_gap_between_priorities_is_refused() {
        let here = Locality::default();
        let mut assignment = Assignment::default();
        assignment.insert(1, &here, endpoint(1));
        let error = assignment.validate().unwrap_err();
        assert_eq!(
            error,
            Fault::Priority {
                priority: 1,
                expected: 0
            }
        );
        assignment.insert(0, &here, endpoint(1));
        assert_eq!(assignment.validate(), Ok(()));
    }
}
