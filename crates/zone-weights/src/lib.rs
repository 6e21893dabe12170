//! Zone-aware load balancing: keep traffic in its zone as far as that does not
//! overload anybody.
//!
//! Traffic between zones costs money and time. Keeping all of it local overloads
//! the zone with few endpoints; spreading it evenly sends two thirds of it away.
//! Envoy's zone-aware routing (which ECS Service Connect uses) keeps as much
//! local as the endpoints there can take, and sends the rest where there is room.
//! [`envoy::decide`] is that rule, bit for bit.
//!
//! # What it does not do
//!
//! It does not check health, discover endpoints or send requests. It reads no
//! clock and draws no random number. It is `no_std` with `alloc`, wants 64-bit
//! atomics, and has no dependency. Ring hash and Maglev have no zone-aware
//! routing in Envoy, and have none here.
//!
//! # Examples
//!
//! What a proxy in `az-a` does, as exact shares:
//!
//! ```
//! use evenkeel_zone_weights::envoy::{Settings, State, decide};
//! use evenkeel_zone_weights::{Health, Locality, Members, Upstream};
//!
//! let [a, b] = ["az-a", "az-b"].map(Locality::zone_only);
//! let mut callers = Members::new();
//! callers.add(&a, Health::Healthy, 1, 3)?;
//! callers.add(&b, Health::Healthy, 1, 1)?;
//! let mut endpoints = Members::new();
//! endpoints.add(&a, Health::Healthy, 1, 4)?;
//! endpoints.add(&b, Health::Healthy, 1, 4)?;
//!
//! // Three quarters of the callers are in az-a, half of the endpoints.
//! let upstream = Upstream::from(endpoints);
//! let decision = decide(&Settings::ENVOY, Some(&a), Some(&callers), &upstream);
//! assert_eq!(decision.state(), State::Residual { local_route: 6666 });
//! let shares = decision.routes().shares(&upstream).expect("few hosts");
//! assert_eq!(shares.zones[&(0, b)].to_string(), "1667/5000");
//! # Ok::<(), evenkeel_zone_weights::InputError>(())
//! ```
//!
//! A proxy that picks: [`Endpoints`] keeps count, a [`Picker`] does not change and
//! is swapped as a whole when weights do. Requests go on meanwhile, and so do the
//! counters.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arc_swap::ArcSwap;
//! use evenkeel_zone_weights::envoy::{Settings, decide};
//! use evenkeel_zone_weights::{Counter, Counters, Endpoints, Health, Locality, Members, Picker};
//!
//! let zones = ["az-a", "az-b", "az-c"].map(Locality::zone_only);
//! let mut callers = Members::new();
//! let mut endpoints = Endpoints::new();
//! let mut ids = Vec::new();
//! for (number, zone) in (1..).zip(&zones) {
//!     callers.add(zone, Health::Healthy, 1, 2)?;
//!     for host in 1..=2 {
//!         let address = format!("10.0.{number}.{host}:80");
//!         ids.push(endpoints.insert(0, zone, Health::Healthy, 1, address)?);
//!     }
//! }
//!
//! // For each called service, once. Its counters outlive each picker.
//! let counters = Arc::new(Counters::new());
//! let mut recalculate = |endpoints: &mut Endpoints<String>| -> Picker<String> {
//!     let upstream = endpoints.upstream();
//!     let decision = decide(&Settings::SERVICE_CONNECT, Some(&zones[0]), Some(&callers), upstream);
//!     counters.count_recalculation(&decision, 1);
//!     endpoints.picker(&decision.routes(), Arc::clone(&counters))
//! };
//! let current = ArcSwap::from_pointee(recalculate(&mut endpoints));
//!
//! // For each request, on any thread.
//! let picker = current.load();
//! let choice = picker.pick(0x9e37_79b9_7f4a_7c15).expect("somebody is healthy");
//! assert_eq!(choice.locality.zone(), "az-a");
//!
//! // For each change: five endpoints are too few for three zones.
//! endpoints.set_health(ids[5], Health::Unhealthy);
//! current.store(Arc::new(recalculate(&mut endpoints)));
//! assert_eq!(counters.get(Counter::ZoneClusterTooSmall), 1);
//! let stats = counters.stats("backend").to_string();
//! assert!(stats.contains("cluster.backend.lb_zone_routing_all_directly: 1\n"));
//! # Ok::<(), evenkeel_zone_weights::InputError>(())
//! ```

#![no_std]

extern crate alloc;

mod counters;
pub mod envoy;
mod error;
mod fraction;
mod locality;
mod members;
mod percent;
mod pick;
mod routes;

pub use counters::{Counter, Counters};
pub use error::InputError;
pub use fraction::Fraction;
pub use locality::Locality;
pub use members::{Health, MAX_PRIORITY, Members, Tally, Upstream};
pub use percent::{Percent, PercentError};
pub use pick::{Choice, EndpointId, Endpoints, Picker, Rotation};
pub use routes::{Hosts, Reason, Route, Routes, Shares};
