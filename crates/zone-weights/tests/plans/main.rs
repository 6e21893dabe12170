//! Plans of the better rules, against Envoy's and against what is known to be
//! the best.

mod flapping;
mod generate;

use evenkeel_zone_weights::envoy::{MinClusterSize, Settings};
use evenkeel_zone_weights::plan::{
    Bounded, Costs, Demand, EnvoyRule, Joint, PARTS, PlanError, Problem, Report, RoundRobin, Rule,
    Tolerance,
};
use evenkeel_zone_weights::{Fraction, Health, Locality, Reason, Upstream};
use generate::{NAMES, demands, upstreams, zone};
use proptest::prelude::*;

/// Rounding of one part in a billion, for each of a few parts and zones.
const ROUNDING: u64 = 100;

fn report(rule: &dyn Rule, problem: &Problem<'_>) -> Report {
    rule.plan(problem).expect("small numbers").report(problem)
}

fn bounded(per_10_000: u32) -> Bounded {
    Bounded {
        tolerance: Tolerance::per_10_000(per_10_000),
    }
}

fn joint(per_10_000: u32) -> Joint {
    Joint {
        tolerance: Tolerance::per_10_000(per_10_000),
    }
}

/// Least share, in parts of a billion, that has to leave its zone: each zone
/// keeps what it wants or what its endpoints may take, whichever is less. One
/// class of hosts only.
fn least(problem: &Problem<'_>, per_10_000: u32) -> u64 {
    let wants = |name: &str| -> u64 {
        let services = problem.services.iter();
        services.map(|demand| demand.get(&zone(name))).sum()
    };
    let weight = |name: &str| {
        let tally = problem.upstream.first().get(&zone(name));
        tally.map_or(0, |tally| tally.weight(Health::Healthy))
    };
    let demand: u64 = NAMES.iter().map(|name| wants(name)).sum();
    let capacity: u64 = NAMES.iter().map(|name| weight(name)).sum();
    let kept: f64 = NAMES
        .iter()
        .map(|name| {
            let limit =
                (1.0 + f64::from(per_10_000) / 10_000.0) * demand as f64 * weight(name) as f64
                    / capacity as f64;
            limit.min(wants(name) as f64)
        })
        .sum();
    ((1.0 - kept / demand as f64) * f64::from(PARTS)) as u64
}

