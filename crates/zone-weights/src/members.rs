use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::{InputError, Locality};

/// The highest priority of an endpoint, as in Envoy
/// (`LocalityLbEndpoints.priority`, envoy/config/endpoint/v3).
pub const MAX_PRIORITY: u32 = 128;

/// What a host is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Health {
    /// Takes traffic.
    Healthy,
    /// Takes traffic when the healthy ones are too few.
    Degraded,
    /// Takes none, except in panic.
    Unhealthy,
}

impl Health {
    /// All three, in the order in which they are preferred.
    pub const ALL: [Self; 3] = [Self::Healthy, Self::Degraded, Self::Unhealthy];

    /// The class of a status of Envoy's assignments (`HealthStatus`,
    /// envoy/config/core/v3/health_check.proto), or `None` if it is none.
    #[must_use]
    pub fn from_envoy(status: &str) -> Option<Self> {
        match status {
            "UNKNOWN" | "HEALTHY" => Some(Self::Healthy),
            "DEGRADED" => Some(Self::Degraded),
            "UNHEALTHY" | "DRAINING" | "TIMEOUT" => Some(Self::Unhealthy),
            _ => None,
        }
    }
}

/// How many hosts there are of each health, and what they weigh together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    hosts: [u64; 3],
    weight: [u64; 3],
}

impl Tally {
    /// Number of hosts of this health.
    #[must_use]
    pub fn hosts(&self, health: Health) -> u64 {
        self.hosts[health as usize]
    }

    /// Sum of the weights of the hosts of this health.
    #[must_use]
    pub fn weight(&self, health: Health) -> u64 {
        self.weight[health as usize]
    }

    /// Number of hosts of any health.
    #[must_use]
    pub fn all_hosts(&self) -> u64 {
        // Cannot overflow: `Members` checks the sum over all localities.
        self.hosts.iter().sum()
    }

    /// Sum of the weights of all hosts.
    #[must_use]
    pub fn all_weight(&self) -> u64 {
        self.weight.iter().sum()
    }

    /// Whether there is no host at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts == [0; 3]
    }

    fn checked_add(mut self, health: Health, hosts: u64, weight: u64) -> Option<Self> {
        let class = health as usize;
        self.hosts[class] = self.hosts[class].checked_add(hosts)?;
        self.weight[class] = self.weight[class].checked_add(weight)?;
        let sum = |classes: [u64; 3]| {
            classes
                .into_iter()
                .try_fold(0_u64, |sum, class| sum.checked_add(class))
        };
        sum(self.hosts).and(sum(self.weight)).map(|_| self)
    }

    fn checked_sub(mut self, health: Health, hosts: u64, weight: u64) -> Option<Self> {
        let class = health as usize;
        self.hosts[class] = self.hosts[class].checked_sub(hosts)?;
        self.weight[class] = self.weight[class].checked_sub(weight)?;
        Some(self)
    }
}

/// Hosts per locality: a calling service, or one priority of a called one.
///
/// A locality is listed as long as it has any host, whatever its health. That
/// is Envoy's notion: a zone whose hosts are all unhealthy is not the same as a
/// zone without hosts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Members {
    zones: BTreeMap<Locality, Tally>,
    total: Tally,
}

impl Members {
    /// Nobody.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `count` hosts that are alike.
    ///
    /// # Errors
    /// [`InputError::ZeroWeight`], or [`InputError::TooMany`] if hosts or
    /// weights, over all localities, would exceed 64 bits. Nothing is changed
    /// then.
    pub fn add(
        &mut self,
        locality: &Locality,
        health: Health,
        weight: u32,
        count: u64,
    ) -> Result<(), InputError> {
        if weight == 0 {
            return Err(InputError::ZeroWeight);
        }
        if count == 0 {
            return Ok(());
        }
        let weight = u64::from(weight)
            .checked_mul(count)
            .ok_or(InputError::TooMany)?;
        let total = self
            .total
            .checked_add(health, count, weight)
            .ok_or(InputError::TooMany)?;
        // A clone of the key is a counter; most calls find the zone there.
        let tally = match self.zones.get_mut(locality) {
            Some(tally) => tally,
            None => self.zones.entry(locality.clone()).or_default(),
        };
        *tally = tally
            .checked_add(health, count, weight)
            .ok_or(InputError::TooMany)?;
        self.total = total;
        Ok(())
    }

    /// Takes away `count` hosts that are alike. The locality goes with its last
    /// host.
    ///
    /// # Errors
    /// [`InputError::NotThere`] if there are not so many. Nothing is changed
    /// then.
    pub fn remove(
        &mut self,
        locality: &Locality,
        health: Health,
        weight: u32,
        count: u64,
    ) -> Result<(), InputError> {
        let weight = u64::from(weight)
            .checked_mul(count)
            .ok_or(InputError::NotThere)?;
        let tally = self.zones.get_mut(locality).ok_or(InputError::NotThere)?;
        let less = tally
            .checked_sub(health, count, weight)
            .ok_or(InputError::NotThere)?;
        self.total = self
            .total
            .checked_sub(health, count, weight)
            .ok_or(InputError::NotThere)?;
        *tally = less;
        if less.is_empty() {
            self.zones.remove(locality);
        }
        Ok(())
    }

    /// The hosts of one locality, if it has any.
    #[must_use]
    pub fn get(&self, locality: &Locality) -> Option<&Tally> {
        self.zones.get(locality)
    }

