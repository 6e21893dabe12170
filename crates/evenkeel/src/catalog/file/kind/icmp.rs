use std::time::Duration;

use evenkeel_probe::{Definition, DefinitionError, IcmpCheck, IcmpOptions};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Common, Kind};
use crate::config::duration;
use crate::config::text::DurationText;

/// A round of ICMP echoes.
#[derive(Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Icmp {
    /// The name or address.
    #[schemars(example = &"gateway.example")]
    pub target: String,

    /// Echoes of a round; 3 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 20), example = 5)]
    pub echoes: Option<u8>,

    /// From one echo to the next; 200ms when left out.
    #[serde(default, with = "duration::option")]
    #[schemars(with = "Option<DurationText>", example = &"100ms")]
    pub spacing: Option<Duration>,

    /// Bytes of an echo after its header; 56 when left out.
    #[serde(default)]
    #[schemars(range(min = 8, max = 1452), example = 1400)]
    pub payload: Option<u16>,

    /// Per cent of the echoes whose loss is a warning; none when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100), example = 40)]
    pub warning_loss: Option<u8>,

    /// Per cent of the echoes whose loss is critical; 100 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100), example = 80)]
    pub critical_loss: Option<u8>,

    /// An average round trip above it is a warning.
    #[serde(default, with = "duration::option")]
    #[schemars(with = "Option<DurationText>", example = &"50ms")]
    pub warning_rtt: Option<Duration>,

    /// An average round trip above it is critical.
    #[serde(default, with = "duration::option")]
    #[schemars(with = "Option<DurationText>", example = &"200ms")]
    pub critical_rtt: Option<Duration>,
}

impl From<String> for Icmp {
    fn from(target: String) -> Self {
        Self {
            target,
            ..Self::default()
        }
    }
}

impl Kind for Icmp {
    fn key(&self) -> &'static str {
        "icmp"
    }

    fn takes(&self) -> &'static [&'static str] {
        &["connect"]
    }

    fn definition(&self, common: &Common<'_>) -> Result<Definition, DefinitionError> {
        let left_out = IcmpOptions::default();
        let options = IcmpOptions {
            echoes: self.echoes.unwrap_or(left_out.echoes),
            spacing: self.spacing.unwrap_or(left_out.spacing),
            payload: self.payload.unwrap_or(left_out.payload),
            warning_loss: self.warning_loss,
            critical_loss: self.critical_loss.unwrap_or(left_out.critical_loss),
            warning_rtt: self.warning_rtt,
            critical_rtt: self.critical_rtt,
            timeout: common.timeout,
        };
        Ok(IcmpCheck::new(&self.target, options)?
            .with_connect(common.connect()?)?
            .into())
    }
}
