use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use evenkeel_consul::Error;
use evenkeel_consul::Meta;
use evenkeel_consul::blocking::{News, Rules, Step, Watch};
use evenkeel_consul::request::Query;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A long poll on the runtime's clock. The rules are the consul crate's.
#[derive(Debug)]
pub(crate) struct Poll {
    watch: Watch,
    origin: Instant,
}

/// What to do next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Send this.
    Ask(Query),
    /// Nothing before this time.
    Rest(Instant),
}

impl Poll {
    /// A poll whose long queries wait for `wait`.
    pub(crate) fn new(wait: Duration) -> Self {
        let rules = Rules {
            wait,
            ..Rules::default()
        };
        // The jitter has to differ between processes; nothing secret depends on
        // it.
        let seed = RandomState::new().build_hasher().finish();
        Self {
            watch: Watch::new(rules, seed),
            origin: Instant::now(),
        }
    }

    pub(crate) fn next(&mut self, base: &Query) -> Next {
        match self.watch.step(self.now()) {
            Step::Ask(ask) => Next::Ask(ask.applied_to(base)),
            Step::Wait(until) => Next::Rest(self.instant(until)),
        }
    }

    /// Rests as long as is due, less if `well` says that Consul works again, and
    /// gives the next query.
    pub(crate) async fn query(&mut self, base: &Query, well: &Notify) -> Query {
        loop {
            match self.next(base) {
                Next::Ask(query) => return query,
                Next::Rest(until) => tokio::select! {
                    () = tokio::time::sleep_until(until) => {}
                    () = well.notified() => self.watch.recovered(),
                },
            }
        }
    }

    pub(crate) fn answered(&mut self, meta: &Meta) -> News {
        self.watch.answered(self.now(), meta)
    }

    pub(crate) fn failed(&mut self, error: &Error) {
        let retry = self.watch.failed(self.now(), error);
        if retry.grew {
            tracing::debug!(%error, after = ?retry.after, "a list of Consul cannot be read");
        }
    }

    /// Takes in a read of the same list beside the poll.
    pub(crate) fn also_read(&mut self, meta: &Meta) {
        self.watch.also_read(self.now(), meta);
    }

    pub(crate) fn recovered(&mut self) {
        self.watch.recovered();
    }

    /// When the list may be read again.
    pub(crate) fn rested_at(&self) -> Instant {
        self.instant(self.watch.rested_at())
    }

    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn instant(&self, millis: u64) -> Instant {
        // Gaps are a minute at most, so this is near the present.
        self.origin + Duration::from_millis(millis)
    }
}
