//! Noisy observations in, rare transitions out.
//!
//! A check that is probed every few seconds produces a stream of results.
//! Published as they are, a loose cable becomes an alarm storm. This crate
//! holds the rules (*strategies*) that decide from which results on a status
//! really has changed: Schmitt triggers with separate thresholds for failure
//! and recovery.
//!
//! | strategy | changes the status at | good for | weak against | state |
//! |---|---|---|---|---|
//! | [`Leaky`] | a surplus of contrary results | brown-outs that fail most probes, though never twice in a row | sums up isolated failures if nearly half of the probes fail | 12 bytes |
//! | [`Consecutive`] | so many contrary results in a row | isolated failures; simple to predict | a target that fails every other probe is never reported | 8 bytes |
//! | [`Window`] | so many failures among the latest results | brown-outs | recovers late: failures have to leave the window | 20 bytes |
//! | [`Ewma`] | a mean share of failures | brown-outs; fading memory | what `alpha` means is not plain to see | 20 bytes |
//! | [`Cusum`] | evidence for a failure rate | the least delay for a wanted mean time between false alarms | the two rates have to be known | 20 bytes |
//! | [`Hold`] | so many contrary results, over so much time | short outages and retries in quick succession | a burst of probes within the time is not seen as one outage | 16 bytes |
//! | [`Dwell`] | so many in a row, but not soon after a change; ever later for a repeat offender | targets that come and go | the repaired target waits | 20 bytes |
//! | [`Penalty`] | so many in a row, unless it flapped too often of late | targets that come and go over minutes to hours | holds a repaired target back for up to an hour | 20 bytes |
//! | [`Flap`] | as Nagios and Icinga: a count, and a mark while there are too many changes | targets that come and go below any count | hides the end state if the status is held | 16 bytes |
//! | [`Heartbeat`] | every result, and at silence for too long | targets that report by themselves | damps nothing | 12 bytes |
//! | [`Phi`] | silence that is long for this target | targets that report by themselves, at a pace of their own | adapts: a target that gets slower is given more time | 20 bytes |
//! | [`Consul`] | as the Consul agent does | comparing with an agent | as [`Consecutive`]; a single `warning` is reported at once | 8 bytes |
//! | [`ConsulEsm`] | as consul-esm does, not as it documents | comparing with a consul-esm | a threshold counts up to twice | 16 bytes |
//!
//! [`presets`] has the rules of HAProxy, Kubernetes, Envoy and AWS's load
//! balancers; [`Flap`] those of Nagios and Icinga.
//!
//! [`AnyStrategy`] is any of them, chosen at run time, with a state of 24 bytes.
//! [`Combined`] is two at once, [`Damped`] is one under a flap penalty, and [`advice`]
//! proposes parameters.
//! Your own rule is an implementation of [`Strategy`].
//!
//! # What it does not do
//!
//! It does not probe, schedule, log or read a clock: time is an argument, in
//! milliseconds on the caller's clock. It never sees a probe's output, so a
//! page that changes with each request cannot count as a change. A probe that
//! *could not be run* is not an observation, and is not to be handed in. It is
//! `no_std`, depends on `libm` alone by default, and allocates nothing.
//!
//! # Examples
//!
//! A blip is not a status change, an outage is:
//!
//! ```
//! use evenkeel_threshold::{FirstResult, Leaky, Status, Strategy, Timestamp};
//!
//! let now = Timestamp::from_millis(0);
//! let leaky = Leaky::new(2, 0); // flips at the third failure more than success
//! let mut state = leaky.start(Status::Passing, FirstResult::Counted, now);
//!
//! use Status::{Critical, Passing};
//! for blip in [Critical, Passing, Critical, Passing] {
//!     assert_eq!(leaky.observe(&mut state, blip.into(), now), None);
//! }
//! leaky.observe(&mut state, Critical.into(), now);
//! leaky.observe(&mut state, Critical.into(), now);
//! let flip = leaky.observe(&mut state, Critical.into(), now).expect("the third");
//! assert_eq!((flip.from, flip.to), (Passing, Critical));
//! ```
//!
//! Telling people what is going on, and a result that need not be counted:
//!
//! ```
//! use evenkeel_threshold::{
//!     Agreeing, Consecutive, Counts, FirstResult, Observation, Outlook, Status, Strategy,
//!     Timestamp,
//! };
//!
//! let now = Timestamp::from_millis(0);
//! let rule = Consecutive::new(Counts {
//!     failures_before_critical: 3,
//!     success_before_passing: 2,
//!     ..Counts::default()
//! })?;
//! let mut state = rule.start(Status::Critical, FirstResult::Believed, now);
//! assert_eq!(rule.outlook(&state, now), Outlook::FirstResult);
//! rule.observe(&mut state, Status::Passing.into(), now); // the first one is believed
//! rule.observe(&mut state, Status::Critical.into(), now);
//! assert_eq!(
//!     rule.outlook(&state, now), // "1 of 3 failures"
//!     Outlook::Counting {
//!         toward: Status::Critical,
//!         seen: 1,
//!         needed: 3,
//!         agreeing: Agreeing::Resets,
//!     },
//! );
//!
//! // The target says itself that it is going away.
//! rule.observe(&mut state, Observation::immediate(Status::Critical), now);
//! assert_eq!(rule.reported(&state), Status::Critical);
//! # Ok::<(), evenkeel_threshold::ParameterError>(())
//! ```
//!
//! Many checks, strategies from a configuration, states that outlive the
//! process and a change of parameters:
//!
//! ```
//! use evenkeel_threshold::{
//!     AnyState, AnyStrategy, Leaky, Loaded, Record, Status, Strategy, Timestamp,
//! };
//!
//! struct Check {
//!     strategy: AnyStrategy,
//!     state: AnyState,
//! }
//!
//! let now = Timestamp::from_millis(1_700_000_000_000);
//! let strategy = AnyStrategy::from(Leaky::new(3, 1));
//! let mut check = Check {
//!     strategy,
//!     state: strategy.start(Status::Passing, strategy.default_first_result(), now),
//! };
//! for _ in 0..3 {
//!     check.strategy.observe(&mut check.state, Status::Critical.into(), now);
//! }
//!
//! // Into a file, and back in another process.
//! let (bytes, len) = check.strategy.save(&check.state).write();
//! let record = Record::read(&bytes[..len]).expect("it was just written");
//! let Loaded::Resumed(state) = check.strategy.load(&record, now) else {
//!     panic!("the same strategy wrote it");
//! };
//! assert_eq!(state, check.state);
//!
//! // The operator asks for less patience: the three failures stay counted,
//! // and the next one is enough.
//! check.strategy = Leaky::new(1, 1).into();
//! check.state = check.strategy.adopt(&state, now);
//! assert_eq!(check.strategy.reported(&check.state), Status::Passing);
//! check.strategy.observe(&mut check.state, Status::Critical.into(), now);
//! assert_eq!(check.strategy.reported(&check.state), Status::Critical);
//! ```
//!
//! # Features
//!
//! None is on by default.
//!
//! * `serde`: statuses, times and strategies with their parameters (validated
//!   on the way in) can be serialised. Works without `std` too.
#![no_std]

