//! A document against its shape: all faults at once.

use super::{Fault, Field, Node, Path, Place, Shape, Value, nearest};
use crate::config::text::check_format;

/// What is known of keys that are not known: `(path of the table, key)` to a
/// sentence that helps.
pub type Hint<'a> = &'a dyn Fn(&Path, &str) -> Option<String>;

/// Takes out of `node` what does not fit `shape`, and tells of each.
///
/// What is left reads into the type that the shape was made of, unless a
/// required key is missing, which is told too.
pub fn verify(node: &mut Node, shape: &Shape, hint: Hint<'_>) -> Vec<Fault> {
    let mut verifier = Verifier {
        hint,
        faults: Vec::new(),
    };
    verifier.fits(node, shape, &Path::root());
    verifier.faults
}

struct Verifier<'a> {
    hint: Hint<'a>,
    faults: Vec<Fault>,
}

/// Nobody reads more; and a hostile file must not cost memory.
const MOST_FAULTS: usize = 1_000;

impl Verifier<'_> {
    fn fault(&mut self, place: &Place, path: &Path, text: String) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(Fault {
                place: place.clone(),
                path: path.clone(),
                text,
            });
        }
    }

    /// Whether the node may stay.
    fn fits(&mut self, node: &mut Node, shape: &Shape, path: &Path) -> bool {
        let wrong = match (&mut node.value, shape) {
            (_, Shape::Any) => return true,
            (Value::Table(entries), Shape::Table(fields)) => {
                self.table(entries, fields, &node.place, path);
                return true;
            }
            (Value::Table(entries), Shape::Map(inner)) => {
                entries.retain_mut(|(key, node)| self.fits(node, inner, &path.key(key)));
                return true;
            }
            (Value::List(nodes), Shape::List(inner)) => {
                let mut index = 0;
                nodes.retain_mut(|node| {
                    index += 1;
                    self.fits(node, inner, &path.index(index - 1))
                });
                return true;
            }
            (Value::Text(_), Shape::Texts | Shape::TextOr(_)) => return true,
            (Value::Table(_), Shape::TextOr(table)) => return self.fits(node, table, path),
            (Value::List(nodes), Shape::Texts) => {
                let mut index = 0;
                nodes.retain_mut(|node| {
                    index += 1;
                    self.fits(node, &Shape::Text(None), &path.index(index - 1))
                });
                return true;
            }
            (Value::Text(text), Shape::Text(format)) => {
                match format.as_deref().map(|format| check_format(format, text)) {
                    None | Some(Ok(())) => return true,
                    Some(Err(wrong)) => wrong,
                }
            }
            (Value::Text(text), Shape::Choice(words)) => {
                if words.contains(text) {
                    return true;
                }
                wrong_word(text, words)
            }
            (Value::Integer(number), Shape::Integer(least, most)) => {
                if (*least..=*most).contains(number) {
                    return true;
                }
                match *number < *least {
                    true => format!("{number} is less than {least}"),
                    false => format!("{number} is more than {most}"),
                }
            }
            (Value::Integer(_) | Value::Float(_), Shape::Number(least)) => {
                let number = match node.value {
                    Value::Integer(number) => number as f64,
                    Value::Float(number) => number,
                    _ => f64::NAN,
                };
                if number.is_finite() && number >= *least {
                    return true;
                }
                format!("{number} is not a number from {least} on")
            }
            (Value::Boolean(_), Shape::Boolean) => return true,
            // The value is not shown: it may be a secret.
            (value, shape) => format!("expected {}, found {}", expected(shape), value.kind()),
        };
        self.fault(&node.place, path, wrong);
        false
    }

    fn table(
        &mut self,
        entries: &mut Vec<(String, Node)>,
        fields: &[Field],
        place: &Place,
        path: &Path,
    ) {
        // Before anything is taken out: what is wrong is not missing as well.
        for field in fields.iter().filter(|field| field.required) {
            if !entries.iter().any(|(key, _)| *key == field.name) {
                self.fault(place, &path.key(&field.name), "missing".to_owned());
            }
        }
        entries.retain_mut(|(key, node)| {
            let here = path.key(key);
            match fields.iter().find(|field| field.name == *key) {
                Some(field) => {
                    // Null says nothing, as in JSON files made by programs.
                    let says_nothing = node.value == Value::Null && !field.required;
                    !says_nothing && self.fits(node, &field.shape, &here)
                }
                None => {
                    let hint = (self.hint)(path, key).or_else(|| {
                        let names = fields.iter().map(|field| field.name.as_str());
                        nearest(key, names).map(|name| match path.as_str().contains('[') {
                            // In a list the path says no more than the line.
                            true => format!("did you mean {name}?"),
                            false => format!("did you mean {}?", path.key(name)),
                        })
                    });
                    let text = match hint {
                        Some(hint) => format!("unknown key; {hint}"),
                        None => "unknown key".to_owned(),
                    };
                    self.fault(&node.place, &here, text);
                    false
                }
            }
        });
    }
}

fn wrong_word(text: &str, words: &[String]) -> String {
    let short: String = text.chars().take(60).collect();
    let all = words.join(", ");
    match nearest(text, words.iter().map(String::as_str)) {
        Some(word) => format!("{short:?} is none of {all}; did you mean {word:?}?"),
        None => format!("{short:?} is none of {all}"),
    }
}

fn expected(shape: &Shape) -> &'static str {
    match shape {
        Shape::Table(_) | Shape::Map(_) => "a table",
        Shape::List(_) => "a list",
        Shape::Text(Some(format)) if format == "duration-text" => "a duration such as \"10s\"",
        Shape::Text(Some(format)) if format == "byte-size" => "a size such as \"10MiB\"",
        Shape::Text(Some(format)) if format == "file-mode" => "a file mode such as \"0660\"",
        Shape::Text(_) | Shape::Choice(_) => "text",
        Shape::TextOr(_) => "text or a table",
        Shape::Texts => "text or a list of texts",
        Shape::Integer(..) => "a whole number",
        Shape::Number(_) => "a number",
        Shape::Boolean => "true or false",
        Shape::Any => "anything",
    }
}
