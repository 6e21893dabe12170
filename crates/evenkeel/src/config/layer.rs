//! One layer of the configuration: who says it, and what.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use figment::value::{Dict, Map};
use figment::{Metadata, Profile, Provider};

use crate::document::{self, Node, Place, Value};

/// A layer, verified: what is left in it reads into the settings.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub(super) name: LayerName,
    pub(super) root: Node,
}

/// Who says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerName {
    /// Variables of Consul's own tools and of systemd.
    Variables,
    /// A file.
    File(Arc<Path>),
    /// `EVENKEEL_*` variables.
    Environment,
    /// Flags.
    Flags,
}

/// Where a value in effect, or a fault, comes from: `evenkeel.toml:12`,
/// `CONSUL_HTTP_ADDR`, `--consul`, `default`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A line of a file; 0 where the line is not known.
    File(PathBuf, usize),
    /// This variable or flag.
    Named(Arc<str>),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, 0) => path.display().fmt(f),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Named(name) => f.write_str(name),
        }
    }
}

impl LayerName {
    /// Where a place in this layer is.
    pub(super) fn origin(&self, place: &Place) -> Origin {
        match (self, place) {
            (_, Place::Named(name)) => Origin::Named(Arc::clone(name)),
            (Self::File(path), Place::Line(line)) => Origin::File(path.to_path_buf(), *line),
            (Self::File(path), Place::Unknown) => Origin::File(path.to_path_buf(), 0),
            (Self::Variables | Self::Environment, _) => Origin::Named("the environment".into()),
            (Self::Flags, _) => Origin::Named("the command line".into()),
        }
    }
}

/// What is wrong with the configuration, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where it was said.
    pub origin: Origin,
    /// Which key; empty for a whole file or variable.
    pub key: String,
    /// What is wrong and what to do, for people.
    pub text: String,
}

impl Fault {
    pub(super) fn of(layer: &LayerName, fault: &document::Fault) -> Self {
        Self {
            origin: layer.origin(&fault.place),
            key: fault.path.to_string(),
            text: fault.text.clone(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.origin != Origin::Default {
            write!(f, "{}: ", self.origin)?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.text)
    }
}

/// A layer as figment takes it. Its name is its place in the order.
pub(super) struct Numbered<'a>(pub(super) usize, pub(super) &'a Layer);

impl Provider for Numbered<'_> {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.0.to_string())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let value = figment::value::Value::serialize(self.1.root.to_json())?;
        let dict = value.into_dict().unwrap_or_default();
        Ok(Map::from([(Profile::Default, dict)]))
    }
}

/// Text from a variable or a flag as the value that `shape` wants. Figment's own
/// guess would turn a secret made of digits into a number.
pub(super) fn from_text(
    text: &str,
    shape: &document::Shape,
    place: &Place,
) -> Result<Node, String> {
    use document::Shape;

    let here = |value| Node::new(place.clone(), value);
    Ok(match shape {
        Shape::Text(_) | Shape::Texts | Shape::Choice(_) => here(Value::Text(text.to_owned())),
        Shape::Integer(..) => match text.trim().parse() {
            Ok(number) => here(Value::Integer(number)),
            Err(_) => return Err("expected a whole number".to_owned()),
        },
        Shape::Number(_) => match text.trim().parse() {
            Ok(number) => here(Value::Float(number)),
            Err(_) => return Err("expected a number".to_owned()),
        },
        Shape::Boolean => match boolean(text) {
            Some(boolean) => here(Value::Boolean(boolean)),
            None => return Err("expected true or false".to_owned()),
        },
        // An address of IPv6 begins with a bracket, too.
        Shape::List(inner) if !(text.trim().starts_with('[') && text.trim().ends_with(']')) => {
            if matches!(**inner, Shape::Table(_)) {
                return Err("expected a list of tables such as [{ … }], in TOML or JSON".to_owned());
            }
            let parts = text
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty());
            let nodes: Result<Vec<Node>, String> =
                parts.map(|part| from_text(part, inner, place)).collect();
            here(Value::List(nodes?))
        }
        Shape::Map(inner) if !text.trim_start().starts_with('{') => {
            let mut table = here(Value::Table(Vec::new()));
            for part in text
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty())
            {
                let (key, value) = part
                    .split_once('=')
                    .ok_or_else(|| "expected pairs such as a=b,c=d".to_owned())?;
                table.put(&[key.trim()], from_text(value.trim(), inner, place)?);
            }
            table
        }
        Shape::Map(_) | Shape::Table(_) => {
            let node = document::read_value(text, place)?;
            // Told here: a key of the table that is set later would replace it.
            if !matches!(node.value, Value::Table(_) | Value::Null) {
                let found = node.value.kind();
                return Err(format!("expected a table ({{ … }}), found {found}"));
            }
            node
        }
        Shape::List(_) | Shape::TextOr(_) | Shape::Any => document::read_value(text, place)?,
    })
}

/// As Go's `strconv.ParseBool`, by which Consul's tools read their variables.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text.trim() {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}
