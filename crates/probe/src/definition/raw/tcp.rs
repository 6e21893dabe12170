use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::tls::RawTls;
use super::{is_no, is_unset};
use crate::definition::{ConnectOptions, DefinitionError, TcpCheck};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::definition) struct RawTcp {
    address: String,
    #[serde(
        default,
        with = "crate::duration",
        skip_serializing_if = "Duration::is_zero"
    )]
    timeout: Duration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tls: Option<RawTls>,
    #[serde(default, skip_serializing_if = "is_no")]
    abortive_close: bool,
    #[serde(default, skip_serializing_if = "is_unset")]
    connect: ConnectOptions,
}

impl RawTcp {
    pub(super) fn check(self) -> Result<TcpCheck, DefinitionError> {
        let check = TcpCheck::new(&self.address)?
            .with_connect(self.connect)?
            .with_timeout(self.timeout)
            .with_abortive_close(self.abortive_close);
        match self.tls {
            Some(tls) => check.with_tls(tls.into()),
            None => Ok(check),
        }
    }
}

impl From<&TcpCheck> for RawTcp {
    fn from(check: &TcpCheck) -> Self {
        Self {
            address: check.address().to_owned(),
            timeout: check.given_timeout(),
            tls: check.tls().map(RawTls::from),
            abortive_close: check.abortive_close(),
            connect: *check.connect(),
        }
    }
}
