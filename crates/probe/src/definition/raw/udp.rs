use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::is_unset;
use crate::definition::{ConnectOptions, DefinitionError, Expected, Silence, UdpCheck};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawUdp {
    address: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    send: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expect: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expect_regex: Option<String>,
    #[serde(default)]
    silence: Silence,
    #[serde(
        default,
        with = "crate::duration",
        skip_serializing_if = "Duration::is_zero"
    )]
    timeout: Duration,
    #[serde(default, skip_serializing_if = "is_unset")]
    connect: ConnectOptions,
}

impl RawUdp {
    pub(super) fn check(self) -> Result<UdpCheck, DefinitionError> {
        let expected = Expected::of(self.expect.as_deref(), self.expect_regex.as_deref())?;
        Ok(UdpCheck::new(&self.address)?
            .with_connect(self.connect)?
            .with_payload(self.send.into_bytes())?
            .with_expected(expected)
            .with_silence(self.silence)
            .with_timeout(self.timeout))
    }
}

/// Bytes that are no UTF-8 lose what is not: they cannot have come from this
/// form.
impl From<&UdpCheck> for RawUdp {
    fn from(check: &UdpCheck) -> Self {
        let (expect, expect_regex) = written(check.expected());
        Self {
            address: check.address().to_owned(),
            send: text(check.payload()),
            expect,
            expect_regex,
            silence: check.silence(),
            timeout: check.given_timeout(),
            connect: *check.connect(),
        }
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The two ways of writing it, of which one is taken.
pub(super) fn written(expected: Option<&Expected>) -> (Option<String>, Option<String>) {
    match expected {
        None => (None, None),
        Some(Expected::Bytes(bytes)) => (Some(text(bytes)), None),
        Some(Expected::Match(pattern)) => (None, Some(pattern.as_str().to_owned())),
    }
}
