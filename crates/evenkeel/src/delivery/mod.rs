//! What zones make of endpoints, handed to proxies: over xDS, or as files.
//!
//! ```text
//!  a proxy asks for clusters ──► followed services and pairs ──► assignments ──► every proxy
//!  or the file lists them                                                   └──► files
//! ```
//!
//! A service is followed as long as a proxy that is connected asks for it. Until
//! the catalog has said something of it nothing is sent, so that a proxy keeps
//! what it has while the daemon finds its bearings after a restart.

mod assignment;
mod certificates;
mod draw;
mod files;
mod refusals;
mod report;
mod task;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use draw::draw_proxies;
pub use report::{NackReport, SubscriberReport, XdsReport, report};
pub use task::{Delivery, StartError};

/// What proxies are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Mode {
    /// Endpoints with their zone and health; Envoy calculates.
    #[default]
    Envoy,
    /// The weight of each zone, for the callers in each zone.
    Weights,
}
