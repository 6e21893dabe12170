use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::tls::RawTls;
use super::udp::{text, written};
use super::{is_no, is_unset};
use crate::definition::{ConnectOptions, DefinitionError, Expected, TcpCheck, TcpStep};

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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dialogue: Vec<RawStep>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    send: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expect: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expect_regex: Option<String>,
}

impl RawStep {
    fn step(self) -> Result<TcpStep, DefinitionError> {
        Ok(TcpStep {
            send: self.send.into_bytes().into(),
            expected: Expected::of(self.expect.as_deref(), self.expect_regex.as_deref())?,
        })
    }
}

impl From<&TcpStep> for RawStep {
    fn from(step: &TcpStep) -> Self {
        let (expect, expect_regex) = written(step.expected.as_ref());
        Self {
            send: text(&step.send),
            expect,
            expect_regex,
        }
    }
}

impl RawTcp {
    pub(super) fn check(self) -> Result<TcpCheck, DefinitionError> {
        let steps = self.dialogue.into_iter().map(RawStep::step);
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        let check = TcpCheck::new(&self.address)?
            .with_connect(self.connect)?
            .with_timeout(self.timeout)
            .with_abortive_close(self.abortive_close)
            .with_dialogue(steps);
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
            dialogue: check.dialogue().iter().map(RawStep::from).collect(),
        }
    }
}
