use async_trait::async_trait;
use tokio::time::Instant;

use crate::Report;

/// A way of testing something, for those who bring their own.
///
/// ```
/// use async_trait::async_trait;
/// use evenkeel_probe::{Cause, Probe, Report};
/// use evenkeel_threshold::Status;
/// use tokio::time::Instant;
///
/// /// Passing while a directory has fewer than `most` entries.
/// struct Spool {
///     path: std::path::PathBuf,
///     most: usize,
/// }
///
/// #[async_trait]
/// impl Probe for Spool {
///     async fn probe(&self, deadline: Instant) -> Report {
///         let path = self.path.clone();
///         let counting = tokio::task::spawn_blocking(move || std::fs::read_dir(path).map(Iterator::count));
///         match tokio::time::timeout_at(deadline, counting).await {
///             Ok(Ok(Ok(count))) if count < self.most => {
///                 Report::observed(Status::Passing, format!("{count} files wait"))
///             }
///             Ok(Ok(Ok(count))) => Report::observed(Status::Critical, format!("{count} files wait")),
///             // Nothing is known of the spool: that must not count against it.
///             _ => Report::unprobed(Cause::System, "cannot read the directory"),
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let probe = Spool { path: std::env::temp_dir(), most: usize::MAX };
/// let deadline = Instant::now() + std::time::Duration::from_secs(10);
/// assert_eq!(probe.probe(deadline).await.status(), Some(Status::Passing));
/// # }
/// ```
#[async_trait]
pub trait Probe: Send + Sync {
    /// Runs once and ends by `deadline`. What the target does wrong is an
    /// observation; what prevents the probe itself is
    /// [`Outcome::Unprobed`](crate::Outcome::Unprobed).
    async fn probe(&self, deadline: Instant) -> Report;
}
