use std::collections::HashSet;
use std::sync::Arc;

use evenkeel_threshold::AnyStrategy;

use super::assemble::{Assembled, assemble};
use super::key::Key;
use super::said::{Entry, Said, Stance};
use super::{EffectiveThresholds, Ignored, IgnoredReason, Source, Sources, ThresholdFault};
use crate::config::{Override, Settings, ThresholdSettings};

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
/// itself; any other table may be completed by the sources after it, and that of
/// a check by those before it. Unlike in a catalog that is shared with others, a
/// parameter of another strategy is a fault here.
pub fn faults(settings: &ThresholdSettings, source: Source) -> Vec<(String, String)> {
    let said = Said::settings(source, settings);
    let mut faults: Vec<(String, String)> = wrong_values(&said)
        .map(|fault| (fault.key, fault.text))
        .collect();
    let stance = said.stance();
    let Some(strategy) = stance.decides() else {
        let undecided = match stance {
            Stance::Mixed => true,
            // An override may name the strategy of a check.
            Stance::Keys(_) => source != Source::Definition,
            Stance::Explicit(_) | Stance::Silent | Stance::Unknown | Stance::Broken => false,
        };
        if undecided {
            faults.push(("strategy".to_owned(), said.undecided()));
        }
        return faults;
    };
    let foreign = said.parameters().filter(|entry| !entry.key.is_of(strategy));
    faults.extend(foreign.map(|entry| {
        let text = format!("not a parameter of the strategy {strategy}");
        (entry.spelling.clone(), text)
    }));
    if faults.is_empty()
        && let Err(wrong) = assemble(strategy, &[&said])
    {
        let complete = |names: &[&str]| {
            let all = names.iter().all(|name| settings.get(name).is_some());
            source == Source::Daemon || all
        };
        let told = wrong.into_iter().filter(|wrong| complete(&wrong.names));
        faults.extend(told.map(|wrong| {
            let field = wrong.fault.key.replace('-', "_");
            (field, wrong.fault.text)
        }));
    }
    faults
}

/// The values of a source that no strategy could take.
fn wrong_values(said: &Said) -> impl Iterator<Item = ThresholdFault> {
    said.entries.iter().filter_map(|entry| {
        Some(ThresholdFault {
            source: said.source,
            key: entry.spelling.clone(),
            text: entry.wrong.clone()?,
        })
    })
}

/// The rule of docs/thresholds.md.
fn weigh(said: &[Said], daemon: &Said) -> EffectiveThresholds {
    let heard: Vec<&Said> = said.iter().chain([daemon]).collect();
    let mut faults: Vec<ThresholdFault> = said
        .iter()
        .flat_map(|said| said.faults.iter().cloned().chain(wrong_values(said)))
        .collect();

    let decided = heard.iter().find(|said| said.stance() != Stance::Silent);
    let (decided_by, strategy) = match decided {
        None => (Source::Default, Some(AnyStrategy::default().name())),
        Some(said) => (said.source, said.stance().decides()),
    };
    for said in said {
        let undecided = match said.stance() {
            // A source that does not decide is no less wrong.
            Stance::Mixed => true,
            Stance::Keys(_) => said.source == decided_by && strategy.is_none(),
            Stance::Explicit(_) | Stance::Silent | Stance::Unknown | Stance::Broken => false,
        };
        if undecided {
            faults.push(ThresholdFault {
                source: said.source,
                key: String::new(),
                text: said.undecided(),
            });
        }
    }

    let assembled = strategy.and_then(|strategy| match assemble(strategy, &heard) {
        Ok(assembled) => Some((strategy, assembled)),
        Err(wrong) => {
            // What no strategy could take has been told above.
            let told = wrong.into_iter().map(|wrong| wrong.fault);
            let new: Vec<ThresholdFault> = told.filter(|fault| !faults.contains(fault)).collect();
            faults.extend(new);
            None
        }
    });
    let Some((strategy, assembled)) = assembled else {
        return EffectiveThresholds {
            ignored: ignored(said, |_, _| Some(IgnoredReason::Invalid)),
            faults,
            fallback: true,
            ..fall_back(daemon)
        };
    };
    EffectiveThresholds {
        ignored: ignored(said, |said, entry| {
            let counts = match entry.key {
                Key::Strategy | Key::FirstResult => true,
                key => said.stance().is_for(strategy) && key.is_of(strategy),
            };
            (!counts).then_some(IgnoredReason::OtherStrategy)
        }),
        faults,
        ..effective(assembled, decided_by)
    }
}

fn effective(assembled: Assembled, decided_by: Source) -> EffectiveThresholds {
    EffectiveThresholds {
        strategy: Arc::new(assembled.strategy),
        first_result: assembled.first_result,
        decided_by,
        parameters: assembled.parameters,
        ignored: Vec::new(),
        faults: Vec::new(),
        fallback: false,
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

/// What applies when the sources are invalid: the daemon's `[threshold]` whole.
fn fall_back(daemon: &Said) -> EffectiveThresholds {
    let decided = daemon.stance().decides();
    match decided.map(|strategy| assemble(strategy, &[daemon])) {
        Some(Ok(assembled)) => effective(assembled, Source::Daemon),
        // It says nothing of a strategy, or was refused when it was read.
        _ => {
            let default = AnyStrategy::default();
            let assembled = assemble(default.name(), &[daemon])
                .or_else(|_| assemble(default.name(), &[]))
                .unwrap_or_else(|_| Assembled::undamped());
            effective(assembled, Source::Default)
        }
    }
}
