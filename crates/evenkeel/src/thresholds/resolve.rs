use std::collections::HashSet;
use std::sync::Arc;

use evenkeel_threshold::{AnyStrategy, Consecutive, Consul, Counts, FirstResult, Leaky};

use super::key::{Family, Key, Value};
use super::said::{Entry, Said, Stance};
use super::{
    EffectiveThresholds, Ignored, IgnoredReason, Parameter, Source, Sources, ThresholdFault,
};
use crate::config::{Override, Settings, StrategyName, ThresholdSettings};

/// Finds the thresholds of checks, and shares equal results between them.
#[derive(Debug)]
pub struct Resolver {
    daemon: Said,
    overrides: Vec<Override>,
    /// What a check gets of which nobody says anything.
    default: Arc<EffectiveThresholds>,
    strategies: HashSet<Arc<AnyStrategy>>,
    results: HashSet<Arc<EffectiveThresholds>>,
}

impl Resolver {
    /// A resolver with the daemon's `[threshold]` and `[[override]]`.
    ///
    /// Faulty ones were refused when the configuration was read ([`faults`]);
    /// should one come here all the same, a faulty override is a fault of each
    /// check that it matches, and a faulty `[threshold]` damps nothing.
    pub fn new(settings: &Settings) -> Self {
        let daemon = Said::settings(Source::Daemon, &settings.threshold);
        let default = Arc::new(fall_back(&daemon));
        Self {
            overrides: settings.overrides.clone(),
            strategies: HashSet::from([Arc::clone(&default.strategy)]),
            results: HashSet::from([Arc::clone(&default)]),
            daemon,
            default,
        }
    }

    /// The thresholds of one check.
    pub fn resolve(&mut self, sources: &Sources<'_>) -> Arc<EffectiveThresholds> {
        let said = self.listen(sources);
        if said.is_empty() {
            return Arc::clone(&self.default);
        }
        let mut effective = weigh(&said, &self.daemon);
        match self.strategies.get(&effective.strategy) {
            Some(shared) => effective.strategy = Arc::clone(shared),
            None => {
                self.strategies.insert(Arc::clone(&effective.strategy));
            }
        }
        if let Some(shared) = self.results.get(&effective) {
            return Arc::clone(shared);
        }
        let shared = Arc::new(effective);
        self.results.insert(Arc::clone(&shared));
        shared
    }

    /// Drops results that no check holds any more. To be called after each
    /// round over the catalog, or memory grows with each change of metadata.
    pub fn forget_unused(&mut self) {
        let default = Arc::clone(&self.default);
        self.results
            .retain(|shared| Arc::strong_count(shared) > 1 || *shared == default);
        self.strategies
            .retain(|shared| Arc::strong_count(shared) > 1);
    }

    /// All sources that say something of the check, first to last, but not the
    /// daemon.
    fn listen(&self, sources: &Sources<'_>) -> Vec<Said> {
        let overrides = self
            .overrides
            .iter()
            .enumerate()
            .filter(|(_, entry)| matches(entry, sources))
            .map(|(index, entry)| Said::settings(Source::Override(index), &entry.thresholds));
        let metadata = [
            (Source::ServiceMeta, sources.service_meta),
            (Source::NodeMeta, sources.node_meta),
        ];
        overrides
            .chain([
                Said::definition(&sources.definition),
                Said::notes(sources.notes),
            ])
            .chain(
                metadata
                    .into_iter()
                    .filter_map(|(source, metadata)| Some(Said::metadata(source, metadata?))),
            )
            .filter(|said| !said.is_empty())
            .collect()
    }
}

/// Whether an override is meant for the check: all its patterns match.
fn matches(entry: &Override, sources: &Sources<'_>) -> bool {
    let either = |pattern: &Option<crate::config::Pattern>, names: [&str; 2]| match pattern {
        None => true,
        Some(pattern) => names
            .iter()
            .any(|name| !name.is_empty() && pattern.matches(name)),
    };
    either(&entry.node, [sources.node, ""])
        && either(&entry.service, [sources.service_name, sources.service_id])
        && either(&entry.check, [sources.check_name, sources.check_id])
}

