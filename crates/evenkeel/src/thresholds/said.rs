//! What one source says, read but not yet weighed against the others.

use std::collections::BTreeMap;

use evenkeel_threshold::AnyStrategy;

use super::key::{Key, shortened};
use super::{DefinitionThresholds, Source, ThresholdFault};
use crate::config::ThresholdSettings;

/// The prefix of our keys in metadata.
const PREFIX: &str = "evenkeel-";

/// Consul's own names for its thresholds, which registrars set as metadata.
const BARE: [&str; 3] = [
    "failures_before_critical",
    "failures_before_warning",
    "success_before_passing",
];

/// Strategies that copy another program, with the keys of one of ours: meant only
/// by someone who names them.
const COPIES: [&str; 2] = ["consul", "consul-esm"];

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
    /// The value as written, without blanks around, at most a line of it.
    pub(super) text: String,
    /// What is wrong with the value, whatever the strategy is.
    pub(super) wrong: Option<String>,
}

/// Which strategy a source speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stance {
    /// It names no strategy and no parameter of one.
    Silent,
    /// It names this one.
    Explicit(&'static str),
    /// It names none, and these have all of its keys; at least one.
    Keys(Vec<&'static str>),
    /// It names one that there is not.
    Unknown,
    /// No strategy has all of its keys and it names none.
    Mixed,
    /// See [`Said::broken`].
    Broken,
}

impl Stance {
    /// Whether parameters of this source may be merged into those of `strategy`.
    pub(super) fn is_for(&self, strategy: &str) -> bool {
        match self {
            Self::Explicit(named) => *named == strategy,
            Self::Keys(candidates) => candidates.contains(&strategy),
            Self::Silent | Self::Unknown | Self::Mixed | Self::Broken => false,
        }
    }

    /// The strategy that is wanted, if it can be told.
    pub(super) fn decides(&self) -> Option<&'static str> {
        match self {
            Self::Explicit(named) => Some(named),
            Self::Keys(candidates) => {
                let mut meant = candidates
                    .iter()
                    .copied()
                    .filter(|name| !COPIES.contains(name));
                meant.next().filter(|_| meant.next().is_none())
            }
            Self::Silent | Self::Unknown | Self::Mixed | Self::Broken => None,
        }
    }
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
            let named = AnyStrategy::known_name(&entry.text);
            return named
                .filter(|_| entry.wrong.is_none())
                .map_or(Stance::Unknown, Stance::Explicit);
        }
        if self.parameters().next().is_none() {
            return Stance::Silent;
        }
        let candidates: Vec<&str> = AnyStrategy::NAMES
            .iter()
            .copied()
            .filter(|strategy| self.parameters().all(|entry| entry.key.is_of(strategy)))
            .collect();
        if candidates.is_empty() {
            Stance::Mixed
        } else {
            Stance::Keys(candidates)
        }
    }

    /// The entries that are parameters of a strategy.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(|entry| matches!(entry.key, Key::Parameter(_)))
    }

    /// Why it cannot be told from the keys which strategy is wanted.
    pub(super) fn undecided(&self) -> String {
        let names = |names: &mut dyn Iterator<Item = &str>| names.collect::<Vec<_>>().join(" and ");
        match self.stance() {
            Stance::Keys(candidates) => format!(
                "{} could each be meant: name the strategy",
                names(&mut candidates.into_iter())
            ),
            _ => format!(
                "no strategy has all of {}",
                names(&mut self.parameters().map(|entry| entry.key.name()))
            ),
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
        let text = text.trim();
        if let Some(before) = self.entries.iter_mut().find(|entry| entry.key == key) {
            if before.text != shortened(text) {
                before.wrong = Some(format!(
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
            wrong: key.check(text).err(),
        });
    }

    /// The keys of a configuration table.
    pub(super) fn settings(source: Source, settings: &ThresholdSettings) -> Self {
        let mut said = Self::new(source);
        for (key, text) in settings.iter() {
            said.set(key, key.field(), text);
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
            ("FailuresBeforeCritical", critical),
            ("FailuresBeforeWarning", warning),
            ("SuccessBeforePassing", success),
        ];
        for ((spelling, number), name) in fields.into_iter().zip(BARE) {
            if let (Some(number), Some(key)) = (number, Key::named(name)) {
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
        for name in BARE {
            if let (Some(text), Some(key)) = (metadata.get(name), Key::named(name)) {
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
