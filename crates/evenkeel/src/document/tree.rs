use std::fmt;
use std::sync::Arc;

/// A value in a document, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it stands.
    pub place: Place,
    /// The value.
    pub value: Value,
}

/// A value in a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// JSON's null.
    Null,
    /// TOML's date or time.
    Date,
    /// A list.
    List(Vec<Node>),
    /// A table. Keys are unique; the order is the document's where it is known.
    Table(Vec<(String, Node)>),
}

/// Where a value stands, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Place {
    /// Nowhere in particular.
    #[default]
    Unknown,
    /// In this line of the document, from 1 on.
    Line(usize),
    /// In the environment variable or the flag of this name.
    Named(Arc<str>),
}

/// A fault found in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// Which key, as a path from the root; empty for the document itself.
    pub path: Path,
    /// What is wrong, for people.
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Unknown => {}
            Place::Line(line) => write!(f, "line {line}: ")?,
            Place::Named(name) => write!(f, "{name}: ")?,
        }
        if !self.path.is_root() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.text)
    }
}

/// The way from the root of a document to a value: `override[2].node`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Path(String);

impl Path {
    /// The document itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Whether it is the document itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of `key` in this table.
    pub fn key(&self, key: &str) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let mut path = self.0.clone();
        if !path.is_empty() {
            path.push('.');
        }
        if !key.is_empty() && key.len() <= 64 && key.chars().all(plain) {
            path.push_str(key);
        } else {
            let short: String = key.chars().take(64).collect();
            path.push_str(&format!("{short:?}"));
        }
        Self(path)
    }

    /// The `index`-th value of this list.
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Path {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Node {
    /// A value whose place is `place`.
    pub const fn new(place: Place, value: Value) -> Self {
        Self { place, value }
    }

    /// A table without entries.
    pub const fn table() -> Self {
        Self::new(Place::Unknown, Value::Table(Vec::new()))
    }

    /// The value of `key`, if this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(entries) => entries
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, node)| node),
            _ => None,
        }
    }

    /// The value under a dotted path of plain keys and indexes, as a [`Path`]
    /// has them: `override[2].node`.
    pub fn find(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |node, step| {
            let mut parts = step.split('[');
            let node = node.get(parts.next()?)?;
            parts.try_fold(node, |node, index| match &node.value {
                Value::List(nodes) => nodes.get(index.strip_suffix(']')?.parse::<usize>().ok()?),
                _ => None,
            })
        })
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Takes `key` out of this table.
    pub fn remove(&mut self, key: &str) -> Option<Self> {
        let Value::Table(entries) = &mut self.value else {
            return None;
        };
        let index = entries.iter().position(|(name, _)| name == key)?;
        Some(entries.remove(index).1)
    }

    /// Takes the value under a dotted path of plain keys out of its table.
    pub fn take(&mut self, path: &str) -> Option<Self> {
        match path.split_once('.') {
            None => self.remove(path),
            Some((key, rest)) => self.get_mut(key)?.take(rest),
        }
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        match &mut self.value {
            Value::Table(entries) => entries
                .iter_mut()
                .find(|(name, _)| name == key)
                .map(|(_, node)| node),
            _ => None,
        }
    }

    /// Puts a value under a path of keys, making tables on the way. What stands
    /// in the way is replaced.
    pub fn put(&mut self, path: &[&str], node: Self) {
        let Some((key, rest)) = path.split_first() else {
            *self = node;
            return;
        };
        if !matches!(self.value, Value::Table(_)) {
            self.value = Value::Table(Vec::new());
        }
        if self.get(key).is_none()
            && let Value::Table(entries) = &mut self.value
        {
            let place = node.place.clone();
            entries.push((
                (*key).to_owned(),
                Self::new(place, Value::Table(Vec::new())),
            ));
        }
        if let Some(child) = self.get_mut(key) {
            child.put(rest, node);
        }
    }

    /// The same value for serde, without the places. A date becomes null: no
    /// schema here takes one.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Text(text) => text.as_str().into(),
            Value::Integer(number) => (*number).into(),
            Value::Float(number) => (*number).into(),
            Value::Boolean(boolean) => (*boolean).into(),
            Value::Null | Value::Date => serde_json::Value::Null,
            Value::List(nodes) => nodes.iter().map(Self::to_json).collect(),
            Value::Table(entries) => entries
                .iter()
                .map(|(key, node)| (key.clone(), node.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

impl Value {
    /// What people call a value of this kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Boolean(_) => "true or false",
            Self::Null => "null",
            Self::Date => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}
