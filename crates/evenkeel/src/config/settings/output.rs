use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::text::ByteSize;

/// The log, on standard error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct LogSettings {
    /// "text" for people, or "json": then every line is one JSON object, errors
    /// at the start and panics included.
    pub format: LogFormat,

    /// What is logged: "error", "warn", "info", "debug", "trace" or "off"; also
    /// by part of the program, as in "info,evenkeel::catalog=debug".
    pub level: String,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            format: LogFormat::Text,
            level: "info".to_owned(),
        }
    }
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// The event log: one JSON line for each transition and each fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct EventSettings {
    /// The file. When it is left out, "events.jsonl" in the state directory;
    /// without one of either, no event log is kept.
    #[schemars(example = &"/var/log/evenkeel/events.jsonl")]
    pub path: Option<PathBuf>,

    /// A file that would become larger is set aside as PATH.1, PATH.2, …
    pub rotate_size: ByteSize,

    /// How many files set aside are kept.
    #[schemars(range(max = 1000))]
    pub keep: u32,
}

impl Default for EventSettings {
    fn default() -> Self {
        Self {
            path: None,
            rotate_size: ByteSize(16 << 20),
            keep: 4,
        }
    }
}
