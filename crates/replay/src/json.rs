//! Results as JSON objects, one on a line.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::csv::{CHECK, STATUS, TIME};
use crate::row::{Fault, Snippet};
use crate::{time, word};

use evenkeel_threshold::{Status, Timestamp};

/// The keys of an object that are looked at.
#[derive(Debug, Default)]
pub(crate) struct Object<'a> {
    time: Option<Value<'a>>,
    check: Option<Value<'a>>,
    status: Option<Value<'a>>,
    pub(crate) event: Option<Value<'a>>,
    from: Option<Value<'a>>,
    to: Option<Value<'a>>,
}

impl<'a> Object<'a> {
    pub(crate) fn read(line: &'a [u8]) -> Result<Self, Fault> {
        serde_json::from_slice(line)
            .map_err(|error| Fault::Json(Snippet::new(error.to_string().as_bytes())))
    }

    pub(crate) fn time(&self) -> Result<Timestamp, Fault> {
        let read = match self.time.as_ref().ok_or(Fault::Missing("time"))? {
            Value::Text(text) => time::parse(text.as_bytes()),
            Value::Whole(number) => time::from_number(*number).map(Timestamp::from_millis),
            Value::Float(number) => time::from_float(*number),
            _ => None,
        };
        read.ok_or_else(|| Fault::Time(shown(self.time.as_ref())))
    }

    /// Puts the name of the check into `name`.
    pub(crate) fn name(&self, name: &mut String) -> Result<(), Fault> {
        match self.check.as_ref().ok_or(Fault::Missing("check"))? {
            Value::Text(text) | Value::Name(text) => {
                crate::history::take_name(text.as_bytes(), name)
            }
            Value::Whole(number) => crate::history::take_name(number.to_string().as_bytes(), name),
            _ => Err(Fault::NoName),
        }
    }

    pub(crate) fn has_check(&self) -> bool {
        self.check.is_some()
    }

    /// `None` is a probe that could not be run.
    pub(crate) fn status(&self) -> Result<Option<Status>, Fault> {
        status(self.status.as_ref(), "status")
    }

    pub(crate) fn change(&self) -> Result<(Status, Status), Fault> {
        let side = |value: &Option<Value<'_>>, key| {
            status(value.as_ref(), key)?.ok_or_else(|| Fault::Status(shown(value.as_ref())))
        };
        Ok((side(&self.from, "from")?, side(&self.to, "to")?))
    }
}

fn status(value: Option<&Value<'_>>, key: &'static str) -> Result<Option<Status>, Fault> {
    let read = match value.ok_or(Fault::Missing(key))? {
        Value::Text(text) => word::parse(text.as_bytes()),
        Value::Whole(0) | Value::Bool(false) => Some(Some(Status::Critical)),
        Value::Whole(1) | Value::Bool(true) => Some(Some(Status::Passing)),
        Value::Null => Some(None),
        _ => None,
    };
    read.ok_or_else(|| Fault::Status(shown(value)))
}

fn shown(value: Option<&Value<'_>>) -> Snippet {
    let text = match value {
        Some(Value::Text(text) | Value::Name(text)) => text.to_string(),
        Some(Value::Whole(number)) => number.to_string(),
        Some(Value::Float(number)) => number.to_string(),
        Some(Value::Bool(truth)) => truth.to_string(),
        Some(Value::Null) | None => "null".to_owned(),
        Some(Value::Other) => "…".to_owned(),
    };
    Snippet::new(text.as_bytes())
}

/// A value as far as it can be of use.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Whole(u64),
    Float(f64),
    Text(Cow<'a, str>),
    /// The parts of a check's identity, joined.
    Name(Cow<'a, str>),
    /// A list, or a negative number.
    Other,
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut object = Object::default();
                // How good a name each value was found under; a later and better
                // one takes its place.
                let mut ranks = [usize::MAX; 3];
                while let Some(key) = map.next_key::<Key<'de>>()? {
                    let key = key.0.as_ref();
                    let slot = match key {
                        "event" => &mut object.event,
                        "from" => &mut object.from,
                        "to" => &mut object.to,
                        _ => {
                            let places = [
                                (TIME, &mut object.time),
                                (CHECK, &mut object.check),
                                (STATUS, &mut object.status),
                            ];
                            let found = places.into_iter().zip(&mut ranks).find_map(
                                |((names, slot), best)| {
                                    let rank = names.iter().position(|name| *name == key)?;
                                    Some((rank, slot, best))
                                },
                            );
                            match found {
                                Some((rank, slot, best)) if rank <= *best => {
                                    *best = rank;
                                    slot
                                }
                                _ => {
                                    map.next_value::<IgnoredAny>()?;
                                    continue;
                                }
                            }
                        }
                    };
                    *slot = Some(map.next_value()?);
                }
                Ok(object)
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

/// A key, borrowed where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Text(text) => Ok(Self(text)),
            _ => Ok(Self(Cow::Borrowed(""))),
        }
    }
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Value<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Value::Null)
            }

            fn visit_bool<E>(self, truth: bool) -> Result<Self::Value, E> {
                Ok(Value::Bool(truth))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Value::Whole(number))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Value::Other)
            }

            fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
                Ok(Value::Float(number))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Value::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Value::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> Result<Self::Value, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Value::Other)
            }

            /// A check's identity as the event log has it.
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                const PARTS: [&str; 5] =
                    ["partition", "namespace", "node", "service_id", "check_id"];
                let mut parts: [Option<Cow<'de, str>>; 5] = Default::default();
                while let Some(key) = map.next_key::<Key<'de>>()? {
                    match PARTS.iter().position(|part| *part == key.0) {
                        Some(at) => {
                            if let Scalar(Some(text)) = map.next_value()? {
                                parts[at] = Some(text);
                            }
                        }
                        None => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                let parts: Vec<&str> = parts
                    .iter()
                    .flatten()
                    .map(AsRef::as_ref)
                    .filter(|part| !part.is_empty())
                    .collect();
                Ok(Value::Name(parts.join("/").into()))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// A text, or anything else; objects within objects go no deeper.
struct Scalar<'a>(Option<Cow<'a, str>>);

impl<'de> Deserialize<'de> for Scalar<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Scalar<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Scalar(Some(Cow::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Scalar(Some(Cow::Owned(text.to_owned()))))
            }
        }
        deserializer.deserialize_str(Text)
    }
}