    /// All localities that have a host, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Locality, &Tally)> {
        self.zones.iter()
    }

    /// Number of localities that have a host.
    #[must_use]
    pub fn localities(&self) -> usize {
        self.zones.len()
    }

    /// The hosts of all localities together.
    #[must_use]
    pub fn total(&self) -> &Tally {
        &self.total
    }
}

/// The hosts of a called service, by priority.
///
/// There always is a priority 0, and no gap up to the highest one, as in Envoy:
/// a priority without hosts counts as one where nobody is healthy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    priorities: Vec<Members>,
}

impl Default for Upstream {
    fn default() -> Self {
        Self {
            priorities: alloc::vec![Members::new()],
        }
    }
}

impl From<Members> for Upstream {
    /// All of them at priority 0.
    fn from(members: Members) -> Self {
        Self {
            priorities: alloc::vec![members],
        }
    }
}

impl Upstream {
    /// Without hosts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `count` hosts that are alike.
    ///
    /// # Errors
    /// As [`Members::add`], and [`InputError::Priority`].
    pub fn add(
        &mut self,
        priority: u32,
        locality: &Locality,
        health: Health,
        weight: u32,
        count: u64,
    ) -> Result<(), InputError> {
        if priority > MAX_PRIORITY {
            return Err(InputError::Priority(priority));
        }
        let index = priority as usize;
        if count > 0 && index >= self.priorities.len() {
            // Only if it is not refused.
            let mut members = Members::new();
            members.add(locality, health, weight, count)?;
            self.priorities.resize_with(index, Members::new);
            self.priorities.push(members);
            return Ok(());
        }
        match self.priorities.get_mut(index) {
            Some(members) => members.add(locality, health, weight, count),
            None if weight == 0 => Err(InputError::ZeroWeight),
            None => Ok(()),
        }
    }

    /// Takes away `count` hosts that are alike. A priority stays when its last
    /// host goes, as in Envoy.
    ///
    /// # Errors
    /// As [`Members::remove`].
    pub fn remove(
        &mut self,
        priority: u32,
        locality: &Locality,
        health: Health,
        weight: u32,
        count: u64,
    ) -> Result<(), InputError> {
        self.priorities
            .get_mut(priority as usize)
            .ok_or(InputError::NotThere)?
            .remove(locality, health, weight, count)
    }

    /// All priorities, from 0.
    #[must_use]
    pub fn priorities(&self) -> &[Members] {
        &self.priorities
    }

    /// The hosts of priority 0, the only ones that zone-aware routing looks at.
    #[must_use]
    pub fn first(&self) -> &Members {
        // There always is one; see the type.
        &self.priorities[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_goes_with_its_last_host() {
        let zone = Locality::zone_only("a");
        let mut members = Members::new();
        members.add(&zone, Health::Unhealthy, 3, 2).unwrap();
        assert_eq!(members.localities(), 1);
        members.remove(&zone, Health::Unhealthy, 3, 1).unwrap();
        assert_eq!(
            members.get(&zone).map(|t| t.weight(Health::Unhealthy)),
            Some(3)
        );
        members.remove(&zone, Health::Unhealthy, 3, 1).unwrap();
        assert_eq!(members, Members::new());
    }

    #[test]
    fn what_is_refused_changes_nothing() {
        let (a, b) = (Locality::zone_only("a"), Locality::zone_only("b"));
        let mut members = Members::new();
        members.add(&a, Health::Healthy, 1, u64::MAX - 1).unwrap();
        let before = members.clone();
        assert_eq!(
            members.add(&b, Health::Degraded, 1, 2),
            Err(InputError::TooMany)
        );
        assert_eq!(
            members.add(&b, Health::Degraded, 0, 1),
            Err(InputError::ZeroWeight)
        );
        assert_eq!(
            members.add(&b, Health::Healthy, 2, u64::MAX),
            Err(InputError::TooMany)
        );
        assert_eq!(
            members.remove(&a, Health::Degraded, 1, 1),
            Err(InputError::NotThere)
        );
        assert_eq!(
            members.remove(&b, Health::Healthy, 1, 1),
            Err(InputError::NotThere)
        );
        assert_eq!(members, before);
    }

    #[test]
    fn priorities_have_no_gap_and_a_limit() {
        let zone = Locality::zone_only("a");
        let mut upstream = Upstream::new();
        upstream.add(2, &zone, Health::Healthy, 1, 1).unwrap();
        assert_eq!(upstream.priorities().len(), 3);
        assert_eq!(upstream.priorities()[1], Members::new());
        assert_eq!(
            upstream.add(129, &zone, Health::Healthy, 1, 1),
            Err(InputError::Priority(129))
        );
        assert_eq!(
            upstream.add(9, &zone, Health::Healthy, 0, 1),
            Err(InputError::ZeroWeight)
        );
        assert_eq!(upstream.priorities().len(), 3);
    }

    #[test]
    fn classes_are_those_of_envoys_statuses() {
        for (status, health) in [
            ("UNKNOWN", Health::Healthy),
            ("HEALTHY", Health::Healthy),
            ("DEGRADED", Health::Degraded),
            ("UNHEALTHY", Health::Unhealthy),
            ("DRAINING", Health::Unhealthy),
            ("TIMEOUT", Health::Unhealthy),
        ] {
            assert_eq!(Health::from_envoy(status), Some(health));
        }
        assert_eq!(Health::from_envoy("healthy"), None);
    }
}
