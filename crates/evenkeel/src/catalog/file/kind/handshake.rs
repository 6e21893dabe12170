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
        let check = self
            .plain()?
            .with_timeout(common.timeout)
            .with_connect(common.connect()?)?;
        Ok(match common.tls {
            None => check.into(),
            Some(tls) => check.with_tls(tls.into())?.into(),
        })
    }

    fn faults(&self, common: &Common<'_>) -> Vec<(String, String)> {
        let named = |key: &str, error: DefinitionError| (key.to_owned(), error.to_string());
        match self.plain() {
            Err(error) => vec![named("handshake", error)],
            Ok(check) => {
                let connect = common.connect();
                let connected = connect.and_then(|options| check.clone().with_connect(options));
                let tls = common.tls.and_then(|tls| check.with_tls(tls.into()).err());
                [("connect", connected.err()), ("tls", tls)]
                    .into_iter()
                    .filter_map(|(key, error)| Some(named(key, error?)))
                    .collect()
            }
        }
    }
}

impl Handshake {
    /// Without what the check has in common with others.
    fn plain(&self) -> Result<TlsCheck, DefinitionError> {
        TlsCheck::new(&self.address)?.with_protocols(self.alpn.iter().map(String::as_str))
    }
}
