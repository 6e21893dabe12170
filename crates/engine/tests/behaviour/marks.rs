//! Remarks of strategies, told as pairs of events.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::EventKind;
use evenkeel_threshold::{AnyStrategy, Mark, Status};

use crate::rig::{Check, Rig, check, leaky, secs};

fn with(strategy: &str) -> Check {
    Check {
        strategy: Arc::new(AnyStrategy::parse(strategy).expect("valid")),
        ..check("a")
    }
}

fn marks(rig: &Rig) -> Vec<EventKind> {
    rig.kinds()
        .into_iter()
        .filter(|kind| {
            matches!(
                kind,
                EventKind::MarkStarted { .. } | EventKind::MarkEnded { .. }
            )
        })
        .collect()
}

const FLAPPING: [EventKind; 2] = [
    EventKind::MarkStarted {
        mark: Mark::Flapping,
    },
    EventKind::MarkEnded {
        mark: Mark::Flapping,
    },
];

// P144, P146
#[test]
fn a_check_that_flaps_below_every_count_is_told_of_once_and_once_when_it_ends() {
    let mut rig = Rig::new();
    rig.list(&[with("flap:down=3")]);
    rig.results("FPFPF");
    assert_eq!(marks(&rig), []);
    rig.results("PFPFP");
    assert_eq!(marks(&rig), FLAPPING[..1]);
    assert_eq!(rig.view("a").reported(), Status::Passing);
    assert_eq!(rig.view("a").mark(), Mark::Flapping);
    rig.results(&"P".repeat(20));
    assert_eq!(marks(&rig), FLAPPING);
    assert_eq!(rig.engine.counters().marks, 1);
}

#[test]
fn a_suppression_ends_with_the_net_difference_by_time_alone() {
    let mut rig = Rig::new();
    rig.list(&[with("penalty:suppress=2000,half-life=1m,longest=2m")]);
    rig.results("FPFPFF");
    let started = EventKind::MarkStarted {
        mark: Mark::Suppressed,
    };
    assert_eq!(marks(&rig), [started]);
    assert_eq!(rig.view("a").reported(), Status::Passing);
    rig.events.clear();
    while marks(&rig).is_empty() {
        rig.results("F");
        rig.pass(secs(1));
    }
    let ended = EventKind::MarkEnded {
        mark: Mark::Suppressed,
    };
    let kinds = rig.kinds();
    let change = kinds
        .iter()
        .find(|kind| matches!(kind, EventKind::Transition { .. }))
        .expect("it is down");
    assert!(kinds.contains(&ended));
    assert!(matches!(
        change,
        EventKind::Transition {
            to: Status::Critical,
            ..
        }
    ));
}

#[test]
fn a_mark_ends_with_the_check_the_strategy_or_the_definition() {
    let flapping = || {
        let mut rig = Rig::new();
        rig.list(&[with("flap")]);
        rig.results("FPFPFPF");
        assert_eq!(marks(&rig), FLAPPING[..1]);
        rig
    };
    let mut removed = flapping();
    removed.list(&[]);
    assert_eq!(marks(&removed), FLAPPING);

    let mut other = flapping();
    other.list(&[Check {
        strategy: leaky(2, 1),
        ..check("a")
    }]);
    assert_eq!(marks(&other), FLAPPING);

    let mut restarted = flapping();
    restarted.list(&[Check {
        interval: Duration::from_secs(7),
        ..with("flap")
    }]);
    assert_eq!(marks(&restarted), FLAPPING);
}

#[test]
fn a_restart_of_the_process_does_not_start_the_mark_again() {
    let mut rig = Rig::new();
    rig.list(&[with("flap:down=3")]);
    rig.results("FPFPFPF");
    let mut next = rig.restarted();
    next.list(&[with("flap:down=3")]);
    assert_eq!(next.view("a").mark(), Mark::Flapping);
    next.results(&"P".repeat(25));
    assert_eq!(marks(&next), FLAPPING[1..]);
}
