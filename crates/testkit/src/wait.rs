use std::time::Duration;

/// How long [`eventually`] waits: long enough for a machine under load, since
/// a test that passes never waits that long.
const GENEROUS: Duration = Duration::from_secs(60);

/// How often the condition is looked at.
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until `condition` gives a value.
///
/// # Panics
/// With `what`, if it does not within a minute.
pub fn eventually<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    wait_for(GENEROUS, condition).unwrap_or_else(|| panic!("not within {GENEROUS:?}: {what}"))
}

/// Waits until `condition` gives a value, at most for `limit`.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where a test waits; the time is no part of what is tested"
)]
pub fn wait_for<T>(limit: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(value) = condition() {
            return Some(value);
        }
        if waited >= limit {
            return None;
        }
        std::thread::sleep(PAUSE);
        waited += PAUSE;
    }
}
