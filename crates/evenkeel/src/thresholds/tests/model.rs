//! The rule of docs/thresholds.md, "Which one counts", written a second time: as
//! slow and as near to the sentences as possible, on texts alone.

use proptest::prelude::*;

use super::*;

const LEAKY: [&str; 2] = ["critical-threshold", "passing-threshold"];
const RUNS: [&str; 3] = [
    "failures-before-critical",
    "failures-before-warning",
    "success-before-passing",
];

/// What one source says, as key and value.
type Text = BTreeMap<&'static str, String>;

#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    strategy: String,
    /// key, value, number of the source or nothing for a default
    parameters: Vec<(String, String, Option<usize>)>,
    fallback: bool,
}

fn is_count(text: &str) -> bool {
    text.parse::<u32>().is_ok() && !text.starts_with('+')
}

/// "by `strategy`, else by whose keys they are"
fn strategy_of(source: &Text) -> Option<Result<String, ()>> {
    if let Some(named) = source.get("strategy") {
        let known = ["leaky", "consecutive", "consul"].contains(&named.as_str());
        return Some(if known { Ok(named.clone()) } else { Err(()) });
    }
    let leaky = LEAKY.iter().any(|key| source.contains_key(key));
    let runs = RUNS.iter().any(|key| source.contains_key(key));
    match (leaky, runs) {
        (false, false) => None,
        (true, false) => Some(Ok("leaky".to_owned())),
        (false, true) => Some(Ok("consecutive".to_owned())),
        (true, true) => Some(Err(())),
    }
}

/// "parameters are merged only from sources of that same strategy"; keys of
/// Consul's names without a strategy are as good for `consul`.
fn same_strategy(source: &Text, strategy: &str) -> bool {
    match strategy_of(source) {
        Some(Ok(of)) => {
            of == strategy
                || of == "consecutive" && strategy == "consul" && !source.contains_key("strategy")
        }
        _ => false,
    }
}

fn judge(sources: &[Text]) -> Option<Verdict> {
    // "The first source that has any of them decides the strategy"
    let strategy = match sources.iter().find_map(strategy_of) {
        None => "leaky".to_owned(),
        Some(decided) => decided.ok()?,
    };
    let keys: &[&str] = if strategy == "leaky" { &LEAKY } else { &RUNS };
    let mut parameters = Vec::new();
    for key in keys {
        let found = (0..sources.len()).find(|&index| {
            same_strategy(&sources[index], &strategy) && sources[index].contains_key(key)
        });
        match found {
            Some(index) => {
                let value = sources[index][key].clone();
                // "if it is invalid the daemon's applies whole"
                if !is_count(&value) {
                    return None;
                }
                parameters.push(((*key).to_owned(), value, Some(index)));
            }
            None if *key == "failures-before-warning" => {}
            None => parameters.push(((*key).to_owned(), "0".to_owned(), None)),
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
        1 => prop_oneof![Just("x".to_owned()), Just("-1".to_owned()), Just("4294967296".to_owned())],
    ]
}

fn source() -> impl Strategy<Value = Text> {
    let strategy = prop_oneof![
        6 => Just(None),
        1 => Just(Some("leaky".to_owned())),
        1 => Just(Some("consecutive".to_owned())),
        1 => Just(Some("consul".to_owned())),
        1 => Just(Some("bogus".to_owned())),
    ];
    let parameters = prop::collection::btree_map(
        prop::sample::select([LEAKY.as_slice(), RUNS.as_slice()].concat()),
        value(),
        0..3,
    );
    (strategy, parameters).prop_map(|(strategy, mut text)| {
        text.extend(strategy.map(|strategy| ("strategy", strategy)));
        text
    })
}

fn daemon() -> impl Strategy<Value = (ThresholdSettings, Text)> {
    let count = || prop::option::of(0..5_u32);
    let settings = |strategy, a: [Option<u32>; 2], b: [Option<u32>; 2]| ThresholdSettings {
        strategy,
        critical_threshold: a[0],
        passing_threshold: a[1],
        failures_before_critical: b[0],
        success_before_passing: b[1],
        ..ThresholdSettings::default()
    };
    prop_oneof![
        (count(), count()).prop_map(move |(a, b)| settings(None, [a, b], [None, None])),
        (count(), count()).prop_map(move |(a, b)| settings(
            Some(StrategyName::Consecutive),
            [None, None],
            [a, b]
        )),
        (count(), count()).prop_map(move |(a, b)| settings(
            Some(StrategyName::Consul),
            [None, None],
            [a, b]
        )),
    ]
    .prop_map(|settings| {
        let mut text = Text::new();
        let mut put = |key, value: Option<u32>| {
            text.extend(value.map(|value| (key, value.to_string())));
        };
        put("critical-threshold", settings.critical_threshold);
        put("passing-threshold", settings.passing_threshold);
        put(
            "failures-before-critical",
            settings.failures_before_critical,
        );
        put("success-before-passing", settings.success_before_passing);
        text.extend(
            settings
                .strategy
                .map(|name| ("strategy", name.as_str().to_owned())),
        );
        (settings, text)
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
