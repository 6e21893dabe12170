use evenkeel_probe::{Definition, DefinitionError, Expected, UdpCheck};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Common, Kind};

/// A datagram, and its reply.
#[derive(Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Udp {
    /// The host and port.
    #[schemars(example = &"ntp.example:123")]
    pub address: String,

    /// What is sent; nothing, in a datagram of its own, when left out.
    #[serde(default)]
    #[schemars(example = &"ping")]
    pub send: Option<String>,

    /// What the reply must have in it; any reply will do when left out.
    #[serde(default)]
    #[schemars(example = &"pong")]
    pub expect: Option<String>,

    /// A regular expression that must match the reply, instead of `expect`.
    #[serde(default)]
    #[schemars(example = &"^pong [0-9]+$")]
    pub expect_regex: Option<String>,

    /// What it means that no reply comes.
    #[serde(default)]
    pub silence: Silence,
}

/// What it means that no reply comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Silence {
    /// The target must answer.
    #[default]
    Critical,
    /// Neither.
    Warning,
    /// The target never answers.
    Passing,
}

impl From<Silence> for evenkeel_probe::Silence {
    fn from(silence: Silence) -> Self {
        match silence {
            Silence::Critical => Self::Critical,
            Silence::Warning => Self::Warning,
            Silence::Passing => Self::Passing,
        }
    }
}

impl From<String> for Udp {
    fn from(address: String) -> Self {
        Self {
            address,
            ..Self::default()
        }
    }
}

impl Kind for Udp {
    fn key(&self) -> &'static str {
        "udp"
    }

    fn takes(&self) -> &'static [&'static str] {
        &["connect"]
    }

    fn definition(&self, common: &Common<'_>) -> Result<Definition, DefinitionError> {
        let expected = Expected::of(self.expect.as_deref(), self.expect_regex.as_deref())?;
        Ok(UdpCheck::new(&self.address)?
            .with_payload(self.send.as_deref().unwrap_or_default().as_bytes())?
            .with_expected(expected)
            .with_silence(self.silence.into())
            .with_timeout(common.timeout)
            .with_connect(common.connect()?)?
            .into())
    }
}
