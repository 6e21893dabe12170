use std::time::Duration;

use http::StatusCode;

use super::{Backoff, Retry};
use crate::answer::Meta;
use crate::error::Error;
use crate::request::Query;

/// The numbers of a [`Watch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// How long the server is asked to wait: 45 s, below the 60 s after which
    /// load balancers drop what is silent (P017).
    pub wait: Duration,
    /// The gap between the end of a read and the next, at least: 1 s.
    pub least_gap: Duration,
    /// The gap, as a multiple of the time that a read takes the server: 20, so
    /// that one reader takes at most 5 % of it.
    pub load_factor: u32,
    /// The gap, at most: 60 s.
    pub longest_gap: Duration,
    /// The gap where the server gives no index, or answers at once without
    /// anything new: 10 s.
    pub unindexed_gap: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(45),
            least_gap: Duration::from_secs(1),
            load_factor: 20,
            longest_gap: Duration::from_secs(60),
            unindexed_gap: Duration::from_secs(10),
        }
    }
}

/// One thing that is watched by blocking queries.
///
/// Alternate [`step`](Self::step) with [`answered`](Self::answered) or
/// [`failed`](Self::failed).
#[derive(Debug, Clone)]
pub struct Watch {
    rules: Rules,
    /// What to wait for next; `None` to ask at once.
    index: Option<u64>,
    /// The index of the last answer, to tell whether the next has news.
    seen: Option<u64>,
    asked: Option<Ask>,
    /// No query before this.
    not_before: u64,
    /// No read before this, not even after an error has passed.
    rested: u64,
    backoff: Backoff,
    /// The failures in a row are of queries that wait; plain reads work.
    only_waiting_fails: bool,
    /// Answers in a row that came at once and had no news.
    hasty: u32,
    /// What a plain read took the server, for each byte of its answer.
    nanos_per_byte: f64,
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Send this query.
    Ask(Ask),
    /// Nothing until this time.
    Wait(u64),
}

/// A query to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The index to wait for; `None` for an answer at once.
    pub index: Option<u64>,
    /// How long the server is to wait; `None` for an answer at once.
    pub wait: Option<Duration>,
}

impl Ask {
    /// `query` with this index and wait.
    #[must_use]
    pub fn applied_to(&self, query: &Query) -> Query {
        Query {
            index: self.index,
            wait: self.wait,
            ..query.clone()
        }
    }
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct News {
    /// Whether it may differ from the one before. False only for the end of a
    /// wait.
    pub changed: bool,
    /// Whether the index went backwards: the server was restored, or is
    /// another one.
    pub reset: bool,
}

impl Watch {
    /// A watch that asks at once. The jitter of its back-off follows from
    /// `seed`.
    pub fn new(rules: Rules, seed: u64) -> Self {
        Self {
            rules,
            index: None,
            seen: None,
            asked: None,
            not_before: 0,
            rested: 0,
            backoff: Backoff::new(seed),
            only_waiting_fails: false,
            hasty: 0,
            nanos_per_byte: 0.0,
        }
    }

    /// What to do at `now`.
    pub fn step(&mut self, now: u64) -> Step {
        if now < self.not_before {
            return Step::Wait(self.not_before);
        }
        let wait = self.index.map(|_| self.rules.wait);
        let ask = Ask {
            index: self.index,
            wait,
        };
        self.asked = Some(ask);
        Step::Ask(ask)
    }

    /// The answer to the last [`Step::Ask`] has come in, whole.
    pub fn answered(&mut self, now: u64, meta: &Meta) -> News {
        let asked = self.asked.take().and_then(|ask| ask.index);
        let mut news = self.take_index(meta.index);
        // What a query without an index was asked for, a wake or the end of an
        // error, need not move the index of this list.
        news.changed |= asked.is_none();
        if asked.is_some() || !self.only_waiting_fails {
            self.backoff.succeeded();
            self.only_waiting_fails = false;
        }

        let hasty = asked.is_some() && !news.changed && meta.took < self.rules.wait / 4;
        self.hasty = if hasty {
            self.hasty.saturating_add(1)
        } else {
            0
        };
        let mut gap = self.gap_after(asked.is_some(), meta);
        if self.hasty > 0 {
            let doubled = self.rules.least_gap * 2_u32.pow(self.hasty.min(10));
            gap = gap.max(doubled.min(self.rules.unindexed_gap));
        }
        if meta.index.unwrap_or(0) == 0 {
            gap = gap.max(self.rules.unindexed_gap);
        }
        self.rest(now, gap);
        news
    }

