//! What is counted, case by case.

use std::fmt::Write as _;
use std::time::Duration;

use evenkeel_replay::{Candidate, Gaps, History, Outcome, Replay, ReplaySettings, Tally};
use evenkeel_threshold::{AnyStrategy, Combined, Pick, Status};

use crate::support::{in_a_row, raw, replay, statuses};

/// One check, a result each 10 s.
fn file(letters: &str) -> String {
    let mut file = String::new();
    for (index, status) in statuses(letters).into_iter().enumerate() {
        let _ = writeln!(file, "{},web,{status}", 1000 + 10 * index);
    }
    file
}

fn tally(letters: &str, strategy: AnyStrategy) -> Tally {
    let (outcome, bad) = replay(
        file(letters).as_bytes(),
        ReplaySettings::default(),
        &[("it", strategy)],
    );
    assert!(bad.is_empty());
    outcome.strategies[0].tally
}

// hysteresis.md §13, T4, here with a longer outage.
#[test]
fn a_clean_outage_costs_the_count_less_one_intervals() {
    let letters = "PPPPPPPPFFFFFFFFFFPPPPPPPPPP";
    for (down, up) in [(1, 1), (2, 1), (3, 2), (5, 5)] {
        let tally = tally(letters, in_a_row(down, up));
        assert_eq!((tally.writes, tally.false_flips), (2, 0));
        let delay = |count: u32| Some(Duration::from_secs(10 * u64::from(count - 1)));
        assert_eq!(tally.failures.mean(), delay(down));
        assert_eq!(tally.failures.longest(), delay(down));
        assert_eq!(tally.recoveries.mean(), delay(up));
        assert_eq!(tally.wrong_ms, 10_000 * u64::from(down + up - 2));
        assert_eq!(tally.watched_ms, 270_000);
    }
}

#[test]
fn blips_make_false_alarms_and_false_recoveries() {
    // Two blips of one and two results; in the outage a dip of one.
    let letters = "PPPPFPPPPPFFPPPPPPPFFFFFFPFFFFFFFPPPPPPPP";
    let raw = tally(letters, raw());
    assert_eq!((raw.writes, raw.false_flips, raw.false_alarms), (8, 3, 2));
    assert_eq!(raw.wrong_ms, 40_000);
    assert_eq!((raw.failures.detected, raw.failures.missed), (1, 0));
    let three = tally(letters, in_a_row(3, 3));
    assert_eq!((three.writes, three.false_flips), (2, 0));
    assert_eq!(three.failures.longest(), Some(Duration::from_secs(20)));
}

#[test]
fn an_outage_too_short_for_the_strategy_is_missed() {
    let letters = "PPPPPPPPFFFFFFPPPPPPPP";
    let ten = tally(letters, in_a_row(10, 10));
    assert_eq!(
        (ten.writes, ten.failures.missed, ten.failures.detected),
        (0, 1, 0)
    );
    assert_eq!(ten.failures.mean(), None);
    // The return to what had been reported all the time is no merit.
    assert_eq!((ten.recoveries.detected, ten.recoveries.missed), (0, 0));
    assert_eq!(ten.wrong_ms, 60_000);
}

#[test]
fn an_alarm_that_comes_when_all_is_over_is_false() {
    // Six failures of twelve: the sixth is a blip after the outage.
    let letters = "PPPPPPPPPPPPFFFFFPPPPPFPPPPPPPPPPPPP";
    let late = Candidate::parse("window:m=6,n=12,l=1").unwrap();
    let tally = tally(letters, late.strategy);
    assert_eq!(
        (tally.writes, tally.false_flips, tally.false_alarms),
        (2, 1, 1)
    );
    assert_eq!((tally.failures.missed, tally.recoveries.detected), (1, 0));
}

// P003: alternating results are noise, and following them is wrong every time.
#[test]
fn every_change_of_an_alternating_series_is_false() {
    let letters = format!("PPPPP{}PPPPP", "FP".repeat(50));
    let raw = tally(&letters, raw());
    assert_eq!(
        (raw.writes, raw.false_flips, raw.false_alarms),
        (100, 50, 50)
    );
    let two_three = tally(&letters, in_a_row(2, 3));
    assert_eq!((two_three.writes, two_three.wrong_ms), (0, 0));
}

