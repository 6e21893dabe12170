//! The configuration: its types, its layers and its faults.
//!
//! `settings` says what can be told and what the defaults are; everything else
//! here is derived from those types.

pub mod duration;
mod settings;
pub mod text;

pub use settings::{
    AdminSettings, CatalogKind, ConsulSettings, EventSettings, FileSettings, FirstResultName,
    LogFormat, LogSettings, Override, ProbeSettings, RunSettings, ScheduleSettings, Settings,
    StrategyName, ThresholdSettings, WriteSettings, default_sockets,
};
pub use text::{ByteSize, FileMode, Listen, Network, Pattern, Secret};

pub use crate::environment::Environment;
