//! Status writes beside a computation that shares nothing with the crate.

use std::collections::BTreeMap;
use std::io::Read as _;

use evenkeel_replay::ReplaySettings;
use evenkeel_replay::sample;

use crate::support::{in_a_row, raw, replay};

/// The writes of no damping and of three in a row, in a few lines.
fn independent(file: &str) -> (u64, u64) {
    let mut checks: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in file.lines().skip(1) {
        let mut fields = line.split(',').skip(1);
        let (check, status) = (fields.next().unwrap(), fields.next().unwrap());
        checks.entry(check).or_default().push(status);
    }
    let (mut raw, mut three) = (0, 0);
    for results in checks.values() {
        raw += results.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
        let mut reported = results[0];
        for last in results.windows(3) {
            if last.iter().all(|result| *result != reported) {
                reported = last[2];
                three += 1;
            }
        }
    }
    (raw, three)
}

fn replayed(file: &str) -> (u64, u64) {
    let strategies = [("raw", raw()), ("3/3", in_a_row(3, 3))];
    let (outcome, bad) = replay(file.as_bytes(), ReplaySettings::default(), &strategies);
    assert!(bad.is_empty(), "{bad:?}");
    let writes = |index: usize| outcome.strategies[index].tally.writes;
    (writes(0), writes(1))
}

#[test]
fn on_the_bundled_history_they_are_those_of_an_independent_computation() {
    let mut file = String::new();
    flate2::read::GzDecoder::new(&include_bytes!("../../data/sample.csv.gz")[..])
        .read_to_string(&mut file)
        .unwrap();
    // Levels in between would want more lines; they are another test's.
    let file = file.replace(",warning\n", ",critical\n");
    let (raw, three) = independent(&file);
    assert!(
        raw > 2 * three && three > 50,
        "{raw} and {three} are no history to learn from"
    );
    assert_eq!(replayed(&file), (raw, three));
}

/// A history of yours: CSV with a header, `passing` and `critical`, by time,
/// unpacked.
#[test]
fn on_a_history_of_yours_they_are_those_of_an_independent_computation() {
    let Some(path) = std::env::var_os("EVENKEEL_HISTORY") else {
        eprintln!("skipped: EVENKEEL_HISTORY names no history");
        return;
    };
    let file = std::fs::read_to_string(path).unwrap();
    let (raw, three) = independent(&file);
    eprintln!("writes: raw {raw}, three in a row {three}");
    assert_eq!(replayed(&file), (raw, three));
}

#[test]
fn the_bundled_history_is_what_its_generator_makes() {
    let mut bundled = Vec::new();
    flate2::read::GzDecoder::new(&include_bytes!("../../data/sample.csv.gz")[..])
        .read_to_end(&mut bundled)
        .unwrap();
    let mut made = Vec::new();
    sample::write(sample::Sample::default(), &mut made).unwrap();
    assert!(
        bundled == made,
        "make it again: see the example `generate_history`"
    );
}
