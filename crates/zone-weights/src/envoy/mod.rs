//! Envoy's zone-aware routing, bit for bit.
//!
//! The rules are those of Envoy 1.40.0
//! (source/extensions/load_balancing_policies/common/load_balancer_impl.cc), its
//! cutting of fractions and its surprises included:
//!
//! * With callers in one zone only it is off without a counter
//!   ([`Gate::SourceFewerThanTwoZones`]).
//! * The zone is chosen by the shares of *healthy* hosts, for requests to
//!   degraded ones too. If the zone has none of those, the request fails though
//!   others would be there.
//! * With `force_local_zone` of 0 an unhealthy local zone fails every request.
//! * More than half of the callers unhealthy turns it off; a caller zone without
//!   a healthy caller counts as share 0, so its proxies keep all requests local.
//! * Weights of endpoints do not matter for the shares of zones, unless
//!   [`LocalityBasis::HealthyHostsWeight`] says so.

mod decide;
mod load;
mod settings;

pub use decide::{Decision, Gate, GateCheck, State, Zone, decide, gates, recalculation_counters};
pub use load::PriorityLoad;
pub(crate) use load::loads;
pub use settings::{LocalityBasis, MinClusterSize, Runtime, Settings};
