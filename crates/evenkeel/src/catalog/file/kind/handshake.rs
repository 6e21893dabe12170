use evenkeel_probe::{Definition, DefinitionError, TlsCheck};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Common, Kind};

/// A TLS handshake.
#[derive(Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Handshake {
    /// The host and port.
    #[schemars(example = &"mail.example:993")]
    pub address: String,
    /// Protocols (ALPN) of which the server has to choose one.
    #[serde(default)]
    #[schemars(example = &["h2", "http/1.1"])]
    pub alpn: Vec<String>,
}

impl From<String> for Handshake {
    fn from(address: String) -> Self {
        Self {
            address,
            ..Self::default()
        }
    }
}

impl Kind for Handshake {
    fn key(&self) -> &'static str {
        "handshake"
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

impl Handshake {
    /// Without what the check has in common with others.
    fn plain(&self) -> Result<TlsCheck, DefinitionError> {
        TlsCheck::new(&self.address)?.with_protocols(self.alpn.iter().map(String::as_str))
    }
}
