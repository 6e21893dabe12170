//! Strategies from texts.

use evenkeel_threshold::{AnyStrategy, Kind, SpecFault, Strategy as _, Window, WindowParameters};
use proptest::prelude::*;

use crate::generators::every_strategy;

fn said(text: &str) -> String {
    match AnyStrategy::parse(text) {
        Ok(rule) => rule.to_string(),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn a_strategy_is_typed_with_short_names_or_whole_ones() {
    assert_eq!(
        said("window:m=3,n=5,l=1"),
        "strategy=window results=5 failures=3 recovered-at=1"
    );
    assert_eq!(
        said("consecutive:down=3,up=2"),
        "strategy=consecutive failures-before-critical=3 success-before-passing=2"
    );
    assert_eq!(
        said(" penalty : half_life = 1m30s , while-suppressed=warning "),
        "strategy=penalty failures=1 successes=1 half-life=1m30s suppress=6000 reuse=750 \
         longest=1h while-suppressed=warning"
    );
    assert_eq!(said("ewma"), said("ewma:alpha=0.3"));
    assert_eq!(
        said("consul_esm:critical-threshold=3"),
        "strategy=consul-esm critical-threshold=3 passing-threshold=0"
    );
}

#[test]
fn all_faults_are_told_at_once() {
    let error =
        AnyStrategy::parse("flap:lou=5,high=300,weights=mine,high=3,whatever,every-result=1")
            .unwrap_err();
    let texts: Vec<String> = error.faults().map(|fault| fault.to_string()).collect();
    assert_eq!(
        texts,
        [
            "flap has no `lou`; did you mean `low`?",
            "high: `300` is not a whole number from 0 to 4294967295 (1 to 100, in per cent)",
            "weights: `mine` is not nagios or icinga",
            "high is given twice",
            "`whatever` is not of the form key=value",
            "every-result: `1` is not true or false",
        ]
    );
    assert_eq!(error.untold(), 0);
}

#[test]
fn no_more_faults_are_told_than_fit() {
    let text = format!("leaky:{}", "x=1,".repeat(20));
    let error = AnyStrategy::parse(&text).unwrap_err();
    assert_eq!((error.faults().count(), error.untold()), (8, 12));
    assert!(error.to_string().ends_with("; and 12 more"));
}

#[test]
fn unknown_names_are_answered_with_the_nearest_or_all() {
    assert_eq!(
        said("windo"),
        "error: there is no strategy `windo`; did you mean `window`?"
    );
    assert!(said("best").starts_with("error: there is no strategy `best`; there are leaky, "));
    assert_eq!(
        said("leaky:critical_treshold=3"),
        "error: leaky has no `critical_treshold`; did you mean `critical-threshold`?"
    );
    assert_eq!(
        said("window:alpha=1"),
        "error: window has no `alpha`; there are results, failures, recovered-at"
    );
}

#[test]
fn values_that_can_be_read_but_make_no_strategy_are_told_together() {
    let error = AnyStrategy::from_parameters("ewma", [("alpha", "2"), ("low", "0.9")]).unwrap_err();
    let Some(SpecFault::Parameters(fault)) = error.faults().next() else {
        panic!("{error}");
    };
    assert!(fault.parameters().eq(["alpha", "low", "high"]));
}

#[test]
fn values_are_what_a_person_would_write() {
    let fine = ["0.5", "1", "5e-1", "0.001"];
    for value in fine {
        assert!(
            AnyStrategy::from_parameters("ewma", [("alpha", value)]).is_ok(),
            "{value}"
        );
    }
    for value in [
        "", "+0.5", "-1", "nan", "inf", "0x1", "1e999", "½", "0,5", " ",
    ] {
        assert!(
            AnyStrategy::from_parameters("ewma", [("alpha", value)]).is_err(),
            "{value}"
        );
    }
    for value in ["", "+3", "-3", "3.0", "4294967296", "many"] {
        let made = AnyStrategy::from_parameters("leaky", [("critical-threshold", value)]);
        assert!(made.is_err(), "{value}");
    }
}

#[test]
fn every_key_tells_the_default_that_applies() {
    for name in AnyStrategy::NAMES {
        let bare = AnyStrategy::parse(name).unwrap();
        assert_eq!(bare.name(), *name);
        let keys = AnyStrategy::keys_of(name).unwrap();
        let defaults = keys
            .iter()
            .filter(|key| !key.default.is_empty())
            .map(|key| format!(" {}={}", key.name, key.default));
        assert_eq!(
            bare.to_string(),
            format!("strategy={name}{}", defaults.collect::<String>())
        );
        for key in keys {
            assert_eq!(key.name, key.field.replace('_', "-"));
            assert!(
                !key.meaning.ends_with('.') && !key.range.is_empty(),
                "{key:?}"
            );
        }
    }
}

/// A key with one name is one kind of thing, so that a table with the keys of all
/// strategies can be checked without knowing which one is meant.
#[test]
fn a_key_takes_one_kind_of_value_in_all_strategies() {
    let kind = |kind: Kind| match kind {
        Kind::Count => Kind::Number,
        kind => kind,
    };
    let all = || {
        AnyStrategy::NAMES
            .iter()
            .filter_map(|name| AnyStrategy::keys_of(name))
            .flatten()
    };
    for one in all() {
        for other in all().filter(|other| other.name == one.name) {
            assert_eq!(kind(one.kind), kind(other.kind), "{}", one.name);
        }
    }
}

#[test]
fn a_window_of_texts_is_the_window_of_numbers() {
    let made =
        AnyStrategy::from_parameters("window", [("recovered_at", "2"), ("n", "10"), ("m", "5")]);
    let window = Window::new(WindowParameters {
        results: 10,
        failures: 5,
        recovered_at: 2,
    })
    .unwrap();
    assert_eq!(made, Ok(window.into()));
}

proptest! {
    #[test]
    fn what_a_strategy_prints_reads_back(rule in every_strategy()) {
        let text = rule.to_string();
        prop_assert_eq!(AnyStrategy::parse(&text), Ok(rule));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z-]{0,9}:?([a-z_-]{1,12}=[0-9a-z.]{0,6},?){0,6}|\\PC{0,40}") {
        match AnyStrategy::parse(&text) {
            Ok(rule) => {
                let state = rule.start(evenkeel_threshold::Status::Passing, rule.default_first_result(), Default::default());
                prop_assert_eq!(rule.reported(&state), evenkeel_threshold::Status::Passing);
            }
            Err(error) => prop_assert!(error.faults().next().is_some()),
        }
    }
}
