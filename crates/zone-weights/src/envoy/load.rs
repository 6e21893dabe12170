//! Which priority takes how much, and whether it panics: `LoadBalancerBase` in
//! Envoy's source/extensions/load_balancing_policies/common/load_balancer_impl.cc
//! (1.40.0).

use alloc::vec::Vec;
use core::num::NonZeroU32;

use crate::{Health, Members, Percent, Tally};

/// What one priority takes of all requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PriorityLoad {
    /// Percentage of all requests that goes to its healthy hosts; in panic, to
    /// all of them.
    pub healthy: u8,
    /// Percentage of all requests that goes to its degraded hosts.
    pub degraded: u8,
    /// Too few hosts are healthy or degraded to tell them from the others.
    pub panic: bool,
}

/// Whether fewer than `threshold` percent of the hosts are healthy or degraded.
/// Where there is no host, none is. Exactly the threshold is no panic.
pub(crate) fn in_panic(hosts: &Tally, threshold: Percent) -> bool {
    let all = u128::from(hosts.all_hosts());
    let available =
        u128::from(hosts.hosts(Health::Healthy)) + u128::from(hosts.hosts(Health::Degraded));
    if all == 0 {
        return threshold > Percent::ZERO;
    }
    // Envoy adds two floating-point percentages; for up to thousands of hosts
    // the outcome is the same.
    available * 100 < u128::from(threshold.get()) * all
}

/// Health of a priority, 0 to 100.
fn health(hosts: &Tally, class: Health, factor: NonZeroU32) -> u8 {
    let all = u128::from(hosts.all_hosts());
    let scaled = u128::from(factor.get()) * u128::from(hosts.hosts(class));
    scaled
        .checked_div(all)
        .and_then(|percent| u8::try_from(percent).ok())
        .map_or(if all == 0 { 0 } else { 100 }, |percent| percent.min(100))
}

/// Gives each priority in turn as much of the rest as it can take.
fn distribute(rest: &mut u8, health: u8, total: u8) -> u8 {
    let share = u16::from(health) * 100 / u16::from(total);
    let taken = u8::try_from(share).map_or(*rest, |share| share.min(*rest));
    *rest -= taken;
    taken
}

/// The loads of all priorities; they add up to 100.
pub(crate) fn loads(
    priorities: &[Members],
    threshold: Percent,
    factor: NonZeroU32,
) -> Vec<PriorityLoad> {
    let health: Vec<(u8, u8)> = priorities
        .iter()
        .map(|members| {
            let of = |class| health(members.total(), class, factor);
            (of(Health::Healthy), of(Health::Degraded))
        })
        .collect();
    // Each is at most 100 and there are at most 129 priorities.
    let total: u32 = health
        .iter()
        .map(|(healthy, degraded)| u32::from(*healthy) + u32::from(*degraded))
        .sum();
    let total = u8::try_from(total.min(100)).unwrap_or(100);

    let mut loads: Vec<PriorityLoad> = priorities
        .iter()
        .map(|members| PriorityLoad {
            panic: total < 100 && in_panic(members.total(), threshold),
            ..PriorityLoad::default()
        })
        .collect();

    if loads.iter().all(|load| load.panic) {
        by_hosts(&mut loads, priorities);
        return loads;
    }

    let mut rest = 100;
    if total > 0 {
        for (load, (healthy, _)) in loads.iter_mut().zip(&health) {
            load.healthy = distribute(&mut rest, *healthy, total);
        }
        for (load, (_, degraded)) in loads.iter_mut().zip(&health) {
            load.degraded = distribute(&mut rest, *degraded, total);
        }
    }
    // What the cutting left goes to the first with any health. Where nobody has
    // any (the threshold is 0, or so low that it does not bite), everything goes
    // to priority 0, as in Envoy.
    if let Some(first) = health.iter().position(|(healthy, _)| *healthy > 0) {
        loads[first].healthy += rest;
    } else if let Some(first) = health.iter().position(|(_, degraded)| *degraded > 0) {
        loads[first].degraded += rest;
    } else if let Some(first) = loads.first_mut() {
        first.healthy += rest;
    }
    loads
}

