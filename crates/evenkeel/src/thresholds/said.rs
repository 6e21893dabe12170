//! What one source says, read but not yet weighed against the others.

use std::collections::BTreeMap;

use super::key::{Family, Key, Value, shortened};
use super::{DefinitionThresholds, Source, ThresholdFault};
use crate::config::{StrategyName, ThresholdSettings};

/// The prefix of our keys in metadata.
const PREFIX: &str = "evenkeel-";

/// Consul's own names for its thresholds, which registrars set as metadata.
const BARE: [(&str, Key); 3] = [
    ("failures_before_critical", Key::FailuresBeforeCritical),
    ("failures_before_warning", Key::FailuresBeforeWarning),
    ("success_before_passing", Key::SuccessBeforePassing),
];

/// The start of the directive in notes, in whatever case.
const DIRECTIVE: &str = "[evenkeel";

/// A source is written by others; more faults than these are not told of one.
const MOST_FAULTS: usize = 8;

/// What one source says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) source: Source,
    /// At most one entry per key.
    pub(super) entries: Vec<Entry>,
    /// What is wrong with it beside its values.
    pub(super) faults: Vec<ThresholdFault>,
    /// It cannot be told what the source wants.
    pub(super) broken: bool,
}

/// One key of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: Key,
    /// The key as the source spells it.
    pub(super) spelling: String,
    /// The value as written, at most a line of it.
    pub(super) text: String,
    pub(super) value: Result<Value, String>,
}

/// Which strategy a source speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stance {
    /// It names no strategy and no parameter of one.
    Silent,
    /// It names this one.
    Explicit(StrategyName),
    /// Its keys are of this family.
    Keys(Family),
    /// It names one that there is not.
    Unknown,
    /// Its keys are of several strategies and it names none.
    Mixed,
    /// See [`Said::broken`].
    Broken,
}