#[test]
fn warnings_are_a_level_of_their_own() {
    let letters = "PPPPPPPPWWWWWWWWFFFFFFFFWWWWWWWWPPPPPPPP";
    let tally = tally(letters, raw());
    assert_eq!((tally.writes, tally.false_flips, tally.wrong_ms), (4, 0, 0));
    assert_eq!((tally.failures.detected, tally.recoveries.detected), (2, 2));
}

#[test]
fn the_first_value_is_the_status_at_the_start() {
    for strategy in [raw(), in_a_row(3, 3)] {
        let tally = tally("FFFFFFFFFFFF", strategy);
        assert_eq!((tally.writes, tally.wrong_ms), (0, 0));
    }
}

fn gapped(gaps: Gaps, strategy: AnyStrategy) -> Outcome {
    // Twenty results, an hour of silence, twenty results; each 10 s.
    let mut file = file(&"P".repeat(20));
    for index in 0..20 {
        let _ = writeln!(file, "{},web,passing", 4790 + 10 * index);
    }
    let mut settings = ReplaySettings::default();
    settings.gaps = gaps;
    let (outcome, bad) = replay(file.as_bytes(), settings, &[("it", strategy)]);
    assert!(bad.is_empty());
    outcome
}

fn silent(seconds: u64) -> AnyStrategy {
    let text = format!("heartbeat:silence={seconds}s");
    Candidate::parse(&text).unwrap().strategy
}

#[test]
fn a_gap_is_cut_down_to_the_usual_interval() {
    let cut = gapped(Gaps::TenIntervals, silent(60));
    assert_eq!(cut.gaps(), (1, 3_590_000));
    let tally = cut.strategies[0].tally;
    assert_eq!((tally.writes, tally.watched_ms), (0, 390_000));

    let whole = gapped(Gaps::Never, silent(60));
    assert_eq!(whole.gaps(), (0, 0));
    let tally = whole.strategies[0].tally;
    assert_eq!(
        (tally.writes, tally.false_flips, tally.false_alarms),
        (2, 1, 1)
    );
    assert_eq!((tally.watched_ms, tally.wrong_ms), (3_980_000, 3_540_000));

    let limited = gapped(Gaps::LongerThan(Duration::from_secs(3600)), silent(60));
    assert_eq!(limited.gaps(), (0, 0));
}

#[test]
fn a_check_that_is_probed_more_rarely_from_now_on_has_no_gaps_for_ever() {
    let mut file = file(&"P".repeat(20));
    for index in 0..50 {
        let _ = writeln!(file, "{},web,passing", 5000 + 3600 * index);
    }
    let (outcome, _) = replay(
        file.as_bytes(),
        ReplaySettings::default(),
        &[("raw", raw())],
    );
    let (gaps, _) = outcome.gaps();
    assert!((1..12).contains(&gaps), "{gaps}");
}

#[test]
fn rows_out_of_order_and_twice_are_told_and_left_out() {
    let file = "100,a,up\n110,a,up\n110,a,up\n105,a,down\n110,a,down\n100,b,down\n120,a,up\n";
    let (outcome, bad) = replay(
        file.as_bytes(),
        ReplaySettings::default(),
        &[("raw", raw())],
    );
    let told: Vec<String> = bad.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "line 3: the same as the row before it of this check",
            "line 4: before the row before it of this check; sort the history by time",
            "line 5: another status at the time of the row before it of this check",
        ]
    );
    let kinds: Vec<&str> = bad.iter().map(|bad| bad.fault.kind()).collect();
    assert_eq!(kinds, ["duplicate", "backwards", "contradiction"]);
    assert_eq!(
        (outcome.results, outcome.strategies[0].tally.writes),
        (4, 0)
    );
}

/// Each check has its own time, so a file may have one check after the other.
#[test]
fn checks_one_after_the_other_are_in_order() {
    let mixed = "100,a,up\n100,b,up\n110,a,down\n110,b,down\n120,a,up\n120,b,down\n";
    let mut sorted: Vec<&str> = mixed.lines().collect();
    sorted.sort_by_key(|line| line.split(',').nth(1));
    let sorted = sorted.join("\n");
    let outcome = |file: &str| {
        let strategies = [("raw", raw())];
        let (outcome, bad) = replay(file.as_bytes(), ReplaySettings::default(), &strategies);
        assert!(bad.is_empty());
        outcome
    };
    assert_eq!(outcome(mixed), outcome(&sorted));
}

