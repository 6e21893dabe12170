use alloc::collections::BTreeMap;

use super::PlanError;
use crate::{Health, Locality, Members};

/// How many requests a calling service makes in each zone, in any unit: measured
/// requests per second if they are known, else the number of callers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Demand {
    zones: BTreeMap<Locality, u64>,
    total: u64,
}

impl Demand {
    /// The largest sum that a plan takes, over all its services.
    pub const LIMIT: u64 = u32::MAX as u64;

    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Each caller that is not unhealthy counts one; if all are unhealthy, each
    /// counts one, since they may send all the same.
    #[must_use]
    pub fn of_callers(callers: &Members) -> Self {
        let all = callers.total();
        let none_available = all.hosts(Health::Healthy) == 0 && all.hosts(Health::Degraded) == 0;
        let mut demand = Self::new();
        for (locality, tally) in callers.iter() {
            let amount = if none_available {
                tally.all_hosts()
            } else {
                tally.hosts(Health::Healthy) + tally.hosts(Health::Degraded)
            };
            demand.zones.insert(locality.clone(), amount);
            // The sum over all classes fits, so this does.
            demand.total += amount;
        }
        demand
    }

    /// Adds to the demand of a zone.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`] if the sum exceeds 64 bits. Nothing is changed
    /// then.
    pub fn add(&mut self, locality: &Locality, amount: u64) -> Result<(), PlanError> {
        self.total = self
            .total
            .checked_add(amount)
            .ok_or(PlanError::TooLarge("demand"))?;
        // Part of the total, so it cannot overflow.
        *self.zones.entry(locality.clone()).or_default() += amount;
        Ok(())
    }

    /// The demand of one zone.
    #[must_use]
    pub fn get(&self, locality: &Locality) -> u64 {
        self.zones.get(locality).copied().unwrap_or(0)
    }

    /// All zones that were named, those without demand among them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Locality, u64)> {
        self.zones.iter().map(|(zone, amount)| (zone, *amount))
    }

    /// All zones together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_count_unless_they_are_ill_and_others_are_not() {
        let (a, b) = (Locality::zone_only("a"), Locality::zone_only("b"));
        let mut callers = Members::new();
        callers.add(&a, Health::Unhealthy, 9, 3).unwrap();
        callers.add(&b, Health::Unhealthy, 1, 1).unwrap();
        let demand = Demand::of_callers(&callers);
        assert_eq!((demand.get(&a), demand.get(&b), demand.total()), (3, 1, 4));
        callers.add(&b, Health::Degraded, 5, 2).unwrap();
        let demand = Demand::of_callers(&callers);
        assert_eq!((demand.get(&a), demand.get(&b), demand.total()), (0, 2, 2));
        callers.add(&a, Health::Healthy, 5, 1).unwrap();
        let demand = Demand::of_callers(&callers);
        assert_eq!((demand.get(&a), demand.get(&b), demand.total()), (1, 2, 3));
    }

    #[test]
    fn a_sum_that_does_not_fit_is_refused() {
        let (a, b) = (Locality::zone_only("a"), Locality::zone_only("b"));
        let mut demand = Demand::new();
        demand.add(&a, u64::MAX).unwrap();
        assert_eq!(demand.add(&b, 1), Err(PlanError::TooLarge("demand")));
        assert_eq!(demand.total(), u64::MAX);
        assert_eq!(demand.iter().len(), 1);
    }
}
