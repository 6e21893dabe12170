use evenkeel_threshold::Timestamp;

/// When each slot wants to be woken: a binary heap that knows where each slot
/// is in it, so that a changed time moves the one entry and leaves no stale one
/// behind.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: Vec<Entry>,
    /// Position in `heap` by slot; `ABSENT` for none.
    positions: Vec<u32>,
}

/// Ordered by time, then by slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Timestamp,
    slot: u32,
}

const ABSENT: u32 = u32::MAX;

impl Agenda {
    /// The earliest entry.
    pub(crate) fn first(&self) -> Option<(Timestamp, u32)> {
        self.heap.first().map(|entry| (entry.at, entry.slot))
    }

    /// Sets when `slot` wants to be woken; `None` for never.
    pub(crate) fn set(&mut self, slot: u32, at: Option<Timestamp>) {
        let position = self.positions.get(slot as usize).copied();
        match (position.filter(|&position| position != ABSENT), at) {
            (None, None) => {}
            (None, Some(at)) => self.insert(Entry { at, slot }),
            (Some(position), None) => self.remove(position as usize),
            (Some(position), Some(at)) => {
                let position = position as usize;
                if self.heap[position].at != at {
                    self.heap[position].at = at;
                    let position = self.sift_up(position);
                    self.sift_down(position);
                }
            }
        }
    }

    fn insert(&mut self, entry: Entry) {
        let slot = entry.slot as usize;
        if slot >= self.positions.len() {
            self.positions.resize(slot + 1, ABSENT);
        }
        self.heap.push(entry);
        self.positions[slot] = (self.heap.len() - 1) as u32;
        self.sift_up(self.heap.len() - 1);
    }

    fn remove(&mut self, position: usize) {
        let gone = self.heap.swap_remove(position);
        self.positions[gone.slot as usize] = ABSENT;
        if position < self.heap.len() {
            self.positions[self.heap[position].slot as usize] = position as u32;
            let position = self.sift_up(position);
            self.sift_down(position);
        }
    }

    fn sift_up(&mut self, mut position: usize) -> usize {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.heap[parent] <= self.heap[position] {
                break;
            }
            self.swap(parent, position);
            position = parent;
        }
        position
    }

    fn sift_down(&mut self, mut position: usize) {
        loop {
            let children = 2 * position + 1..(2 * position + 3).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.heap[child]) else {
                return;
            };
            if self.heap[position] <= self.heap[least] {
                return;
            }
            self.swap(least, position);
            position = least;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.positions[self.heap[a].slot as usize] = a as u32;
        self.positions[self.heap[b].slot as usize] = b as u32;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn first_is_the_least_of_a_plain_map(
            steps in prop::collection::vec((0u32..12, prop::option::of(0u64..50)), 0..200)
        ) {
            let mut agenda = Agenda::default();
            let mut model = BTreeMap::new();
            for (slot, at) in steps {
                let at = at.map(Timestamp::from_millis);
                agenda.set(slot, at);
                match at {
                    Some(at) => model.insert(slot, at),
                    None => model.remove(&slot),
                };
                let least = model.iter().map(|(&slot, &at)| (at, slot)).min();
                prop_assert_eq!(agenda.first(), least);
                prop_assert_eq!(agenda.heap.len(), model.len());
            }
        }
    }
}
