use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::duration;
use crate::config::text::{ByteSize, DurationText};

/// The file that lists checks, instead of Consul.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct FileSettings {
    /// The file: TOML, or JSON when its name ends in ".json".
    #[schemars(example = &"/etc/evenkeel/checks.toml")]
    pub path: Option<PathBuf>,

    /// How often the file is looked at for changes.
    #[serde(with = "duration")]
    #[schemars(with = "DurationText")]
    pub poll_interval: Duration,

    /// A larger file is refused unread.
    pub max_size: ByteSize,
}

impl Default for FileSettings {
    fn default() -> Self {
        Self {
            path: None,
            poll_interval: Duration::from_secs(1),
            max_size: ByteSize(16 << 20),
        }
    }
}
