//! Statuses over time, in a bounded number of bins.

use evenkeel_threshold::Status;

/// When a timeline would get longer than this, two bins become one.
const MOST_BINS: usize = 1600;

/// Statuses that were seen within a bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen(u8);

impl Seen {
    /// Nothing is known of this time.
    pub const NOTHING: Self = Self(0);

    /// Whether this status was.
    pub const fn has(self, status: Status) -> bool {
        self.0 & (1 << status as u8) != 0
    }

    /// The worst status in it.
    pub fn worst(self) -> Option<Status> {
        Status::ALL
            .into_iter()
            .rev()
            .find(|status| self.has(*status))
    }

    /// Whether it was one status throughout.
    pub const fn is_pure(self) -> bool {
        self.0.is_power_of_two()
    }
}

/// Several series of statuses over the same time, at most 1600 bins long: with
/// every doubling of the time the bins are twice as wide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    start: u64,
    bin: u64,
    series: Vec<Vec<Seen>>,
}

impl Timeline {
    /// From `start`, in Unix milliseconds, on.
    pub fn new(start: u64, series: usize) -> Self {
        Self {
            start,
            bin: 1000,
            series: vec![Vec::new(); series],
        }
    }

    /// The beginning, in Unix milliseconds.
    pub fn start_ms(&self) -> u64 {
        self.start
    }

    /// The width of a bin in milliseconds.
    pub fn bin_ms(&self) -> u64 {
        self.bin
    }

    /// The length in bins.
    pub fn len(&self) -> usize {
        self.series.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bins of a series, which may be fewer than [`Timeline::len`].
    pub fn series(&self, index: usize) -> &[Seen] {
        &self.series[index]
    }

    /// Says that `series` had `status` from `from` to `to`, in Unix milliseconds;
    /// at least in the bin of `from`.
    pub fn mark(&mut self, series: usize, from: u64, to: u64, status: Status) {
        let from = from.saturating_sub(self.start);
        // A bin is left at its end.
        let to = to.saturating_sub(self.start).saturating_sub(1).max(from);
        while to / self.bin >= MOST_BINS as u64 {
            self.coarsen();
        }
        let (first, last) = ((from / self.bin) as usize, (to / self.bin) as usize);
        let bins = &mut self.series[series];
        if bins.len() <= last {
            bins.resize(last + 1, Seen::NOTHING);
        }
        for bin in &mut bins[first..=last] {
            bin.0 |= 1 << status as u8;
        }
    }

    fn coarsen(&mut self) {
        self.bin = self.bin.saturating_mul(2);
        for bins in &mut self.series {
            let half = bins.len().div_ceil(2);
            for index in 0..half {
                let second = bins.get(2 * index + 1).copied().unwrap_or_default();
                bins[index] = Seen(bins[2 * index].0 | second.0);
            }
            bins.truncate(half);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_blip_survives_every_coarsening() {
        let mut timeline = Timeline::new(1_000_000, 1);
        timeline.mark(0, 1_000_000, 1_010_000, Status::Passing);
        timeline.mark(0, 1_010_000, 1_010_001, Status::Critical);
        timeline.mark(0, 1_010_001, 4_000_000_000, Status::Passing);
        assert!(timeline.len() <= MOST_BINS);
        let bins = timeline.series(0);
        assert_eq!(bins[0].worst(), Some(Status::Critical));
        assert!(!bins[0].is_pure());
        assert!(bins[1..].iter().all(|bin| bin.is_pure()));
    }

    #[test]
    fn the_last_millisecond_there_is_has_a_place() {
        let mut timeline = Timeline::new(0, 1);
        timeline.mark(0, u64::MAX, u64::MAX, Status::Passing);
        timeline.mark(0, u64::MAX - 1, u64::MAX, Status::Critical);
        let last = timeline.series(0).last();
        assert_eq!(last.and_then(|bin| bin.worst()), Some(Status::Critical));
        assert!(timeline.len() <= MOST_BINS);
    }

    proptest! {
        #[test]
        fn a_bin_has_just_what_was_marked_in_it(
            marks in proptest::collection::vec((0..3_u64, 0_u64..400_000, 0_u64..90_000), 1..20),
        ) {
            let mut timeline = Timeline::new(77, 1);
            let mut from = 77;
            let mut known = Vec::new();
            for (status, gap, length) in marks {
                let status = Status::ALL[status as usize];
                from += gap;
                timeline.mark(0, from, from + length, status);
                known.push((from, from + length.max(1), status));
                from += length;
            }
            for (index, bin) in timeline.series(0).iter().enumerate() {
                let start = 77 + index as u64 * timeline.bin_ms();
                let end = start + timeline.bin_ms();
                for status in Status::ALL {
                    let expected = known.iter().any(|&(from, to, known)| {
                        known == status && from < end && to > start
                    });
                    prop_assert_eq!(bin.has(status), expected);
                }
            }
        }
    }
}