    /// The last [`Step::Ask`] has failed. What was known stays known.
    pub fn failed(&mut self, now: u64, error: &Error) -> Retry {
        let waited = self.asked.take().is_some_and(|ask| ask.index.is_some());
        self.only_waiting_fails = waited;
        if error.status() != Some(StatusCode::TOO_MANY_REQUESTS) {
            // The server may not be the same afterwards; one that was set up
            // anew has lower indexes, and would let us wait for nothing.
            self.index = None;
        }
        let retry = self.backoff.failed(error.retry_after());
        self.not_before = now.saturating_add(millis(retry.after)).max(self.rested);
        retry
    }

    /// Something else tells that there is news: read as soon as the gap
    /// allows, without waiting.
    pub fn wake(&mut self) {
        self.index = None;
    }

    /// Something else tells that the server works again: do not sit out the
    /// back-off.
    pub fn recovered(&mut self) {
        if self.backoff.streak() > 0 {
            self.backoff.succeeded();
            self.index = None;
            self.not_before = self.rested;
        }
    }

    /// A read of the same list, made besides the watch, has been answered: the
    /// gap counts from there.
    pub fn also_read(&mut self, now: u64, meta: &Meta) {
        let gap = self.gap_after(false, meta);
        self.rested = self.rested.max(now.saturating_add(millis(gap)));
        self.not_before = self.not_before.max(self.rested);
    }

    /// The earliest time for another read of the same list.
    pub fn rested_at(&self) -> u64 {
        self.rested
    }

    /// How many queries have failed in a row.
    pub fn failures(&self) -> u32 {
        self.backoff.streak()
    }

    fn take_index(&mut self, index: Option<u64>) -> News {
        // Without an index, nobody knows whether there is news.
        let Some(index) = index.filter(|index| *index > 0) else {
            // A query that waits for 0 would not wait at all.
            self.index = Some(1);
            self.seen = None;
            return News {
                changed: true,
                reset: false,
            };
        };
        let reset = self.seen.is_some_and(|seen| index < seen);
        let changed = self.seen != Some(index);
        self.seen = Some(index);
        self.index = (!reset).then_some(index);
        News { changed, reset }
    }

    /// The gap after a read, by what it took the server.
    fn gap_after(&mut self, waited: bool, meta: &Meta) -> Duration {
        let cost = if waited {
            // Most of the time was waiting: what a plain read of that length
            // took, or the transfer if that was longer.
            let scaled = Duration::from_nanos((self.nanos_per_byte * meta.bytes as f64) as u64);
            scaled.max(meta.transfer)
        } else {
            if meta.bytes > 0 {
                self.nanos_per_byte = meta.took.as_nanos() as f64 / meta.bytes as f64;
            }
            meta.took
        };
        (cost * self.rules.load_factor).clamp(
            self.rules.least_gap,
            self.rules.longest_gap.max(self.rules.least_gap),
        )
    }

