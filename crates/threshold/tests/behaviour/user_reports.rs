//! Reports of users of such systems, as tests.

use std::time::Duration;

use evenkeel_threshold::{
    AnyStrategy, Consecutive, Counts, FirstResult, Leaky, Observation, Outlook, Status, Strategy,
};

use crate::support::{
    NOW, consecutive, consecutive_with_warning, first, play, play_counted, results,
};

// P001
#[test]
fn one_number_is_counted_once() {
    // Three failures of every four: found out in the first round.
    assert_eq!(play_counted(&Leaky::new(2, 0), "PFFFPFFF"), "PPPCPPPC");
    for threshold in 1..=5 {
        let leaky = Leaky::new(threshold, 0);
        let needed = threshold as usize + 1;
        let after_success = play_counted(&leaky, "PFFFFFFFFFFF");
        assert_eq!(first(&after_success[1..], 'C'), Some(needed));
        assert_eq!(
            first(&play_counted(&leaky, "FFFFFFFFFFF"), 'C'),
            Some(needed)
        );
    }
}

// P002
#[test]
fn the_readme_example_of_consul_esm_flips_at_the_ninth_result() {
    let leaky = Leaky::new(3, 0);
    let mut state = leaky.start(Status::Passing, FirstResult::Counted, NOW);
    let counts: Vec<u32> = results("PFFPFFPF")
        .map(|result| {
            assert_eq!(leaky.observe(&mut state, result.into(), NOW), None);
            match leaky.outlook(&state, NOW) {
                Outlook::Counting { seen, needed, .. } => {
                    assert_eq!(needed, 4);
                    seen
                }
                _ => 0,
            }
        })
        .collect();
    assert_eq!(counts, [0, 1, 2, 1, 2, 3, 2, 3]);
    let flip = leaky.observe(&mut state, Status::Critical.into(), NOW);
    assert_eq!(flip.map(|flip| flip.to), Some(Status::Critical));
    assert_eq!(leaky.outlook(&state, NOW), Outlook::Settled);
}

// P003, P141
#[test]
fn an_alternating_target_changes_nothing() {
    let alternating = "PF".repeat(50);
    let silence = "P".repeat(100);
    assert_eq!(play_counted(&consecutive(3, 2), &alternating), silence);
    assert_eq!(play_counted(&Leaky::new(3, 2), &alternating), silence);
}

// P004
#[test]
fn consecutive_and_leaky_differ_by_name_and_by_result() {
    let consecutive = consecutive(3, 1);
    let leaky = Leaky::new(3, 0);
    assert_eq!(first(&play_counted(&consecutive, "PFFPFFF"), 'C'), Some(7));
    assert_eq!(first(&play_counted(&leaky, "PFFPFFF"), 'C'), Some(7));
    assert_eq!(first(&play_counted(&consecutive, "PFFPFFPFF"), 'C'), None);
    assert_eq!(first(&play_counted(&leaky, "PFFPFFPFF"), 'C'), Some(9));
    assert_eq!(AnyStrategy::from(consecutive).name(), "consecutive");
    assert_eq!(AnyStrategy::from(leaky).name(), "leaky");
}

// P008: the output has no way in, so there is one case, not two.
#[test]
fn isolated_failures_do_not_add_up() {
    let leaky = Leaky::new(1, 0);
    let one_in_ten = "PPPPPPPPPF".repeat(20);
    assert_eq!(play_counted(&leaky, &one_in_ten), "P".repeat(200));
}

// P009
#[test]
fn a_passing_check_turns_warning_by_the_failure_threshold() {
    assert_eq!(play_counted(&Leaky::new(0, 2), "W"), "W");
    assert_eq!(play_counted(&Leaky::new(2, 0), "WWW"), "PPW");
    assert_eq!(play_counted(&consecutive(1, 3), "W"), "W");
    assert_eq!(play_counted(&consecutive(3, 1), "WWW"), "PPW");
}

// P075
#[test]
fn the_meaning_of_the_first_result_can_be_chosen() {
    let rule = consecutive(3, 1);
    let play = |first| play(&rule, Status::Warning, first, "FFFF");
    assert_eq!(play(FirstResult::Believed), "CCCC");
    assert_eq!(play(FirstResult::Counted), "WWCC");
}

