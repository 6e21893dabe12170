//! Values that are written as text: secrets, patterns, networks, sizes,
//! addresses to listen on.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What stands in place of a secret wherever settings are shown.
pub const MASK: &str = "********";

/// A token or password. It is never printed: `Debug` and serialising give
/// [`MASK`], and only [`Secret::expose`] gives the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The secret itself, for the request that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The error of a wrong type would quote the value.
        String::deserialize(deserializer)
            .map(Self::new)
            .map_err(|_| serde::de::Error::custom("a secret must be text"))
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "secret", "writeOnly": true })
    }
}

/// A pattern over a name: `*` stands for any characters, `?` for one, all
/// others for themselves. Upper and lower case differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern(Box<str>);

impl Pattern {
    /// Whether the whole of `name` matches.
    ///
    /// Takes time proportional to pattern × name at worst, and no memory.
    pub fn matches(&self, name: &str) -> bool {
        let mut pattern = self.0.chars();
        let mut name = name.chars();
        // Where to go on when the literal part after the last `*` fails: the
        // pattern after that star, and the name one character further on.
        let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
        loop {
            let before = name.clone();
            match (pattern.next(), name.next()) {
                (Some('*'), _) => {
                    name = before;
                    retry = Some((pattern.clone(), name.clone()));
                }
                (None, None) => return true,
                (Some('?'), Some(_)) => {}
                (Some(wanted), Some(found)) if wanted == found => {}
                _ => {
                    let Some((after_star, from)) = &mut retry else {
                        return false;
                    };
                    if from.next().is_none() {
                        return false;
                    }
                    pattern = after_star.clone();
                    name = from.clone();
                }
            }
        }
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a pattern must not be empty: write \"*\" for any name".to_owned());
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A range of addresses: `10.0.0.0/8`, `fd00::/8`; a single address stands for
/// itself alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(pub IpNet);

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(network) = text.parse::<IpNet>() {
            return Ok(Self(network));
        }
        text.parse::<IpAddr>()
            .map(|address| Self(IpNet::from(address)))
            .map_err(|_| {
                format!("`{text}` is not an address range such as \"10.0.0.0/8\" or \"fd00::/8\"")
            })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number of bytes: `4096`, `"16KiB"`, `"10MiB"`, `"1GiB"` (powers of 1024).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// From the largest to the smallest.
const SIZES: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, scale) = SIZES
            .iter()
            .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))
            .unwrap_or((text, 1));
        number
            .trim()
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(scale))
            .map(Self)
            .ok_or_else(|| format!("`{text}` is not a size such as \"10MiB\" or \"512KiB\""))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = SIZES
            .iter()
            .find(|(_, scale)| self.0 >= *scale && self.0.is_multiple_of(*scale))
            .unwrap_or(&("B", 1));
        write!(f, "{}{unit}", self.0 / scale)
    }
}

/// Where the admin server listens: `unix:/path/to/socket`, or `127.0.0.1:8600`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A unix socket at this path.
    Unix(PathBuf),
    /// A TCP address.
    Tcp(SocketAddr),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = text.strip_prefix("unix:").or_else(|| {
            // A path needs no prefix to be known as one.
            text.starts_with('/').then_some(text)
        });
        match path {
            Some(path) if path.starts_with('/') => Ok(Self::Unix(PathBuf::from(path))),
            Some(_) => Err(format!("`{text}`: the socket's path must be absolute")),
            None => text.parse().map(Self::Tcp).map_err(|_| {
                format!(
                    "`{text}` is neither \"unix:/path/to/socket\" nor an address such as \"127.0.0.1:8600\""
                )
            }),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

/// The access bits of a file in octal: `"0660"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(pub u32);

impl FromStr for FileMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if (3..=4).contains(&text.len())
            && let Ok(mode) = u32::from_str_radix(text, 8)
            && mode <= 0o777
        {
            return Ok(Self(mode));
        }
        Err(format!(
            "`{text}` is not a file mode in octal such as \"0660\""
        ))
    }
}

impl fmt::Display for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

