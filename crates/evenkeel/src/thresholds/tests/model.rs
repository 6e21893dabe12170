//! The rule of docs/thresholds.md, "Which one counts", written a second time: as
//! slow and as near to the sentences as possible, on texts alone.

use proptest::prelude::*;

use super::*;

/// The table of docs/thresholds.md, for some of the strategies: the keys with their
/// defaults. Whoever names no strategy never means a copy of another program.
const STRATEGIES: [(&str, &[(&str, &str)]); 6] = [
    (
        "leaky",
        &[("critical-threshold", "0"), ("passing-threshold", "0")],
    ),
    ("consecutive", &RUNS),
    ("consul", &RUNS),
    (
        "consul-esm",
        &[("critical-threshold", "0"), ("passing-threshold", "0")],
    ),
    (
        "window",
        &[("results", "5"), ("failures", "3"), ("recovered-at", "1")],
    ),
    (
        "hold",
        &[
            ("failures", "1"),
            ("failing-for", "0s"),
            ("successes", "1"),
            ("passing-for", "0s"),
        ],
    ),
];
const RUNS: [(&str, &str); 3] = [
    ("failures-before-critical", "1"),
    ("failures-before-warning", ""),
    ("success-before-passing", "1"),
];
const COPIES: [&str; 2] = ["consul", "consul-esm"];
/// Strategies that are not in the table and have keys of it.
const OTHERS_WITH: [(&str, &[&str]); 3] = [
    ("dwell", &["failures", "successes"]),
    ("penalty", &["failures", "successes"]),
    ("flap", &["failures", "successes"]),
];

fn keys_of(strategy: &str) -> Vec<&'static str> {
    let found = STRATEGIES.iter().find(|(name, _)| *name == strategy);
    let others = OTHERS_WITH.iter().find(|(name, _)| *name == strategy);
    match (found, others) {
        (Some((_, keys)), _) => keys.iter().map(|(key, _)| *key).collect(),
        (_, Some((_, keys))) => keys.to_vec(),
        _ => Vec::new(),
    }
}

/// What one source says, as key and value.
type Text = BTreeMap<&'static str, String>;

#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    strategy: String,
    /// key, value, number of the source or nothing for a default
    parameters: Vec<(String, String, Option<usize>)>,
    fallback: bool,
}

fn fits(key: &str, value: &str) -> bool {
    if key.ends_with("-for") {
        let seconds = value.strip_suffix('s').map(str::parse::<u32>);
        return value == "0" || matches!(seconds, Some(Ok(_)));
    }
    value.parse::<u32>().is_ok()
}

/// The keys that are parameters.
fn parameters(source: &Text) -> Vec<&str> {
    source
        .keys()
        .copied()
        .filter(|key| *key != "strategy")
        .collect()
}

/// All strategies that have every key of the source.
fn candidates(source: &Text) -> Vec<&'static str> {
    let names = STRATEGIES.iter().map(|(name, _)| *name);
    names
        .chain(OTHERS_WITH.iter().map(|(name, _)| *name))
        .filter(|name| {
            let known = keys_of(name);
            parameters(source).iter().all(|key| known.contains(key))
        })
        .collect()
}

/// "by `strategy`, else by whose keys they are"
fn strategy_of(source: &Text) -> Option<Result<String, ()>> {
    if let Some(named) = source.get("strategy") {
        let known = STRATEGIES.iter().any(|(name, _)| name == named);
        return Some(if known { Ok(named.clone()) } else { Err(()) });
    }
    if parameters(source).is_empty() {
        return None;
    }
    let mut meant = candidates(source);
    meant.retain(|name| !COPIES.contains(name));
    Some(match meant[..] {
        [one] => Ok(one.to_owned()),
        _ => Err(()),
    })
}

/// "parameters are merged only from sources of that same strategy": of one that
/// names it, or that names none and could mean it.
fn same_strategy(source: &Text, strategy: &str) -> bool {
    match source.get("strategy") {
        Some(named) => named == strategy,
        None => !parameters(source).is_empty() && candidates(source).contains(&strategy),
    }
}

fn judge(sources: &[Text]) -> Option<Verdict> {
    // "The first source that has any of them decides the strategy"
    let strategy = match sources.iter().find_map(strategy_of) {
        None => "leaky".to_owned(),
        Some(decided) => decided.ok()?,
    };
    let (_, keys) = STRATEGIES.iter().find(|(name, _)| *name == strategy)?;
    let mut parameters = Vec::new();
    for (key, default) in *keys {
        let found = (0..sources.len()).find(|&index| {
            same_strategy(&sources[index], &strategy) && sources[index].contains_key(key)
        });
        match found {
            Some(index) => {
                let value = sources[index][key].clone();
                // "if it is invalid the daemon's applies whole"
                if !fits(key, &value) {
                    return None;
                }
                parameters.push(((*key).to_owned(), value, Some(index)));
            }
            None if default.is_empty() => {}
            None => parameters.push(((*key).to_owned(), (*default).to_owned(), None)),
        }
    }
    // "The merged set is validated as one"
    let number = |key: &str| {
        let found = parameters.iter().find(|(name, ..)| name == key);
        found.map(|(_, value, _)| value.parse::<u32>().unwrap())
    };
    if let (Some(warning), Some(critical)) = (
        number("failures-before-warning"),
        number("failures-before-critical"),
    ) {
        // 0 is 1, and no warning threshold at all for the strategy consul.
        let warning = if strategy == "consul" && warning == 0 {
            critical.max(1)
        } else {
            warning.max(1)
        };
        if warning > critical.max(1) {
            return None;
        }
    }
    if strategy == "window" {
        let (results, failures) = (number("results")?, number("failures")?.max(1));
        if !(failures..=64).contains(&results) || number("recovered-at")? >= failures {
            return None;
        }
    }
    Some(Verdict {
        strategy,
        parameters,
        fallback: false,
    })
}

