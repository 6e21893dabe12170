//! TOML and JSON into one tree.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Fault, Node, Path, Place, Value};

/// The language of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// TOML 1.
    Toml,
    /// JSON.
    Json,
}

impl Format {
    /// By the file's name: JSON for `.json`, else TOML.
    pub fn of(path: &std::path::Path) -> Self {
        match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("json") => Self::Json,
            _ => Self::Toml,
        }
    }
}

/// A list or table deeper than this is refused: nothing here is a third as deep,
/// and each level of JSON is gone through once more.
const MOST_DEPTH: usize = 16;

/// More syntax faults than these are not told of one document.
const MOST_FAULTS: usize = 50;

/// Reads a document whose root is a table.
///
/// # Errors
///
/// All syntax faults that can be told apart (of JSON: the first), with what
/// could be read in spite of them.
pub fn read(text: &[u8], format: Format) -> Result<Node, (Node, Vec<Fault>)> {
    let text = match std::str::from_utf8(text) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(error) => {
            let before = text.get(..error.valid_up_to()).unwrap_or_default();
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            let fault = fault(Place::Line(line), "not UTF-8".to_owned());
            return Err((Node::table(), vec![fault]));
        }
    };
    let mut reader = Reader {
        text,
        newlines: text
            .bytes()
            .enumerate()
            .filter_map(|(offset, byte)| (byte == b'\n').then_some(offset))
            .collect(),
        faults: Vec::new(),
    };
    let root = match format {
        Format::Toml => reader.toml(),
        Format::Json => reader.json(),
    };
    if reader.faults.is_empty() {
        return Ok(root);
    }
    reader.faults.sort_by_key(|fault| match fault.place {
        Place::Line(line) => line,
        Place::Unknown | Place::Named(_) => 0,
    });
    reader.faults.truncate(MOST_FAULTS);
    Err((root, reader.faults))
}

/// Reads one value as a flag or an environment variable carries it: JSON, or a
/// TOML value.
///
/// # Errors
///
/// A sentence for people.
pub fn read_value(text: &str, place: &Place) -> Result<Node, String> {
    let mut faults = Vec::new();
    let mut reader = Reader {
        text,
        newlines: Vec::new(),
        faults: Vec::new(),
    };
    let value = match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => reader.json_node(raw, &Path::root(), 0).value,
        Err(_) => {
            let (value, errors) = DeValue::parse_recoverable(text);
            faults.extend(errors.iter().map(|error| error.message().to_owned()));
            reader.toml_node(&value, &Path::root(), 0).value
        }
    };
    faults.extend(reader.faults.into_iter().map(|fault| fault.text));
    match faults.into_iter().next() {
        Some(fault) => Err(fault),
        None => Ok(replaced(value, place)),
    }
}

/// The tree with `place` everywhere: a line within a variable helps nobody.
fn replaced(value: Value, place: &Place) -> Node {
    let value = match value {
        Value::List(nodes) => Value::List(
            nodes
                .into_iter()
                .map(|node| replaced(node.value, place))
                .collect(),
        ),
        Value::Table(entries) => Value::Table(
            entries
                .into_iter()
                .map(|(key, node)| (key, replaced(node.value, place)))
                .collect(),
        ),
        other => other,
    };
    Node::new(place.clone(), value)
}

fn fault(place: Place, text: String) -> Fault {
    Fault {
        place,
        path: Path::root(),
        text,
    }
}