/// What is wrong with the thresholds in a table of our own, as pairs of the key
/// (as the table spells it) and a sentence.
///
/// Nothing adds to what the daemon's `[threshold]` says, so it must be right by
/// itself; any other table may be completed by the sources after it. Unlike in a
/// catalog that is shared with others, a parameter of another strategy is a
/// fault here.
pub fn faults(settings: &ThresholdSettings, source: Source) -> Vec<(String, String)> {
    let said = Said::settings(source, settings);
    let strategy = match said.stance() {
        Stance::Mixed => {
            return vec![(
                "strategy".to_owned(),
                "keys of both leaky and consecutive are set: name the strategy".to_owned(),
            )];
        }
        Stance::Explicit(strategy) => strategy,
        Stance::Keys(family) => family.strategy(),
        Stance::Silent | Stance::Unknown | Stance::Broken => return Vec::new(),
    };
    let mut faults: Vec<(String, String)> = said
        .entries
        .iter()
        .filter(|entry| {
            entry
                .key
                .family()
                .is_some_and(|family| family != Family::of(strategy))
        })
        .map(|entry| {
            let text = format!("not a parameter of the strategy {}", strategy.as_str());
            (entry.spelling.clone(), text)
        })
        .collect();
    let complete = source == Source::Daemon || settings.failures_before_critical.is_some();
    if faults.is_empty()
        && complete
        && let Err(ThresholdFault { text, .. }) = assemble(strategy, &[&said])
    {
        faults.push(("failures_before_warning".to_owned(), text));
    }
    faults
}

/// The rule of docs/thresholds.md.
fn weigh(said: &[Said], daemon: &Said) -> EffectiveThresholds {
    let heard: Vec<&Said> = said.iter().chain([daemon]).collect();
    let mut faults: Vec<ThresholdFault> = said
        .iter()
        .flat_map(|said| {
            let wrong_values = said.entries.iter().filter_map(|entry| {
                let text = entry.value.as_ref().err()?;
                Some(ThresholdFault {
                    source: said.source,
                    key: entry.spelling.clone(),
                    text: text.clone(),
                })
            });
            said.faults.iter().cloned().chain(wrong_values)
        })
        .collect();

    let decided = heard
        .iter()
        .find(|said| said.stance() != Stance::Silent)
        .map(|said| (said.source, said.stance()));
    let (decided_by, strategy) = match decided {
        None => (Source::Default, Some(StrategyName::Leaky)),
        Some((source, Stance::Explicit(strategy))) => (source, Some(strategy)),
        Some((source, Stance::Keys(family))) => (source, Some(family.strategy())),
        Some((source, Stance::Mixed)) => {
            faults.push(mixed(source));
            (source, None)
        }
        // Their faults are among those collected above.
        Some((source, Stance::Silent | Stance::Unknown | Stance::Broken)) => (source, None),
    };
    // A source that does not decide is no less wrong.
    for other in said.iter().filter(|said| said.source != decided_by) {
        if other.stance() == Stance::Mixed {
            faults.push(mixed(other.source));
        }
    }

    let assembled = strategy.and_then(|strategy| match assemble(strategy, &heard) {
        Ok(rule) => Some((strategy, rule)),
        Err(fault) => {
            // A wrong value was reported as such.
            if !fault.text.is_empty() {
                faults.push(fault);
            }
            None
        }
    });
    let Some((strategy, (rule, first_result, parameters))) = assembled else {
        return EffectiveThresholds {
            ignored: ignored(said, |_, _| Some(IgnoredReason::Invalid)),
            faults,
            fallback: true,
            ..fall_back(daemon)
        };
    };
    EffectiveThresholds {
        strategy: Arc::new(rule),
        first_result,
        decided_by,
        parameters,
        ignored: ignored(said, |said, entry| {
            let counts = match entry.key.family() {
                None => true,
                Some(family) => speaks_for(said, strategy) && family == Family::of(strategy),
            };
            (!counts).then_some(IgnoredReason::OtherStrategy)
        }),
        faults,
        fallback: false,
    }
}

fn mixed(source: Source) -> ThresholdFault {
    ThresholdFault {
        source,
        key: String::new(),
        text: "keys of both leaky and consecutive, and no strategy named".to_owned(),
    }
}

fn ignored(said: &[Said], reason: impl Fn(&Said, &Entry) -> Option<IgnoredReason>) -> Vec<Ignored> {
    said.iter()
        .flat_map(|said| said.entries.iter().map(move |entry| (said, entry)))
        .filter_map(|(said, entry)| {
            Some(Ignored {
                source: said.source,
                key: entry.key.name(),
                value: entry.text.clone(),
                reason: reason(said, entry)?,
            })
        })
        .collect()
}

/// Whether a source's parameters may be merged into those of `strategy`.
fn speaks_for(said: &Said, strategy: StrategyName) -> bool {
    match said.stance() {
        Stance::Explicit(named) => named == strategy,
        Stance::Keys(family) => family == Family::of(strategy),
        Stance::Silent | Stance::Unknown | Stance::Mixed | Stance::Broken => false,
    }
}

type Rule = (AnyStrategy, FirstResult, Vec<Parameter>);