// P076
#[test]
fn a_degraded_level_comes_before_critical() {
    let rule = consecutive_with_warning(2, 4, 1);
    assert_eq!(play_counted(&rule, "FFFF"), "PWWC");
    // A real warning is what is reported then, so its run is over.
    assert_eq!(play_counted(&rule, "WWFFFF"), "PWWWWC");
    assert_eq!(play_counted(&rule, "FFWFFFF"), "PWWWWWC");
    // Recovery from the degraded level is by successes.
    assert_eq!(play_counted(&rule, "FFPFF"), "PWPPW");
    assert_eq!(
        play_counted(&consecutive_with_warning(2, 4, 2), "FFPFPP"),
        "PWWWWP"
    );
}

// P077
#[test]
fn a_warning_that_could_never_come_is_refused() {
    let error = Consecutive::new(Counts {
        failures_before_critical: 3,
        failures_before_warning: Some(5),
        success_before_passing: 1,
    })
    .expect_err("5 is more than 3");
    assert!(
        error
            .parameters()
            .eq(["failures_before_warning", "failures_before_critical"])
    );
    assert_eq!(
        error.to_string(),
        "failures_before_warning must not be more than failures_before_critical"
    );
}

// P121
#[test]
fn one_failure_in_a_hundred_writes_nothing() {
    let trace = format!("{}F{}", "P".repeat(50), "P".repeat(49));
    assert_eq!(play_counted(&Leaky::new(1, 0), &trace), "P".repeat(100));
    assert_eq!(play_counted(&consecutive(2, 1), &trace), "P".repeat(100));
    // Without damping it is reported, for those who ask for that.
    assert_eq!(play_counted(&Leaky::default(), "PFP"), "PCP");
    assert_eq!(play_counted(&Consecutive::default(), "PFP"), "PCP");
}

// P116: a target that drains says so with a good answer; that must not wait for
// failures to add up, and whether it is a warning or critical is the prober's to say.
#[test]
fn a_target_that_says_it_drains_is_out_at_once() {
    for drained in [Status::Warning, Status::Critical] {
        let rule = consecutive(5, 2);
        let mut state = rule.start(Status::Passing, FirstResult::Counted, NOW);
        let change = rule.observe(&mut state, Observation::immediate(drained), NOW);
        assert_eq!(change.map(|change| change.to), Some(drained));
        // And it is not back with the first good answer.
        assert_eq!(rule.observe(&mut state, Status::Passing.into(), NOW), None);
        assert_eq!(rule.reported(&state), drained);
    }
}

// P125: three masters, each passing and failing in turn out of step with the
// others; an address that follows whoever passes would go to and fro.
#[test]
fn the_chosen_of_several_that_alternate_stay_the_same() {
    let choices = |rule: AnyStrategy| {
        let mut states = [Status::Passing, Status::Critical, Status::Critical]
            .map(|reported| rule.start(reported, FirstResult::Counted, NOW));
        let mut chosen: Vec<Vec<usize>> = Vec::new();
        for round in 0..60_u64 {
            let now = NOW.saturating_add(Duration::from_secs(round * 2));
            for (instance, state) in states.iter_mut().enumerate() {
                let good = (round + instance as u64).is_multiple_of(2);
                let status = if good {
                    Status::Passing
                } else {
                    Status::Critical
                };
                rule.observe(state, status.into(), now);
            }
            let passing = |&instance: &usize| rule.reported(&states[instance]) == Status::Passing;
            chosen.push((0..3).filter(passing).collect());
        }
        chosen.dedup();
        chosen.len()
    };
    let strategy = |text| AnyStrategy::parse(text).expect("a strategy");
    assert!(
        choices(strategy("consecutive:down=1,up=1")) > 50,
        "as it was"
    );
    assert_eq!(choices(strategy("consecutive:down=3,up=2")), 1);
    // With a recovery at the first success, the penalty holds it from the sixth flap on.
    assert!(choices(strategy("penalty:down=1,up=1")) < 16);
}
