use serde::{Deserialize, Serialize};

use super::nullable;

/// What `/v1/agent/self` says, as far as this crate needs it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AgentSelf {
    /// The agent's own settings.
    #[serde(deserialize_with = "nullable")]
    pub config: AgentConfig,
}

/// The part of an agent's settings that Consul promises to keep.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AgentConfig {
    /// The datacenter.
    #[serde(deserialize_with = "nullable")]
    pub datacenter: String,
    /// The agent's node.
    #[serde(deserialize_with = "nullable")]
    pub node_name: String,
    /// Consul Enterprise: the agent's partition.
    #[serde(deserialize_with = "nullable")]
    pub partition: String,
    /// Whether it is a server.
    #[serde(deserialize_with = "nullable")]
    pub server: bool,
    /// The version, e.g. `1.8.7` or `1.16.0+ent`.
    #[serde(deserialize_with = "nullable")]
    pub version: String,
}

impl AgentConfig {
    /// Major, minor and patch of the version; `None` if it is not of that form.
    ///
    /// ```
    /// let mut config = evenkeel_consul::types::AgentConfig::default();
    /// config.version = "1.16.0-beta1+ent".into();
    /// assert_eq!(config.version_numbers(), Some((1, 16, 0)));
    /// ```
    pub fn version_numbers(&self) -> Option<(u32, u32, u32)> {
        let numbers = self.version.split(['-', '+']).next()?;
        let mut parts = numbers
            .trim_start_matches('v')
            .split('.')
            .map(str::parse::<u32>);
        let triple = (
            parts.next()?.ok()?,
            parts.next()?.ok()?,
            parts.next().unwrap_or(Ok(0)).ok()?,
        );
        parts.next().is_none().then_some(triple)
    }

    /// Whether it is Consul Enterprise.
    pub fn is_enterprise(&self) -> bool {
        self.version.contains("+ent")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_every_form() {
        for (version, numbers) in [
            ("1.8.7", Some((1, 8, 7))),
            ("v1.20", Some((1, 20, 0))),
            ("1.16.0-beta1+ent", Some((1, 16, 0))),
            ("", None),
            ("1", None),
            ("1.2.3.4", None),
            ("one.two", None),
        ] {
            let config = AgentConfig {
                version: version.into(),
                ..AgentConfig::default()
            };
            assert_eq!(config.version_numbers(), numbers, "{version}");
        }
    }
}
