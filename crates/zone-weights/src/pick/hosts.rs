use alloc::boxed::Box;
use alloc::vec::Vec;

use super::table::{Table, even, mix};
use super::wheel::Wheel;
use crate::{Health, Hosts, Locality};

/// The hosts of one locality at one priority, ready to be picked from.
#[derive(Debug)]
pub(super) struct ZoneHosts<T> {
    pub(super) priority: u32,
    pub(super) locality: Locality,
    /// The healthy ones, then the degraded ones, then the others.
    values: Box<[T]>,
    healthy: usize,
    degraded: usize,
    /// In the order of [`Hosts`].
    orders: [Option<Order>; 3],
}

/// In which proportion hosts are picked.
#[derive(Debug)]
enum Order {
    /// All alike.
    Even,
    ByWeight(Table, Wheel),
}

impl Order {
    fn new(weights: &[u32]) -> Option<Self> {
        let first = weights.first()?;
        if weights.iter().all(|weight| weight == first) {
            return Some(Self::Even);
        }
        let weights = weights.iter().map(|weight| u64::from(*weight));
        Some(Self::ByWeight(
            Table::new(weights.clone())?,
            Wheel::new(weights)?,
        ))
    }
}

impl<T: Clone> ZoneHosts<T> {
    /// Of hosts with their health and weight.
    pub(super) fn new<'a>(
        priority: u32,
        locality: Locality,
        hosts: &(impl Iterator<Item = (&'a T, Health, u32)> + Clone),
    ) -> Self
    where
        T: 'a,
    {
        let (mut values, mut weights) = (Vec::new(), Vec::new());
        let [healthy, degraded, _] = Health::ALL.map(|class| {
            let before = values.len();
            for (value, health, weight) in hosts.clone() {
                if health == class {
                    values.push(value.clone());
                    weights.push(weight);
                }
            }
            values.len() - before
        });
        let orders = [
            Order::new(&weights[..healthy]),
            Order::new(&weights[healthy..healthy + degraded]),
            Order::new(&weights),
        ];
        Self {
            priority,
            locality,
            values: values.into(),
            healthy,
            degraded,
            orders,
        }
    }
}

impl<T> ZoneHosts<T> {
    #[inline]
    fn of(&self, hosts: Hosts) -> Option<(&[T], &Order)> {
        let (values, order) = match hosts {
            Hosts::Healthy => (&self.values[..self.healthy], &self.orders[0]),
            Hosts::Degraded => (
                &self.values[self.healthy..self.healthy + self.degraded],
                &self.orders[1],
            ),
            Hosts::All => (&self.values[..], &self.orders[2]),
            Hosts::Nobody => return None,
        };
        Some((values, order.as_ref()?))
    }

    /// One of these hosts, by a random number that has decided something else
    /// already.
    #[inline]
    pub(super) fn draw(&self, hosts: Hosts, random: u64) -> Option<&T> {
        let (values, order) = self.of(hosts)?;
        let random = mix(random);
        values.get(match order {
            Order::Even => even(random, values.len()),
            Order::ByWeight(table, _) => table.draw(random),
        })
    }

    /// The host of the n-th request to them.
    #[inline]
    pub(super) fn turn(&self, hosts: Hosts, n: u64) -> Option<&T> {
        let (values, order) = self.of(hosts)?;
        values.get(match order {
            Order::Even => (n % values.len() as u64) as usize,
            Order::ByWeight(_, wheel) => wheel.turn(n).0,
        })
    }
}
