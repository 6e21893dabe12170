//! Reading the bytes of a saved state without trusting them.

use crate::words::Stamp;
use crate::{Status, Timestamp};

/// What is left to read.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk()?;
        self.0 = tail;
        Some(*head)
    }

    pub(crate) fn flags(&mut self) -> Option<Flags> {
        let [byte] = self.take()?;
        (byte <= Flags::ALL).then_some(Flags(byte))
    }

    pub(crate) fn status(&mut self) -> Option<Status> {
        let [byte] = self.take()?;
        Status::from_u8(byte)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(crate) fn time(&mut self) -> Option<Stamp> {
        self.u64().map(Timestamp::from_millis).map(Stamp::new)
    }

    /// Any bits, as with [`Fields::f64`].
    pub(crate) fn f32(&mut self) -> Option<f32> {
        self.take().map(f32::from_le_bytes)
    }

    /// Any bits; the caller says which range makes sense, which leaves NaN out.
    pub(crate) fn f64(&mut self) -> Option<f64> {
        self.take().map(f64::from_le_bytes)
    }

    /// Nothing may be left over.
    pub(crate) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Yes-or-no parts of a counting state.
pub(crate) struct Flags(pub(crate) u8);

impl Flags {
    const BELIEVE_NEXT: u8 = 1;
    const ALL: u8 = Self::BELIEVE_NEXT;

    pub(crate) fn new(believe_next: bool) -> Self {
        Self(if believe_next { Self::BELIEVE_NEXT } else { 0 })
    }

    /// The first result is outstanding and will be believed.
    pub(crate) fn believe_next(&self) -> bool {
        self.0 & Self::BELIEVE_NEXT != 0
    }
}