pub mod advice;
mod any;
mod combined;
mod consecutive;
mod consul;
mod consul_esm;
mod cusum;
mod damped;
mod damping;
pub mod duration;
mod dwell;
mod ewma;
mod flap;
mod heartbeat;
mod hold;
mod key;
mod leaky;
mod observation;
mod outlook;
mod parameters;
mod payload;
mod penalty;
mod phi;
pub mod presets;
mod record;
mod run;
mod spec;
mod status;
mod strategy;
mod timestamp;
mod trial;
mod window;
mod words;

pub use any::{AnyState, AnyStrategy};
pub use combined::{Combined, CombinedState, Pick};
pub use consecutive::Consecutive;
pub use consul::Consul;
pub use consul_esm::{ConsulEsm, ConsulEsmState};
pub use cusum::{Cusum, CusumParameters, CusumState};
pub use damped::{Damped, DampedState};
pub use damping::WhileSuppressed;
pub use dwell::{Dwell, DwellParameters, DwellState};
pub use ewma::{Ewma, EwmaParameters, EwmaState};
pub use flap::{Flap, FlapParameters, FlapState, FlapWeights};
pub use heartbeat::{Heartbeat, HeartbeatParameters, HeartbeatState};
pub use hold::{Hold, HoldState};
pub use key::{Key, Kind};
pub use leaky::{Leaky, LeakyState};
pub use observation::{Observation, Transition};
pub use outlook::{Agreeing, Mark, Outlook};
pub use parameters::{Counts, ParameterError, Relation, Violation};
pub use penalty::{Penalty, PenaltyParameters, PenaltyState};
pub use phi::{Phi, PhiParameters, PhiState};
pub use record::{Loaded, Record, RestartReason, StrategyTag};
pub use run::RunState;
pub use spec::{SpecError, SpecFault};
pub use status::{ParseStatusError, Status};
pub use strategy::{FirstResult, Strategy};
pub use timestamp::Timestamp;
pub use window::{Window, WindowParameters, WindowState};
