use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use evenkeel_threshold::{Status, Timestamp};

use crate::slot::Entry;
use crate::{CheckId, Settings, WriteReason};

/// Which checks wait to be written, what is on its way, and when the next batch
/// may go.
#[derive(Debug)]
pub(crate) struct Outbox<W> {
    /// Slots with a pending write, in the order in which they came. An entry may
    /// have become pointless meanwhile.
    queue: VecDeque<u32>,
    flights: BTreeMap<u64, Flight<W>>,
    /// Batches on their way: number, and how many of its writes are unanswered.
    batches: Vec<(u64, usize)>,
    last_batch: Option<Timestamp>,
    next_number: u64,
}

/// A write on its way.
#[derive(Debug)]
pub(crate) struct Flight<W> {
    pub(crate) slot: u32,
    pub(crate) batch: u64,
    pub(crate) sent_at: Timestamp,
    pub(crate) status: Status,
    pub(crate) reason: WriteReason,
    /// Kept for the next try.
    pub(crate) output: Arc<str>,
    pub(crate) output_hash: u64,
    pub(crate) attempts: u32,
    /// What the catalog said meanwhile; judged when the outcome is known.
    pub(crate) heard: Option<Entry<W>>,
}

impl<W> Outbox<W> {
    pub(crate) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            flights: BTreeMap::new(),
            batches: Vec::new(),
            last_batch: None,
            next_number: 0,
        }
    }

    pub(crate) fn enqueue(&mut self, slot: u32) {
        self.queue.push_back(slot);
    }

    pub(crate) fn dequeue(&mut self) -> Option<u32> {
        self.queue.pop_front()
    }

    /// Whether a batch may go now, apart from Consul being writable.
    pub(crate) fn may_send(&self, settings: &Settings, now: Timestamp, hurry: bool) -> bool {
        !self.queue.is_empty()
            && self.batches.len() < settings.batches_in_flight.max(1)
            && (hurry
                || self.queue.len() >= settings.batch_size.max(1)
                || self.gap_ends(settings).is_none_or(|end| now >= end))
    }

    /// When a batch that waits only for the gap may go.
    pub(crate) fn next_batch_at(&self, settings: &Settings) -> Option<Timestamp> {
        if self.queue.is_empty() || self.batches.len() >= settings.batches_in_flight.max(1) {
            return None;
        }
        Some(self.gap_ends(settings).unwrap_or(Timestamp::ZERO))
    }

    fn gap_ends(&self, settings: &Settings) -> Option<Timestamp> {
        self.last_batch
            .map(|last| last.saturating_add(settings.batch_gap))
    }

    /// A number for a batch or a write.
    pub(crate) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    pub(crate) fn batch_sent(&mut self, batch: u64, writes: usize, now: Timestamp) {
        self.batches.push((batch, writes));
        self.last_batch = Some(now);
    }

    pub(crate) fn depart(&mut self, number: u64, flight: Flight<W>) {
        self.flights.insert(number, flight);
    }

    pub(crate) fn flight(&self, number: u64) -> Option<&Flight<W>> {
        self.flights.get(&number)
    }

    pub(crate) fn flight_mut(&mut self, number: u64) -> Option<&mut Flight<W>> {
        self.flights.get_mut(&number)
    }

    /// Takes a write back whose outcome is known.
    pub(crate) fn arrive(&mut self, number: u64) -> Option<Flight<W>> {
        let flight = self.flights.remove(&number)?;
        if let Some(position) = self.batches.iter().position(|&(b, _)| b == flight.batch) {
            let (_, unanswered) = &mut self.batches[position];
            *unanswered = unanswered.saturating_sub(1);
            if *unanswered == 0 {
                self.batches.swap_remove(position);
            }
        }
        Some(flight)
    }

    /// The write that has been on its way for the longest time, and since when.
    pub(crate) fn oldest(&self) -> Option<(u64, Timestamp)> {
        // Numbers go up with time.
        let (&number, flight) = self.flights.first_key_value()?;
        Some((number, flight.sent_at))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }
}

/// Delay before try number `attempts` + 1: doubled each time, and up to a
/// quarter shorter or longer by a hash of the check, so that checks that failed
/// together do not come back together.
pub(crate) fn backoff(settings: &Settings, id: &CheckId, attempts: u32) -> Duration {
    let doublings = attempts.saturating_sub(1).min(16);
    let delay = settings
        .retry_first
        .saturating_mul(1 << doublings)
        .min(settings.retry_most);
    let mut hasher = DefaultHasher::new();
    (id, attempts).hash(&mut hasher);
    let share = (hasher.finish() % 1000) as u32;
    // 0.75 to 1.25.
    (delay.saturating_mul(3) / 4).saturating_add(delay / 2000 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_within_its_bounds_and_differs_between_checks() {
        let settings = Settings::default();
        let ids: Vec<_> = (0..50)
            .map(|n| CheckId::new("", "", "n", "s", &n.to_string()))
            .collect();
        for attempts in 1..40 {
            let plain =
                Duration::from_millis(250 << (attempts - 1).min(10)).min(settings.retry_most);
            let mut delays: Vec<_> = ids
                .iter()
                .map(|id| backoff(&settings, id, attempts))
                .collect();
            for &delay in &delays {
                assert!(
                    delay >= plain * 3 / 4 && delay <= plain * 5 / 4,
                    "{delay:?}"
                );
            }
            delays.sort();
            delays.dedup();
            assert!(delays.len() > 40);
        }
    }
}
