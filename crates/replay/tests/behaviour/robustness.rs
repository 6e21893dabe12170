//! Whatever rows come, figures stay sound.

use evenkeel_replay::{Candidate, Gaps, Replay, ReplaySettings, Row, TruthWindow};
use evenkeel_threshold::{AnyStrategy, Status, Timestamp};
use proptest::prelude::*;
use std::time::Duration;

/// Every strategy with its defaults, and those in which time acts with short ones.
fn every_strategy() -> Vec<Candidate> {
    AnyStrategy::NAMES
        .iter()
        .copied()
        .chain([
            Candidate::RAW,
            "heartbeat:silence=1ms",
            "penalty:half-life=1ms,longest=8ms",
            "hold:failing-for=1s,passing-for=1s",
        ])
        .map(|text| Candidate::parse(text).unwrap())
        .collect()
}

fn row(statuses: &[Status]) -> impl Strategy<Value = (u64, usize, Option<Status>)> + use<> {
    let time = prop_oneof![
        4 => 0_u64..100_000,
        1 => any::<u64>(),
        1 => Just(u64::MAX),
        1 => 99_999_999_990_000_u64..100_000_000_000_000,
    ];
    let status = prop_oneof![
        1 => Just(None),
        8 => proptest::sample::select(statuses.to_vec()).prop_map(Some),
    ];
    (time, 0_usize..3, status)
}

proptest! {
    #[test]
    fn no_row_makes_it_panic_and_the_figures_agree(
        rows in prop_oneof![
            proptest::collection::vec(row(&Status::ALL), 0..60),
            proptest::collection::vec(row(&[Status::Passing, Status::Critical]), 0..60),
        ],
        window in 1_usize..12,
        gaps in prop_oneof![
            Just(Gaps::TenIntervals),
            Just(Gaps::Never),
            (0_u64..10_000).prop_map(|ms| Gaps::LongerThan(Duration::from_millis(ms))),
        ],
        sorted in any::<bool>(),
    ) {
        let mut rows = rows;
        if sorted {
            rows.sort();
        }
        let warnings = rows.iter().any(|(.., status)| *status == Some(Status::Warning));
        let mut settings = ReplaySettings::default();
        settings.truth = TruthWindow::new(window).unwrap();
        settings.gaps = gaps;
        settings.timelines = 2;
        let mut replay = Replay::new(settings, every_strategy());
        let (mut taken, mut refused, mut unprobed) = (0, 0, 0);
        for (line, (time, check, status)) in rows.into_iter().enumerate() {
            let row = Row {
                line: line as u64,
                time: Timestamp::from_millis(time),
                check: ["a", "b", "c"][check],
                status,
            };
            match replay.observe(&row) {
                Ok(()) if status.is_none() => unprobed += 1,
                Ok(()) => taken += 1,
                Err(_) => refused += 1,
            }
        }
        let outcome = replay.finish();
        prop_assert_eq!((outcome.results, outcome.unprobed), (taken, unprobed));
        let checked: u64 = outcome.checks.iter().map(|check| check.results).sum();
        prop_assert_eq!(checked, taken);
        prop_assert!(refused == 0 || taken > 0);
        let (worse, better) = outcome.truth_changes();
        for strategy in &outcome.strategies {
            let tally = &strategy.tally;
            prop_assert_eq!(tally.watched_ms, outcome.strategies[0].tally.watched_ms);
            prop_assert!(tally.wrong_ms <= tally.watched_ms);
            prop_assert!(tally.false_alarms <= tally.false_flips);
            prop_assert!(tally.false_flips <= tally.writes);
            prop_assert!(tally.failures.detected + tally.failures.missed <= worse);
            prop_assert!(tally.recoveries.detected + tally.recoveries.missed <= better);
            prop_assert!(tally.failures.longest() >= tally.failures.mean());
        }
        // Who believes every result is never late and misses nothing, unless it
        // reports critical where warning is the truth.
        let raw = outcome.strategies.iter().find(|it| it.name == "raw").unwrap();
        let failures = raw.tally.failures;
        prop_assert!(warnings || (failures.total_ms, failures.missed) == (0, 0));
        prop_assert_eq!(raw.tally.writes, outcome.changes());
    }
}
