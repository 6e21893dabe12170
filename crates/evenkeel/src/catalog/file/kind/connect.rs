use evenkeel_probe::{ConnectOptions, DefinitionError};
use schemars::JsonSchema;
use serde::Deserialize;

/// How the target is connected to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Connect {
    /// Over which address family.
    pub family: Family,
    /// Address of this machine to connect from; the system chooses when left out.
    #[schemars(example = &"10.0.0.1")]
    pub source: Option<String>,
}

/// Which of a name's addresses are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Family {
    /// All; the first that can be connected to is enough.
    #[default]
    #[serde(rename = "any")]
    Any,
    /// Those of IPv4.
    #[serde(rename = "4")]
    V4,
    /// Those of IPv6.
    #[serde(rename = "6")]
    V6,
    /// Each family is probed, and the worse result counts.
    #[serde(rename = "both")]
    Both,
}

impl From<Family> for evenkeel_probe::Family {
    fn from(family: Family) -> Self {
        match family {
            Family::Any => Self::Any,
            Family::V4 => Self::V4,
            Family::V6 => Self::V6,
            Family::Both => Self::Both,
        }
    }
}

impl Connect {
    /// What the prober is given.
    ///
    /// # Errors
    ///
    /// The source is no address.
    pub(super) fn options(&self) -> Result<ConnectOptions, DefinitionError> {
        let source = self.source.as_deref().map(|source| {
            source.parse().map_err(|_| DefinitionError::Option {
                option: "source",
                reason: format!("\"{source}\" is no IP address"),
            })
        });
        Ok(ConnectOptions {
            family: self.family.into(),
            source: source.transpose()?,
        })
    }
}
