//! Blocking queries.
use std::time::Duration;

/// Margin.
pub const MARGIN: Duration = Duration::from_secs(10);

/// How long a client has to wait.
pub fn deadline(wait: Option<Duration>, margin: Duration) -> Duration {
    let wait = wait
        .unwrap_or(Duration::from_secs(300))
        .min(Duration::from_secs(600));
    wait + wait / 16 + margin
}