    fn rest(&mut self, now: u64, gap: Duration) {
        self.rested = now.saturating_add(millis(gap));
        self.not_before = self.rested;
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::deadline;
    use crate::error::{ErrorKind, Excerpt};
    use proptest::prelude::*;

    fn ask(watch: &mut Watch, now: u64) -> Ask {
        match watch.step(now) {
            Step::Ask(ask) => ask,
            Step::Wait(until) => panic!("at {now}: nothing before {until}"),
        }
    }

    /// Waits as told, then asks.
    fn ask_when_due(watch: &mut Watch, now: &mut u64) -> Ask {
        if let Step::Wait(until) = watch.step(*now) {
            *now = until;
        }
        ask(watch, *now)
    }

    fn index(index: u64) -> Meta {
        Meta {
            index: Some(index),
            ..Meta::default()
        }
    }

    fn status(code: u16) -> Error {
        let kind = ErrorKind::Status {
            code: StatusCode::from_u16(code).unwrap(),
            text: Excerpt::default(),
            retry_after: (code == 429).then(|| Duration::from_secs(7)),
        };
        Error::new("GET /v1/health/state/any", kind)
    }

    #[test]
    fn every_waiting_query_has_a_wait() {
        // P017, P158
        let mut watch = Watch::new(Rules::default(), 0);
        let mut now = 0;
        ask(&mut watch, now);
        watch.answered(now, &index(5));
        let asked = ask_when_due(&mut watch, &mut now);
        assert_eq!(asked.wait, Some(Duration::from_secs(45)));
        // Before a load balancer gives up after 60 s of silence.
        assert!(deadline(asked.wait) < Duration::from_secs(60));
    }

    #[test]
    fn an_index_that_goes_backwards_is_forgotten() {
        // P159: index 100, then 50
        let mut watch = Watch::new(Rules::default(), 0);
        let mut now = 0;
        ask(&mut watch, now);
        watch.answered(now, &index(100));
        assert_eq!(ask_when_due(&mut watch, &mut now).index, Some(100));
        assert_eq!(
            watch.answered(now, &index(50)),
            News {
                changed: true,
                reset: true
            }
        );
        assert_eq!(ask_when_due(&mut watch, &mut now).index, None);
        watch.answered(now, &index(50));
        assert_eq!(ask_when_due(&mut watch, &mut now).index, Some(50));
    }

    #[test]
    fn an_index_of_zero_or_none_is_no_busy_loop() {
        // P159: a stub that always answers index 0
        for meta in [index(0), Meta::default()] {
            let mut watch = Watch::new(Rules::default(), 0);
            let mut now = 0;
            for round in 0..100_u64 {
                let asked = ask_when_due(&mut watch, &mut now);
                assert_ne!(asked.index, Some(0));
                assert!(watch.answered(now, &meta).changed);
                assert_eq!(now, round * 10_000);
            }
        }
    }

    #[test]
    fn answers_at_once_without_news_slow_down() {
        // P159: the same index with data at once 1,000 times
        let mut watch = Watch::new(Rules::default(), 0);
        let mut now = 0;
        let mut times = Vec::new();
        for _ in 0..1_000 {
            ask_when_due(&mut watch, &mut now);
            times.push(now);
            watch.answered(now, &index(7));
        }
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 1_000));
        assert_eq!(times[999] - times[998], 10_000);
        // News makes it quick again.
        ask_when_due(&mut watch, &mut now);
        assert!(watch.answered(now, &index(8)).changed);
        assert_eq!(watch.step(now), Step::Wait(now + 1_000));
    }

    #[test]
    fn the_end_of_a_wait_is_no_news_and_no_haste() {
        let mut watch = Watch::new(Rules::default(), 0);
        let mut now = 0;
        ask(&mut watch, now);
        watch.answered(now, &index(7));
        ask_when_due(&mut watch, &mut now);
        now += 46_000;
        let waited = Meta {
            took: Duration::from_secs(46),
            ..index(7)
        };
        assert!(!watch.answered(now, &waited).changed);
        assert_eq!(watch.step(now), Step::Wait(now + 1_000));
    }

    #[test]
    fn the_gap_is_twenty_times_what_a_read_takes() {
        let mut watch = Watch::new(Rules::default(), 0);
        ask(&mut watch, 0);
        // 20,000 checks: 12 MB in 0.3 s
        let took = Duration::from_millis(300);
        watch.answered(
            300,
            &Meta {
                took,
                bytes: 12_000_000,
                ..index(7)
            },
        );
        assert_eq!(watch.step(300), Step::Wait(6_300));
        // A long poll that waited 30 s: what counts is what the list takes.
        ask(&mut watch, 6_300);
        let waited = Meta {
            took: Duration::from_secs(30),
            bytes: 6_000_000,
            ..index(8)
        };
        watch.answered(36_300, &waited);
        assert_eq!(watch.step(36_300), Step::Wait(39_300));
    }

    #[test]
    fn a_wake_reads_at_once_but_not_before_the_gap_is_over() {
        let mut watch = Watch::new(Rules::default(), 0);
        ask(&mut watch, 0);
        watch.answered(0, &index(7));
        watch.wake();
        watch.wake();
        assert_eq!(watch.step(10), Step::Wait(1_000));
        assert_eq!(ask(&mut watch, 1_000).index, None);
        // A node that gets the external mark does not move the checks' index.
        assert!(watch.answered(1_000, &index(7)).changed);
        assert_eq!(ask(&mut watch, 2_000).index, Some(7));
    }