proptest! {
    #[test]
    fn every_request_goes_somewhere_if_anybody_can_serve_it(
        upstream in upstreams(),
        services in prop::collection::vec(demands(), 1..4),
        tolerance in 0..5_000_u32,
        far in any::<bool>(),
    ) {
        let costs = Costs::new(1, 5);
        let mut problem = Problem::new(&upstream, &services);
        if far {
            problem.costs = Some(&costs);
        }
        let rules: [&dyn Rule; 3] = [&bounded(tolerance), &joint(tolerance), &RoundRobin];
        for rule in rules {
            let plan = rule.plan(&problem).expect("small numbers");
            let any = upstream.priorities().iter().any(|members| {
                members.total().all_hosts() > 0
            });
            for service in 0..services.len() {
                for name in NAMES.iter().chain(&["nowhere"]) {
                    let split = plan.split(service, &zone(name)).expect("a service");
                    let parts: u32 = split.parts().iter().map(|part| part.parts).sum();
                    prop_assert_eq!(parts, if any { PARTS } else { 0 }, "{} {}", rule.name(), name);
                    for part in split.parts() {
                        let tally = upstream.priorities()[part.priority as usize].get(&part.zone);
                        prop_assert!(tally.is_some_and(|tally| part.hosts.weight(tally) > 0));
                    }
                    let routes = plan.routes(service, &zone(name)).expect("a service");
                    let shares = routes.shares(&upstream).expect("few hosts");
                    prop_assert_eq!(shares.zones.is_empty(), !any);
                }
            }
            prop_assert_eq!(plan.report(&problem).no_host > 0, !any && services.iter().any(|d| d.total() > 0));
        }
    }

    #[test]
    fn no_endpoint_is_above_the_tolerance_and_no_plan_sends_less(
        upstream in upstreams(),
        services in prop::collection::vec(demands(), 1..4),
        tolerance in 0..5_000_u32,
    ) {
        let problem = Problem::new(&upstream, &services);
        let plan = joint(tolerance).plan(&problem).expect("small numbers");
        let report = plan.report(&problem);
        let most = u64::from(PARTS) + u64::from(tolerance) * 100_000;
        prop_assert!(report.fullest <= most + ROUNDING * 100, "{:?}", report);
        // Where there is one class of hosts, the least can be said in a line.
        let [load] = plan.priorities() else { return Ok(()) };
        let demanded = services.iter().any(|demand| demand.total() > 0);
        if load.healthy == 100 && !load.panic && demanded {
            let least = least(&problem, tolerance);
            prop_assert!(report.cross_zone.abs_diff(least) <= ROUNDING, "{:?} {}", report, least);
        }
    }

    #[test]
    fn never_more_between_zones_than_envoys_rule_at_equal_balance(
        upstream in upstreams(),
        demand in demands(),
        min_cluster_size in prop_oneof![Just(6), Just(1)],
    ) {
        let services = [demand];
        let problem = Problem::new(&upstream, &services);
        let envoy = EnvoyRule(Settings {
            min_cluster_size: MinClusterSize::Hosts(min_cluster_size),
            locality_basis: evenkeel_zone_weights::envoy::LocalityBasis::HealthyHostsWeight,
            ..Settings::ENVOY
        });
        let theirs = report(&envoy, &problem);
        // One class of hosts, so that "balance" is one number; and Envoy's plan
        // fails no request.
        let plan = RoundRobin.plan(&problem).expect("small numbers");
        let one = plan.priorities().len() == 1 && plan.priorities()[0].healthy == 100
            && !plan.priorities()[0].panic;
        if !one || theirs.no_host > 0 || services[0].total() == 0 {
            return Ok(());
        }
        let above = theirs.fullest.saturating_sub(u64::from(PARTS)).div_ceil(100_000);
        let ours = report(&bounded(u32::try_from(above).unwrap_or(u32::MAX)), &problem);
        prop_assert!(
            ours.cross_zone <= theirs.cross_zone + ROUNDING,
            "{:?} and Envoy {:?}", ours, theirs
        );
    }

    #[test]
    fn together_is_never_worse_than_each_for_itself(
        upstream in upstreams(),
        services in prop::collection::vec(demands(), 1..6),
        tolerance in 0..3_000_u32,
    ) {
        let problem = Problem::new(&upstream, &services);
        let together = report(&joint(tolerance), &problem);
        let apart = report(&bounded(tolerance), &problem);
        prop_assert!(together.cross_zone <= apart.cross_zone + ROUNDING, "{:?} {:?}", together, apart);
        if services.len() == 1 {
            prop_assert_eq!(together, apart);
        }
    }

    #[test]
    fn costs_of_one_for_every_pair_give_the_same_traffic(
        upstream in upstreams(),
        services in prop::collection::vec(demands(), 1..3),
        tolerance in 0..3_000_u32,
    ) {
        let alike = Costs::new(1, 1);
        let plain = Problem::new(&upstream, &services);
        let costly = Problem { costs: Some(&alike), ..plain };
        let rule = joint(tolerance);
        let (level, shipped) = (report(&rule, &plain), report(&rule, &costly));
        prop_assert!(level.cross_zone.abs_diff(shipped.cross_zone) <= ROUNDING);
        prop_assert!(shipped.cost.abs_diff(shipped.cross_zone) <= ROUNDING);
        let most = u64::from(PARTS) + u64::from(tolerance) * 100_000;
        prop_assert!(shipped.fullest <= most + ROUNDING * 100);
    }
}

/// As many as are taken, and time that is not noticed.
#[test]
fn many_zones() {
    for (zones, costs) in [(1_024, None), (128, Some(Costs::new(1, 1)))] {
        let (mut upstream, mut calls) = (Upstream::new(), Demand::new());
        for number in 0..zones {
            let zone = zone(&number.to_string());
            let weight = u32::try_from(1 + number * 7_919 % 1_000).expect("small");
            upstream.add(0, &zone, Health::Healthy, weight, 1).unwrap();
            calls.add(&zone, 1 + number * 104_729 % 1_000).unwrap();
        }
        let services = [calls];
        let mut problem = Problem::new(&upstream, &services);
        problem.costs = costs.as_ref();
        let plan = Joint::default().plan(&problem).unwrap();
        let report = plan.report(&problem);
        assert!(
            report.fullest <= u64::from(PARTS) / 10 * 11 + 1_000_000,
            "{report:?}"
        );
        assert!(report.cross_zone > 0 && report.no_host == 0, "{report:?}");
    }
}

fn demand(zones: &[(&str, u64)]) -> Demand {
    let mut demand = Demand::new();
    for (name, amount) in zones {
        demand.add(&zone(name), *amount).expect("64 bits");
    }
    demand
}