#[test]
fn probes_that_could_not_be_run_count_for_nothing() {
    let with = "100,a,up\n110,a,unknown\n120,a,down\n130,a,unprobed\n140,a,down\n";
    let without = "100,a,up\n120,a,down\n140,a,down\n";
    let strategies = [("two", in_a_row(2, 1))];
    let (with, _) = replay(with.as_bytes(), ReplaySettings::default(), &strategies);
    let (without, _) = replay(without.as_bytes(), ReplaySettings::default(), &strategies);
    assert_eq!(with.unprobed, 2);
    assert_eq!(with.strategies, without.strategies);
    assert_eq!(with.strategies[0].tally.writes, 1);
}

#[test]
fn more_checks_than_are_kept_are_bad_rows() {
    let file = "1,a,up\n1,b,up\n1,c,up\n2,a,down\n2,c,up\n";
    let mut settings = ReplaySettings::default();
    settings.most_checks = 2;
    let (outcome, bad) = replay(file.as_bytes(), settings, &[("raw", raw())]);
    assert_eq!(bad.len(), 2);
    assert_eq!(
        bad[1].to_string(),
        "line 5: there are more than 2 checks, and this is one more"
    );
    assert_eq!((outcome.checks.len(), outcome.results), (2, 3));
}

#[test]
fn noise_is_counted_where_the_target_works() {
    // Two bursts, of one and of three, and an outage that is not noise.
    let letters = "PPPPPFPPPPPPPFFFPPPPPPPPPFFFFFFFFFFFFPPPPPPP";
    let (outcome, _) = replay(
        file(letters).as_bytes(),
        ReplaySettings::default(),
        &[("raw", raw())],
    );
    let noise = outcome.noise();
    assert_eq!(
        (noise.failed_after_success, noise.failed_after_failure),
        (2, 2)
    );
    assert_eq!(noise.after_failure, 4);
    // All results at which the truth was passing, less the first of each stretch.
    assert_eq!(noise.results(), 24 + 6);
    assert_eq!(noise.b(), 0.5);
    assert_eq!(outcome.interval(), Some(Duration::from_secs(10)));
}

#[test]
fn a_strategy_of_an_embedder_is_replayed_like_any_other() {
    // Worse of two: not one of those that have a name.
    let both = Combined {
        one: in_a_row(3, 1),
        other: Candidate::parse("window:m=3,n=5,l=1").unwrap().strategy,
        pick: Pick::Worst,
    };
    let mut replay = Replay::new(
        ReplaySettings::default(),
        vec![Candidate::new("both", both)],
    );
    let file = file("PPPPPFPFPFPPPPPPPPPP");
    let mut history = History::new(file.as_bytes()).unwrap();
    let read = replay.read(&mut history, |bad| panic!("{bad}"));
    assert!(read.unwrap().is_continue());
    assert_eq!(replay.finish().strategies[0].tally.writes, 2);
}

#[test]
fn a_timeline_shows_results_truth_and_each_strategy() {
    let letters = "PPPPPPFPPPPPPPFFFFFFFFFFPPPPPPPP";
    let mut settings = ReplaySettings::default();
    settings.timelines = 1;
    let strategies = [("raw", raw()), ("three", in_a_row(3, 3))];
    let (outcome, _) = replay(file(letters).as_bytes(), settings, &strategies);
    let timeline = outcome.checks[0].timeline.as_deref().unwrap();
    assert_eq!((timeline.start_ms(), timeline.bin_ms()), (1_000_000, 1000));
    let row = |series: usize| -> String {
        timeline
            .series(series)
            .iter()
            .step_by(10)
            .map(|seen| match seen.worst() {
                Some(Status::Passing) => 'P',
                Some(Status::Critical) => 'F',
                _ => '?',
            })
            .collect()
    };
    assert_eq!(row(0), letters);
    assert_eq!(row(1), "PPPPPPPPPPPPPPFFFFFFFFFFPPPPPPPP");
    assert_eq!(row(2), letters);
    assert_eq!(row(3), "PPPPPPPPPPPPPPPPFFFFFFFFFFPPPPPP");
}
