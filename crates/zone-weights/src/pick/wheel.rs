use alloc::boxed::Box;
use alloc::vec::Vec;

use super::table::part_of;

/// Takes items in turn, each in proportion to its weight.
///
/// Items of the same weight are a class and take turns. Above the classes is a tree
/// of halves: at each node a fixed part of the requests goes to the left, spread
/// evenly over them, and the rest to the right. Which way the n-th request goes, and
/// the how-many-th it is there, follows from n alone. After any number of requests
/// the count at a node is off its share by at most half a request, at a class by at
/// most half a request for each level above it (and less, since an error is divided
/// like the requests), at an item by less than one more.
#[derive(Debug)]
pub(super) struct Wheel {
    /// For the node that divides at an index, the part of its left half in units
    /// of 2^-64. There is none at index 0.
    left: Box<[u64]>,
    /// Where the items of each class begin; one more for the end of the last.
    begins: Box<[u32]>,
    /// Class by class.
    items: Box<[u32]>,
}

impl Wheel {
    /// Of weights that are not 0, whose sum fits in 64 bits, and of which there are
    /// fewer than 2^32. `None` of no weight.
    pub(super) fn new(weights: impl ExactSizeIterator<Item = u64>) -> Option<Self> {
        if weights.len() == 0 {
            return None;
        }
        let mut ordered: Vec<(u64, u32)> = weights.zip(0..).collect();
        ordered.sort_unstable();
        let (mut sums, mut begins) = (alloc::vec![0_u64], alloc::vec![0_u32]);
        for class in ordered.chunk_by(|one, other| one.0 == other.0) {
            let weight: u64 = class.iter().map(|(weight, _)| weight).sum();
            sums.push(sums[sums.len() - 1] + weight);
            begins.push(begins[begins.len() - 1] + class.len() as u32);
        }
        let mut left = alloc::vec![0; sums.len() - 1];
        let mut nodes = alloc::vec![(0, sums.len() - 1)];
        while let Some((low, high)) = nodes.pop() {
            if high - low > 1 {
                let middle = low.midpoint(high);
                left[middle] = part_of(sums[middle] - sums[low], sums[high] - sums[low]);
                nodes.extend([(low, middle), (middle, high)]);
            }
        }
        Some(Self {
            left: left.into(),
            begins: begins.into(),
            items: ordered.into_iter().map(|(_, item)| item).collect(),
        })
    }

    /// The item of the n-th request, and the how-many-th of the item's it is;
    /// both from 0.
    #[inline]
    pub(super) fn turn(&self, n: u64) -> (usize, u64) {
        let (mut low, mut high, mut n) = (0, self.left.len(), n);
        while high - low > 1 {
            let middle = low.midpoint(high);
            let part = self.left[middle];
            // Rounded to the nearest; the product of 2^64 and 2^64 - 1 fits.
            let before = u128::from(n) * u128::from(part) + (1 << 63);
            // Not more than n.
            let left = (before >> 64) as u64;
            // Whether one more request is one more on the left.
            if (before as u64).checked_add(part).is_none() {
                (high, n) = (middle, left);
            } else {
                (low, n) = (middle, n - left);
            }
        }
        let (begin, end) = (self.begins[low], self.begins[low + 1]);
        let (place, turn) = match u64::from(end - begin) {
            1 => (0, n),
            items => (n % items, n / items),
        };
        (self.items[begin as usize + place as usize] as usize, turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_no_time_is_an_item_off_its_share() {
        for weights in [
            alloc::vec![1_u64, 1],
            alloc::vec![3, 1],
            alloc::vec![1, 2, 3, 4, 5, 6, 7],
            alloc::vec![1_000_000, 1, 1],
            alloc::vec![2, 1, 2, 3, 1, 2, 2, 3],
            alloc::vec![5; 100],
            (1..=100).collect(),
        ] {
            let total: u64 = weights.iter().sum();
            let levels = f64::from(weights.len().next_power_of_two().trailing_zeros());
            let wheel = Wheel::new(weights.iter().copied()).unwrap();
            let mut counts = alloc::vec![0_u64; weights.len()];
            for n in 0..10_000_u64 {
                let (item, turn) = wheel.turn(n);
                assert_eq!(turn, counts[item], "the turns of an item follow each other");
                counts[item] += 1;
                for (count, weight) in counts.iter().zip(&weights) {
                    let fair = (n + 1) as f64 * *weight as f64 / total as f64;
                    let off = (*count as f64 - fair).abs();
                    assert!(off <= 0.5 * levels + 1e-6, "{off} at {n} of {weights:?}");
                }
            }
        }
    }

    #[test]
    fn it_goes_on_to_the_end_of_the_numbers() {
        let wheel = Wheel::new([1_u64, 2, u64::MAX - 3].into_iter()).unwrap();
        for n in [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            assert!(wheel.turn(n).0 < 3);
        }
        assert_eq!(Wheel::new([5_u64].into_iter()).unwrap().turn(9), (0, 9));
        assert!(Wheel::new([0_u64; 0].into_iter()).is_none());
    }
}
