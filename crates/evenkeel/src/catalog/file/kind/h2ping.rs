use evenkeel_probe::{Definition, DefinitionError, H2PingCheck};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Common, Kind};

/// An HTTP/2 ping.
#[derive(Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct H2Ping {
    /// The host and port.
    #[schemars(example = &"edge.example:8443")]
    pub address: String,
}

impl From<String> for H2Ping {
    fn from(address: String) -> Self {
        Self { address }
    }
}

impl Kind for H2Ping {
    fn key(&self) -> &'static str {
        "h2ping"
    }

    fn takes(&self) -> &'static [&'static str] {
        &["tls", "connect"]
    }

    fn definition(&self, common: &Common<'_>) -> Result<Definition, DefinitionError> {
        common.complete(self.plain()?)
    }

    fn faults(&self, common: &Common<'_>) -> Vec<(String, String)> {
        common.faults(self.key(), self.plain())
    }
}

impl H2Ping {
    /// Without what the check has in common with others.
    fn plain(&self) -> Result<H2PingCheck, DefinitionError> {
        H2PingCheck::new(&self.address)
    }
}