    #[test]
    fn errors_back_off_and_the_next_read_waits_for_nothing() {
        // P162: 20 × 500
        let mut watch = Watch::new(Rules::default(), 3);
        let mut now = 0;
        ask(&mut watch, now);
        watch.answered(now, &index(7));
        let mut delays = Vec::new();
        for _ in 0..20 {
            ask_when_due(&mut watch, &mut now);
            let retry = watch.failed(now, &status(500));
            delays.push(retry.after.as_secs_f64());
        }
        assert!(delays[0] >= 1.0 && delays[0] <= 1.5, "{delays:?}");
        assert!(delays[19] >= 40.0 && delays[19] <= 60.0, "{delays:?}");
        assert_eq!(ask_when_due(&mut watch, &mut now).index, None);
        watch.answered(now, &index(7));
        assert_eq!(watch.failures(), 0);
    }

    #[test]
    fn long_polls_that_always_fail_leave_plain_reads_at_the_pace_of_the_back_off() {
        // P162: "i/o deadline reached" after 7 s, for long polls only
        let mut watch = Watch::new(Rules::default(), 3);
        let mut now = 0;
        let mut reads = Vec::new();
        while now < 3_600_000 {
            match ask_when_due(&mut watch, &mut now).index {
                None => {
                    reads.push(now);
                    watch.answered(now, &index(7));
                }
                Some(_) => {
                    now += 7_000;
                    watch.failed(now, &status(500));
                }
            }
        }
        let gaps: Vec<u64> = reads.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps[0] < 10_000, "{gaps:?}");
        assert!(gaps.iter().all(|gap| *gap <= 69_000), "{gaps:?}");
        assert!(reads.len() < 80, "{}", reads.len());
    }

    #[test]
    fn a_rate_limit_is_obeyed_and_forgets_nothing() {
        // P161: 429 with Retry-After
        let mut watch = Watch::new(Rules::default(), 3);
        let mut now = 0;
        ask(&mut watch, now);
        watch.answered(now, &index(7));
        ask_when_due(&mut watch, &mut now);
        assert!(watch.failed(now, &status(429)).after >= Duration::from_secs(7));
        assert_eq!(ask_when_due(&mut watch, &mut now).index, Some(7));
    }

    #[test]
    fn a_recovered_server_is_asked_at_once() {
        let mut watch = Watch::new(Rules::default(), 3);
        let mut now = 0;
        for _ in 0..10 {
            ask_when_due(&mut watch, &mut now);
            watch.failed(now, &status(500));
        }
        watch.recovered();
        assert_eq!(ask(&mut watch, now).index, None);
    }

    #[test]
    fn recovery_is_no_way_around_the_gap() {
        let mut watch = Watch::new(Rules::default(), 3);
        ask(&mut watch, 0);
        watch.answered(0, &index(7));
        watch.recovered();
        assert_eq!(watch.step(10), Step::Wait(1_000));
        watch.also_read(500, &index(7));
        assert_eq!(watch.rested_at(), 1_500);
        assert_eq!(watch.step(1_000), Step::Wait(1_500));
    }

    proptest! {
        #[test]
        fn whatever_is_answered_there_is_at_most_one_read_a_second(
            answers in prop::collection::vec((0_u64..5, 0..4_u8, 0_u64..50_000), 1..200),
            seed: u64,
        ) {
            let mut watch = Watch::new(Rules::default(), seed);
            let mut now = 0;
            let mut last_end = None;
            for (value, kind, took) in answers {
                let asked = ask_when_due(&mut watch, &mut now);
                prop_assert_ne!(asked.index, Some(0));
                if let Some(end) = last_end {
                    prop_assert!(now >= end + 1_000);
                }
                now += took;
                last_end = Some(now);
                let meta = Meta { took: Duration::from_millis(took), ..index(value) };
                match kind {
                    0 => { watch.failed(now, &status(500)); }
                    1 => { watch.answered(now, &Meta { index: None, ..meta }); }
                    _ => { watch.answered(now, &meta); }
                }
                // Never deaf for longer than the longest back-off or gap.
                if let Step::Wait(until) = watch.step(now) {
                    prop_assert!(until <= now + 60_000);
                }
            }
        }
    }
}