/// Merges the parameters of `strategy`, each from the first source that has it,
/// and validates them as one.
///
/// A fault without text stands for a wrong value, which its source reports.
fn assemble(strategy: StrategyName, heard: &[&Said]) -> Result<Rule, ThresholdFault> {
    let mut parameters = Vec::new();
    let mut count = |key: Key| -> Result<Option<u32>, ThresholdFault> {
        let found = heard
            .iter()
            .filter(|said| speaks_for(said, strategy))
            .find_map(|said| Some((said.source, said.entry(key)?)));
        match found {
            None => {
                // What an absent warning threshold is follows from another key.
                if key != Key::FailuresBeforeWarning {
                    parameters.push(Parameter {
                        key: key.name(),
                        value: "0".to_owned(),
                        source: Source::Default,
                    });
                }
                Ok(None)
            }
            Some((source, entry)) => match entry.value {
                Ok(Value::Count(count)) => {
                    parameters.push(Parameter {
                        key: key.name(),
                        value: count.to_string(),
                        source,
                    });
                    Ok(Some(count))
                }
                _ => Err(wrong_value(source, entry)),
            },
        }
    };
    let mut values = [None; 3];
    for (value, key) in values.iter_mut().zip(Family::of(strategy).parameters()) {
        *value = count(*key)?;
    }
    let [first, second, third] = values;
    let rule = match strategy {
        StrategyName::Leaky => {
            Leaky::new(first.unwrap_or_default(), second.unwrap_or_default()).into()
        }
        StrategyName::Consecutive | StrategyName::Consul => {
            let counts = Counts {
                failures_before_critical: first.unwrap_or_default(),
                failures_before_warning: second,
                success_before_passing: third.unwrap_or_default(),
            };
            let made = match strategy {
                StrategyName::Consul => Consul::new(counts).map(AnyStrategy::from),
                _ => Consecutive::new(counts).map(AnyStrategy::from),
            };
            made.map_err(|_| warning_above_critical(&parameters))?
        }
    };
    let first_result = heard
        .iter()
        .find_map(|said| Some((said.source, said.entry(Key::FirstResult)?)));
    let (first_result, source) = match first_result {
        None => (rule.default_first_result(), Source::Default),
        Some((source, entry)) => match entry.value {
            Ok(Value::First(first_result)) => (first_result, source),
            _ => return Err(wrong_value(source, entry)),
        },
    };
    parameters.push(Parameter {
        key: Key::FirstResult.name(),
        value: match first_result {
            FirstResult::Believed => "believed".to_owned(),
            FirstResult::Counted => "counted".to_owned(),
        },
        source,
    });
    Ok((rule, first_result, parameters))
}

fn wrong_value(source: Source, entry: &Entry) -> ThresholdFault {
    ThresholdFault {
        source,
        key: entry.spelling.clone(),
        text: String::new(),
    }
}

/// P077: both keys are named, and here where each comes from, too.
fn warning_above_critical(parameters: &[Parameter]) -> ThresholdFault {
    let told = |key: Key| {
        let parameter = parameters
            .iter()
            .find(|parameter| parameter.key == key.name());
        parameter.map_or_else(String::new, |parameter| {
            format!("{} {} ({})", key.name(), parameter.value, parameter.source)
        })
    };
    let source = parameters
        .iter()
        .find(|parameter| parameter.key == Key::FailuresBeforeWarning.name())
        .map_or(Source::Default, |parameter| parameter.source);
    ThresholdFault {
        source,
        key: Key::FailuresBeforeWarning.name().to_owned(),
        text: format!(
            "{} is more than {}, so there would be no warning",
            told(Key::FailuresBeforeWarning),
            told(Key::FailuresBeforeCritical)
        ),
    }
}

/// What applies when the sources are invalid: the daemon's `[threshold]` whole.
fn fall_back(daemon: &Said) -> EffectiveThresholds {
    let (strategy, decided_by) = match daemon.stance() {
        Stance::Explicit(strategy) => (strategy, Source::Daemon),
        Stance::Keys(family) => (family.strategy(), Source::Daemon),
        Stance::Silent | Stance::Unknown | Stance::Mixed | Stance::Broken => {
            (StrategyName::Leaky, Source::Default)
        }
    };
    let nobody = Said::new(Source::Daemon);
    let (rule, first_result, parameters) = assemble(strategy, &[daemon])
        .or_else(|_| assemble(StrategyName::Leaky, &[&nobody]))
        .unwrap_or_else(|_| {
            let rule = AnyStrategy::from(Leaky::new(0, 0));
            (rule, rule.default_first_result(), Vec::new())
        });
    EffectiveThresholds {
        strategy: Arc::new(rule),
        first_result,
        decided_by,
        parameters,
        ignored: Vec::new(),
        faults: Vec::new(),
        fallback: false,
    }
}
