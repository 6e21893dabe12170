//! 64-bit values at an alignment of four bytes: a state of 20 bytes and the tag
//! that says whose it is then take 24 bytes and not 32.

use core::fmt;

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
