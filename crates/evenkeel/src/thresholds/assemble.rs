//! One strategy from the parameters of several sources.

use evenkeel_threshold::{AnyStrategy, FirstResult, SpecFault, Violation};

use super::key::Key;
use super::said::{Entry, Said};
use super::{Parameter, Source, ThresholdFault};

/// A strategy, and where its parameters come from.
pub(super) struct Assembled {
    pub(super) strategy: AnyStrategy,
    pub(super) first_result: FirstResult,
    pub(super) parameters: Vec<Parameter>,
}

impl Assembled {
    pub(super) fn undamped() -> Self {
        let strategy = AnyStrategy::default();
        Self {
            strategy,
            first_result: strategy.default_first_result(),
            parameters: Vec::new(),
        }
    }
}

/// Something wrong with the merged parameters.
pub(super) struct Wrong {
    pub(super) fault: ThresholdFault,
    /// The keys that it is about, without which it might not be wrong.
    pub(super) names: Vec<&'static str>,
}

/// Merges the parameters of `strategy`, each from the first source that has it and
/// speaks for the strategy, and validates them as one.
pub(super) fn assemble(strategy: &'static str, heard: &[&Said]) -> Result<Assembled, Vec<Wrong>> {
    let speakers: Vec<&Said> = heard
        .iter()
        .copied()
        .filter(|said| said.stance().is_for(strategy))
        .collect();
    let merged: Vec<(&evenkeel_threshold::Key, Option<(Source, &Entry)>)> =
        AnyStrategy::keys_of(strategy)
            .unwrap_or_default()
            .iter()
            .map(|key| (key, first(&speakers, Key::named(key.name))))
            .collect();
    let first_result = first(heard, Some(Key::FirstResult));

    let mut wrong: Vec<Wrong> = merged
        .iter()
        .filter_map(|(_, found)| *found)
        .chain(first_result)
        .filter_map(|(source, entry)| wrong_value(source, entry, entry.wrong.clone()?))
        .collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let pairs = merged
        .iter()
        .filter_map(|(key, found)| Some((key.name, found.as_ref()?.1.text.as_str())));
    let rule = match AnyStrategy::from_parameters(strategy, pairs) {
        Ok(rule) => rule,
        Err(error) => {
            for fault in error.faults() {
                let found = |name: &str| merged.iter().find(|(key, _)| key.name == name);
                match fault {
                    SpecFault::WrongValue { key, value } => {
                        let entry = found(key.name).and_then(|(_, found)| *found);
                        let text =
                            format!("`{value}` is not {} ({strategy}: {})", key.kind, key.range);
                        wrong.extend(
                            entry.and_then(|(source, entry)| wrong_value(source, entry, text)),
                        );
                    }
                    SpecFault::Parameters(error) => {
                        wrong.extend(error.violations().map(|violation| told(violation, &merged)));
                    }
                    // The names are known, and each is given once.
                    _ => {}
                }
            }
            return Err(wrong);
        }
    };
    let parameters = merged.into_iter().filter_map(|(key, found)| {
        let (value, source) = match found {
            Some((source, entry)) => (entry.text.as_str(), source),
            None => (key.default, Source::Default),
        };
        // What an absent one without a default is follows from another key.
        (!value.is_empty()).then(|| Parameter {
            key: key.name,
            value: value.to_owned(),
            source,
        })
    });
    let (first_result, source) = match first_result {
        None => (rule.default_first_result(), Source::Default),
        Some((source, entry)) if entry.text == "believed" => (FirstResult::Believed, source),
        Some((source, _)) => (FirstResult::Counted, source),
    };
    let first = Parameter {
        key: Key::FirstResult.name(),
        value: match first_result {
            FirstResult::Believed => "believed".to_owned(),
            FirstResult::Counted => "counted".to_owned(),
        },
        source,
    };
    Ok(Assembled {
        strategy: rule,
        first_result,
        parameters: parameters.chain([first]).collect(),
    })
}

/// The entry of the first source that has the key.
fn first<'a>(heard: &[&'a Said], key: Option<Key>) -> Option<(Source, &'a Entry)> {
    let key = key?;
    heard
        .iter()
        .find_map(|said| Some((said.source, said.entry(key)?)))
}

fn wrong_value(source: Source, entry: &Entry, text: String) -> Option<Wrong> {
    Some(Wrong {
        fault: ThresholdFault {
            source,
            key: entry.spelling.clone(),
            text,
        },
        names: vec![entry.key.name()],
    })
}

/// P077: all keys are named, with their values and where each comes from.
fn told(
    violation: Violation,
    merged: &[(&evenkeel_threshold::Key, Option<(Source, &Entry)>)],
) -> Wrong {
    let with_source = |field: &str| {
        let Some((key, found)) = merged.iter().find(|(key, _)| key.field == field) else {
            return field.to_owned();
        };
        match found {
            Some((source, entry)) => format!("{} {} ({source})", key.name, entry.text),
            None => format!("{} {} ({})", key.name, key.default, Source::Default),
        }
    };
    let parts = violation.parameters();
    let text = match violation {
        Violation::Contradiction(relation) => {
            let [one, other] = relation.parameters;
            format!(
                "{} {} {}",
                with_source(one),
                relation.rule,
                with_source(other)
            )
        }
        Violation::OutOfRange(key) => {
            format!("{} must be {}", with_source(key.field), key.range)
        }
        _ => violation.to_string(),
    };
    let given = parts.iter().filter_map(|field| {
        let (key, found) = merged.iter().find(|(key, _)| key.field == *field)?;
        Some((key.name, (*found)?.0))
    });
    // The first that someone gave; a default alone is never wrong.
    let (key, source) = given.clone().next().unwrap_or(("", Source::Default));
    Wrong {
        fault: ThresholdFault {
            source,
            key: key.to_owned(),
            text,
        },
        names: parts.to_vec(),
    }
}
