//! Endpoints that come and go, and what is published of it.

use evenkeel_zone_weights::plan::{
    Bounded, Demand, Limits, PARTS, Plan, Problem, Publisher, Rule, Tolerance,
};
use evenkeel_zone_weights::{Health, Upstream};

use crate::generate::zone;

fn even(healthy: [u64; 3]) -> Upstream {
    let mut upstream = Upstream::new();
    for (name, count) in ["a", "b", "c"].iter().zip(healthy) {
        upstream
            .add(0, &zone(name), Health::Healthy, 1, count)
            .expect("valid hosts");
        upstream
            .add(0, &zone(name), Health::Unhealthy, 1, 10 - count)
            .expect("valid hosts");
    }
    upstream
}

fn calls(amounts: [u64; 3]) -> [Demand; 1] {
    let mut demand = Demand::new();
    for (name, amount) in ["a", "b", "c"].iter().zip(amounts) {
        demand.add(&zone(name), amount).expect("small");
    }
    [demand]
}

fn balanced(problem: &Problem<'_>) -> Plan {
    let rule = Bounded {
        tolerance: Tolerance::per_10_000(0),
    };
    rule.plan(problem).expect("small")
}

// P157
#[test]
fn one_of_thirty_that_flaps_moves_nothing() {
    for amounts in [[1, 1, 1], [6, 2, 2], [1, 0, 0], [1, 5, 9]] {
        let services = calls(amounts);
        let mut publisher = Publisher::new(Limits::default());
        // Every ten seconds for ten minutes, without any tolerance.
        for probe in 0..60 {
            let upstream = even([10 - probe % 2, 10, 10]);
            let problem = Problem::new(&upstream, &services);
            publisher.offer(&balanced(&problem), &problem);
        }
        assert_eq!(publisher.version(), 1, "{amounts:?}");
    }
}

#[test]
fn without_a_minimum_each_flap_is_published() {
    let services = calls([6, 2, 2]);
    let mut publisher = Publisher::new(Limits {
        least_change: 0,
        largest_step: PARTS,
    });
    for probe in 0..60 {
        let upstream = even([10 - probe % 2, 10, 10]);
        let problem = Problem::new(&upstream, &services);
        publisher.offer(&balanced(&problem), &problem);
    }
    assert_eq!(publisher.version(), 60);
}

#[test]
fn small_changes_add_up() {
    let services = calls([1, 0, 0]);
    let mut publisher = Publisher::new(Limits::default());
    for lost in 0..6 {
        let upstream = even([10 - lost, 10, 10]);
        let problem = Problem::new(&upstream, &services);
        publisher.offer(&balanced(&problem), &problem);
    }
    assert!(publisher.version() > 1);
}

fn parts(plan: &Plan, from: &str, to: &str) -> u32 {
    let split = plan.split(0, &zone(from)).expect("a service");
    let part = split.parts().iter().find(|part| part.zone == zone(to));
    part.map_or(0, |part| part.parts)
}

#[test]
fn a_zone_that_dies_is_left_at_once_and_in_full() {
    let services = calls([1, 1, 1]);
    let mut publisher = Publisher::new(Limits {
        least_change: PARTS,
        largest_step: PARTS / 1_000,
    });
    let upstream = even([10, 10, 10]);
    let problem = Problem::new(&upstream, &services);
    publisher.offer(&balanced(&problem), &problem);
    let upstream = even([0, 10, 10]);
    let problem = Problem::new(&upstream, &services);
    let plan = publisher.offer(&balanced(&problem), &problem).unwrap();
    assert_eq!(parts(plan, "a", "a"), 0);
    assert_eq!(plan.report(&problem).no_host, 0);
    assert_eq!(parts(plan, "b", "b"), PARTS);
}

#[test]
fn a_large_change_comes_in_steps_to_its_end() {
    let services = calls([1, 0, 0]);
    let limits = Limits {
        least_change: PARTS / 20,
        largest_step: PARTS / 10,
    };
    let mut publisher = Publisher::new(limits);
    let mut upstream = Upstream::new();
    upstream.add(0, &zone("a"), Health::Healthy, 1, 5).unwrap();
    let problem = Problem::new(&upstream, &services);
    publisher.offer(&balanced(&problem), &problem);

    upstream.add(0, &zone("b"), Health::Healthy, 1, 5).unwrap();
    let problem = Problem::new(&upstream, &services);
    let plan = balanced(&problem);
    let mut moved = vec![];
    for _ in 0..9 {
        let step = publisher
            .offer(&plan, &problem)
            .map(|step| parts(step, "a", "b"));
        moved.extend(step);
        assert_eq!(
            publisher.under_way(),
            step.is_some_and(|parts| parts < PARTS / 2)
        );
    }
    let tenth = PARTS / 10;
    assert_eq!(moved, [tenth, 2 * tenth, 3 * tenth, 4 * tenth, 5 * tenth]);
    assert_eq!(publisher.published(), Some(&plan));
}

#[test]
fn panic_begins_and_ends_at_once() {
    let services = calls([1, 1, 1]);
    let mut publisher = Publisher::new(Limits {
        least_change: PARTS,
        largest_step: 1,
    });
    for (healthy, panic) in [([10, 10, 10], false), ([4, 4, 4], true), ([9, 9, 9], false)] {
        let upstream = even(healthy);
        let problem = Problem::new(&upstream, &services);
        let target = balanced(&problem);
        let plan = publisher.offer(&target, &problem).unwrap();
        assert_eq!(plan, &target);
        assert_eq!(plan.priorities()[0].panic, panic);
    }
}

#[test]
fn only_what_has_lost_its_hosts_moves_at_once() {
    let services = calls([1, 0, 0]);
    let mut publisher = Publisher::new(Limits {
        least_change: 0,
        largest_step: PARTS / 1_000,
    });
    let with = |hosts: [u64; 3]| {
        let mut upstream = Upstream::new();
        for (name, count) in ["a", "b", "c"].iter().zip(hosts) {
            upstream
                .add(0, &zone(name), Health::Healthy, 1, count)
                .unwrap();
        }
        upstream
    };
    let upstream = with([10, 10, 20]);
    let problem = Problem::new(&upstream, &services);
    publisher.offer(&balanced(&problem), &problem);
    // b dies, and c loses half: a half each in the end. The quarter that b had
    // goes half and half at once, the rest in steps.
    let upstream = with([10, 0, 10]);
    let problem = Problem::new(&upstream, &services);
    let plan = publisher.offer(&balanced(&problem), &problem).unwrap();
    let at_once = PARTS / 8 * 3;
    assert_eq!(parts(plan, "a", "a").abs_diff(at_once + PARTS / 1_000), 0);
    assert!(publisher.under_way());
}