/// Serde and schema of a type that is written as text, by `FromStr` and
/// `Display`. `format` is what the verification of a document knows it by.
macro_rules! as_text {
    ($type:ident, $format:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "format": $format })
            }
        }
    };
}

as_text!(Pattern, "pattern");
as_text!(Network, "network");
as_text!(ByteSize, "byte-size");
as_text!(Listen, "listen-address");
as_text!(FileMode, "file-mode");

/// Stands for a `Duration` in schemas; see [`super::duration`].
#[derive(Debug)]
pub struct DurationText;

impl JsonSchema for DurationText {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "duration-text" })
    }
}

/// Whether `text` is of the format that a schema names; formats that are not
/// ours are taken as they are.
///
/// # Errors
///
/// A sentence that says what is wrong with `text`.
pub fn check_format(format: &str, text: &str) -> Result<(), String> {
    match format {
        "pattern" => text.parse::<Pattern>().map(drop),
        "network" => text.parse::<Network>().map(drop),
        "byte-size" => text.parse::<ByteSize>().map(drop),
        "listen-address" => text.parse::<Listen>().map(drop),
        "file-mode" => text.parse::<FileMode>().map(drop),
        "duration-text" => super::duration::parse(text).map(drop),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_secret_is_never_printed() {
        let secret = Secret::new("5f3d-42");
        assert_eq!(format!("{secret:?}"), MASK);
        assert_eq!(
            serde_json::to_string(&secret).unwrap(),
            format!("\"{MASK}\"")
        );
        assert_eq!(secret.expose(), "5f3d-42");
        let error = serde_json::from_str::<Secret>("54243").unwrap_err();
        assert!(!error.to_string().contains("54243"), "{error}");
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("web", "web", true),
            ("web", "web1", false),
            ("web*", "web", true),
            ("web*", "web-1", true),
            ("*web", "my-web", true),
            ("*a*b", "xaxxb", true),
            ("*a*b", "xaxxbc", false),
            ("w?b", "web", true),
            ("w?b", "wb", false),
            ("?", "é", true),
            ("*", "", true),
            ("**", "x", true),
            ("Web", "web", false),
        ] {
            let parsed: Pattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches(name), expected, "{pattern} {name}");
        }
    }

    /// The same rule, as slow and as obvious as possible.
    fn slow_match(pattern: &[char], name: &[char]) -> bool {
        match pattern {
            [] => name.is_empty(),
            ['*', rest @ ..] => (0..=name.len()).any(|skip| slow_match(rest, &name[skip..])),
            ['?', rest @ ..] => !name.is_empty() && slow_match(rest, &name[1..]),
            [c, rest @ ..] => name.first() == Some(c) && slow_match(rest, &name[1..]),
        }
    }

    proptest! {
        #[test]
        fn patterns_match_as_the_slow_model(pattern in "[ab*?]{1,8}", name in "[ab]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(
                pattern.parse::<Pattern>().unwrap().matches(&name),
                slow_match(&chars(&pattern), &chars(&name))
            );
        }

        #[test]
        fn sizes_read_back(bytes in any::<u64>()) {
            prop_assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)));
        }
    }

    #[test]
    fn text_values_read_back() {
        for text in ["unix:/run/x.sock", "127.0.0.1:8600", "[::1]:8600"] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
        assert_eq!(
            "/run/x.sock".parse(),
            Ok(Listen::Unix("/run/x.sock".into()))
        );
        for text in ["unix:x.sock", "localhost", "8600", ""] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
        assert_eq!("0660".parse(), Ok(FileMode(0o660)));
        for text in ["660x", "0888", "7777", "66", ""] {
            assert!(text.parse::<FileMode>().is_err(), "{text}");
        }
        assert_eq!("10MiB".parse(), Ok(ByteSize(10 << 20)));
        assert_eq!("4096".parse(), Ok(ByteSize(4096)));
        for text in ["10MB", "-1", "", "MiB", "99999999999GiB"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        assert_eq!(
            "10.0.0.1".parse::<Network>().unwrap().to_string(),
            "10.0.0.1/32"
        );
        assert!("10.0.0.0/33".parse::<Network>().is_err());
    }
}