impl Said {
    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            entries: Vec::new(),
            faults: Vec::new(),
            broken: false,
        }
    }

    /// Nothing was said at all, not even wrongly.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.faults.is_empty() && !self.broken
    }

    pub(super) fn entry(&self, key: Key) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub(super) fn stance(&self) -> Stance {
        if self.broken {
            return Stance::Broken;
        }
        if let Some(entry) = self.entry(Key::Strategy) {
            return match entry.value {
                Ok(Value::Strategy(strategy)) => Stance::Explicit(strategy),
                _ => Stance::Unknown,
            };
        }
        let mut families = self.entries.iter().filter_map(|entry| entry.key.family());
        match families.next() {
            None => Stance::Silent,
            Some(first) if families.all(|other| other == first) => Stance::Keys(first),
            Some(_) => Stance::Mixed,
        }
    }

    fn fault(&mut self, key: &str, text: String) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(ThresholdFault {
                source: self.source,
                key: shortened(key),
                text,
            });
        }
    }

    fn set(&mut self, key: Key, spelling: &str, text: &str) {
        let value = key.parse(text);
        if let Some(before) = self.entries.iter_mut().find(|entry| entry.key == key) {
            if before.value != value {
                before.value = Err(format!(
                    "given twice, as `{}` and as `{}`",
                    before.text,
                    shortened(text)
                ));
            }
            return;
        }
        self.entries.push(Entry {
            key,
            spelling: spelling.to_owned(),
            text: shortened(text),
            value,
        });
    }

    /// The keys of a configuration table.
    pub(super) fn settings(source: Source, settings: &ThresholdSettings) -> Self {
        let mut said = Self::new(source);
        let count = |value: Option<u32>| value.map(|count| count.to_string());
        let texts = [
            (
                Key::Strategy,
                settings.strategy.map(|name| name.as_str().to_owned()),
            ),
            (Key::CriticalThreshold, count(settings.critical_threshold)),
            (Key::PassingThreshold, count(settings.passing_threshold)),
            (
                Key::FailuresBeforeCritical,
                count(settings.failures_before_critical),
            ),
            (
                Key::FailuresBeforeWarning,
                count(settings.failures_before_warning),
            ),
            (
                Key::SuccessBeforePassing,
                count(settings.success_before_passing),
            ),
            (
                Key::FirstResult,
                settings.first_result.map(|name| name.as_str().to_owned()),
            ),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                said.set(key, &key.name().replace('-', "_"), &text);
            }
        }
        said
    }

    /// The fields of a definition.
    pub(super) fn definition(definition: &DefinitionThresholds<'_>) -> Self {
        let (success, warning, critical) = match *definition {
            DefinitionThresholds::None => return Self::new(Source::Definition),
            DefinitionThresholds::File(settings) => {
                return Self::settings(Source::Definition, settings);
            }
            DefinitionThresholds::Consul {
                success_before_passing,
                failures_before_warning,
                failures_before_critical,
            } => (
                success_before_passing,
                failures_before_warning,
                failures_before_critical,
            ),
        };
        let mut said = Self::new(Source::Definition);
        let fields = [
            (
                Key::FailuresBeforeCritical,
                "FailuresBeforeCritical",
                critical,
            ),
            (Key::FailuresBeforeWarning, "FailuresBeforeWarning", warning),
            (Key::SuccessBeforePassing, "SuccessBeforePassing", success),
        ];
        for (key, spelling, number) in fields {
            if let Some(number) = number {
                said.set(key, spelling, &number.to_string());
            }
        }
        said
    }

    /// The directive in notes.
    pub(super) fn notes(notes: &str) -> Self {
        let mut said = Self::new(Source::Notes);
        let mut directives = directives(notes);
        let Some(directive) = directives.next() else {
            return said;
        };
        if directives.next().is_some() {
            said.broken = true;
            said.fault("", "more than one [evenkeel …] directive".to_owned());
            return said;
        }
        let Some(body) = directive else {
            said.broken = true;
            said.fault("", "the [evenkeel … directive has no closing ]".to_owned());
            return said;
        };
        if body.trim().is_empty() {
            said.fault("", "the [evenkeel] directive says nothing".to_owned());
        }
        for word in body.split_whitespace() {
            let Some((name, text)) = word.split_once('=') else {
                said.broken = true;
                said.fault(word, "not of the form key=value".to_owned());
                continue;
            };
            match Key::named(name) {
                Some(key) => said.set(key, name, text),
                None => said.fault(name, unknown(name, "")),
            }
        }
        said
    }

    /// The keys in the metadata of a service or node.
    pub(super) fn metadata(source: Source, metadata: &BTreeMap<String, String>) -> Self {
        let mut said = Self::new(source);
        // All keys of ours lie together in the order of the map.
        let ours = metadata
            .range("evenkeel".to_owned()..)
            .take_while(|(name, _)| name.starts_with("evenkeel"));
        for (name, text) in ours {
            if let Some(rest) = name.strip_prefix(PREFIX) {
                match Key::named(rest) {
                    Some(key) => said.set(key, name, text),
                    None => said.fault(name, unknown(rest, PREFIX)),
                }
            } else if let Some(rest) = name.strip_prefix("evenkeel_") {
                // Nobody would notice a threshold that does nothing.
                if let Some(key) = Key::named(rest) {
                    said.fault(name, format!("write {PREFIX}{}", key.name()));
                }
            }
        }
        for (name, key) in BARE {
            if let Some(text) = metadata.get(name) {
                said.set(key, name, text);
            }
        }
        said
    }
}

fn unknown(name: &str, prefix: &str) -> String {
    match Key::nearest(name) {
        Some(nearest) => format!("not a known key; did you mean {prefix}{nearest}?"),
        None => "not a known key".to_owned(),
    }
}

/// The insides of all directives in `notes`; `None` for one that does not end.
fn directives(notes: &str) -> impl Iterator<Item = Option<&str>> {
    let mut rest = notes;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find('[')?;
            let found = &rest[start..];
            rest = &found[1..];
            let Some(name) = found.get(..DIRECTIVE.len()) else {
                continue;
            };
            let body = &found[name.len()..];
            let ends = body.starts_with(|c: char| c.is_whitespace() || c == ']');
            if !name.eq_ignore_ascii_case(DIRECTIVE) || !ends && !body.is_empty() {
                continue;
            }
            let Some(end) = body.find(']') else {
                rest = "";
                return Some(None);
            };
            rest = &body[end + 1..];
            return Some(Some(&body[..end]));
        }
    })
}
