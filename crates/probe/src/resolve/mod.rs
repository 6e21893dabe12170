mod hold;
mod system;

use std::net::IpAddr;

use async_trait::async_trait;
use thiserror::Error;

use crate::definition::Family;

pub use self::hold::HoldingResolver;
pub use self::system::SystemResolver;

/// Turns names into addresses. Asked at each probe (P119), never for
/// `localhost` or a literal address.
///
/// The future may be dropped at any await, when the probe's time is up.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// All addresses of `name`, which is ASCII and lower case. They are tried
    /// in this order, except that the families take turns.
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError>;

    /// The addresses of `name` of one family. A resolver that can ask for them
    /// alone does: by default all are asked for, and a name server that fails
    /// for this family alone looks as if there were none.
    async fn resolve_family(
        &self,
        name: &str,
        family: Family,
    ) -> Result<Vec<IpAddr>, ResolveError> {
        let mut found = self.resolve(name).await?;
        found.retain(|ip| family.takes(*ip));
        Ok(found)
    }
}

/// Why there are no addresses.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The name does not exist, or has no address: that is a fact about the
    /// target, and critical.
    #[error("no such host")]
    NotFound,
    /// It could not be found out: `SERVFAIL`, `REFUSED`, no answer, no name
    /// server. That is no fact about the target: the probe is unprobed (P118).
    #[error("{0}")]
    Failed(String),
}
