//! What a document may hold, as derived from the types that it is read into.

use schemars::JsonSchema;
use serde_json::Value as Json;

/// What may stand at one place of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A table with these keys and no others.
    Table(Vec<Field>),
    /// A table with any keys.
    Map(Box<Shape>),
    /// A list.
    List(Box<Shape>),
    /// Text, perhaps of a format that [`crate::config::text::check_format`]
    /// knows.
    Text(Option<String>),
    /// Text, or a list of texts.
    Texts,
    /// Text, or what is in here: the long form.
    TextOr(Box<Shape>),
    /// One of these words.
    Choice(Vec<String>),
    /// A whole number from the first to the second.
    Integer(i64, i64),
    /// A number, whole or not, from this one on.
    Number(f64),
    /// True or false.
    Boolean,
    /// Anything.
    Any,
}

/// One key of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The key.
    pub name: String,
    /// The doc comment of the field.
    pub description: String,
    /// What it is when left out; `None` where that is nothing.
    pub default: Option<Json>,
    /// A value to show where there is no default.
    pub example: Option<Json>,
    /// It must not be left out.
    pub required: bool,
    /// What it may be.
    pub shape: Shape,
}

impl Shape {
    /// The shape of documents that are read into `T`.
    pub fn of<T: JsonSchema>() -> Self {
        let schema = schema::<T>();
        Self::from_schema(&schema, &schema, 0)
    }

    /// The shape under a dotted path of plain keys. Within a map every key has
    /// the map's shape.
    pub fn find(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |shape, key| match shape {
            Self::Table(fields) => fields
                .iter()
                .find(|field| field.name == *key)
                .map(|field| &field.shape),
            Self::Map(inner) => Some(inner.as_ref()),
            Self::TextOr(table) => table.find(&[*key]),
            _ => None,
        })
    }

    fn from_schema(schema: &Json, root: &Json, depth: usize) -> Self {
        // Types that hold themselves are not described further.
        if depth > 32 {
            return Self::Any;
        }
        if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
            let target = reference.strip_prefix('#').and_then(|at| root.pointer(at));
            return target.map_or(Self::Any, |target| {
                Self::from_schema(target, root, depth + 1)
            });
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Json::Array(variants)) = schema.get(key) {
                let words: Option<Vec<String>> = variants.iter().map(word).collect();
                if let Some(words) = words {
                    return Self::Choice(words);
                }
                // `Option<T>`: T or null.
                let mut present = variants
                    .iter()
                    .filter(|variant| variant.get("type").and_then(Json::as_str) != Some("null"));
                let mut shapes = std::iter::from_fn(|| {
                    Some(Self::from_schema(present.next()?, root, depth + 1))
                });
                return match (shapes.next(), shapes.next()) {
                    (Some(only), None) => only,
                    (Some(Self::Text(None)), Some(Self::List(inner)))
                        if *inner == Self::Text(None) =>
                    {
                        Self::Texts
                    }
                    (Some(Self::Text(None)), Some(table @ Self::Table(_))) => {
                        Self::TextOr(Box::new(table))
                    }
                    _ => Self::Any,
                };
            }
        }
        if let Some(Json::Array(words)) = schema.get("enum") {
            let words = words.iter().filter_map(Json::as_str);
            return Self::Choice(words.map(str::to_owned).collect());
        }
        let kind = match schema.get("type") {
            Some(Json::String(kind)) => kind.as_str(),
            Some(Json::Array(kinds)) => kinds
                .iter()
                .filter_map(Json::as_str)
                .find(|kind| *kind != "null")
                .unwrap_or_default(),
            _ => "",
        };
        match kind {
            "object" => Self::from_object(schema, root, depth),
            "array" => {
                Self::List(Box::new(schema.get("items").map_or(Self::Any, |items| {
                    Self::from_schema(items, root, depth + 1)
                })))
            }
            "string" => Self::Text(
                schema
                    .get("format")
                    .and_then(Json::as_str)
                    .map(str::to_owned),
            ),
            "integer" => {
                let most = match schema.get("format").and_then(Json::as_str) {
                    Some("uint8") => i64::from(u8::MAX),
                    Some("uint16") => i64::from(u16::MAX),
                    Some("uint32") => i64::from(u32::MAX),
                    _ => i64::MAX,
                };
                let bound = |key: &str| schema.get(key).and_then(Json::as_i64);
                Self::Integer(
                    bound("minimum").unwrap_or(i64::MIN),
                    bound("maximum").unwrap_or(most),
                )
            }
            "number" => {
                let least = schema.get("minimum").and_then(Json::as_f64);
                Self::Number(least.unwrap_or(f64::NEG_INFINITY))
            }
            "boolean" => Self::Boolean,
            _ => Self::Any,
        }
    }

    fn from_object(schema: &Json, root: &Json, depth: usize) -> Self {
        let Some(Json::Object(properties)) = schema.get("properties") else {
            let inner = schema
                .get("additionalProperties")
                .filter(|inner| inner.is_object());
            return Self::Map(Box::new(
                inner.map_or(Self::Any, |inner| Self::from_schema(inner, root, depth + 1)),
            ));
        };
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Json::as_array)
            .map(|names| names.iter().filter_map(Json::as_str).collect())
            .unwrap_or_default();
        let fields = properties.iter().map(|(name, property)| Field {
            name: name.clone(),
            description: property
                .get("description")
                .and_then(Json::as_str)
                .unwrap_or_default()
                .to_owned(),
            default: property
                .get("default")
                .filter(|default| !default.is_null())
                .cloned(),
            example: property
                .get("examples")
                .and_then(|examples| examples.get(0))
                .cloned(),
            required: required.contains(&name.as_str()),
            shape: Self::from_schema(property, root, depth + 1),
        });
        Self::Table(fields.collect())
    }
}

fn word(variant: &Json) -> Option<String> {
    variant.get("const")?.as_str().map(str::to_owned)
}

/// The JSON Schema of `T`, for people's editors. Unknown keys are refused.
pub fn schema<T: JsonSchema>() -> Json {
    let mut schema = schemars::generate::SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    close(&mut schema);
    schema
}

/// Serde's flattened tables cannot refuse unknown keys themselves.
fn close(schema: &mut Json) {
    match schema {
        Json::Object(members) => {
            if members.get("properties").is_some_and(Json::is_object)
                && members.get("type").is_some_and(|kind| *kind == "object")
            {
                members.insert("additionalProperties".to_owned(), false.into());
            }
            members.values_mut().for_each(close);
        }
        Json::Array(elements) => elements.iter_mut().for_each(close),
        _ => {}
    }
}
