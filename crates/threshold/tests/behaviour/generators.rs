//! What proptest makes up.

use std::time::Duration;

use evenkeel_threshold::{
    AnyStrategy, Consecutive, Consul, ConsulEsm, Counts, Cusum, Dwell, DwellParameters, Ewma,
    FirstResult, Flap, FlapParameters, FlapWeights, Heartbeat, HeartbeatParameters, Hold, Leaky,
    Observation, Penalty, PenaltyParameters, Phi, PhiParameters, Status, WhileSuppressed, Window,
};
use proptest::prelude::*;

use crate::cusum::cusum;
use crate::ewma::ewma;
use crate::window::window;

pub(crate) fn any_status() -> impl Strategy<Value = Status> {
    prop_oneof![
        3 => Just(Status::Passing),
        2 => Just(Status::Warning),
        3 => Just(Status::Critical),
    ]
}

pub(crate) fn any_first() -> impl Strategy<Value = FirstResult> {
    prop_oneof![Just(FirstResult::Believed), Just(FirstResult::Counted)]
}

/// Mostly counted, in stretches of one status, as targets behave.
pub(crate) fn observations() -> impl Strategy<Value = Vec<Observation>> {
    let stretch = (any_status(), 1..7_usize, prop::bool::weighted(0.03)).prop_map(
        |(status, length, immediate)| {
            (0..length).map(move |index| Observation {
                status,
                immediate: immediate && index == 0,
            })
        },
    );
    prop::collection::vec(stretch, 0..40)
        .prop_map(|stretches| stretches.into_iter().flatten().collect())
}

pub(crate) fn any_counts() -> impl Strategy<Value = Counts> {
    (0..7_u32, prop::option::of(0..7_u32), 0..5_u32).prop_map(|(critical, warning, passing)| {
        Counts {
            failures_before_critical: critical,
            failures_before_warning: warning.map(|count| count.min(critical)),
            success_before_passing: passing,
        }
    })
}

pub(crate) fn any_strategy() -> impl Strategy<Value = AnyStrategy> {
    let consul = any_counts().prop_map(|counts| Consul::new(counts).expect("valid"));
    prop_oneof![
        2 => own_strategy(),
        1 => consul.prop_map(AnyStrategy::from),
    ]
}

/// Those in which time changes nothing.
pub(crate) fn counting_strategy() -> impl Strategy<Value = AnyStrategy> {
    prop_oneof![
        2 => any_strategy(),
        1 => any_window().prop_map(AnyStrategy::from),
        1 => any_ewma().prop_map(AnyStrategy::from),
        1 => any_cusum().prop_map(AnyStrategy::from),
        1 => any_consul_esm().prop_map(AnyStrategy::from),
    ]
}

/// Those of [`any_strategy`], and all that look further back than to the latest
/// change or at the clock.
pub(crate) fn every_strategy() -> impl Strategy<Value = AnyStrategy> {
    prop_oneof![
        1 => any_strategy(),
        1 => any_window().prop_map(AnyStrategy::from),
        1 => any_ewma().prop_map(AnyStrategy::from),
        1 => any_cusum().prop_map(AnyStrategy::from),
        1 => any_hold().prop_map(AnyStrategy::from),
        1 => any_dwell().prop_map(AnyStrategy::from),
        1 => any_penalty().prop_map(AnyStrategy::from),
        1 => any_heartbeat().prop_map(AnyStrategy::from),
        1 => any_consul_esm().prop_map(AnyStrategy::from),
        1 => any_flap().prop_map(AnyStrategy::from),
        1 => any_phi().prop_map(AnyStrategy::from),
    ]
}

pub(crate) fn any_window() -> impl Strategy<Value = Window> {
    (1..=8_u32, 1..=8_u32, 0..8_u32).prop_map(|(results, failures, recovered_at)| {
        let failures = failures.min(results);
        window(failures, results, recovered_at.min(failures - 1))
    })
}

/// Small enough for `h` to be reached in a few results.
pub(crate) fn any_cusum() -> impl Strategy<Value = Cusum> {
    (0.01..0.4_f64, 0.5..0.95_f64, 0.5..9.0_f64).prop_map(|(p0, p1, h)| cusum(p0, p1, h))
}

pub(crate) fn any_ewma() -> impl Strategy<Value = Ewma> {
    (0.1..1.0_f64, 0.4..0.95_f64, 0.05..0.4_f64)
        .prop_map(|(alpha, high, low)| ewma(alpha, high, low))
}

fn any_time() -> impl Strategy<Value = Duration> {
    prop_oneof![
        1 => Just(Duration::ZERO),
        1 => Just(Duration::from_secs(10)),
        3 => (0..120_000_u64).prop_map(Duration::from_millis),
    ]
}

