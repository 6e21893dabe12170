//! The settings for people: what is in effect, and a complete example.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::{Loaded, Origin, Settings};
use crate::document::{Field, Shape};

/// One setting in effect.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Its key, e.g. `consul.address`.
    pub key: String,
    /// Its value, with secrets masked; null where it is not set.
    pub value: Json,
    /// Where it comes from.
    pub origin: Origin,
}

/// Every setting in effect, in the order of the types.
pub fn show(loaded: &Loaded) -> Vec<Shown> {
    let values = serde_json::to_value(&loaded.settings).unwrap_or_default();
    super::names::keys(&Shape::of::<Settings>())
        .into_iter()
        .map(|key| {
            let pointer = format!("/{}", key.replace('.', "/"));
            Shown {
                value: values.pointer(&pointer).cloned().unwrap_or_default(),
                origin: loaded.origin(&key),
                key,
            }
        })
        .collect()
}

/// What [`show`] gives, as TOML with the origins as comments.
pub fn show_as_text(loaded: &Loaded) -> String {
    let mut text = String::new();
    for Shown { key, value, origin } in show(loaded) {
        // Writing into a `String` cannot fail.
        let _ = match toml_value(&value) {
            Some(value) => writeln!(text, "{key} = {value}  # {origin}"),
            None => writeln!(text, "# {key} is not set"),
        };
    }
    text
}

/// What [`show`] gives, as one JSON object.
pub fn show_as_json(loaded: &Loaded) -> Json {
    show(loaded)
        .into_iter()
        .map(|Shown { key, value, origin }| {
            let entry = serde_json::json!({ "value": value, "origin": origin.to_string() });
            (key, entry)
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// A value as TOML writes it in one line; nothing for null, which TOML has not.
fn toml_value(value: &Json) -> Option<String> {
    let value: toml::Value = match value {
        Json::Null => return None,
        other => serde_json::from_value(other.clone()).ok()?,
    };
    Some(value.to_string())
}

/// A configuration file that says all that can be said, as comments: as it
/// stands it is the same as no file.
pub fn example() -> String {
    let mut text = String::from(
        "# Configuration of evenkeel: every setting, with its default.\n\
         #\n\
         # What is commented out is in effect, unless it says that it is an example.\n\
         # Each can also be set as a variable (consul.address is EVENKEEL_CONSUL__ADDRESS)\n\
         # or as a flag (--set consul.address=…). Later ones win: CONSUL_* variables,\n\
         # files, EVENKEEL_* variables, flags.\n",
    );
    if let Shape::Table(fields) = Shape::of::<Settings>() {
        let (tables, plain): (Vec<&Field>, Vec<&Field>) = fields
            .iter()
            .partition(|field| matches!(field.shape, Shape::Table(_)) || is_tables(&field.shape));
        for field in plain {
            setting(&mut text, field, "");
        }
        for field in tables {
            table(&mut text, field);
        }
    }
    text
}

fn is_tables(shape: &Shape) -> bool {
    matches!(shape, Shape::List(inner) if matches!(**inner, Shape::Table(_)))
}

fn table(text: &mut String, field: &Field) {
    text.push('\n');
    comment(text, &field.description);
    let fields = match &field.shape {
        Shape::Table(fields) => {
            let _ = writeln!(text, "[{}]", field.name);
            fields
        }
        Shape::List(inner) => match &**inner {
            Shape::Table(fields) => {
                text.push_str("# For example:\n");
                let _ = writeln!(text, "#[[{}]]", field.name);
                fields
            }
            _ => return,
        },
        _ => return,
    };
    let defaults = field.default.as_ref();
    for inner in fields {
        // A table's own default says what its keys are when all are left out.
        let default = inner
            .default
            .clone()
            .or_else(|| defaults?.get(&inner.name).cloned())
            .filter(|default| !default.is_null());
        let inner = Field {
            default,
            ..inner.clone()
        };
        setting(text, &inner, &field.name);
    }
}

fn setting(text: &mut String, field: &Field, table: &str) {
    text.push('\n');
    comment(text, &field.description);
    let key = &field.name;
    if let Some(value) = field.default.as_ref().and_then(toml_value) {
        let _ = writeln!(text, "#{key} = {value}");
    }
    // An empty list tells nobody how to write a full one.
    let empty = field
        .default
        .as_ref()
        .is_none_or(|default| *default == serde_json::json!([]));
    if empty && let Some(value) = field.example.as_ref().and_then(toml_value) {
        // Of a list of tables the whole is an example already.
        if table != "override" {
            text.push_str("# For example:\n");
        }
        let _ = writeln!(text, "#{key} = {value}");
    }
}

fn comment(text: &mut String, lines: &str) {
    for line in lines.lines() {
        let _ = writeln!(text, "{}", format!("# {line}").trim_end());
    }
}
