//! What a new configuration changes, and when that comes into force.

use std::collections::BTreeSet;

use super::Settings;

/// The keys that a new configuration changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Those that a running daemon follows.
    pub in_force: Vec<String>,
    /// Those that it reads at its start only.
    pub need_restart: Vec<String>,
}

impl Changes {
    /// What is different in `new`.
    pub fn between(old: &Settings, new: &Settings) -> Self {
        let values = |settings| serde_json::to_value(settings).unwrap_or_default();
        let (before, after) = (values(old), values(new));
        let mut changed: BTreeSet<String> = super::names::keys(super::load::shape())
            .into_iter()
            .filter(|key| {
                let pointer = format!("/{}", key.replace('.', "/"));
                before.pointer(&pointer) != after.pointer(&pointer)
            })
            .collect();
        // All secrets look the same as values.
        let secrets = [
            ("consul.token", &old.consul.token, &new.consul.token),
            (
                "consul.http_auth",
                &old.consul.http_auth,
                &new.consul.http_auth,
            ),
            ("admin.token", &old.admin.token, &new.admin.token),
        ];
        for (key, old, new) in secrets {
            if old != new {
                changed.insert(key.to_owned());
            }
        }
        let (in_force, need_restart) = changed
            .into_iter()
            .partition(|key| key == "override" || key.starts_with("threshold."));
        Self {
            in_force,
            need_restart,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Override, Secret};

    #[test]
    fn a_change_is_named_with_when_it_comes_into_force() {
        let old = Settings::default();
        assert_eq!(Changes::between(&old, &old), Changes::default());
        let mut new = old.clone();
        new.threshold.set("critical_threshold", 3);
        new.overrides.push(Override::default());
        new.catalog = Some(crate::config::CatalogKind::File);
        new.probe.max_concurrent += 1;
        let changes = Changes::between(&old, &new);
        assert_eq!(
            changes.in_force,
            ["override", "threshold.critical_threshold"]
        );
        assert_eq!(changes.need_restart, ["catalog", "probe.max_concurrent"]);
    }

    #[test]
    fn another_secret_is_a_change() {
        let with = |text: &str| {
            let mut settings = Settings::default();
            settings.consul.token = Some(Secret::new(text));
            settings.consul.http_auth = Some(Secret::new(text));
            settings.admin.token = Some(Secret::new(text));
            settings
        };
        let changes = Changes::between(&with("a"), &with("b"));
        assert_eq!(
            changes.need_restart,
            ["admin.token", "consul.http_auth", "consul.token"]
        );
        assert!(changes.in_force.is_empty());
    }
}