/// All priorities are in panic: by number of hosts, healthy or not.
fn by_hosts(loads: &mut [PriorityLoad], priorities: &[Members]) {
    let hosts = |members: &Members| u128::from(members.total().all_hosts());
    let all: u128 = priorities.iter().map(hosts).sum();
    let mut rest = 100;
    for (load, members) in loads.iter_mut().zip(priorities) {
        let share = (hosts(members) * 100).checked_div(all).unwrap_or(0);
        load.healthy = u8::try_from(share).unwrap_or(100);
        load.degraded = 0;
        rest -= load.healthy;
    }
    let first = priorities
        .iter()
        .position(|members| hosts(members) > 0)
        .unwrap_or(0);
    if let Some(load) = loads.get_mut(first) {
        load.healthy += rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Locality;

    /// Healthy, degraded and unhealthy hosts.
    fn members(hosts: [u64; 3]) -> Members {
        let zone = Locality::zone_only("a");
        let mut members = Members::new();
        for (health, hosts) in Health::ALL.into_iter().zip(hosts) {
            members.add(&zone, health, 1, hosts).unwrap();
        }
        members
    }

    fn shares(priorities: &[[u64; 3]], threshold: u64) -> Vec<(u8, u8, bool)> {
        let priorities: Vec<Members> = priorities.iter().copied().map(members).collect();
        loads(
            &priorities,
            Percent::capped(threshold),
            NonZeroU32::new(140).unwrap(),
        )
        .into_iter()
        .map(|load| (load.healthy, load.degraded, load.panic))
        .collect()
    }

    // P114
    #[test]
    fn below_the_threshold_is_panic_and_exactly_at_it_is_none() {
        assert_eq!(shares(&[[49, 0, 51]], 50), [(100, 0, true)]);
        assert_eq!(shares(&[[50, 0, 50]], 50), [(100, 0, false)]);
        assert_eq!(shares(&[[1, 0, 99]], 0), [(100, 0, false)]);
    }

    #[test]
    fn five_sevenths_healthy_are_never_in_panic() {
        assert_eq!(shares(&[[5, 0, 2]], 100), [(100, 0, false)]);
        assert_eq!(shares(&[[71, 0, 29]], 100), [(100, 0, true)]);
    }

    // envoy: the example in a comment of LoadBalancerBase::recalculatePerPriorityState,
    // with 10/20/10 percent healthy and 20/10/0 percent degraded at factor 100.
    #[test]
    fn rounding_goes_to_the_first_priority_with_health() {
        let priorities = [members([1, 2, 7]), members([2, 1, 7]), members([1, 0, 9])];
        let loads = loads(&priorities, Percent::ZERO, NonZeroU32::new(100).unwrap());
        let healthy: Vec<u8> = loads.iter().map(|load| load.healthy).collect();
        let degraded: Vec<u8> = loads.iter().map(|load| load.degraded).collect();
        assert_eq!(healthy, [16, 28, 14]);
        assert_eq!(degraded, [28, 14, 0]);
    }

    #[test]
    fn rounding_does_not_go_to_a_priority_without_health() {
        // 0, 10 and 20 percent healthy: 33 and 66 of 99.
        let priorities = [members([0, 0, 9]), members([1, 0, 9]), members([2, 0, 8])];
        let loads = loads(
            &priorities,
            Percent::ZERO,
            NonZeroU32::MIN.saturating_add(99),
        );
        let healthy: Vec<u8> = loads.iter().map(|load| load.healthy).collect();
        assert_eq!(healthy, [0, 34, 66]);
        // The same of degraded ones.
        let priorities = [members([0, 0, 9]), members([0, 1, 9]), members([0, 2, 8])];
        let loads = super::loads(
            &priorities,
            Percent::ZERO,
            NonZeroU32::MIN.saturating_add(99),
        );
        let degraded: Vec<u8> = loads.iter().map(|load| load.degraded).collect();
        assert_eq!(degraded, [0, 34, 66]);
    }

    #[test]
    fn total_panic_goes_by_hosts_of_any_health() {
        assert_eq!(
            shares(&[[0, 0, 0], [1, 0, 5], [1, 0, 2]], 50),
            [(0, 0, true), (67, 0, true), (33, 0, true)]
        );
        assert_eq!(shares(&[[0, 0, 0]], 50), [(100, 0, true)]);
    }

    #[test]
    fn nobody_available_without_panic_is_left_to_priority_0() {
        assert_eq!(
            shares(&[[0, 0, 3], [0, 0, 3]], 0),
            [(100, 0, false), (0, 0, false)]
        );
        // One of 200 is 0 percent healthy, after cutting.
        assert_eq!(
            shares(&[[0, 0, 3], [1, 0, 199]], 0),
            [(100, 0, false), (0, 0, false)]
        );
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let third = u64::MAX / 3;
        assert_eq!(shares(&[[third, third, third]], 50), [(50, 50, false)]);
    }
}