fn upstream(zones: &[(&str, Health, u64)]) -> Upstream {
    let mut upstream = Upstream::new();
    for (name, health, count) in zones {
        upstream
            .add(0, &zone(name), *health, 1, *count)
            .expect("valid hosts");
    }
    upstream
}

/// Envoy's rule: 7 % of these requests are answered with 503, although others
/// could serve them.
#[test]
fn degraded_hosts_are_looked_for_where_they_are() {
    let upstream = upstream(&[
        ("a", Health::Degraded, 3),
        ("b", Health::Healthy, 3),
        ("c", Health::Healthy, 3),
    ]);
    let services = [demand(&[("a", 3), ("b", 3), ("c", 3)])];
    let problem = Problem::new(&upstream, &services);
    let plan = EnvoyRule::default().plan(&problem).unwrap();
    let served: u32 = plan
        .split(0, &zone("a"))
        .unwrap()
        .parts()
        .iter()
        .map(|part| part.parts)
        .sum();
    assert_eq!(served, PARTS / 100 * 93);
    let plan = Bounded::default().plan(&problem).unwrap();
    let split = plan.split(0, &zone("a")).unwrap();
    let local = split.parts().iter().find(|part| part.zone == zone("a"));
    assert_eq!(local.map(|part| part.parts), Some(PARTS / 100 * 7));
    assert_eq!(plan.report(&problem).no_host, 0);
}

/// Two services whose skews are opposite need no traffic between zones at all.
#[test]
fn opposite_skews_offset_each_other() {
    let upstream = upstream(&[("a", Health::Healthy, 4), ("b", Health::Healthy, 4)]);
    let services = [demand(&[("a", 9), ("b", 1)]), demand(&[("a", 1), ("b", 9)])];
    let problem = Problem::new(&upstream, &services);
    assert_eq!(report(&bounded(0), &problem).cross_zone, 400_000_000);
    assert_eq!(report(&joint(0), &problem).cross_zone, 0);
    // Cut to parts of 10,000.
    assert_eq!(
        report(&EnvoyRule::default(), &problem).cross_zone,
        400_050_000
    );
    assert_eq!(report(&RoundRobin, &problem).cross_zone, 500_000_000);
}

#[test]
fn requests_are_counted_by_what_the_plan_does_with_them() {
    let upstream = upstream(&[("a", Health::Healthy, 1), ("b", Health::Healthy, 1)]);
    let services = [demand(&[("a", 3), ("b", 1)])];
    let problem = Problem::new(&upstream, &services);
    let plan = bounded(0).plan(&problem).unwrap();
    let reasons = |from: &str| -> Vec<Reason> {
        let routes = plan.routes(0, &zone(from)).unwrap();
        routes.list().iter().map(|route| route.reason).collect()
    };
    assert_eq!(reasons("a"), [Reason::Sampled, Reason::CrossZone]);
    assert_eq!(reasons("b"), [Reason::AllLocal]);
    // Where nobody is, the request fails, and a picker finds a way to say so.
    let nobody = Upstream::new();
    let plan = bounded(0).plan(&Problem::new(&nobody, &services)).unwrap();
    let routes = plan.routes(0, &zone("a")).unwrap();
    assert_eq!(routes.parts(), u64::from(PARTS));
    assert_eq!(routes.shares(&nobody).unwrap().no_host, Fraction::ONE);
}

/// Three endpoints: Envoy's gate is closed, and two thirds of the requests leave.
#[test]
fn few_endpoints_are_routed_exactly() {
    let upstream = upstream(&[
        ("a", Health::Healthy, 1),
        ("b", Health::Healthy, 1),
        ("c", Health::Healthy, 1),
    ]);
    let services = [demand(&[("a", 1), ("b", 1), ("c", 1)])];
    let problem = Problem::new(&upstream, &services);
    assert!(report(&EnvoyRule::default(), &problem).cross_zone > 666_666_000);
    assert_eq!(report(&bounded(0), &problem).cross_zone, 0);
}

