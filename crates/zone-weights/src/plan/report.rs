use alloc::collections::BTreeMap;

use super::parts::per_billion;
use super::{Hosts, PARTS, Plan, Problem};
use crate::Locality;

/// What a plan comes to, in parts of a billion, rounded down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Of all requests, those that leave their zone.
    pub cross_zone: u64,
    /// Of all requests, those for which there is no host.
    pub no_host: u64,
    /// The load of the fullest endpoint, for its weight, in proportion to the
    /// mean of the endpoints of its priority and health: a billion is balance.
    pub fullest: u64,
    /// What a request costs on average, times a billion; 0 without
    /// [`Problem::costs`].
    pub cost: u64,
}

impl Plan {
    /// What the plan comes to with the demand of the problem.
    #[must_use]
    pub fn report(&self, problem: &Problem<'_>) -> Report {
        let (mut all, mut leaving, mut served, mut cost) = (0_u128, 0_u128, 0_u128, 0_u128);
        let mut loads: BTreeMap<(u32, Hosts, &Locality), u128> = BTreeMap::new();
        for (index, demand) in problem.services.iter().enumerate() {
            for (zone, amount) in demand.iter() {
                let Some(split) = self.split(index, zone) else {
                    continue;
                };
                let amount = u128::from(amount);
                all += amount * u128::from(PARTS);
                for part in split.parts() {
                    let requests = amount * u128::from(part.parts);
                    served += requests;
                    if part.zone != *zone {
                        leaving += requests;
                    }
                    if let Some(costs) = problem.costs {
                        cost += requests * u128::from(costs.get(zone, &part.zone));
                    }
                    let key = (part.priority, part.hosts, &part.zone);
                    *loads.entry(key).or_default() += requests;
                }
            }
        }
        Report {
            cross_zone: per_billion(leaving, all),
            no_host: per_billion(all.saturating_sub(served), all),
            fullest: fullest(&loads, problem),
            cost: per_billion(cost, all),
        }
    }
}

fn fullest(loads: &BTreeMap<(u32, Hosts, &Locality), u128>, problem: &Problem<'_>) -> u64 {
    let mut classes: BTreeMap<(u32, Hosts), u128> = BTreeMap::new();
    for ((priority, hosts, _), load) in loads {
        *classes.entry((*priority, *hosts)).or_default() += load;
    }
    let mut fullest = 0;
    for ((priority, hosts, zone), load) in loads {
        let Some(members) = problem.upstream.priorities().get(*priority as usize) else {
            continue;
        };
        let all = classes.get(&(*priority, *hosts)).copied().unwrap_or(0);
        let weight = members.get(zone).map_or(0, |tally| hosts.weight(tally));
        let total = hosts.weight(members.total());
        // load / weight over all / total. The loads are below 2^62, and the
        // weights below 2^32.
        let here = load * u128::from(total);
        let mean = all * u128::from(weight);
        fullest = fullest.max(if mean == 0 && here > 0 {
            u64::MAX
        } else {
            per_billion(here, mean)
        });
    }
    fullest
}
