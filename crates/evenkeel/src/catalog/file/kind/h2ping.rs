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
        let check = H2PingCheck::new(&self.address)?
            .with_timeout(common.timeout)
            .with_connect(common.connect()?)?;
        Ok(match common.tls {
            None => check.into(),
            Some(tls) => check.with_tls(tls.into())?.into(),
        })
    }
}
