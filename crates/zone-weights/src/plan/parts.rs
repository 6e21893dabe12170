//! Whole parts of a whole.

use alloc::vec::Vec;

/// A whole, in the parts in which plans are given: a billion.
pub const PARTS: u32 = 1_000_000_000;

/// Parts in proportion to weights, exactly `total` together (unless all weights
/// are 0: then none). Each is its exact share, cut, and what that leaves goes to
/// the largest remainders (Hamilton's method), the first of equals first.
pub(super) fn apportion(total: u32, weights: &[u128]) -> Vec<u32> {
    // Nothing that shows in a billionth is lost by leaving 90 bits.
    let most = weights.iter().copied().max().unwrap_or(0);
    let shift = (128 - most.leading_zeros()).saturating_sub(80);
    let weights: Vec<u128> = weights
        .iter()
        .map(|weight| weight.checked_shr(shift).unwrap_or(0))
        .collect();
    let sum: u128 = weights.iter().sum();
    if sum == 0 {
        return alloc::vec![0; weights.len()];
    }
    let mut rest = total;
    let mut remainders = Vec::with_capacity(weights.len());
    let mut parts: Vec<u32> = Vec::with_capacity(weights.len());
    for (index, weight) in weights.iter().enumerate() {
        let product = u128::from(total) * weight;
        // At most the total.
        let part = (product / sum) as u32;
        parts.push(part);
        rest -= part;
        if *weight > 0 {
            remainders.push((core::cmp::Reverse(product % sum), index));
        }
    }
    remainders.sort_unstable();
    for (_, index) in remainders.into_iter().take(rest as usize) {
        parts[index] += 1;
    }
    parts
}

/// `part` of `whole`, rounded down to parts. 0 of 0 is 0.
pub(super) fn per_billion(part: u128, whole: u128) -> u64 {
    let parts = if let Some(product) = part.checked_mul(u128::from(PARTS)) {
        product.checked_div(whole)
    } else {
        part.checked_div(whole / u128::from(PARTS))
    };
    u64::try_from(parts.unwrap_or(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_and_none_is_more_than_one_off() {
        assert_eq!(apportion(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(apportion(7, &[0, 3, 1]), [0, 5, 2]);
        assert_eq!(apportion(7, &[0, 0]), [0, 0]);
        assert_eq!(apportion(7, &[]), [0; 0]);
        let large = [u128::MAX / 3, u128::MAX / 3, 1];
        assert_eq!(apportion(PARTS, &large), [PARTS / 2, PARTS / 2, 0]);
    }

    #[test]
    fn large_numbers_have_a_ratio_too() {
        assert_eq!(per_billion(1, 3), 333_333_333);
        assert_eq!(per_billion(u128::MAX / 2, u128::MAX), 500_000_000);
        assert_eq!(per_billion(0, 0), 0);
    }
}
