use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use http::HeaderName;

use super::{DefinitionError, Pattern};

/// What an HTTP answer must be like. All that is set must hold; what is not set
/// is not looked at, except that without `status` the code decides as always.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct HttpExpect {
    /// Codes and ranges that are passing, e.g. `200-299,401`; all others are
    /// critical (P088). Empty for the usual rule.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "String::is_empty"))]
    pub status: String,
    /// A regular expression that must match the body.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub body: Option<String>,
    /// A regular expression that must not match the body.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub not_body: Option<String>,
    /// JSON pointers (RFC 6901) into the body, and what stands there: a text as
    /// it is, all else as JSON.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "BTreeMap::is_empty"))]
    pub json: BTreeMap<String, String>,
    /// Header fields that must be there, with a regular expression that one of
    /// the field's values must match.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "BTreeMap::is_empty"))]
    pub headers: BTreeMap<String, String>,
    /// An answer that takes longer, from the first step of the probe to the end
    /// of the body, is a warning; zero for no limit.
    #[cfg_attr(
        feature = "serde",
        serde(with = "crate::duration", skip_serializing_if = "Duration::is_zero")
    )]
    pub warning_after: Duration,
    /// An answer that takes longer is critical; zero for no limit.
    #[cfg_attr(
        feature = "serde",
        serde(with = "crate::duration", skip_serializing_if = "Duration::is_zero")
    )]
    pub critical_after: Duration,
}

/// [`HttpExpect`], ready for use.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Demands {
    pub(crate) given: HttpExpect,
    pub(crate) status: Vec<RangeInclusive<u16>>,
    pub(crate) body: Option<Pattern>,
    pub(crate) not_body: Option<Pattern>,
    pub(crate) headers: Vec<(Box<str>, Pattern)>,
}

impl Demands {
    pub(super) fn new(given: HttpExpect) -> Result<Self, DefinitionError> {
        let pattern = |key: &'static str, text: &Option<String>| {
            let Some(text) = text else { return Ok(None) };
            named(key, Pattern::new(text)).map(Some)
        };
        let status = ranges(&given.status)?;
        let body = pattern("expect.body", &given.body)?;
        let not_body = pattern("expect.not_body", &given.not_body)?;
        let mut headers = Vec::new();
        for (name, text) in &given.headers {
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(DefinitionError::HeaderName(name.clone()));
            }
            let pattern = named("expect.headers", Pattern::new(text))?;
            headers.push((name.as_str().into(), pattern));
        }
        for pointer in given.json.keys() {
            if !pointer.is_empty() && !pointer.starts_with('/') {
                let reason = format!("{pointer}: a JSON pointer begins with /, as in /status");
                return Err(DefinitionError::option("expect.json", reason));
            }
        }
        let limits = [given.warning_after, given.critical_after];
        if limits.iter().all(|limit| !limit.is_zero()) && limits[0] > limits[1] {
            let reason = "is longer than critical_after, so it would never count";
            return Err(DefinitionError::option("expect.warning_after", reason));
        }
        Ok(Self {
            status,
            body,
            not_body,
            headers,
            given,
        })
    }

    /// Whether the body is looked at, and so is read beyond what people see.
    pub(crate) fn reads_body(&self) -> bool {
        self.body.is_some() || self.not_body.is_some() || !self.given.json.is_empty()
    }
}

fn named(
    key: &'static str,
    pattern: Result<Pattern, DefinitionError>,
) -> Result<Pattern, DefinitionError> {
    pattern.map_err(|error| match error {
        DefinitionError::Option { reason, .. } => DefinitionError::option(key, reason),
        other => other,
    })
}

fn ranges(text: &str) -> Result<Vec<RangeInclusive<u16>>, DefinitionError> {
    let wrong = || {
        let reason = format!("{text}: write codes and ranges from 100 to 599 as 200-299,401");
        DefinitionError::option("expect.status", reason)
    };
    let code = |text: &str| {
        let code = text.trim().parse().ok();
        code.filter(|code| (100..=599).contains(code))
            .ok_or_else(wrong)
    };
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    text.split(',')
        .map(|part| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let (from, to) = (code(from)?, code(to)?);
            (from <= to).then_some(from..=to).ok_or_else(wrong)
        })
        .collect()
}
