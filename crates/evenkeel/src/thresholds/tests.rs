use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_threshold::{AnyStrategy, Consecutive, Consul, Counts, FirstResult, Leaky};

use super::*;
use crate::config::{Override, Settings, StrategyName, ThresholdSettings};

mod model;

type Meta = BTreeMap<String, String>;

fn meta(pairs: &[(&str, &str)]) -> Meta {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn resolver(threshold: ThresholdSettings, overrides: Vec<Override>) -> Resolver {
    Resolver::new(&Settings {
        threshold,
        overrides,
        ..Settings::default()
    })
}

fn plain() -> Resolver {
    resolver(ThresholdSettings::default(), Vec::new())
}

fn leaky(critical: u32, passing: u32) -> AnyStrategy {
    Leaky::new(critical, passing).into()
}

fn counts(critical: u32, warning: Option<u32>, passing: u32) -> Counts {
    Counts {
        failures_before_critical: critical,
        failures_before_warning: warning,
        success_before_passing: passing,
    }
}

fn consecutive(critical: u32, warning: Option<u32>, passing: u32) -> AnyStrategy {
    Consecutive::new(counts(critical, warning, passing))
        .unwrap()
        .into()
}

/// `key=value(source)` for each parameter.
fn told(effective: &EffectiveThresholds) -> Vec<String> {
    effective
        .parameters
        .iter()
        .map(|parameter| {
            format!(
                "{}={}({})",
                parameter.key, parameter.value, parameter.source
            )
        })
        .collect()
}

fn faults_of(effective: &EffectiveThresholds) -> Vec<String> {
    effective.faults.iter().map(ToString::to_string).collect()
}

#[test]
fn without_any_source_nothing_is_damped() {
    let effective = plain().resolve(&Sources::default());
    assert_eq!(*effective.strategy, leaky(0, 0));
    assert_eq!(effective.first_result, FirstResult::Counted);
    assert_eq!(effective.decided_by, Source::Default);
    assert_eq!(
        told(&effective),
        [
            "critical-threshold=0(default)",
            "passing-threshold=0(default)",
            "first-result=counted(default)"
        ]
    );
    assert!(effective.faults.is_empty() && !effective.fallback);
}

#[test]
fn the_directive_in_notes_sets_thresholds_wherever_it_stands() {
    for notes in [
        "[evenkeel critical-threshold=3 passing-threshold=1]",
        "Owned by [team a].\n[evenkeel critical-threshold=3\tpassing-threshold=1] See [wiki].",
        "x[Evenkeel critical_threshold=3 passing_threshold=1]y",
        "[[evenkeel critical-threshold=3 passing-threshold=1]]",
        "[é [evenkeel critical-threshold=3 passing-threshold=1]",
    ] {
        let effective = plain().resolve(&Sources {
            notes,
            ..Sources::default()
        });
        assert_eq!(*effective.strategy, leaky(3, 1), "{notes}");
        assert_eq!(effective.decided_by, Source::Notes, "{notes}");
        assert!(
            effective.faults.is_empty(),
            "{notes}: {:?}",
            effective.faults
        );
    }
}

#[test]
fn notes_without_a_directive_say_nothing() {
    for notes in [
        "",
        "[",
        "evenkeel critical-threshold=3",
        "[evenkeeler x=1]",
        "[evenkee",
        "é[",
    ] {
        let effective = plain().resolve(&Sources {
            notes,
            ..Sources::default()
        });
        assert!(
            effective.faults.is_empty(),
            "{notes}: {:?}",
            effective.faults
        );
        assert_eq!(effective.decided_by, Source::Default, "{notes}");
    }
}

#[test]
fn a_faulty_directive_is_reported_and_the_daemon_decides() {
    let daemon = ThresholdSettings {
        critical_threshold: Some(7),
        ..ThresholdSettings::default()
    };
    for (notes, fault) in [
        (
            "[evenkeel critical-threshold=3] [evenkeel passing-threshold=1]",
            "notes: more than one [evenkeel …] directive",
        ),
        (
            "[evenkeel critical-threshold=3",
            "notes: the [evenkeel … directive has no closing ]",
        ),
        (
            "[evenkeel",
            "notes: the [evenkeel … directive has no closing ]",
        ),
        (
            "[evenkeel critical-threshold 3]",
            "notes: critical-threshold: not of the form key=value",
        ),
        (
            "[evenkeel critical-threshold=-1]",
            "notes: critical-threshold: `-1` is not a whole number from 0 on",
        ),
        (
            "[evenkeel critical-threshold=4294967296]",
            "notes: critical-threshold: `4294967296` is more than 4294967295",
        ),
        (
            "[evenkeel critical-threshold=]",
            "notes: critical-threshold: `` is not a whole number from 0 on",
        ),
        (
            "[evenkeel strategy=leeky]",
            "notes: strategy: `leeky` is no strategy: leaky, consecutive or consul",
        ),
        (
            "[evenkeel critical-threshold=3 critical-threshold=4]",
            "notes: critical-threshold: given twice, as `3` and as `4`",
        ),
        (
            "[evenkeel critical-threshold=3 failures-before-critical=4]",
            "notes: keys of both leaky and consecutive, and no strategy named",
        ),
        (
            "[evenkeel critical-threshold=3 first-result=maybe]",
            "notes: first-result: `maybe` is neither believed nor counted",
        ),
    ] {
        let effective = resolver(daemon.clone(), Vec::new()).resolve(&Sources {
            notes,
            ..Sources::default()
        });
        let faults = faults_of(&effective);
        assert!(
            faults.iter().any(|found| found == fault),
            "{notes}: {faults:?}"
        );
        assert_eq!(*effective.strategy, leaky(7, 0), "{notes}");
        assert!(effective.fallback, "{notes}");
        assert_eq!(effective.decided_by, Source::Daemon, "{notes}");
    }
}

#[test]
fn an_unknown_key_is_a_fault_and_the_others_apply() {
    let effective = plain().resolve(&Sources {
        notes: "[evenkeel critcal-threshold=9 critical-threshold=2]",
        ..Sources::default()
    });
    assert_eq!(*effective.strategy, leaky(2, 0));
    assert!(!effective.fallback);
    assert_eq!(
        faults_of(&effective),
        ["notes: critcal-threshold: not a known key; did you mean critical-threshold?"]
    );
}

// P124
#[test]
fn metadata_of_node_and_service_are_honoured() {
    let node = meta(&[("evenkeel-critical-threshold", " 5 "), ("rack", "7")]);
    let effective = plain().resolve(&Sources {
        node_meta: Some(&node),
        ..Sources::default()
    });
    assert_eq!(*effective.strategy, leaky(5, 0));
    assert_eq!(effective.decided_by, Source::NodeMeta);

    let service = meta(&[("evenkeel-passing-threshold", "2")]);
    let effective = plain().resolve(&Sources {
        service_meta: Some(&service),
        node_meta: Some(&node),
        ..Sources::default()
    });
    assert_eq!(*effective.strategy, leaky(5, 2));
    assert_eq!(
        told(&effective),
        [
            "critical-threshold=5(node metadata)",
            "passing-threshold=2(service metadata)",
            "first-result=counted(default)"
        ]
    );
}

// P124
#[test]
fn an_invalid_value_in_metadata_is_reported_and_the_default_used() {
    let node = meta(&[("evenkeel-critical-threshold", "many")]);
    let effective = plain().resolve(&Sources {
        node_meta: Some(&node),
        ..Sources::default()
    });
    assert_eq!(*effective.strategy, leaky(0, 0));
    assert!(effective.fallback);
    assert_eq!(
        faults_of(&effective),
        ["node metadata: evenkeel-critical-threshold: `many` is not a whole number from 0 on"]
    );
}

#[test]
fn consuls_bare_names_are_accepted_in_metadata() {
    let service = meta(&[
        ("failures_before_critical", "4"),
        ("failures_before_warning", "2"),
        ("success_before_passing", "3"),
        ("critical_threshold", "9"),
    ]);
    let effective = plain().resolve(&Sources {
        service_meta: Some(&service),
        ..Sources::default()
    });
    assert_eq!(*effective.strategy, consecutive(4, Some(2), 3));
    assert_eq!(effective.first_result, FirstResult::Believed);
    assert!(effective.faults.is_empty());
}

#[test]
fn an_unknown_or_misspelt_key_of_ours_in_metadata_is_a_fault() {
    let node = meta(&[
        ("evenkeel-critical-treshold", "3"),
        ("evenkeel_critical_threshold", "3"),
        ("evenkeel-", "3"),
        ("evenkeels", "fine"),
        ("evenkeel_owner", "fine"),
    ]);
    let effective = plain().resolve(&Sources {
        node_meta: Some(&node),
        ..Sources::default()
    });
    assert_eq!(
        faults_of(&effective),
        [
            "node metadata: evenkeel-: not a known key",
            "node metadata: evenkeel-critical-treshold: not a known key; did you mean \
             evenkeel-critical-threshold?",
            "node metadata: evenkeel_critical_threshold: write evenkeel-critical-threshold",
        ]
    );
    assert!(!effective.fallback);
}

#[test]
fn the_first_source_decides_the_strategy_and_others_are_ignored_by_name() {
    let service = meta(&[("evenkeel-passing-threshold", "2")]);
    let node = meta(&[("failures_before_critical", "8")]);
    let effective = plain().resolve(&Sources {
        notes: "[evenkeel strategy=leaky]",
        service_meta: Some(&service),
        node_meta: Some(&node),
        ..Sources::default()
    });
    assert_eq!(*effective.strategy, leaky(0, 2));
    assert_eq!(effective.decided_by, Source::Notes);
    assert_eq!(
        effective.ignored,
        [Ignored {
            source: Source::NodeMeta,
            key: "failures-before-critical",
            value: "8".to_owned(),
            reason: IgnoredReason::OtherStrategy,
        }]
    );
}

#[test]
fn a_named_strategy_keeps_consuls_keys_beside_it_out() {
    let service = meta(&[
        ("evenkeel-strategy", "leaky"),
        ("evenkeel-critical-threshold", "2"),
        ("failures_before_critical", "8"),
    ]);
    let effective = plain().resolve(&Sources {
        service_meta: Some(&service),
        ..Sources::default()
    });
    assert_eq!(*effective.strategy, leaky(2, 0));
    assert_eq!(effective.ignored.len(), 1);
    assert!(effective.faults.is_empty());
}

#[test]
fn the_strategy_consul_takes_the_same_keys() {
    let node = meta(&[("failures_before_critical", "3")]);
    let effective = plain().resolve(&Sources {
        notes: "[evenkeel strategy=consul success-before-passing=2]",
        node_meta: Some(&node),
        ..Sources::default()
    });
    let expected = AnyStrategy::from(Consul::new(counts(3, None, 2)).unwrap());
    assert_eq!(*effective.strategy, expected);
}

// P077
#[test]
fn a_warning_after_the_critical_status_is_refused_with_both_sources() {
    let node = meta(&[("failures_before_critical", "3")]);
    let effective = plain().resolve(&Sources {
        notes: "[evenkeel failures-before-warning=5]",
        node_meta: Some(&node),
        ..Sources::default()
    });
    assert!(effective.fallback);
    assert_eq!(*effective.strategy, leaky(0, 0));
    assert_eq!(
        faults_of(&effective),
        [
            "notes: failures-before-warning: failures-before-warning 5 (notes) is more than \
          failures-before-critical 3 (node metadata), so there would be no warning"
        ]
    );
}

#[test]
fn a_wrong_value_that_is_not_used_is_reported_without_harm() {
    let node = meta(&[("evenkeel-critical-threshold", "x")]);
    let effective = plain().resolve(&Sources {
        notes: "[evenkeel critical-threshold=3]",
        node_meta: Some(&node),
        ..Sources::default()
    });
    assert_eq!(*effective.strategy, leaky(3, 0));
    assert!(!effective.fallback);
    assert_eq!(effective.faults.len(), 1);
}

#[test]
fn fields_of_the_definition_come_before_notes() {
    let effective = plain().resolve(&Sources {
        definition: DefinitionThresholds::Consul {
            success_before_passing: None,
            failures_before_warning: None,
            failures_before_critical: Some(3),
        },
        notes: "[evenkeel failures-before-critical=9 success-before-passing=2]",
        ..Sources::default()
    });
    assert_eq!(*effective.strategy, consecutive(3, None, 2));
    assert_eq!(effective.decided_by, Source::Definition);

    let effective = plain().resolve(&Sources {
        definition: DefinitionThresholds::Consul {
            success_before_passing: None,
            failures_before_warning: None,
            failures_before_critical: Some(-3),
        },
        ..Sources::default()
    });
    assert_eq!(
        faults_of(&effective),
        ["definition: FailuresBeforeCritical: `-3` is not a whole number from 0 on"]
    );
}

#[test]
fn overrides_come_first_and_match_by_all_their_patterns() {
    let entry = |node: &str, service: Option<&str>, critical: u32| Override {
        node: Some(node.parse().unwrap()),
        service: service.map(|service| service.parse().unwrap()),
        check: None,
        thresholds: ThresholdSettings {
            critical_threshold: Some(critical),
            ..ThresholdSettings::default()
        },
    };
    let mut resolver = resolver(
        ThresholdSettings::default(),
        vec![entry("db-*", Some("postgres*"), 9), entry("*", None, 4)],
    );
    let sources = Sources {
        node: "db-1",
        service_name: "postgres",
        service_id: "postgres-1",
        notes: "[evenkeel critical-threshold=1 passing-threshold=1]",
        ..Sources::default()
    };
    let effective = resolver.resolve(&sources);
    assert_eq!(*effective.strategy, leaky(9, 1));
    assert_eq!(effective.decided_by, Source::Override(0));
    // A check of the node alone has no service to match.
    let of_node = Sources {
        service_name: "",
        service_id: "",
        ..sources
    };
    assert_eq!(*resolver.resolve(&of_node).strategy, leaky(4, 1));
    let other = Sources {
        node: "web-1",
        ..sources
    };
    assert_eq!(*resolver.resolve(&other).strategy, leaky(4, 1));
}

#[test]
fn the_daemons_thresholds_fill_what_nobody_else_says() {
    let daemon = ThresholdSettings {
        critical_threshold: Some(3),
        passing_threshold: Some(1),
        ..ThresholdSettings::default()
    };
    let mut resolver = resolver(daemon, Vec::new());
    let effective = resolver.resolve(&Sources {
        notes: "[evenkeel critical-threshold=5]",
        ..Sources::default()
    });
    assert_eq!(*effective.strategy, leaky(5, 1));
    // Those of another strategy do not.
    let effective = resolver.resolve(&Sources {
        notes: "[evenkeel failures-before-critical=5]",
        ..Sources::default()
    });
    assert_eq!(*effective.strategy, consecutive(5, None, 0));
    // Alone, they decide.
    let effective = resolver.resolve(&Sources::default());
    assert_eq!(*effective.strategy, leaky(3, 1));
    assert_eq!(effective.decided_by, Source::Daemon);
}

#[test]
fn first_result_decides_no_strategy_and_merges_from_anywhere() {
    let node = meta(&[("failures_before_critical", "3")]);
    let effective = plain().resolve(&Sources {
        notes: "[evenkeel first-result=counted]",
        node_meta: Some(&node),
        ..Sources::default()
    });
    assert_eq!(*effective.strategy, consecutive(3, None, 0));
    assert_eq!(effective.first_result, FirstResult::Counted);
    assert_eq!(effective.decided_by, Source::NodeMeta);
    assert!(effective.ignored.is_empty());
}

#[test]
fn equal_results_are_shared_and_dropped_when_nobody_holds_them() {
    let mut resolver = plain();
    let node = meta(&[("evenkeel-critical-threshold", "3")]);
    let by_node = Sources {
        node_meta: Some(&node),
        ..Sources::default()
    };
    let by_notes = Sources {
        notes: "[evenkeel critical-threshold=3]",
        ..Sources::default()
    };
    let first = resolver.resolve(&by_node);
    let second = resolver.resolve(&by_node);
    let third = resolver.resolve(&by_notes);
    assert!(Arc::ptr_eq(&first, &second));
    assert!(!Arc::ptr_eq(&first, &third));
    assert!(Arc::ptr_eq(&first.strategy, &third.strategy));

    let weak = Arc::downgrade(&third);
    drop(third);
    resolver.forget_unused();
    assert!(weak.upgrade().is_none());
    assert!(Arc::ptr_eq(&first, &resolver.resolve(&by_node)));
}

#[test]
fn a_hostile_source_costs_bounded_memory() {
    let notes = format!("[evenkeel {}]", "x=1 ".repeat(100_000));
    let effective = plain().resolve(&Sources {
        notes: &notes,
        ..Sources::default()
    });
    assert!(effective.faults.len() <= 8);
    let notes = format!("[evenkeel critical-threshold={}]", "9".repeat(1_000_000));
    let effective = plain().resolve(&Sources {
        notes: &notes,
        ..Sources::default()
    });
    let told: usize = faults_of(&effective).iter().map(String::len).sum();
    assert!(told < 1_000, "{told}");
}

#[test]
fn faults_of_our_own_tables_name_the_key() {
    let table =
        |strategy, critical_threshold, failures_before_critical, failures_before_warning| {
            ThresholdSettings {
                strategy,
                critical_threshold,
                failures_before_critical,
                failures_before_warning,
                ..ThresholdSettings::default()
            }
        };
    let keys = |settings: &ThresholdSettings, source| -> Vec<String> {
        super::faults(settings, source)
            .into_iter()
            .map(|(key, _)| key)
            .collect()
    };
    assert_eq!(keys(&ThresholdSettings::default(), Source::Daemon), [""; 0]);
    assert_eq!(
        keys(&table(None, Some(1), Some(1), None), Source::Daemon),
        ["strategy"]
    );
    let foreign = table(Some(StrategyName::Leaky), None, Some(1), None);
    assert_eq!(keys(&foreign, Source::Daemon), ["failures_before_critical"]);
    let late = table(None, None, Some(3), Some(5));
    assert_eq!(
        keys(&late, Source::Override(0)),
        ["failures_before_warning"]
    );
    let text = &super::faults(&late, Source::Daemon)[0].1;
    assert!(text.contains("failures-before-critical 3"), "{text}");
    // Another source may add what is missing.
    let partial = table(None, None, None, Some(5));
    assert_eq!(keys(&partial, Source::Override(0)), [""; 0]);
    assert_eq!(keys(&partial, Source::Daemon), ["failures_before_warning"]);
}
