use alloc::boxed::Box;
use alloc::vec::Vec;

/// Draws an item in proportion to its weight from one random number.
///
/// The numbers from 0 to 2^64 are divided among the items in their order, to the
/// last of them. A guide says where to begin to look, so that a draw takes one or
/// two comparisons on average, however many items there are (Chen and Asau 1974).
#[derive(Debug)]
pub(super) struct Table {
    /// Where each item's numbers end; the last has all that remain.
    ends: Box<[u64]>,
    /// For each possible value of the leading bits, the first item to look at.
    guide: Box<[u32]>,
    shift: u32,
}

impl Table {
    /// Of weights that are not 0, whose sum fits in 64 bits, and of which there
    /// are fewer than 2^32. `None` of no weight.
    pub(super) fn new(weights: impl ExactSizeIterator<Item = u64> + Clone) -> Option<Self> {
        let count = weights.len();
        let last = count.checked_sub(1)?;
        let total: u64 = weights.clone().sum();
        let mut sum = 0_u64;
        let ends: Box<[u64]> = weights
            .take(last)
            .map(|weight| {
                sum += weight;
                part_of(sum, total)
            })
            .collect();

        // At least two, since a shift by 64 is none.
        let size = count.next_power_of_two().max(2);
        let shift = 64 - size.trailing_zeros();
        let mut item = 0;
        let guide: Vec<u32> = (0..size as u64)
            .map(|leading| {
                while item < last && ends[item] <= leading << shift {
                    item += 1;
                }
                item as u32
            })
            .collect();
        Some(Self {
            ends,
            guide: guide.into(),
            shift,
        })
    }

    #[inline]
    pub(super) fn draw(&self, random: u64) -> usize {
        let first = self.guide[(random >> self.shift) as usize] as usize;
        let skipped = self.ends[first..].iter().take_while(|end| random >= **end);
        first + skipped.count()
    }
}

/// `part` of `total` in units of 2^-64, cut. Less than 1: `part` < `total`.
#[inline]
pub(super) fn part_of(part: u64, total: u64) -> u64 {
    ((u128::from(part) << 64) / u128::from(total)) as u64
}

/// Another random number from one: SplitMix64's finaliser (Steele, Lea and Flood
/// 2014). Each number gives another, so nothing is lost, and what the leading
/// bits said about the first tells nothing about the second.
#[inline]
pub(super) fn mix(random: u64) -> u64 {
    let mut mixed = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// One of `count`, all alike.
#[inline]
pub(super) fn even(random: u64, count: usize) -> usize {
    ((u128::from(random) * count as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_has_its_part_of_the_numbers() {
        let weights = [1_u64, 5, 1, 1_000_000, 3];
        let total: u64 = weights.iter().sum();
        let table = Table::new(weights.iter().copied()).unwrap();
        let mut sum = 0;
        for (item, weight) in weights.iter().enumerate() {
            let first = if item == 0 { 0 } else { part_of(sum, total) };
            sum += weight;
            assert_eq!(table.draw(first), item);
            if item > 0 {
                assert_eq!(table.draw(first - 1), item - 1);
            }
        }
        assert_eq!(table.draw(u64::MAX), weights.len() - 1);
    }

    #[test]
    fn one_item_has_all_and_no_item_has_no_table() {
        let table = Table::new([7_u64].into_iter()).unwrap();
        assert_eq!(
            [0, 1 << 63, u64::MAX].map(|random| table.draw(random)),
            [0; 3]
        );
        assert!(Table::new([0_u64; 0].into_iter()).is_none());
    }

    #[test]
    fn a_thousand_items_are_all_found() {
        let table = Table::new((1..=1_000_u64).collect::<Vec<_>>().into_iter()).unwrap();
        let total = 1_000 * 1_001 / 2;
        for item in 1..1_000_u64 {
            // The sum of the weights before it.
            let begins = part_of(item * (item + 1) / 2, total);
            assert_eq!(table.draw(begins), item as usize);
            assert_eq!(table.draw(begins - 1), item as usize - 1);
        }
    }
}
