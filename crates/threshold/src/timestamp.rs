use core::time::Duration;

/// A point in time: milliseconds on the caller's clock.
///
/// Any origin does, as long as it stays the same for the life of a state. A
/// caller that persists states uses Unix milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Timestamp(u64);

impl Timestamp {
    /// The origin of the caller's clock.
    pub const ZERO: Self = Self(0);

    /// `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the origin.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// `self` plus `duration`, at most the end of the clock. Fractions of a
    /// millisecond are dropped.
    pub const fn saturating_add(self, duration: Duration) -> Self {
        let millis = duration.as_millis();
        let millis = if millis > u64::MAX as u128 {
            u64::MAX
        } else {
            millis as u64
        };
        Self(self.0.saturating_add(millis))
    }

    /// `self` moved by a signed number of milliseconds, kept within the clock.
    pub const fn saturating_shift(self, millis: i64) -> Self {
        Self(self.0.saturating_add_signed(millis))
    }
}
