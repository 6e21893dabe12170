//! Other programs' rules, by traces through their code.

use evenkeel_threshold::presets::{Alb, Envoy, HaProxy, InitState, Kubernetes, Preset};
use evenkeel_threshold::{ConsulEsm, FirstResult, Observation, Status, Strategy};
use proptest::prelude::*;

use crate::generators::{any_first, any_status, at_least, observations};
use crate::support::{NOW, T1, T3, T4, first, letter, play, status};

/// `B` is a critical result of a class that bypasses the counts, `X` an error of
/// the prober: no observation.
fn play_preset(preset: impl Into<Preset>, trace: &str) -> String {
    let preset = preset.into();
    let mut state = preset.start(NOW);
    trace
        .chars()
        .map(|result| {
            let observation = match result {
                'B' => Some(Observation::immediate(Status::Critical)),
                'X' => None,
                _ => Some(status(result).into()),
            };
            if let Some(observation) = observation {
                preset.strategy.observe(&mut state, observation, NOW);
            }
            letter(preset.strategy.reported(&state))
        })
        .collect()
}

fn haproxy(init_state: InitState) -> HaProxy {
    HaProxy {
        init_state,
        ..HaProxy::default()
    }
}

#[test]
fn haproxy_starts_as_it_is_told() {
    let up = haproxy(InitState::FullyUp);
    assert_eq!(play_preset(up, "FFPFFFPFPP"), "PPPPPCCCCP");
    let default = HaProxy::default();
    assert_eq!(play_preset(default, "F"), "C");
    assert_eq!(play_preset(default, "PFFF"), "PPPC");
    assert_eq!(play_preset(haproxy(InitState::Down), "P"), "P");
    assert_eq!(play_preset(haproxy(InitState::Down), "FPP"), "CCP");
    assert_eq!(play_preset(haproxy(InitState::FullyDown), "PP"), "CP");
}

#[test]
fn one_input_through_haproxy() {
    let up = haproxy(InitState::FullyUp);
    assert_eq!(play_preset(up, T1), "PPPPPPPPPCCCCCPPPP");
    assert_eq!(play_preset(up, T3), "PPPPPPPPPPPPPPPP");
    assert_eq!(play_preset(up, T4), "PPPPPCCCCCCPPPPPP");
    let default = HaProxy::default();
    assert_eq!(play_preset(default, T1), "PPPPPPPPPCCCCCPPPP");
    assert_eq!(play_preset(default, T3), "CCCCCCCCCCPPPPPP");
    assert_eq!(play_preset(default, T4), "PPPPPCCCCCCPPPPPP");
}

#[test]
fn kubernetes_discards_an_error_of_the_prober() {
    let readiness = Kubernetes::default();
    assert_eq!(play_preset(readiness, "PFFXFFPFFPFFFP"), "PPPPCCPPPPPPCP");
    assert_eq!(play_preset(readiness, "PFFXFPFFPFFFP"), "PPPPCPPPPPPCP");
    let liveness = Kubernetes {
        liveness: true,
        ..readiness
    };
    assert_eq!(play_preset(liveness, "FFF"), "PPC");
}

// P108
#[test]
fn envoy_takes_a_bad_answer_for_more_than_a_failed_connection() {
    let envoy = Envoy {
        unhealthy_threshold: 3,
        healthy_threshold: 2,
    };
    assert_eq!(play_preset(envoy, "PFFPFFFPFPPB"), "PPPPPPCCCCPC");
    assert_eq!(play_preset(envoy, "FPP"), "CCP");
    // The threshold is for every kind that is not listed.
    assert_eq!(play_preset(envoy, "PFP"), "PPP");
}

#[test]
fn a_new_target_of_a_load_balancer_needs_one_success() {
    assert_eq!(play_preset(Alb::default(), "PFFPPPPP"), "PPCCCCCP");
}

fn esm(critical_threshold: u32, passing_threshold: u32) -> ConsulEsm {
    ConsulEsm {
        critical_threshold,
        passing_threshold,
    }
}

#[test]
fn consul_esm_counts_twice() {
    let counted =
        |rule: ConsulEsm, trace: &str| play(&rule, Status::Passing, FirstResult::Counted, trace);
    let failures = "F".repeat(20);
    for (threshold, needed) in (0..).zip([1, 2, 4, 6, 8, 10, 12]) {
        let reported = counted(esm(threshold, 0), &format!("P{failures}"));
        assert_eq!(first(&reported[1..], 'C'), Some(needed));
        let cold = counted(esm(threshold, 0), &failures);
        assert_eq!(first(&cold, 'C'), Some(threshold as usize + 1));
    }
    for (threshold, needed) in (0..).zip([1, 2, 4, 6, 8]) {
        let trace = format!("F{}", "P".repeat(20));
        let reported = play(
            &esm(0, threshold),
            Status::Critical,
            FirstResult::Counted,
            &trace,
        );
        assert_eq!(first(&reported[1..], 'P'), Some(needed));
    }
    // The README's example.
    assert_eq!(counted(esm(3, 0), "PFFPFFPFFPFFPFFPFF").find('C'), None);
    let reported = counted(esm(2, 0), &"PFFF".repeat(5));
    assert_eq!(reported, "PPPPPPPCPPPPPPPCPPPP");
}

proptest! {
    #![proptest_config(at_least(1024))]

    /// The counter in front by looking back over every result.
    #[test]
    fn consul_esm_does_what_its_prose_says(
        (critical, passing) in (0..5_u32, 0..4_u32),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
    ) {
        let rule = esm(critical, passing);
        let group = |status: Status| status == Status::Critical;
        let mut history: Vec<Status> = Vec::new();
        // Failures, successes.
        let mut counts = [0_u32; 2];
        let mut reported = initial;
        let mut believe_next = first == FirstResult::Believed;
        let mut state = rule.start(initial, first, NOW);
        for Observation { status, immediate } in observations {
            let threshold = if group(status) { critical } else { passing };
            let first_of_all = history.is_empty();
            history.push(status);
            let run = history.iter().rev().take_while(|one| group(**one) == group(status));
            if immediate || believe_next {
                // As if there had been as many as any threshold asks for.
                history = vec![status; 20];
                counts = [0; 2];
                (reported, believe_next) = (status, false);
            } else if first_of_all || run.count() as u32 >= threshold {
                let count = &mut counts[usize::from(!group(status))];
                if status == reported {
                    counts = counts.map(|count| count.saturating_sub(1));
                } else if *count < threshold {
                    *count += 1;
                } else {
                    *count = 0;
                    reported = status;
                }
                if first_of_all {
                    history = vec![status; 20];
                }
            }
            rule.observe(&mut state, Observation { status, immediate }, NOW);
            prop_assert_eq!(rule.reported(&state), reported);
        }
    }
}
