//! What the strategies report, against recorded traces, published formulas,
//! reports of users and slow models. `Pnnn` names the user report that a test
//! came from.

mod advice;
mod combined;
mod cusum;
mod damped;
mod duration;
mod ewma;
mod flap;
mod generators;
mod heartbeat;
mod immediate;
mod mean_probes;
mod models;
mod outlook;
mod parameters;
mod penalty;
mod persistence;
mod phi;
mod presets;
mod properties;
mod sizes;
mod spec;
mod support;
mod timing;
mod traces;
mod universal;
mod user_reports;
mod window;
