use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_threshold::{AnyStrategy, Consecutive, Consul, Counts, FirstResult, Leaky};

use super::*;
use crate::config::{Override, Settings, ThresholdSettings};

mod docs;
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

/// A table of ours.
fn settings(pairs: &[(&str, &str)]) -> ThresholdSettings {
    let mut settings = ThresholdSettings::default();
    for (key, value) in pairs {
        assert!(settings.set(key, value), "{key}");
    }
    settings
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
    let daemon = settings(&[("critical_threshold", "7")]);
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
            "notes: critical-threshold: `-1` is not a whole number from 0 to 4294967295",
        ),
        (
            "[evenkeel critical-threshold=4294967296]",
            "notes: critical-threshold: `4294967296` is not a whole number from 0 to 4294967295",
        ),
        (
            "[evenkeel critical-threshold=]",
            "notes: critical-threshold: `` is not a whole number from 0 to 4294967295",
        ),
        (
            "[evenkeel strategy=leeky]",
            "notes: strategy: `leeky` is no strategy: leaky, consecutive, consul, window, ewma, cusum, \
             hold, dwell, penalty, flap, consul-esm, heartbeat or phi",
        ),
        (
            "[evenkeel critical-threshold=3 critical-threshold=4]",
            "notes: critical-threshold: given twice, as `3` and as `4`",
        ),
        (
            "[evenkeel critical-threshold=3 failures-before-critical=4]",
            "notes: no strategy has all of critical-threshold and failures-before-critical",
        ),
        (
            "[evenkeel critical-threshold=3 first-result=maybe]",
            "notes: first-result: `maybe` is not believed or counted",
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
        [
            "node metadata: evenkeel-critical-threshold: `many` is not a whole number from 0 to 4294967295"
        ]
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
            "notes: failures-before-warning: failures-before-warning 5 (notes) must not be more than \
          failures-before-critical 3 (node metadata)"
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
        ["definition: FailuresBeforeCritical: `-3` is not a whole number from 0 to 4294967295"]
    );
}

