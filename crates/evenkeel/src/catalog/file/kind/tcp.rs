use evenkeel_probe::{Definition, DefinitionError, TcpCheck};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Common, Kind};

/// A TCP connection.
#[derive(Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Tcp {
    /// The host and port.
    #[schemars(example = &"db.example:5432")]
    pub address: String,
}

impl From<String> for Tcp {
    fn from(address: String) -> Self {
        Self { address }
    }
}

impl Kind for Tcp {
    fn key(&self) -> &'static str {
        "tcp"
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
            Err(error) => vec![named("tcp", error)],
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

impl Tcp {
    /// Without what the check has in common with others.
    fn plain(&self) -> Result<TcpCheck, DefinitionError> {
        TcpCheck::new(&self.address)
    }
}
