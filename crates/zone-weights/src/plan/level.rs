//! The least traffic between zones that are all equally far from each other.

use alloc::vec::Vec;

use super::parts::{PARTS, apportion};

/// What one zone wants and what it can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Requests of the callers in it.
    pub(super) demand: u64,
    /// Weight of the endpoints in it.
    pub(super) capacity: u64,
}

/// The plan for all zones: each keeps a part and sends the rest where there is
/// room, in the same proportion as all others, so that zones need not agree on
/// who sends where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// Parts that stay in each zone.
    pub(super) keep: Vec<u32>,
    /// What each zone takes of the others, in some unit.
    pub(super) room: Vec<u128>,
}

/// One, in the unit of tolerances.
pub(super) const ONE: u128 = 10_000;

/// The most that each place may take, and what it wants, in the same unit:
/// 1 / (10,000 · capacity of all) of the unit of the demand.
///
/// With demands and capacities below 2^32 and a tolerance below 2^20, sums are
/// below 2^85.
pub(super) fn scaled(places: &[Place], tolerance: u32) -> (Vec<u128>, Vec<u128>) {
    let demand: u128 = places.iter().map(|place| u128::from(place.demand)).sum();
    let capacity: u128 = places.iter().map(|place| u128::from(place.capacity)).sum();
    let wants = places
        .iter()
        .map(|place| u128::from(place.demand) * capacity * ONE)
        .collect();
    let limits = places
        .iter()
        .map(|place| (ONE + u128::from(tolerance)) * demand * u128::from(place.capacity))
        .collect();
    (wants, limits)
}

/// The plan with the least traffic between zones in which no endpoint gets more
/// than 1 + `tolerance` / 10,000 of the mean (for its weight), and of those the
/// one in which the fullest is least full.
///
/// A zone cannot keep more than it wants, nor more than its limit; keeping the
/// smaller of the two is the least. What is left over fills the emptiest zones to
/// one level, like water.
pub(super) fn level(places: &[Place], tolerance: u32) -> Level {
    let (wants, limits) = scaled(places, tolerance);
    let local: Vec<u128> = wants
        .iter()
        .zip(&limits)
        .map(|(want, limit)| *want.min(limit))
        .collect();
    let all: u128 = wants.iter().sum();
    let leaving = all - local.iter().sum::<u128>();

    let keep = (0..places.len())
        .map(|zone| match wants[zone] {
            // Nobody calls from here as far as is known. Whoever does stays.
            0 if places[zone].capacity > 0 => PARTS,
            0 => 0,
            want => (u128::from(PARTS) * local[zone] / want) as u32,
        })
        .collect();
    Level {
        keep,
        room: room(places, &local, leaving),
    }
}

/// How much each zone takes when `leaving` is poured over what is there.
fn room(places: &[Place], local: &[u128], leaving: u128) -> Vec<u128> {
    let capacity = |zone: usize| u128::from(places[zone].capacity);
    if leaving == 0 {
        // Nothing to pour. Whoever has to leave all the same goes by capacity.
        return (0..places.len()).map(capacity).collect();
    }
    let mut emptiest: Vec<usize> = (0..places.len())
        .filter(|zone| capacity(*zone) > 0)
        .collect();
    // By local / capacity; the products are below 2^117.
    emptiest.sort_by(|one, other| {
        (local[*one] * capacity(*other)).cmp(&(local[*other] * capacity(*one)))
    });
    let (mut poured, mut under) = (leaving, 0_u128);
    for zone in emptiest {
        // The level so far is poured / under. Does it reach this zone?
        if under > 0 && poured * capacity(zone) <= local[zone] * under {
            break;
        }
        poured += local[zone];
        under += capacity(zone);
    }
    (0..places.len())
        .map(|zone| (poured * capacity(zone)).saturating_sub(local[zone] * under))
        .collect()
}

impl Level {
    /// The parts that requests from a zone send to each zone, `PARTS` together
    /// unless there is no capacity at all.
    pub(super) fn row(&self, zone: usize) -> Vec<u32> {
        let mut row = self.elsewhere(PARTS - self.keep[zone]);
        row[zone] += self.keep[zone];
        row
    }

    /// `parts` of requests that have to go to another zone.
    pub(super) fn elsewhere(&self, parts: u32) -> Vec<u32> {
        apportion(parts, &self.room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(zones: &[(u64, u64)]) -> Vec<Place> {
        zones
            .iter()
            .map(|(demand, capacity)| Place {
                demand: *demand,
                capacity: *capacity,
            })
            .collect()
    }

    // envoy: 3 and 1 callers on 4 and 4 endpoints, of which 2/3 stay.
    #[test]
    fn without_tolerance_it_is_envoys_split_without_the_cutting() {
        let level = level(&places(&[(3, 4), (1, 4)]), 0);
        assert_eq!(level.row(0), [666_666_666, 333_333_334]);
        assert_eq!(level.row(1), [0, PARTS]);
    }

    #[test]
    fn tolerance_keeps_more_and_fills_the_emptiest_first() {
        // Limits are 1.2 of the mean: 4.8 of 12 for each.
        let level = level(&places(&[(6, 1), (4, 1), (2, 1)]), 2_000);
        // All of the 1.2 goes to the third zone: with 3.2 it is still the emptiest.
        assert_eq!(level.row(0), [800_000_000, 0, 200_000_000]);
        assert_eq!(level.row(1), [0, PARTS, 0]);
    }

    #[test]
    fn what_leaves_fills_the_others_to_one_level() {
        // The mean is 5 and the limit 7, so 5 of 12 leave. Poured over 4, 1 and 3
        // they make it 13/3 everywhere: 1/3, 10/3 and 4/3, or 1, 10 and 4 of 15.
        let level = level(&places(&[(12, 1), (4, 1), (1, 1), (3, 1)]), 4_000);
        let leaves = 5.0 / 12.0 * f64::from(PARTS);
        for (parts, share) in level.row(0)[1..].iter().zip([1.0, 10.0, 4.0]) {
            assert!((f64::from(*parts) - leaves * share / 15.0).abs() < 2.0);
        }
        // Twice as many endpoints in the emptiest take twice as much to the level;
        // one that is fuller stays as it is.
        let level = self::level(&places(&[(14, 1), (8, 1), (1, 2), (2, 1)]), 6_000);
        // Mean 5, limit 8: 6 leave. (6 + 1 + 2) / 3 = 3 is below the 8.
        let leaves = 6.0 / 14.0 * f64::from(PARTS);
        for (parts, share) in level.row(0)[1..].iter().zip([0.0, 5.0, 1.0]) {
            assert!((f64::from(*parts) - leaves * share / 6.0).abs() < 2.0);
        }
    }

    #[test]
    fn zones_without_endpoints_or_callers_are_served() {
        let level = level(&places(&[(4, 0), (0, 1), (0, 3)]), 0);
        assert_eq!(level.row(0), [0, PARTS / 4, PARTS / 4 * 3]);
        assert_eq!(level.row(2), [0, 0, PARTS]);
    }

    #[test]
    fn nothing_known_goes_by_capacity() {
        let level = level(&places(&[(0, 0), (0, 1), (0, 1)]), 0);
        assert_eq!(level.row(0), [0, PARTS / 2, PARTS / 2]);
    }
}