#[test]
fn overrides_come_first_and_match_by_all_their_patterns() {
    let entry = |node: &str, service: Option<&str>, critical: &str| Override {
        node: Some(node.parse().unwrap()),
        service: service.map(|service| service.parse().unwrap()),
        check: None,
        thresholds: settings(&[("critical_threshold", critical)]),
    };
    let mut resolver = resolver(
        ThresholdSettings::default(),
        vec![entry("db-*", Some("postgres*"), "9"), entry("*", None, "4")],
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
    let daemon = settings(&[("critical_threshold", "3"), ("passing_threshold", "1")]);
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
    assert_eq!(*effective.strategy, consecutive(5, None, 1));
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
fn every_strategy_is_named_with_its_parameters_in_every_source() {
    for strategy in AnyStrategy::NAMES {
        let made = AnyStrategy::from_parameters(strategy, []).unwrap();
        let notes = format!("Before. [evenkeel {made}] After.");
        let service: Meta = made
            .to_string()
            .split(' ')
            .map(|word| word.split_once('=').unwrap())
            .map(|(key, value)| (format!("evenkeel-{key}"), value.to_owned()))
            .collect();
        let table = settings(
            &service
                .iter()
                .map(|(key, value)| (&key["evenkeel-".len()..], value.as_str()))
                .collect::<Vec<_>>(),
        );
        let by_notes = Sources {
            notes: &notes,
            ..Sources::default()
        };
        let by_service = Sources {
            service_meta: Some(&service),
            ..Sources::default()
        };
        let by_node = Sources {
            node_meta: Some(&service),
            ..Sources::default()
        };
        let by_file = Sources {
            definition: DefinitionThresholds::File(&table),
            ..Sources::default()
        };
        for sources in [by_notes, by_service, by_node, by_file] {
            let effective = plain().resolve(&sources);
            assert_eq!(effective.faults, []);
            assert_eq!(*effective.strategy, made);
        }
        assert_eq!(super::faults(&table, Source::Daemon), []);
        let over = Override {
            node: Some("*".parse().unwrap()),
            thresholds: table.clone(),
            ..Override::default()
        };
        for mut resolver in [
            resolver(table, Vec::new()),
            resolver(ThresholdSettings::default(), vec![over]),
        ] {
            let effective = resolver.resolve(&Sources {
                node: "n",
                ..Sources::default()
            });
            assert_eq!(*effective.strategy, made);
            assert_eq!(effective.first_result, made.default_first_result());
        }
    }
}

#[test]
fn keys_of_one_strategy_alone_name_it() {
    for (notes, name) in [
        ("half-life=10m", "penalty"),
        ("alpha=0.2 high=0.6", "ewma"),
        ("results=10 failures=5", "window"),
        ("failing-for=30s failures=3", "hold"),
        ("after-failure=1m", "dwell"),
        ("p0=0.1", "cusum"),
        ("weights=nagios failures=3", "flap"),
        ("silence=30s", "heartbeat"),
        ("critical-threshold=1", "leaky"),
    ] {
        let notes = format!("[evenkeel {notes}]");
        let effective = plain().resolve(&Sources {
            notes: &notes,
            ..Sources::default()
        });
        assert_eq!(effective.faults, [], "{notes}");
        assert_eq!(effective.strategy.name(), name, "{notes}");
    }
}

#[test]
fn keys_of_several_strategies_need_a_name_or_a_source_that_has_one() {
    let service = meta(&[("evenkeel-failures", "3")]);
    let alone = Sources {
        service_meta: Some(&service),
        ..Sources::default()
    };
    let effective = plain().resolve(&alone);
    assert!(effective.fallback);
    assert_eq!(
        faults_of(&effective),
        [
            "service metadata: window and hold and dwell and penalty and flap could each be \
             meant: name the strategy"
        ]
    );
    let effective = plain().resolve(&Sources {
        notes: "[evenkeel strategy=hold failing-for=30s]",
        ..alone
    });
    assert_eq!(effective.faults, []);
    assert_eq!(
        effective.strategy.to_string(),
        "strategy=hold failures=3 failing-for=30s successes=1 passing-for=0s"
    );
    // They are no keys of this one.
    let effective = plain().resolve(&Sources {
        notes: "[evenkeel critical-threshold=3]",
        ..alone
    });
    assert_eq!(effective.faults, []);
    assert_eq!(effective.ignored[0].reason, IgnoredReason::OtherStrategy);
}

#[test]
fn a_value_that_the_strategy_cannot_take_is_told_with_its_source() {
    let node = meta(&[("evenkeel-high", "0.5"), ("evenkeel-low", "20")]);
    let effective = plain().resolve(&Sources {
        notes: "[evenkeel strategy=flap]",
        node_meta: Some(&node),
        ..Sources::default()
    });
    assert!(effective.fallback);
    assert_eq!(
        faults_of(&effective),
        [
            "node metadata: evenkeel-high: `0.5` is not a whole number from 0 to 4294967295 \
             (flap: 1 to 100, in per cent)"
        ]
    );
    let effective = plain().resolve(&Sources {
        notes: "[evenkeel strategy=ewma]",
        node_meta: Some(&node),
        ..Sources::default()
    });
    assert_eq!(
        faults_of(&effective),
        [
            "node metadata: low: low 20 (node metadata) must be 0.001 to 0.999, and less than \
             `high`"
        ]
    );
}

#[test]
fn faults_of_our_own_tables_name_the_key() {
    let keys = |pairs: &[(&str, &str)], source| -> Vec<String> {
        super::faults(&settings(pairs), source)
            .into_iter()
            .map(|(key, _)| key)
            .collect()
    };
    let (daemon, first) = (Source::Daemon, Source::Override(0));
    assert_eq!(keys(&[], daemon), [""; 0]);
    let mixed = [
        ("critical_threshold", "1"),
        ("failures_before_critical", "1"),
    ];
    assert_eq!(keys(&mixed, daemon), ["strategy"]);
    let foreign = [("strategy", "leaky"), ("failures_before_critical", "1")];
    assert_eq!(keys(&foreign, daemon), ["failures_before_critical"]);
    let late = [
        ("failures_before_critical", "3"),
        ("failures_before_warning", "5"),
    ];
    assert_eq!(keys(&late, first), ["failures_before_warning"]);
    let text = &super::faults(&settings(&late), daemon)[0].1;
    assert!(text.contains("failures-before-critical 3"), "{text}");
    // Another source may add what is missing.
    let partial = [("failures_before_warning", "5")];
    assert_eq!(keys(&partial, first), [""; 0]);
    assert_eq!(keys(&partial, daemon), ["failures_before_warning"]);
    // But nothing makes this right.
    assert_eq!(keys(&[("alpha", "2")], first), ["alpha"]);
    assert_eq!(keys(&[("failures", "2")], first), ["strategy"]);
    assert_eq!(keys(&[("failures", "2")], Source::Definition), [""; 0]);
    // All at once.
    let several = [
        ("strategy", "window"),
        ("results", "65"),
        ("recovered_at", "3"),
        ("alpha", "1"),
    ];
    assert_eq!(keys(&several, daemon), ["alpha"]);
    assert_eq!(keys(&several[..3], daemon), ["results", "recovered_at"]);
}
