use core::fmt;
use core::time::Duration;

use crate::{FlapWeights, WhileSuppressed, duration};

/// One parameter of a strategy, as a configuration, its documentation and its
/// messages need to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Key {
    /// As a directive spells it, e.g. `critical-threshold`.
    pub name: &'static str,
    /// The same with underscores: the field of the parameter type.
    pub field: &'static str,
    /// A short name that does as well where a strategy is typed by hand, e.g. `m`
    /// for the failures of `window`.
    pub short: Option<&'static str>,
    /// What kind of value it takes.
    pub kind: Kind,
    /// Which values, with their unit: `1 to 64`.
    pub range: &'static str,
    /// What applies if it is left out; empty if that depends on other keys.
    pub default: &'static str,
    /// What the value is, as a sentence without its full stop.
    pub meaning: &'static str,
}

/// What kind of value a [`Key`] takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A whole number from 0 on.
    Count,
    /// A number, with a decimal point if need be.
    Number,
    /// A time with its unit, see [`duration`].
    Duration,
    /// `true` or `false`.
    Switch,
    /// One of these words.
    Word(&'static [&'static str]),
}

impl Kind {
    /// Whether `text` is a value of this kind.
    pub fn accepts(&self, text: &str) -> bool {
        match self {
            Self::Count => <u32 as Value>::read(text).is_some(),
            Self::Number => <f64 as Value>::read(text).is_some(),
            Self::Duration => <Duration as Value>::read(text).is_some(),
            Self::Switch => <bool as Value>::read(text).is_some(),
            Self::Word(words) => words.contains(&text),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("a whole number from 0 to 4294967295"),
            Self::Number => f.write_str("a number"),
            Self::Duration => f.write_str("a duration such as 10s, 500ms or 1m30s"),
            Self::Switch => f.write_str("true or false"),
            Self::Word(words) => {
                for (index, word) in words.iter().enumerate() {
                    f.write_str(match index {
                        0 => "",
                        _ if index + 1 == words.len() => " or ",
                        _ => ", ",
                    })?;
                    f.write_str(word)?;
                }
                Ok(())
            }
        }
    }
}

impl Key {
    /// Whether `name` means this key: its name, in which `_` does for `-`, or its
    /// short name.
    pub fn is_named(&self, name: &str) -> bool {
        same(self.name, name) || self.short == Some(name)
    }
}

/// Whether both are the same, `_` in `given` being as good as `-`.
pub(crate) fn same(known: &str, given: &str) -> bool {
    known.len() == given.len()
        && known
            .bytes()
            .zip(given.bytes())
            .all(|(known, given)| known == given || known == b'-' && given == b'_')
}

/// Parameters that can be read from texts and written as such. Made by [`keys!`].
pub(crate) trait Parameters: Default {
    const KEYS: &'static [Key];

    /// Sets the parameter of `key`, one of [`Parameters::KEYS`]; false if `text`
    /// is no value of its kind.
    fn set(&mut self, key: &Key, text: &str) -> bool;

    /// ` key=value` for each.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// Writes a strategy as a directive: `strategy=leaky critical-threshold=3 …`.
pub(crate) fn write_directive(
    name: &str,
    parameters: &impl Parameters,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(f, "strategy={name}")?;
    parameters.write(f)
}

/// The keys of a parameter type: `field: type = key or short, range, default,
/// meaning`.
macro_rules! keys {
    ($parameters:ty {
        $(
            $field:ident: $type:ty = $key:literal $(or $short:literal)?,
            $range:literal, $default:literal, $meaning:literal;
        )+
    }) => {
        impl $crate::key::Parameters for $parameters {
            const KEYS: &'static [$crate::Key] = &[$(
                $crate::Key {
                    name: $key,
                    field: stringify!($field),
                    short: $crate::key::short!($($short)?),
                    kind: <$type as $crate::key::Value>::KIND,
                    range: $range,
                    default: $default,
                    meaning: $meaning,
                }
            ),+];

            fn set(&mut self, key: &$crate::Key, text: &str) -> bool {
                match key.name {
                    $(
                        $key => $crate::key::Value::read(text)
                            .map(|value| self.$field = value)
                            .is_some(),
                    )+
                    _ => false,
                }
            }

            fn write(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                $( $crate::key::Value::write(&self.$field, concat!(" ", $key, "="), f)?; )+
                Ok(())
            }
        }
    };
}
macro_rules! short {
    () => {
        None
    };
    ($short:literal) => {
        Some($short)
    };
}
pub(crate) use {keys, short};

/// A value of a key.
pub(crate) trait Value: Sized {
    const KIND: Kind;

    fn read(text: &str) -> Option<Self>;

    /// The value after `before`; nothing at all if it is left out.
    fn write(&self, before: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

macro_rules! plain_values {
    ($($type:ty: $kind:expr;)+) => {$(
        impl Value for $type {
            const KIND: Kind = $kind;

            fn read(text: &str) -> Option<Self> {
                // Rust takes a sign in front of a count, and words for numbers.
                text.starts_with(|first: char| first.is_ascii_digit() || Self::KIND == Kind::Switch)
                    .then(|| text.parse().ok())?
            }

            fn write(&self, before: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{before}{self}")
            }
        }
    )+};
}

plain_values! {
    u8: Kind::Count;
    u32: Kind::Count;
    f64: Kind::Number;
    bool: Kind::Switch;
}

impl Value for Duration {
    const KIND: Kind = Kind::Duration;

    fn read(text: &str) -> Option<Self> {
        duration::parse(text).ok()
    }

    fn write(&self, before: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{before}{}", duration::format(*self))
    }
}

macro_rules! word_values {
    ($($type:ty;)+) => {$(
        impl Value for $type {
            const KIND: Kind = Kind::Word(&Self::WORDS);

            fn read(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.as_str() == text)
            }

            fn write(&self, before: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{before}{}", self.as_str())
            }
        }
    )+};
}

word_values! {
    FlapWeights;
    WhileSuppressed;
}

impl<T: Value> Value for Option<T> {
    const KIND: Kind = T::KIND;

    fn read(text: &str) -> Option<Self> {
        T::read(text).map(Some)
    }

    fn write(&self, before: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Some(value) => value.write(before, f),
            None => Ok(()),
        }
    }
}
