//! Traffic between zones: which endpoints there are, how well they are, and what
//! share of a caller's requests each zone should get.
//!
//! ```text
//!  Consul's health/service/NAME ─┐
//!  or the file's endpoints ──────┤      ┌─────────┐──► a view per service: xDS, files
//!                                ├─────►│  Zones  │
//!  statuses of our own checks ───┘      └─────────┘──► a view per pair: HTTP, /stats
//! ```
//!
//! Nothing is configured: a service takes part when somebody asks for it, and no
//! more when nobody has for some minutes. The health of an endpoint is the worst
//! of its checks. Of a check that the daemon itself watches, the damped status
//! counts as soon as it is decided; so an endpoint that flaps moves nothing.
//!
//! All of it is in one value, [`Zones`], which one task owns. It reads no clock
//! and performs no I/O.

mod consul;
mod core;
mod draw;
pub mod envoy;
mod instance;
mod list;
mod locality;
mod pair;
mod picture;
mod report;
mod rule;
mod service;
mod task;
#[cfg(test)]
mod tests;

pub use self::core::{Counts, Full, Zones};
pub(crate) use draw::shown;
pub use draw::{draw_comparison, draw_gates, draw_split};
pub use instance::{Endpoint, Instance, Weights};
pub use list::{EndpointList, Iter as EndpointIter};
pub use locality::LocalityKeys;
pub use pair::{PairView, Recalculations};
pub use picture::flow_picture;
pub use report::{
    CallerZone, Gate, PairReport, Percentages, Place, Tally, VERSION, Weight, ZoneName, report,
    stats,
};
pub use rule::{RuleName, RuleSettings};
pub use service::{EndpointView, ServiceView};
pub use task::{FileServices, Released, Source, Unanswered, ZonesHandle, ZonesTask};
