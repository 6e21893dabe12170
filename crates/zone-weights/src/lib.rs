//! Zone-aware load balancing: keep traffic in its zone as far as that does not
//! overload anybody.
//!
//! Traffic between zones costs money and time. Keeping all of it local overloads
//! the zone with few endpoints; spreading it evenly sends two thirds of it away.
//! Envoy's zone-aware routing (which ECS Service Connect uses) keeps as much
//! local as the endpoints there can take, and sends the rest where there is room.
//! [`envoy::decide`] is that rule, bit for bit.
//!
//! Where its assumptions do not hold (few endpoints, several calling services,
//! demand that is not proportional to the number of callers), the rules of
//! [`plan`] do better. A [`Picker`] carries out what a rule says.
//!
//! All that decides is in whole numbers. Shares are exact fractions ([`Fraction`])
//! or parts of a billion ([`plan::PARTS`]).
//!
//! # What it does not do
//!
//! It does not check health, discover endpoints or send requests. It reads no
//! clock and draws no random number. It is `no_std` with `alloc`, wants 64-bit
//! atomics, and has no dependency. Ring hash and Maglev have no zone-aware
//! routing in Envoy, and have none here. Least request takes the same zones as
//! round robin; which host within the zone has the fewest requests only the proxy
//! knows, and here hosts are picked by weight. No slow start, no subsets of hosts,
//! no `weighted_priority_health`. How often to recalculate is the caller's affair;
//! damp the health first.
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
//!
//! Three endpoints, which are too few for Envoy, and two calling services with
//! opposite skews: together they need no traffic between zones at all.
//!
//! ```
//! use std::sync::Arc;
//!
//! use evenkeel_zone_weights::envoy::Settings;
//! use evenkeel_zone_weights::plan::{
//!     Bounded, Demand, EnvoyRule, Joint, Limits, PARTS, Problem, Publisher, Rule, Tolerance,
//! };
//! use evenkeel_zone_weights::{Endpoints, Health, Locality};
//!
//! let zones = ["az-a", "az-b", "az-c"].map(Locality::zone_only);
//! let mut endpoints = Endpoints::new();
//! let mut services = [Demand::new(), Demand::new()];
//! for (number, zone) in (1..).zip(&zones) {
//!     endpoints.insert(0, zone, Health::Healthy, 1, format!("10.0.{number}.1:80"))?;
//!     services[0].add(zone, 10 * number)?; // requests per second
//!     services[1].add(zone, 40 - 10 * number)?;
//! }
//! let upstream = endpoints.upstream().clone();
//! let problem = Problem::new(&upstream, &services);
//!
//! // Of a billion requests, how many leave their zone?
//! let exact = Tolerance::per_10_000(0);
//! let leaving = |rule: &dyn Rule| rule.plan(&problem).map(|plan| plan.report(&problem).cross_zone);
//! assert!(leaving(&EnvoyRule(Settings::ENVOY))? > 666_000_000);
//! assert_eq!(leaving(&Bounded { tolerance: exact })?, 166_666_667);
//! let joint = Joint { tolerance: exact };
//! assert_eq!(leaving(&joint)?, 0);
//!
//! // Publish what differs enough from before, in steps that are not too large.
//! let mut publisher = Publisher::new(Limits::default());
//! let plan = publisher.offer(&joint.plan(&problem)?, &problem).expect("the first");
//! let split = plan.split(1, &zones[2]).expect("a service");
//! assert_eq!((split.parts()[0].zone.zone(), split.parts()[0].parts), ("az-c", PARTS));
//!
//! // For a proxy of the second service in az-c.
//! let routes = plan.routes(1, &zones[2]).expect("a service");
//! let picker = endpoints.picker(&routes, Arc::default());
//! assert_eq!(picker.pick(42).expect("a host").endpoint, "10.0.3.1:80");
//! # Ok::<(), Box<dyn std::error::Error>>(())
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
pub mod plan;
mod routes;

pub use counters::{Counter, Counters};
pub use error::InputError;
pub use fraction::Fraction;
pub use locality::Locality;
pub use members::{Health, MAX_PRIORITY, Members, Tally, Upstream};
pub use percent::{Percent, PercentError};
pub use pick::{Choice, EndpointId, Endpoints, Picker, Rotation};
pub use routes::{Hosts, Reason, Route, Routes, Shares};