pub(crate) fn any_hold() -> impl Strategy<Value = Hold> {
    (1..5_u32, any_time(), 1..4_u32, any_time()).prop_map(
        |(failures, failing_for, successes, passing_for)| Hold {
            failures,
            failing_for,
            successes,
            passing_for,
        },
    )
}

pub(crate) fn any_dwell() -> impl Strategy<Value = Dwell> {
    (
        (1..4_u32, 1..4_u32),
        [any_time(), any_time(), any_time(), any_time()],
    )
        .prop_map(
            |((failures, successes), [recovery, failure, more, forgive])| {
                Dwell::new(DwellParameters {
                    failures,
                    successes,
                    after_recovery: recovery,
                    after_failure: failure,
                    after_failure_max: failure + more * 3,
                    forgive_after: forgive,
                })
                .expect("it grows")
            },
        )
}

pub(crate) fn any_flap() -> impl Strategy<Value = Flap> {
    let weights = prop_oneof![Just(FlapWeights::Nagios), Just(FlapWeights::Icinga)];
    let reported = prop_oneof![
        Just(None),
        Just(Some(WhileSuppressed::LastStable)),
        Just(Some(WhileSuppressed::Warning)),
        Just(Some(WhileSuppressed::Critical)),
    ];
    let thresholds = (0..20_u8, 1..30_u8);
    (
        (1..4_u32, 1..4_u32),
        weights,
        thresholds,
        any::<bool>(),
        reported,
    )
        .prop_map(
            |((failures, successes), weights, (low, more), every_result, while_flapping)| {
                Flap::new(FlapParameters {
                    failures,
                    successes,
                    weights,
                    low,
                    high: low + more,
                    every_result,
                    while_flapping,
                })
                .expect("it ends below where it starts")
            },
        )
}

fn any_consul_esm() -> impl Strategy<Value = ConsulEsm> {
    (0..5_u32, 0..4_u32).prop_map(|(critical_threshold, passing_threshold)| ConsulEsm {
        critical_threshold,
        passing_threshold,
    })
}

pub(crate) fn any_heartbeat() -> impl Strategy<Value = Heartbeat> {
    (1..60_000_u64).prop_map(|silence| {
        Heartbeat::new(HeartbeatParameters {
            silence: Duration::from_millis(silence),
        })
        .expect("it is some time")
    })
}

pub(crate) fn any_phi() -> impl Strategy<Value = Phi> {
    let millis = |range: std::ops::Range<u64>| range.prop_map(Duration::from_millis);
    (
        0.5..20.0_f64,
        [millis(1..5_000), millis(1..30_000)],
        any_time(),
        2..20_u32,
    )
        .prop_map(
            |(phi, [least_deviation, expected_gap], acceptable_pause, samples)| {
                Phi::new(PhiParameters {
                    phi,
                    least_deviation,
                    acceptable_pause,
                    expected_gap,
                    samples,
                })
                .expect("all are in range")
            },
        )
}

pub(crate) fn any_penalty() -> impl Strategy<Value = Penalty> {
    let reported = prop_oneof![
        Just(WhileSuppressed::LastStable),
        Just(WhileSuppressed::Warning),
        Just(WhileSuppressed::Critical),
    ];
    (
        (1..3_u32, 1..3_u32),
        5_000..100_000_u64,
        800..4000_u32,
        reported,
    )
        .prop_map(
            |((failures, successes), half_life, suppress, while_suppressed)| {
                Penalty::new(PenaltyParameters {
                    failures,
                    successes,
                    half_life: Duration::from_millis(half_life),
                    suppress,
                    reuse: 750,
                    longest: Duration::from_millis(half_life * 4),
                    while_suppressed,
                })
                .expect("four half-lives are enough for 12000")
            },
        )
}

/// Each after a pause of so many milliseconds.
pub(crate) fn timed_observations() -> impl Strategy<Value = Vec<(u64, Observation)>> {
    let pause = prop_oneof![
        1 => Just(0),
        4 => Just(10_000),
        4 => 1..15_000_u64,
        1 => 30_000..200_000_u64,
    ];
    (observations(), prop::collection::vec(pause, 1..30))
        .prop_map(|(observations, pauses)| pauses.into_iter().cycle().zip(observations).collect())
}

/// Those that copy no other program's rule.
pub(crate) fn own_strategy() -> impl Strategy<Value = AnyStrategy> {
    let leaky = (0..6_u32, 0..5_u32).prop_map(|(critical, passing)| Leaky::new(critical, passing));
    let consecutive = any_counts().prop_map(|counts| Consecutive::new(counts).expect("valid"));
    prop_oneof![
        leaky.prop_map(AnyStrategy::from),
        consecutive.prop_map(AnyStrategy::from),
    ]
}

/// More cases than usual, for what is cheap and worth it; as many as
/// `PROPTEST_CASES` asks for, if that is more.
pub(crate) fn at_least(cases: u32) -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases.max(cases),
        ..usual
    }
}
