//! Checks of the external nodes in Consul's catalog.
//!
//! What Consul says comes in three lists, for a health entry has neither its
//! service's nor its node's metadata, and a change of either does not wake the
//! one who waits for health entries:
//!
//! * `health/state/any`: the checks and their statuses, by long poll;
//! * `catalog/nodes`: the nodes and their metadata, by long poll; a change has
//!   the checks read again;
//! * `catalog/services`: the names of the services, by long poll; it wakes on
//!   metadata of services, whose instances are then read again in turn
//!   (`catalog/service/NAME`).
//!
//! Lists are taken element by element as they arrive; of each check only what is
//! needed to probe it and to write it back is kept.

mod checks;
mod definition;
mod metadata;
mod missing;
mod nodes;
mod poll;
mod services;
mod start;

pub(crate) use poll::Poll;
pub use start::{ConsulCatalog, start};
