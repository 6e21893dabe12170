use evenkeel_probe::{Definition, DefinitionError, Expected, TcpCheck, TcpStep};
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

    /// What is sent once there is a connection.
    #[serde(default)]
    #[schemars(example = &"PING\r\n")]
    pub send: Option<String>,

    /// What the answer must have in it, within its first 16 KiB.
    #[serde(default)]
    #[schemars(example = &"+PONG")]
    pub expect: Option<String>,

    /// A regular expression that must match the answer, instead of `expect`.
    #[serde(default)]
    #[schemars(example = &"^220 ")]
    pub expect_regex: Option<String>,

    /// A longer dialogue, instead of the three keys above: tables of them, one
    /// after the other.
    #[serde(default)]
    pub steps: Vec<Step>,

    /// End the connection by a reset, which leaves nothing behind on either
    /// side, and an error in the logs of some servers.
    #[serde(default)]
    #[schemars(example = true)]
    pub abortive_close: Option<bool>,
}

/// One turn of a dialogue.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Step {
    /// What is sent.
    pub send: Option<String>,
    /// What the answer must have in it.
    pub expect: Option<String>,
    /// A regular expression that must match the answer.
    pub expect_regex: Option<String>,
}

impl Step {
    fn step(&self) -> Result<TcpStep, DefinitionError> {
        Ok(TcpStep {
            send: self.send.as_deref().unwrap_or_default().as_bytes().into(),
            expected: Expected::of(self.expect.as_deref(), self.expect_regex.as_deref())?,
        })
    }

    fn is_any(&self) -> bool {
        *self != Self::default()
    }
}

impl From<String> for Tcp {
    fn from(address: String) -> Self {
        Self {
            address,
            ..Self::default()
        }
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
        common.complete(self.plain()?)
    }

    fn faults(&self, common: &Common<'_>) -> Vec<(String, String)> {
        common.faults(self.key(), self.plain())
    }
}

impl Tcp {
    /// Without what the check has in common with others.
    fn plain(&self) -> Result<TcpCheck, DefinitionError> {
        let first = Step {
            send: self.send.clone(),
            expect: self.expect.clone(),
            expect_regex: self.expect_regex.clone(),
        };
        if first.is_any() && !self.steps.is_empty() {
            return Err(DefinitionError::Option {
                option: "steps",
                reason: "stands beside send or expect; make these its first step".to_owned(),
            });
        }
        let steps = std::iter::once(&first).filter(|step| step.is_any());
        let steps = steps.chain(&self.steps).map(Step::step);
        Ok(TcpCheck::new(&self.address)?
            .with_abortive_close(self.abortive_close.unwrap_or_default())
            .with_dialogue(steps.collect::<Result<Vec<_>, _>>()?))
    }
}
