use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::time_provider::TimeProvider;
use rustls_pki_types::UnixTime;

/// What the time is, for all that a probe says of certificates: whether they
/// are valid, and how long they will be. Nothing else in this crate reads the
/// time of day.
#[derive(Clone, Default)]
pub struct WallClock(Option<Arc<Reading>>);

type Reading = dyn Fn() -> SystemTime + Send + Sync;

impl WallClock {
    /// The system's clock.
    pub fn system() -> Self {
        Self(None)
    }

    /// A clock that is read by `read`, e.g. one that a test moves.
    pub fn new(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(read)))
    }

    pub(crate) fn now(&self) -> UnixTime {
        match &self.0 {
            None => UnixTime::now(),
            Some(read) => {
                let since = read().duration_since(SystemTime::UNIX_EPOCH);
                UnixTime::since_unix_epoch(since.unwrap_or(Duration::ZERO))
            }
        }
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.0.is_none() { "system" } else { "given" };
        f.debug_tuple("WallClock").field(&kind).finish()
    }
}

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.now())
    }
}
