//! What a real Envoy 1.40.0 did, step by step.
//!
//! `tests/data/cases.json` holds 117 cases in 134 steps: members and settings,
//! the exact expectation, and what the real Envoy did with up to 20,000 requests.
//! `EVENKEEL_ZONE_CASES` names another file of the same form.

mod case;
mod expected;
mod picks;

use std::path::{Path, PathBuf};

use case::Case;
use serde_json::Value;

fn cases() -> (Vec<Case>, u64) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut path = here.join("tests/data/cases.json");
    if let Some(other) = std::env::var_os("EVENKEEL_ZONE_CASES") {
        // A relative path is meant from where cargo was called, most likely the
        // top of the workspace, and not from the crate, where tests run.
        path = PathBuf::from(&other);
        let from_the_top = here.join("../..").join(&other);
        if !path.exists() && from_the_top.exists() {
            path = from_the_top;
        }
    }
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: Value = serde_json::from_str(&text).expect("the file is JSON");
    assert_eq!(file["format"], 1, "the form of the file");
    let threads = file["threads_that_recalculate"].as_u64().expect("a number");
    let cases = file["cases"].as_array().expect("a list");
    (cases.iter().map(Case::read).collect(), threads)
}

#[test]
fn recorded_cases() {
    let (cases, threads) = cases();
    let mut steps = 0;
    let mut faults = Vec::new();
    for case in &cases {
        for (number, step) in case.steps.iter().enumerate() {
            steps += 1;
            for fault in expected::compare(case, step, threads) {
                faults.push(format!("{} step {number}: {fault}", case.id));
            }
            for fault in picks::compare(case, step) {
                faults.push(format!("{} step {number}: {fault}", case.id));
            }
        }
    }
    println!("{steps} steps");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(steps > 0, "there is no case in the file");
}
