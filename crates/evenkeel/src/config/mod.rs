//! The configuration: its types, its layers and its faults.
//!
//! `settings` says what can be told and what the defaults are; everything else
//! here is derived from those types.

mod changes;
mod check;
pub mod duration;
mod layer;
mod load;
mod names;
mod settings;
mod show;
#[cfg(test)]
mod tests;
pub mod text;
mod variables;

pub use changes::Changes;
pub use layer::{Fault, LayerName, Origin};
pub use load::{Inputs, Loaded, load};
pub use names::CONSUL_ESM;
pub use show::{Shown, example, show, show_as_json, show_as_text};

pub use settings::{
    AdminSettings, CatalogKind, CommandChecks, ConsulSettings, EventSettings, FileSettings,
    IcmpSockets, LogFormat, LogSettings, Override, ProbeSettings, RunSettings, ScheduleSettings,
    Settings, ThresholdSettings, WriteSettings, XdsSettings, ZoneSettings, default_sockets,
};
pub use text::{ByteSize, FileMode, Listen, Network, Pattern, Secret};

pub use crate::environment::Environment;
