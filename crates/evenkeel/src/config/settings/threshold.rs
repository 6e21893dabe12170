use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use evenkeel_threshold::{AnyStrategy, Kind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value as Json, json};

use crate::config::text::Pattern;
use crate::thresholds::Key;

/// How many results it takes to change a status: the strategy, its parameters,
/// and what a first result means, as far as they are set.
///
/// The same keys are taken in `[threshold]`, in an `[[override]]` and in a
/// check of the file catalog. They are those of the strategies themselves, see
/// [`AnyStrategy::keys_of`], with underscores.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThresholdSettings(BTreeMap<Key, String>);

impl ThresholdSettings {
    /// Sets a key, e.g. `critical_threshold`; false if there is none of that name.
    pub fn set(&mut self, key: &str, value: impl fmt::Display) -> bool {
        let key = Key::named(key);
        key.map(|key| self.0.insert(key, value.to_string()))
            .is_some()
    }

    /// The value of a key, if it is set.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(&Key::named(key)?).map(String::as_str)
    }

    /// Nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is set, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &str)> {
        self.0.iter().map(|(key, value)| (*key, value.as_str()))
    }
}

/// Values as a file has them: numbers and switches are not in quotes.
impl Serialize for ThresholdSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, text) in self.iter() {
            map.serialize_entry(key.field(), &json_value(key.kind(), text))?;
        }
        map.end()
    }
}

fn json_value(kind: Kind, text: &str) -> Json {
    match kind {
        Kind::Count | Kind::Number | Kind::Switch => {
            serde_json::from_str(text).unwrap_or_else(|_| text.into())
        }
        _ => text.into(),
    }
}

impl<'de> Deserialize<'de> for ThresholdSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table;

        impl<'de> Visitor<'de> for Table {
            type Value = ThresholdSettings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of thresholds")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut settings = ThresholdSettings::default();
                // Keys of other names are those of the table around, or have been
                // refused when the document was compared with its shape.
                while let Some(name) = map.next_key::<String>()? {
                    let value = map.next_value::<Json>()?;
                    let text = match value {
                        Json::Null => continue,
                        Json::String(text) => text,
                        other => other.to_string(),
                    };
                    settings.set(&name, text);
                }
                Ok(settings)
            }
        }

        deserializer.deserialize_map(Table)
    }
}

impl JsonSchema for ThresholdSettings {
    fn schema_name() -> Cow<'static, str> {
        "ThresholdSettings".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut properties = serde_json::Map::new();
        for key in Key::all() {
            let mut property = match key.kind() {
                Kind::Count => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
                Kind::Number => json!({ "type": "number", "minimum": 0 }),
                Kind::Duration => json!({ "type": "string", "format": "duration-text" }),
                Kind::Switch => json!({ "type": "boolean" }),
                Kind::Word(words) => json!({ "type": "string", "enum": words }),
                _ => json!({}),
            };
            property["description"] = description(key).into();
            property["examples"] = json!([example(key)]);
            properties.insert(key.field().to_owned(), property);
        }
        let mut schema = Schema::default();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties.into());
        schema
    }
}

/// A value to show that is not the default of every strategy.
fn example(key: Key) -> Json {
    match key.field() {
        "strategy" => "leaky".into(),
        "critical_threshold" | "failures_before_critical" => 3.into(),
        "passing_threshold" => 1.into(),
        "failures_before_warning" | "success_before_passing" => 2.into(),
        "first_result" => "counted".into(),
        _ => {
            let mut default = key.users().iter().map(|(_, key)| key.default);
            let text = default.find(|text| !text.is_empty());
            let word = match key.kind() {
                Kind::Word(words) => words.first().copied(),
                _ => None,
            };
            json_value(key.kind(), text.or(word).unwrap_or_default())
        }
    }
}

/// What a key means, with each strategy that has it.
fn description(key: Key) -> String {
    let mut text = String::new();
    // Writing into a `String` cannot fail.
    match key {
        Key::Strategy => {
            text.push_str(
                "The rule between results and statuses. When it is left out, the one whose keys \
                 are set; \"leaky\" without any.",
            );
            for name in AnyStrategy::NAMES {
                let about = AnyStrategy::about(name).unwrap_or_default();
                let _ = write!(text, " \"{name}\": {about}");
            }
        }
        Key::FirstResult => text.push_str(
            "What the first result of a new check means: \"believed\" (reported at once) or \
             \"counted\" (as any other). When it is left out, \"believed\" with consecutive, \
             consul, heartbeat and phi, \"counted\" with the others.",
        ),
        Key::Parameter(_) => {
            let mut rest = key.users();
            while let [(_, told), ..] = rest {
                let same = |other: &evenkeel_threshold::Key| {
                    (other.meaning, other.range, other.default)
                        == (told.meaning, told.range, told.default)
                };
                let alike = rest.iter().take_while(|(_, other)| same(other)).count();
                let (group, others) = rest.split_at(alike);
                rest = others;
                let names: Vec<&str> = group.iter().map(|(name, _)| *name).collect();
                let separator = if text.is_empty() { "" } else { " " };
                let _ = write!(text, "{separator}{}: {}.", names.join(", "), told.meaning);
                if !matches!(told.kind, Kind::Word(_) | Kind::Switch) {
                    let _ = write!(text, " Takes {}.", told.range);
                }
                if !told.default.is_empty() {
                    let _ = write!(text, " {} when left out.", told.default);
                }
            }
        }
    }
    text
}

/// Thresholds for the checks that match all patterns given. At least one pattern
/// is needed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Override {
    /// Pattern on the node's name; "*" stands for any characters, "?" for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"db-*")]
    pub node: Option<Pattern>,

    /// Pattern on the service's name or id. A check of a node alone has neither
    /// and matches no pattern here.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"postgres*")]
    pub service: Option<Pattern>,

    /// Pattern on the check's name or id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"*")]
    pub check: Option<Pattern>,

    /// The thresholds.
    #[serde(flatten)]
    pub thresholds: ThresholdSettings,
}
