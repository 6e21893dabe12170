use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::is_unset;
use super::tls::RawTls;
use crate::definition::{ConnectOptions, DefinitionError, TlsCheck};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::definition) struct RawTlsCheck {
    address: String,
    #[serde(
        default,
        with = "crate::duration",
        skip_serializing_if = "Duration::is_zero"
    )]
    timeout: Duration,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    alpn: Vec<Box<str>>,
    #[serde(default, skip_serializing_if = "RawTls::is_default")]
    tls: RawTls,
    #[serde(default, skip_serializing_if = "is_unset")]
    connect: ConnectOptions,
}

impl RawTlsCheck {
    pub(super) fn check(self) -> Result<TlsCheck, DefinitionError> {
        TlsCheck::new(&self.address)?
            .with_timeout(self.timeout)
            .with_connect(self.connect)?
            .with_protocols(self.alpn)?
            .with_tls(self.tls.into())
    }
}

impl From<&TlsCheck> for RawTlsCheck {
    fn from(check: &TlsCheck) -> Self {
        Self {
            address: check.address().to_owned(),
            timeout: check.given_timeout(),
            alpn: check.protocols().to_vec(),
            tls: RawTls::from(check.tls()),
            connect: *check.connect(),
        }
    }
}
