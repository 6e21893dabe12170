//! `evenkeel zones` from outside.
#![allow(clippy::unwrap_used, reason = "only tests are compiled with this")]

use std::process::{Command, Output};

use serde_json::Value;

fn zones(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["zones", "show"])
        .args(arguments)
        .env_clear()
        .output()
        .unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = zones(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn numbers_are_split_and_drawn() {
    let text = printed(&[
        "--endpoints",
        "a=2,b=4",
        "--callers",
        "a=3,b=1",
        "--rule",
        "envoy",
    ]);
    let expected = "\
callers → endpoints   rule envoy

a ━━━━━━━━━━━━━▶ a                             33.3 %
a ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌▶ b                         41.7 %
b ━━━━━━━━━━▶ b                                25.0 %

58.3 % of these requests stay in their zone

FROM \\ TO        a         b   CALLERS       MODE
a           44.4 %    55.6 %         3   residual
b                ·   100.0 %         1     direct
endpoints   2 of 2    4 of 4
";
    assert_eq!(text, expected);
}

#[test]
fn a_closed_gate_is_explained_with_what_opens_it() {
    let text = printed(&[
        "--endpoints",
        "a=2,b=2,c=1+1",
        "--callers",
        "a=1,b=1,c=1",
        "--zone",
        "a",
        "--explain",
    ]);
    for line in [
        "a: not routed by zone: 5 of the 6 healthy endpoints that it takes",
        "  ✓ no_local_cluster               the callers are known",
        "  ✗ cluster_too_small              5 of the 6 healthy endpoints that it takes",
        "→ healthy endpoints that are missing: 1; or lower min_cluster_size",
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
}

#[test]
fn rules_are_compared_side_by_side() {
    let text = printed(&[
        "--endpoints",
        "a=2,b=2,c=3",
        "--callers",
        "a=3,b=1,c=5",
        "--compare",
    ]);
    let row = |rule: &str| text.lines().find(|line| line.starts_with(rule)).unwrap();
    assert!(row("envoy").contains("82.5 %        1.00 × mean"), "{text}");
    assert!(row("bounded").contains("1.10 × mean"), "{text}");
    assert!(row("round-robin").contains("36.5 %"), "{text}");
}

#[test]
fn json_has_exact_shares() {
    let text = printed(&["--endpoints", "a=2,b=4", "--callers", "a=3,b=1", "--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    let weights = &report["zones"][0]["weights"];
    // Envoy: 3333 of 10,000 endpoints for 7500 of 10,000 callers, cut to 4444.
    assert_eq!(weights[0]["share"], "1111/2500");
    assert_eq!(weights[1]["parts"], 555_600_000);
    let rules: Value = serde_json::from_str(&printed(&[
        "--endpoints",
        "a=2,b=4",
        "--callers",
        "a=3,b=1",
        "--json",
        "--compare",
    ]))
    .unwrap();
    assert_eq!(rules["rules"].as_array().unwrap().len(), 5);
}

#[test]
fn what_is_wrong_is_said() {
    for (arguments, told) in [
        (&["--endpoints", "a", "--callers", "a=1"][..], "zone=count"),
        (&["--endpoints", "a=1", "--callers", "a=-1"], "--callers"),
        (
            &["--endpoints", "a=9999999", "--callers", "a=1"],
            "more than 100000",
        ),
        (
            &["--endpoints", "a=1", "--callers", "a=1", "--rule", "best"],
            "service-connect",
        ),
        (&["--callers", "web"], "<UPSTREAM>"),
        (
            &["api", "--callers", "web", "--admin", "unix:/nowhere"],
            "no daemon answers",
        ),
    ] {
        let output = zones(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(told), "{arguments:?}: {error}");
    }
}

#[test]
fn flows_are_drawn_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flows.svg");
    let file = path.to_str().unwrap();
    printed(&[
        "--endpoints",
        "<a>=2,b=4",
        "--callers",
        "<a>=3,b=1",
        "--svg",
        file,
    ]);
    let svg = std::fs::read_to_string(&path).unwrap();
    assert!(
        svg.contains("58.3 % of the requests stay in their zone."),
        "{svg}"
    );
    assert!(
        svg.contains("<title>&lt;a&gt; to b: 41.7 %</title>"),
        "{svg}"
    );
    assert_eq!(svg.matches("<polygon").count(), 3);
    let output = zones(&[
        "--endpoints",
        "a=1",
        "--callers",
        "a=1",
        "--svg",
        "/nowhere/x.svg",
    ]);
    assert_eq!(output.status.code(), Some(73));
}

#[test]
fn the_pages_show_what_the_program_prints() {
    let text = printed(&[
        "--endpoints",
        "a=2,b=2,c=3",
        "--callers",
        "a=3,b=1,c=5",
        "--compare",
    ]);
    for page in [
        include_str!("../../../README.md"),
        include_str!("../../../docs/zones.md"),
    ] {
        assert!(page.contains(&text), "{text}");
    }
}
