//! The settings for people: what is in effect, and a complete example.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::{Loaded, Origin};
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
    super::names::keys(super::load::shape())
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
         # Each can also be set as a variable (EVENKEEL_CONSUL__ADDRESS) or as a\n\
         # flag (--set consul.address=…). Later ones win: CONSUL_* variables, files,\n\
         # EVENKEEL_* variables, flags.\n",
    );
    if let Shape::Table(fields) = super::load::shape() {
        let (tables, plain): (Vec<&Field>, Vec<&Field>) = fields
            .iter()
            .partition(|field| matches!(field.shape, Shape::Table(_)) || is_tables(&field.shape));
        for field in plain {
            setting(&mut text, field);
        }
        let thresholds = tables.iter().find_map(|field| match &field.shape {
            Shape::Table(fields) if field.name == "threshold" => Some(fields.as_slice()),
            _ => None,
        });
        for field in tables {
            match &field.shape {
                Shape::Table(fields) => table(&mut text, field, fields),
                _ => overrides(&mut text, field, thresholds.unwrap_or_default()),
            }
        }
    }
    text
}

fn is_tables(shape: &Shape) -> bool {
    matches!(shape, Shape::List(inner) if matches!(**inner, Shape::Table(_)))
}

fn table(text: &mut String, field: &Field, fields: &[Field]) {
    text.push('\n');
    comment(text, &field.description);
    let _ = writeln!(text, "[{}]", field.name);
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
        setting(text, &inner);
    }
}

/// A list of tables, as one example. The keys that it shares with `[threshold]`
/// have been explained there.
fn overrides(text: &mut String, field: &Field, explained: &[Field]) {
    let Shape::List(inner) = &field.shape else {
        return;
    };
    let Shape::Table(fields) = &**inner else {
        return;
    };
    text.push('\n');
    comment(text, &field.description);
    let _ = writeln!(text, "# For example:\n#[[{}]]", field.name);
    let is_shared = |field: &Field| explained.iter().any(|known| known.name == field.name);
    for own in fields.iter().filter(|field| !is_shared(field)) {
        text.push('\n');
        comment(text, &own.description);
        example_of(text, own);
    }
    text.push_str("\n# Any keys of [threshold].\n");
    let plain = |field: &&Field| matches!(field.shape, Shape::Integer(..)) && is_shared(field);
    if let Some(shared) = fields.iter().find(plain) {
        example_of(text, shared);
    }
}

fn example_of(text: &mut String, field: &Field) {
    if let Some(value) = field.example.as_ref().and_then(toml_value) {
        let _ = writeln!(text, "#{} = {value}", field.name);
    }
}

fn setting(text: &mut String, field: &Field) {
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
    if empty && field.example.is_some() {
        text.push_str("# For example:\n");
        example_of(text, field);
    }
}

/// Comments, wrapped anew: in the source they stand at another depth.
fn comment(text: &mut String, description: &str) {
    const WIDTH: usize = 78;
    let mut line = String::from("#");
    for word in description.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    if line.len() > 1 {
        let _ = writeln!(text, "{line}");
    }
}
