//! The settings: what the daemon can be told, each with its meaning and its
//! default. The doc comments are the user's documentation too: `config
//! example` and `config schema` are made from them.

mod admin;
mod consul;
mod file;
mod output;
mod probe;
mod run;
mod threshold;
mod xds;
mod zones;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use admin::{AdminSettings, default_sockets};
pub use consul::ConsulSettings;
pub use file::FileSettings;
pub use output::{EventSettings, LogFormat, LogSettings};
pub use probe::{CommandChecks, IcmpSockets, ProbeSettings};
pub use run::{RunSettings, ScheduleSettings, WriteSettings};
pub use threshold::{Override, ThresholdSettings};
pub use xds::XdsSettings;
pub use zones::ZoneSettings;

/// Everything the daemon can be told.
///
/// Made by [`super::load`] from all layers and checked as a whole there. The
/// default is what runs when nothing is set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// Where checks come from: "consul" or "file". When it is left out, it is
    /// the one of the two that is configured (any key of consul, or file.path);
    /// when both are, the one in the later layer.
    #[schemars(example = &"consul")]
    pub catalog: Option<CatalogKind>,

    /// Directory for what must survive a restart: pending counts, and since
    /// when a check is critical. When it is left out, $STATE_DIRECTORY, which
    /// systemd sets; without either, nothing survives.
    #[schemars(example = &"/var/lib/evenkeel")]
    pub state_dir: Option<PathBuf>,

    /// The Consul whose external nodes are watched.
    pub consul: ConsulSettings,

    /// The file that lists checks, instead of Consul.
    pub file: FileSettings,

    /// How many results it takes to change a status, for every check that says
    /// nothing else. The default is no damping: each result is reported.
    pub threshold: ThresholdSettings,

    /// Thresholds for the checks that match, before whatever the catalog says of
    /// them. The first entry that matches and sets a key counts for that key.
    #[serde(rename = "override")]
    pub overrides: Vec<Override>,

    /// How targets are probed, and which may be.
    pub probe: ProbeSettings,

    /// When checks are probed.
    pub schedule: ScheduleSettings,

    /// How statuses are written to Consul.
    pub write: WriteSettings,

    /// How traffic is split between zones.
    pub zones: ZoneSettings,

    /// Endpoints and weights for proxies: over xDS, or in files.
    pub xds: XdsSettings,

    /// The server for status, metrics, liveness and readiness.
    pub admin: AdminSettings,

    /// The log, on standard error.
    pub log: LogSettings,

    /// The event log: one JSON line for each transition and each fault.
    pub events: EventSettings,

    /// The process itself.
    pub run: RunSettings,
}

/// Where checks come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum CatalogKind {
    /// The external nodes in Consul's catalog.
    Consul,
    /// A file.
    File,
}

impl CatalogKind {
    /// The word in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Consul => "consul",
            Self::File => "file",
        }
    }
}