#[test]
fn the_cheaper_zone_is_taken_first() {
    let mut upstream = Upstream::new();
    let here = Locality::new("east", "a", "");
    let near = Locality::new("east", "b", "");
    let far = Locality::new("west", "c", "");
    for zone in [&here, &near, &far] {
        upstream.add(0, zone, Health::Healthy, 1, 2).unwrap();
    }
    let mut calls = Demand::new();
    calls.add(&here, 6).unwrap();
    let services = [calls];
    let costs = Costs::new(1, 10);
    let problem = Problem {
        costs: Some(&costs),
        ..Problem::new(&upstream, &services)
    };
    // Half as much again as the mean may go to the near one.
    let plan = bounded(5_000).plan(&problem).unwrap();
    let split = plan.split(0, &here).unwrap();
    let parts: Vec<(&str, u32)> = split
        .parts()
        .iter()
        .map(|part| (part.zone.zone(), part.parts))
        .collect();
    assert_eq!(parts, [("a", PARTS / 2), ("b", PARTS / 2)]);
    // Without tolerance all three have to take a third.
    let plan = bounded(0).plan(&problem).unwrap();
    assert_eq!(plan.split(0, &here).unwrap().parts().len(), 3);
    assert!(plan.report(&problem).cost.abs_diff(3_666_666_666) < ROUNDING);
}

/// Nobody was known to call from there; somebody does.
#[test]
fn a_zone_without_demand_has_the_nearest_endpoints() {
    let upstream = upstream(&[("b", Health::Healthy, 3), ("c", Health::Healthy, 3)]);
    let services = [demand(&[("a", 0), ("b", 5)])];
    let mut costs = Costs::new(9, 9);
    costs.set(&zone("a"), &zone("b"), 2);
    let problem = Problem {
        costs: Some(&costs),
        ..Problem::new(&upstream, &services)
    };
    let plan = Joint::default().plan(&problem).unwrap();
    let parts = |from: &str| -> Vec<(String, u32)> {
        let split = plan.split(0, &zone(from)).unwrap();
        let parts = split.parts().iter();
        parts
            .map(|part| (part.zone.zone().to_owned(), part.parts))
            .collect()
    };
    // Although it is c that has room.
    assert_eq!(parts("a"), [("b".to_owned(), PARTS)]);
    // Its own, where there are any.
    assert_eq!(parts("c"), [("c".to_owned(), PARTS)]);
}

#[test]
fn the_largest_numbers_are_planned_exactly_and_one_more_is_refused() {
    let most = u32::MAX;
    let mut upstream = Upstream::new();
    upstream
        .add(0, &zone("a"), Health::Healthy, most - 1, 1)
        .unwrap();
    upstream.add(0, &zone("b"), Health::Healthy, 1, 1).unwrap();
    let services = [demand(&[("b", u64::from(most))])];
    let problem = Problem::new(&upstream, &services);
    for rule in [
        &bounded(Tolerance::MAX_PER_10_000) as &dyn Rule,
        &joint(0),
        &RoundRobin,
    ] {
        let report = report(rule, &problem);
        // b may keep 100 of 2^32 parts at most.
        assert!(
            (999_999_000..=1_000_000_000).contains(&report.cross_zone),
            "{report:?}"
        );
    }
    let more = [demand(&[("b", u64::from(most) + 1)])];
    assert!(joint(0).plan(&Problem::new(&upstream, &more)).is_err());
    upstream.add(0, &zone("b"), Health::Healthy, 1, 1).unwrap();
    assert!(joint(0).plan(&Problem::new(&upstream, &services)).is_err());
}

#[test]
fn too_much_is_an_error_that_says_of_what() {
    let mut many = Upstream::new();
    many.add(0, &zone("a"), Health::Healthy, u32::MAX, 2)
        .unwrap();
    let few = upstream(&[("a", Health::Healthy, 1)]);
    let [modest, huge] = [1, u64::MAX].map(|amount| [demand(&[("a", amount)])]);
    let rules: [&dyn Rule; 4] = [
        &Bounded::default(),
        &Joint::default(),
        &EnvoyRule::default(),
        &RoundRobin,
    ];
    for rule in rules {
        assert!(matches!(
            rule.plan(&Problem::new(&many, &modest)),
            Err(PlanError::TooLarge("the weight of the endpoints"))
        ));
        assert!(matches!(
            rule.plan(&Problem::new(&few, &huge)),
            Err(PlanError::TooLarge("demand"))
        ));
    }
    let mut wide = Demand::new();
    for number in 0..2_000 {
        wide.add(&zone(&number.to_string()), 1).unwrap();
    }
    let wide = [wide];
    assert_eq!(
        Joint::default().plan(&Problem::new(&few, &wide)),
        Err(PlanError::TooManyZones {
            zones: 2_001,
            limit: 1_024
        })
    );
    assert!(demand(&[("a", u64::MAX)]).add(&zone("b"), 1).is_err());
}