struct Reader<'a> {
    text: &'a str,
    newlines: Vec<usize>,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn place(&self, offset: usize) -> Place {
        Place::Line(1 + self.newlines.partition_point(|newline| *newline < offset))
    }

    fn fault(&mut self, place: Place, path: &Path, text: String) {
        // One more than is told, so that memory stays bounded.
        if self.faults.len() <= MOST_FAULTS {
            self.faults.push(Fault {
                place,
                path: path.clone(),
                text,
            });
        }
    }

    fn toml(&mut self) -> Node {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in errors.iter().take(MOST_FAULTS) {
            let place = error
                .span()
                .map_or(Place::Unknown, |span| self.place(span.start));
            self.fault(place, &Path::root(), error.message().to_owned());
        }
        let value = self.toml_table(table.get_ref(), &Path::root(), 0);
        Node::new(Place::Line(1), value)
    }

    fn toml_table(&mut self, table: &DeTable<'_>, path: &Path, depth: usize) -> Value {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        Value::Table(
            entries
                .into_iter()
                .map(|(key, value)| {
                    let name = key.get_ref().as_ref();
                    let mut node = self.toml_node(value, &path.key(name), depth + 1);
                    // Of a table `[a.b]` the value's span begins elsewhere.
                    node.place = self.place(key.span().start);
                    (name.to_owned(), node)
                })
                .collect(),
        )
    }

    fn toml_node(&mut self, value: &Spanned<DeValue<'_>>, path: &Path, depth: usize) -> Node {
        let place = self.place(value.span().start);
        if depth > MOST_DEPTH {
            self.fault(place.clone(), path, "nested too deeply".to_owned());
            return Node::new(place, Value::Null);
        }
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.as_ref().to_owned()),
            DeValue::Integer(integer) => {
                match i64::from_str_radix(integer.as_str(), integer.radix()) {
                    Ok(number) => Value::Integer(number),
                    Err(_) => {
                        self.fault(place.clone(), path, "the number is too large".to_owned());
                        Value::Null
                    }
                }
            }
            DeValue::Float(float) => Value::Float(float.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(boolean) => Value::Boolean(*boolean),
            DeValue::Datetime(_) => Value::Date,
            DeValue::Array(array) => Value::List(
                array
                    .iter()
                    .enumerate()
                    .map(|(index, value)| self.toml_node(value, &path.index(index), depth + 1))
                    .collect(),
            ),
            DeValue::Table(table) => self.toml_table(table, path, depth),
        };
        Node::new(place, value)
    }

    fn json(&mut self) -> Node {
        match serde_json::from_str::<&RawValue>(self.text) {
            Err(error) => {
                self.fault(Place::Line(error.line()), &Path::root(), json_error(&error));
                Node::table()
            }
            Ok(raw) => {
                let root = self.json_node(raw, &Path::root(), 0);
                if !matches!(root.value, Value::Table(_)) {
                    let text = format!("expected a table ({{ … }}), found {}", root.value.kind());
                    self.fault(root.place, &Path::root(), text);
                    return Node::table();
                }
                root
            }
        }
    }

    fn json_node(&mut self, raw: &RawValue, path: &Path, depth: usize) -> Node {
        let text = raw.get();
        // `raw` borrows from the text, so the difference is its offset.
        let offset = (text.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let place = self.place(offset);
        let value = if depth > MOST_DEPTH {
            Err("nested too deeply".to_owned())
        } else {
            match text.as_bytes().first() {
                Some(b'{') => serde_json::Deserializer::from_str(text)
                    .deserialize_map(Members)
                    .map(|members| self.json_table(members, path, depth))
                    .map_err(|error| json_error(&error)),
                Some(b'[') => serde_json::Deserializer::from_str(text)
                    .deserialize_seq(Elements)
                    .map(|elements| {
                        let nodes = elements.into_iter().enumerate();
                        Value::List(
                            nodes
                                .map(|(index, raw)| {
                                    self.json_node(raw, &path.index(index), depth + 1)
                                })
                                .collect(),
                        )
                    })
                    .map_err(|error| json_error(&error)),
                Some(b'"') => serde_json::from_str(text)
                    .map(Value::Text)
                    .map_err(|error| json_error(&error)),
                Some(b't') => Ok(Value::Boolean(true)),
                Some(b'f') => Ok(Value::Boolean(false)),
                Some(b'n') => Ok(Value::Null),
                _ if text.contains(['.', 'e', 'E']) => {
                    Ok(Value::Float(text.parse().unwrap_or(f64::NAN)))
                }
                _ => text
                    .parse()
                    .map(Value::Integer)
                    .map_err(|_| "the number is too large".to_owned()),
            }
        };
        let value = value.unwrap_or_else(|text| {
            self.fault(place.clone(), path, text);
            Value::Null
        });
        Node::new(place, value)
    }

    fn json_table(
        &mut self,
        members: Vec<(Cow<'_, str>, &RawValue)>,
        path: &Path,
        depth: usize,
    ) -> Value {
        let mut known = HashSet::new();
        let mut entries = Vec::with_capacity(members.len());
        for (key, raw) in members {
            let here = path.key(&key);
            let node = self.json_node(raw, &here, depth + 1);
            if known.insert(key.clone()) {
                entries.push((key.into_owned(), node));
            } else {
                self.fault(node.place, &here, "given twice".to_owned());
            }
        }
        Value::Table(entries)
    }
}

/// The error without its position, which is relative to a part of the text.
fn json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.find(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = access.next_key::<String>()? {
            members.push((Cow::Owned(key), access.next_value()?));
        }
        Ok(members)
    }
}

struct Elements;

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = access.next_element()? {
            elements.push(element);
        }
        Ok(elements)
    }
}
