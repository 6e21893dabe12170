//! 64-bit values at an alignment of four bytes: a state of 20 bytes and the tag
//! that says whose it is then take 24 bytes and not 32.

use core::fmt;

use crate::Timestamp;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Word([u32; 2]);

impl Word {
    pub(crate) const fn new(value: u64) -> Self {
        Self([value as u32, (value >> 32) as u32])
    }

    #[inline]
    pub(crate) const fn get(self) -> u64 {
        self.0[0] as u64 | (self.0[1] as u64) << 32
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.get())
    }
}
/// A number that is not NaN, so that it can be compared and hashed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Real(Word);

impl Real {
    pub(crate) const ZERO: Self = Self(Word::new(0));
    pub(crate) const ONE: Self = Self(Word::new(0x3ff0_0000_0000_0000));

    /// Adding 0 turns a negative zero into the other, which equals it.
    pub(crate) const fn new(value: f64) -> Self {
        debug_assert!(!value.is_nan());
        Self(Word::new((value + 0.0).to_bits()))
    }

    #[inline]
    pub(crate) const fn get(self) -> f64 {
        f64::from_bits(self.0.get())
    }
}

impl fmt::Debug for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// A point in time.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Stamp(Word);

impl Stamp {
    pub(crate) const ZERO: Self = Self(Word::new(0));

    pub(crate) const fn new(time: Timestamp) -> Self {
        Self(Word::new(time.as_millis()))
    }

    #[inline]
    pub(crate) const fn get(self) -> Timestamp {
        Timestamp::from_millis(self.0.get())
    }

    pub(crate) fn min(self, now: Timestamp) -> Self {
        Self::new(self.get().min(now))
    }

    pub(crate) const fn shifted(self, millis: i64) -> Self {
        Self::new(self.get().saturating_shift(millis))
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
