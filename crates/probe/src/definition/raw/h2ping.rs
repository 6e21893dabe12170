use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::is_unset;
use super::tls::RawTls;
use crate::definition::{ConnectOptions, DefinitionError, H2PingCheck};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::definition) struct RawH2Ping {
    address: String,
    #[serde(
        default,
        with = "crate::duration",
        skip_serializing_if = "Duration::is_zero"
    )]
    timeout: Duration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tls: Option<RawTls>,
    #[serde(default, skip_serializing_if = "is_unset")]
    connect: ConnectOptions,
}

impl RawH2Ping {
    pub(super) fn check(self) -> Result<H2PingCheck, DefinitionError> {
        let check = H2PingCheck::new(&self.address)?
            .with_timeout(self.timeout)
            .with_connect(self.connect)?;
        match self.tls {
            Some(tls) => check.with_tls(tls.into()),
            None => Ok(check),
        }
    }
}

impl From<&H2PingCheck> for RawH2Ping {
    fn from(check: &H2PingCheck) -> Self {
        Self {
            address: check.address().to_owned(),
            timeout: check.given_timeout(),
            tls: check.tls().map(RawTls::from),
            connect: *check.connect(),
        }
    }
}
