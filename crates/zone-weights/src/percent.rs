use core::fmt;

/// A whole percentage from 0 to 100, as Envoy uses it.
///
/// Envoy's `Percent` is a floating-point number, which it turns into a whole
/// one for routing and for the panic threshold by `int(100 · (value / 100))`
/// (`ProtobufPercentHelper::convertPercent`, source/common/protobuf/utility.cc).
/// That cuts off the fraction, and it hits some whole values too: 29, 57 and 58
/// become 28, 56 and 57. [`Percent::from_config`] does the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u8);

impl Percent {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// Everything.
    pub const HUNDRED: Self = Self(100);

    /// What Envoy makes of a percentage in its configuration.
    ///
    /// # Errors
    /// The value is not a number from 0 to 100; Envoy refuses it as well.
    pub fn from_config(value: f64) -> Result<Self, PercentError> {
        if !(0.0..=100.0).contains(&value) {
            return Err(PercentError);
        }
        // Both steps round as Envoy's do: IEEE 754 doubles on both sides.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 100, and cutting off is the rule"
        )]
        Ok(Self((100.0 * (value / 100.0)) as u8))
    }

    /// A value that is whole already, as in Envoy's runtime; what is above 100
    /// is 100.
    #[must_use]
    pub const fn capped(value: u64) -> Self {
        if value >= 100 {
            Self(100)
        } else {
            Self(value as u8)
        }
    }

    /// 0 to 100.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}

/// A percentage that is not a number from 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PercentError;

impl fmt::Display for PercentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a percentage must be a number from 0 to 100")
    }
}

impl core::error::Error for PercentError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_cut_and_three_whole_values_lose_one() {
        let lost: alloc::vec::Vec<u8> = (0..=100)
            .filter(|whole| Percent::from_config(f64::from(*whole)).unwrap().get() != *whole)
            .collect();
        assert_eq!(lost, [29, 57, 58]);
        for (value, cut) in [(99.9, 99), (0.6, 0), (1.99, 1), (29.0, 28), (100.0, 100)] {
            assert_eq!(Percent::from_config(value).unwrap().get(), cut);
        }
    }

    #[test]
    fn what_is_no_percentage_is_refused() {
        for value in [-0.1, 100.1, f64::NAN, f64::INFINITY, -f64::INFINITY] {
            assert_eq!(Percent::from_config(value), Err(PercentError));
        }
        assert_eq!(Percent::capped(u64::MAX), Percent::HUNDRED);
        assert_eq!(Percent::capped(7).get(), 7);
    }
}
