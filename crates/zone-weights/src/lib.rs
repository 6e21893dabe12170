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
//! # Example
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

#![no_std]

extern crate alloc;

mod counters;
pub mod envoy;
mod error;
mod fraction;
mod locality;
mod members;
mod percent;
mod routes;

pub use counters::{Counter, Counters};
pub use error::InputError;
pub use fraction::Fraction;
pub use locality::Locality;
pub use members::{Health, MAX_PRIORITY, Members, Tally, Upstream};
pub use percent::{Percent, PercentError};
pub use routes::{Hosts, Reason, Route, Routes, Shares};