fn expected(sources: &[Text]) -> Verdict {
    judge(sources).unwrap_or_else(|| {
        let daemon = &sources[sources.len() - 1..];
        let mut verdict = judge(daemon).expect("the daemon's own is valid");
        verdict.fallback = true;
        for (.., source) in &mut verdict.parameters {
            *source = source.map(|_| sources.len() - 1);
        }
        verdict
    })
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..5_u32).prop_map(|count| count.to_string()),
        1 => (0..5_u32).prop_map(|count| format!("{count}s")),
        1 => prop_oneof![Just("x".to_owned()), Just("-1".to_owned()), Just("4294967296".to_owned())],
    ]
}

fn source() -> impl Strategy<Value = Text> {
    let strategy = prop_oneof![
        6 => Just(None),
        1 => Just(Some("leaky".to_owned())),
        1 => Just(Some("consecutive".to_owned())),
        1 => Just(Some("consul".to_owned())),
        1 => Just(Some("consul-esm".to_owned())),
        1 => Just(Some("window".to_owned())),
        1 => Just(Some("hold".to_owned())),
        1 => Just(Some("bogus".to_owned())),
    ];
    // Mostly of one strategy, or hardly any source would mean anything.
    let keys: Vec<Vec<&str>> = STRATEGIES.iter().map(|(name, _)| keys_of(name)).collect();
    let all = keys.concat();
    let group = prop::sample::select([keys, vec![all]].concat());
    let parameters = group.prop_flat_map(|keys| {
        prop::collection::btree_map(prop::sample::select(keys), value(), 0..3)
    });
    (strategy, parameters).prop_map(|(strategy, mut text)| {
        text.extend(strategy.map(|strategy| ("strategy", strategy)));
        text
    })
}

fn daemon() -> impl Strategy<Value = (ThresholdSettings, Text)> {
    let valid = |text: &Text| judge(std::slice::from_ref(text)).is_some();
    source()
        .prop_filter("refused when it is read", valid)
        .prop_map(|text| {
            let pairs: Vec<(&str, &str)> = text
                .iter()
                .map(|(key, value)| (*key, value.as_str()))
                .collect();
            (settings(&pairs), text)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1_000), ..ProptestConfig::default() })]

    #[test]
    fn resolves_as_the_model(
        notes in source(), service in source(), node in source(), (settings, daemon) in daemon(),
    ) {
        let directive = notes
            .iter()
            .fold(String::new(), |text, (key, value)| format!("{text} {key}={value}"));
        let directive = if notes.is_empty() { String::new() } else { format!("[evenkeel{directive}]") };
        let as_meta = |text: &Text| -> Meta {
            text.iter().map(|(key, value)| (format!("evenkeel-{key}"), value.clone())).collect()
        };
        let (service_meta, node_meta) = (as_meta(&service), as_meta(&node));
        let effective = resolver(settings, Vec::new()).resolve(&Sources {
            notes: &directive,
            service_meta: Some(&service_meta),
            node_meta: Some(&node_meta),
            ..Sources::default()
        });

        let order = [Source::Notes, Source::ServiceMeta, Source::NodeMeta, Source::Daemon];
        let mut parameters: Vec<_> = effective
            .parameters
            .iter()
            .map(|parameter| (
                parameter.key.to_owned(),
                parameter.value.clone(),
                order.iter().position(|source| *source == parameter.source),
            ))
            .collect();
        prop_assert_eq!(parameters.pop().map(|(key, ..)| key), Some("first-result".to_owned()));
        let found = Verdict {
            strategy: effective.strategy.name().to_owned(),
            parameters,
            fallback: effective.fallback,
        };
        prop_assert_eq!(&found, &expected(&[notes, service, node, daemon]));
        if effective.fallback {
            prop_assert!(!effective.faults.is_empty());
        }
    }
}

proptest! {
    #[test]
    fn garbage_never_panics(notes in "(\\[evenkeel|\\[|\\]| |=|critical-threshold|3|\\PC){0,20}", value in "\\PC{0,12}") {
        let node = meta(&[("evenkeel-strategy", &value), ("evenkeel-critical-threshold", &value)]);
        plain().resolve(&Sources { notes: &notes, node_meta: Some(&node), ..Sources::default() });
    }
}
