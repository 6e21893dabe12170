use core::fmt;

/// An exact share between 0 and 1, in lowest terms.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fraction {
    numerator: u128,
    denominator: u128,
}

impl Fraction {
    /// Nothing.
    pub const ZERO: Self = Self {
        numerator: 0,
        denominator: 1,
    };

    /// Everything.
    pub const ONE: Self = Self {
        numerator: 1,
        denominator: 1,
    };

    /// `numerator` of `denominator`, reduced. 0 of 0 is 0.
    #[must_use]
    pub fn new(numerator: u128, denominator: u128) -> Self {
        let divisor = gcd(numerator, denominator);
        if numerator == 0 || divisor == 0 {
            return Self::ZERO;
        }
        Self {
            numerator: numerator / divisor,
            denominator: denominator / divisor,
        }
    }

    /// The part above the line, in lowest terms.
    #[must_use]
    pub fn numerator(self) -> u128 {
        self.numerator
    }

    /// The part below the line, in lowest terms; not 0.
    #[must_use]
    pub fn denominator(self) -> u128 {
        self.denominator
    }

    /// The sum, or `None` if its terms do not fit in 128 bits.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let divisor = gcd(self.denominator, other.denominator);
        let (left, right) = (other.denominator / divisor, self.denominator / divisor);
        let denominator = self.denominator.checked_mul(left)?;
        let numerator = self
            .numerator
            .checked_mul(left)?
            .checked_add(other.numerator.checked_mul(right)?)?;
        Some(Self::new(numerator, denominator))
    }

    /// The product, or `None` if its terms do not fit in 128 bits.
    #[must_use]
    pub fn checked_mul(self, other: Self) -> Option<Self> {
        // Crosswise, so that nothing grows that would be cut again.
        let left = Self::new(self.numerator, other.denominator);
        let right = Self::new(other.numerator, self.denominator);
        Some(Self {
            numerator: left.numerator.checked_mul(right.numerator)?,
            denominator: left.denominator.checked_mul(right.denominator)?,
        })
    }

    /// For display and statistics; everything that decides is in integers.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a figure for people, close is good enough"
    )]
    pub fn to_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

impl fmt::Debug for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_products_are_in_lowest_terms() {
        let third = Fraction::new(2, 6);
        assert_eq!((third.numerator(), third.denominator()), (1, 3));
        let sum = third.checked_add(Fraction::new(1, 6));
        assert_eq!(sum, Some(Fraction::new(1, 2)));
        assert_eq!(
            third.checked_mul(Fraction::new(3, 4)),
            Some(Fraction::new(1, 4))
        );
        assert_eq!(Fraction::new(0, 7), Fraction::ZERO);
        assert_eq!(Fraction::ZERO.checked_mul(third), Some(Fraction::ZERO));
        assert_eq!(Fraction::ZERO.checked_add(third), Some(third));
    }

    #[test]
    fn terms_that_do_not_fit_are_told() {
        let tiny = Fraction::new(1, u128::MAX);
        let other = Fraction::new(1, u128::MAX - 1);
        assert_eq!(tiny.checked_add(other), None);
        assert_eq!(tiny.checked_mul(other), None);
    }
}
