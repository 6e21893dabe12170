use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::duration;
use crate::config::text::DurationText;

/// When checks are probed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct ScheduleSettings {
    /// Interval of a check that sets none.
    #[serde(with = "duration")]
    #[schemars(with = "DurationText")]
    pub default_interval: Duration,

    /// A shorter interval is raised to this one.
    #[serde(with = "duration")]
    #[schemars(with = "DurationText")]
    pub minimum_interval: Duration,

    /// Of many new checks at once, how many are probed for the first time each
    /// second, unless their steady rate is higher.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub newcomers_per_second: u32,
}

impl Default for ScheduleSettings {
    fn default() -> Self {
        Self {
            // Both as Consul's agent and consul-esm.
            default_interval: Duration::from_secs(30),
            minimum_interval: Duration::from_secs(1),
            newcomers_per_second: 20,
        }
    }
}

/// How statuses are written to Consul.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct WriteSettings {
    /// A changed output without a change of status is written at most this often.
    #[serde(with = "duration")]
    #[schemars(with = "DurationText")]
    pub output_period: Duration,

    /// Least time between two transactions. The first change goes at once.
    #[serde(with = "duration")]
    #[schemars(with = "DurationText")]
    pub batch_gap: Duration,

    /// Most writes in one transaction; Consul takes at most 64.
    #[schemars(range(min = 1, max = 64))]
    pub batch_size: u32,

    /// Most transactions under way at once.
    #[schemars(range(min = 1, max = 64))]
    pub batches_in_flight: u32,
}

impl Default for WriteSettings {
    fn default() -> Self {
        Self {
            output_period: Duration::from_secs(5 * 60),
            batch_gap: Duration::from_millis(100),
            batch_size: 64,
            batches_in_flight: 4,
        }
    }
}

/// The process itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct RunSettings {
    /// After a signal to stop, how long running probes and pending writes may
    /// take to end.
    #[serde(with = "duration")]
    #[schemars(with = "DurationText")]
    pub shutdown_grace: Duration,

    /// How often the state is saved to the state directory, at most 10s.
    #[serde(with = "duration")]
    #[schemars(with = "DurationText")]
    pub snapshot_period: Duration,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            shutdown_grace: Duration::from_secs(10),
            snapshot_period: Duration::from_secs(5),
        }
    }
}
