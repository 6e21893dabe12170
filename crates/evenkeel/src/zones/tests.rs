use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::CheckId;
use evenkeel_threshold::{Status, Timestamp};
use evenkeel_zone_weights::plan::{Limits, PARTS, Tolerance};
use evenkeel_zone_weights::{Health, Locality};
use proptest::prelude::*;
use tokio::sync::watch;

use super::{
    Endpoint, Instance, PairReport, PairView, RuleName, RuleSettings, Weights, Zones, report, stats,
};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Checks are called after their instances: check `a1` of instance `a1`.
fn check(instance: &str) -> CheckId {
    CheckId::new("", "", "node", instance, instance)
}

/// An instance whose zone is the first letter of its name.
fn instance(name: &str, status: Status) -> Instance {
    Instance {
        endpoint: Endpoint {
            id: name.into(),
            address: "10.0.0.1".into(),
            port: 80,
            locality: Locality::zone_only(&name[..1]),
            priority: 0,
        },
        weights: Weights::default(),
        checks: vec![(check(name), status)],
    }
}

fn passing(names: &[&str]) -> Vec<Instance> {
    names
        .iter()
        .map(|name| instance(name, Status::Passing))
        .collect()
}

struct Rig {
    zones: Zones,
    now: Timestamp,
}

impl Rig {
    fn new() -> Self {
        Self {
            zones: Zones::new(RuleSettings::default(), START),
            now: START,
        }
    }

    fn pair(
        &mut self,
        upstream: &str,
        callers: &str,
        rule: RuleName,
    ) -> watch::Receiver<Arc<PairView>> {
        self.zones
            .pair(self.now, &upstream.into(), &callers.into(), rule)
            .unwrap()
    }

    fn set(&mut self, service: &str, instances: Vec<Instance>) {
        self.zones
            .handle_instances(self.now, service, instances, Vec::new());
    }

    fn status(&mut self, instance: &str, status: Option<Status>) {
        self.zones.handle_status(self.now, &check(instance), status);
    }

    /// Lets time pass, with all that is due in it.
    fn after(&mut self, millis: u64) {
        let end = self.now.saturating_add(Duration::from_millis(millis));
        while let Some(due) = self.zones.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.zones.handle_timeout(self.now);
        }
        self.now = end;
        self.zones.handle_timeout(end);
    }
}

fn local(pair: &watch::Receiver<Arc<PairView>>, zone: &str) -> f64 {
    report(&pair.borrow(), Some(zone)).zones[0].local
}

fn shares(report: &PairReport) -> Vec<(String, String)> {
    report.zones[0]
        .weights
        .iter()
        .map(|weight| (weight.zone.to_string(), weight.share.clone()))
        .collect()
}

#[test]
fn two_services_that_are_asked_for_are_read_and_split() {
    let mut rig = Rig::new();
    let pair = rig.pair("api", "web", RuleName::ServiceConnect);
    assert!(!pair.borrow().upstream.known);
    let mut wanted: Vec<_> = rig.zones.wanted().map(ToString::to_string).collect();
    wanted.sort();
    assert_eq!(wanted, ["api", "web"]);

    rig.set("web", passing(&["a1", "a2", "a3", "b1"]));
    rig.set("api", passing(&["a4", "a5", "b4", "b5"]));
    rig.after(100);
    let view = Arc::clone(&pair.borrow());
    assert!(view.upstream.known && view.callers.known);
    let told = report(&view, Some("a"));
    // Three quarters of the callers, half of the endpoints.
    assert_eq!(told.zones[0].mode, "residual");
    assert_eq!(
        shares(&told),
        [
            ("a".into(), "3333/5000".into()),
            ("b".into(), "1667/5000".into())
        ]
    );
    assert_eq!(told.zones[0].weights[1].parts, 333_400_000);
    let b = report(&view, Some("b"));
    assert_eq!(b.zones[0].mode, "direct");
    assert_eq!(report(&view, None).zones.len(), 2);
}

#[test]
fn an_endpoint_that_flaps_moves_nothing_while_its_damped_status_stands() {
    let mut rig = Rig::new();
    let pair = rig.pair("api", "web", RuleName::ServiceConnect);
    rig.set("web", passing(&["a1", "b1"]));
    rig.set("api", passing(&["a2", "a3", "b2", "b3"]));
    rig.status("a2", Some(Status::Passing));
    rig.after(100);
    let before = pair.borrow().version;
    // Somebody writes raw results into the catalog; ours is damped.
    for round in 0..10 {
        let mut list = passing(&["a2", "a3", "b2", "b3"]);
        list[0].checks[0].1 = if round % 2 == 0 {
            Status::Critical
        } else {
            Status::Passing
        };
        rig.set("api", list);
        rig.after(1_000);
    }
    assert_eq!(pair.borrow().version, before);

    // The damped status itself counts, before the catalog shows it.
    rig.status("a2", Some(Status::Critical));
    rig.after(100);
    let told = report(&pair.borrow(), Some("a"));
    assert!(told.version > before);
    assert_eq!(told.places[0].endpoints.unhealthy, 1);
    assert_eq!(
        told.zones[0].reason.as_ref().unwrap().name,
        "cluster_too_small"
    );

    // A check that is no longer watched has the catalog's status.
    rig.status("a2", None);
    rig.after(100);
    assert_eq!(
        report(&pair.borrow(), Some("a")).places[0]
            .endpoints
            .unhealthy,
        0
    );
}

#[test]
fn changes_that_come_together_are_one_recalculation() {
    let mut rig = Rig::new();
    let pair = rig.pair("api", "web", RuleName::Envoy);
    rig.set("web", passing(&["a1", "b1"]));
    rig.set("api", passing(&["a2", "a3", "a4", "b2", "b3", "b4"]));
    rig.after(100);
    let before = rig.zones.counts().recalculations;
    for name in ["a2", "a3", "b2"] {
        rig.status(name, Some(Status::Critical));
    }
    rig.after(99);
    assert_eq!(rig.zones.counts().recalculations, before);
    rig.after(1);
    assert_eq!(rig.zones.counts().recalculations, before + 1);
    let zone = &report(&pair.borrow(), Some("a")).zones[0];
    assert_eq!(zone.counters["lb_zone_cluster_too_small"], 1);
    assert!(zone.counters["lb_recalculate_zone_structures"] >= 2);
    let text = stats(&pair.borrow());
    assert!(
        text.contains("cluster.api.from.web.a.lb_zone_cluster_too_small: 1\n"),
        "{text}"
    );
}

#[test]
fn what_nobody_asks_for_is_forgotten_after_some_minutes() {
    let mut rig = Rig::new();
    let pair = rig.pair("api", "web", RuleName::Envoy);
    rig.set("web", passing(&["a1"]));
    rig.after(3_600_000);
    assert!(!rig.zones.forget_idle(rig.now), "it is held");
    drop(pair);
    rig.after(299_999);
    assert!(!rig.zones.forget_idle(rig.now));
    rig.after(1);
    assert!(rig.zones.forget_idle(rig.now));
    let counts = rig.zones.counts();
    assert_eq!((counts.services, counts.pairs), (0, 0));
    // Late news of it is nobody's.
    rig.set("web", passing(&["a1"]));
    assert_eq!(rig.zones.wanted().count(), 0);
}

#[test]
fn the_last_list_stands_while_it_cannot_be_read() {
    let mut rig = Rig::new();
    let pair = rig.pair("api", "web", RuleName::Envoy);
    rig.set("web", passing(&["a1", "b1"]));
    rig.set("api", passing(&["a2", "b2"]));
    rig.zones.handle_trouble(rig.now, "api", "no leader".into());
    rig.after(100);
    let told = report(&pair.borrow(), None);
    assert_eq!(told.degraded.as_deref(), Some("api: no leader"));
    assert_eq!(told.places[1].endpoints.healthy, 1);
    rig.set("api", passing(&["a2", "b2"]));
    rig.after(100);
    assert_eq!(report(&pair.borrow(), None).degraded, None);
}

#[test]
fn callers_need_no_port_and_endpoints_do() {
    let mut rig = Rig::new();
    let pair = rig.pair("api", "web", RuleName::Envoy);
    let mut silent = passing(&["a1", "b1"]);
    silent[0].endpoint.port = 0;
    rig.set("web", silent.clone());
    rig.set("api", silent);
    rig.after(100);
    let told = report(&pair.borrow(), None);
    assert_eq!(told.places[0].callers.healthy, 1);
    assert_eq!(told.places[0].endpoints.all(), 0);
    assert_eq!(pair.borrow().upstream.endpoints.len(), 1);
}

#[test]
fn an_instance_of_weight_zero_takes_nothing_and_warning_has_its_own_weight() {
    let health = |weights, status| {
        let mut instance = instance("a1", status);
        instance.weights = weights;
        instance.health(|_| None)
    };
    let weights = |passing, warning| Weights { passing, warning };
    assert_eq!(health(weights(5, 2), Status::Passing), (Health::Healthy, 5));
    assert_eq!(health(weights(5, 2), Status::Warning), (Health::Healthy, 2));
    assert_eq!(
        health(weights(5, 2), Status::Critical),
        (Health::Unhealthy, 5)
    );
    assert_eq!(
        health(weights(5, 0), Status::Warning),
        (Health::Unhealthy, 1)
    );
    assert_eq!(
        health(weights(0, 1), Status::Passing),
        (Health::Unhealthy, 1)
    );
}

#[test]
fn joint_weighs_all_callers_of_an_upstream_against_each_other() {
    let mut rig = Rig::new();
    rig.zones = Zones::new(
        RuleSettings {
            tolerance: Tolerance::per_10_000(0),
            limits: Limits {
                least_change: 0,
                largest_step: PARTS,
            },
            ..RuleSettings::default()
        },
        START,
    );
    let left = rig.pair("api", "left", RuleName::Joint);
    rig.set("api", passing(&["a1", "b1"]));
    rig.set("left", passing(&["a2", "a3", "a4", "b2"]));
    rig.after(100);
    // Alone, it must send a third of a's away.
    assert!(
        (local(&left, "a") - 2.0 / 3.0).abs() < 1e-6,
        "{}",
        local(&left, "a")
    );
    // One with the opposite skew makes up for it.
    let right = rig.pair("api", "right", RuleName::Joint);
    rig.set("right", passing(&["a5", "b3", "b4", "b5"]));
    rig.after(100);
    assert_eq!((local(&left, "a"), local(&right, "b")), (1.0, 1.0));
    // It goes: the other is alone again.
    drop(right);
    rig.after(300_000);
    rig.zones.forget_idle(rig.now);
    rig.after(100);
    assert!((local(&left, "a") - 2.0 / 3.0).abs() < 1e-6);
}

#[test]
fn that_somebody_else_asks_is_no_news() {
    for rule in RuleName::ALL {
        let mut rig = Rig::new();
        let pair = rig.pair("api", "web", rule);
        rig.set("web", passing(&["a1", "b1"]));
        rig.set("api", passing(&["a2", "a3", "b2", "b3"]));
        rig.after(100);
        let before = Arc::clone(&pair.borrow());
        for other in ["x", "y"] {
            rig.pair("api", other, rule);
            rig.after(1_000);
        }
        // `joint` weighs them all; nobody calls from x and y, so that moves nothing.
        assert_eq!(pair.borrow().version, before.version, "{rule}");
        assert_eq!(
            pair.borrow().recalculations,
            before.recalculations,
            "{rule}"
        );
    }
}

#[test]
fn bounded_weights_move_a_step_each_second() {
    let mut rig = Rig::new();
    let pair = rig.pair("api", "web", RuleName::Bounded);
    let callers = passing(&["a1", "b1"]);
    rig.set("web", callers);
    rig.set(
        "api",
        passing(&["a2", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9"]),
    );
    rig.after(100);
    let before = local(&pair, "a");
    assert!(before < 0.3, "{before}");
    // Zone a grows: all of its requests may stay, but not at once.
    let grown = [
        "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "b2", "b3", "b4", "b5", "b6", "b7", "b8",
        "b9",
    ];
    rig.set("api", passing(&grown));
    rig.after(100);
    let first = local(&pair, "a");
    // A quarter of all requests is half of those of zone a.
    assert!(
        first > before && first <= before + 0.5 + 1e-6,
        "{before} {first}"
    );
    rig.after(10_000);
    assert_eq!(local(&pair, "a"), 1.0);
    assert_eq!(rig.zones.poll_timeout(), None, "it has come to rest");
}

#[test]
fn too_many_names_are_refused() {
    let mut rig = Rig::new();
    for number in 0..2_000 {
        rig.zones
            .service(rig.now, &number.to_string().into())
            .unwrap();
    }
    let error = rig.zones.service(rig.now, &"more".into()).unwrap_err();
    assert!(error.to_string().contains("services"), "{error}");
    rig.zones
        .pair(rig.now, &"x".into(), &"y".into(), RuleName::Envoy)
        .unwrap_err();
    assert_eq!(rig.zones.counts().pairs, 0);
}

#[test]
fn a_zone_is_found_by_its_own_name_or_with_its_region() {
    let mut rig = Rig::new();
    let pair = rig.pair("api", "web", RuleName::Envoy);
    let mut list = passing(&["a1"]);
    list[0].endpoint.locality = Locality::new("eu", "a", "");
    rig.set("web", list);
    rig.after(100);
    let pair = pair.borrow();
    let eu = Locality::new("eu", "a", "");
    assert_eq!(pair.zone("a"), eu);
    assert_eq!(pair.zone("eu/a"), eu);
    assert_eq!(pair.zone("us/a"), Locality::new("us", "a", ""));
    assert_eq!(pair.zone("c"), Locality::zone_only("c"));
}

#[derive(Debug, Clone)]
enum Step {
    List(u8, Vec<(u8, u8, Status, u8)>),
    Status(u8, Option<Status>),
    Trouble(u8),
    Wait(u32),
}

fn status() -> impl Strategy<Value = Status> {
    proptest::sample::select(Status::ALL.to_vec())
}

fn step() -> impl Strategy<Value = Step> {
    let list = proptest::collection::vec((0..6_u8, 0..3_u8, status(), 0..3_u8), 0..6);
    prop_oneof![
        (0..2_u8, list).prop_map(|(service, list)| Step::List(service, list)),
        (0..6_u8, proptest::option::of(status())).prop_map(|(id, status)| Step::Status(id, status)),
        (0..2_u8).prop_map(Step::Trouble),
        (0..5_000_u32).prop_map(Step::Wait),
    ]
}

proptest! {
    // However it came about, what is shown is what the last lists and statuses say
    // when they are looked at from the beginning.
    #[test]
    fn a_view_depends_on_the_present_only(steps in proptest::collection::vec(step(), 0..40)) {
        let mut rig = Rig::new();
        let pair = rig.pair("0", "1", RuleName::Envoy);
        let mut lists = [None, None];
        let mut statuses = std::collections::HashMap::new();
        for step in steps {
            match step {
                Step::List(service, list) => {
                    let list: Vec<_> = list
                        .into_iter()
                        .map(|(id, zone, status, weight)| {
                            let name = format!("{}{id}", ["a", "b", "c"][usize::from(zone)]);
                            let mut instance = instance(&name, status);
                            instance.checks[0].0 = check(&id.to_string());
                            instance.weights.passing = weight.into();
                            instance
                        })
                        .collect();
                    rig.set(&service.to_string(), list.clone());
                    lists[usize::from(service)] = Some(list);
                }
                Step::Status(id, status) => {
                    rig.status(&id.to_string(), status);
                    statuses.insert(id, status);
                }
                Step::Trouble(service) => {
                    rig.zones.handle_trouble(rig.now, &service.to_string(), "away".into());
                }
                Step::Wait(millis) => rig.after(millis.into()),
            }
        }
        // Statuses that came before anybody depended on them are asked for.
        for (id, status) in &statuses {
            rig.status(&id.to_string(), *status);
        }
        rig.after(100);

        let mut fresh = Rig::new();
        let again = fresh.pair("0", "1", RuleName::Envoy);
        for (service, list) in lists.into_iter().enumerate() {
            if let Some(list) = list {
                fresh.set(&service.to_string(), list);
            }
        }
        for (id, status) in &statuses {
            fresh.status(&id.to_string(), *status);
        }
        fresh.after(100);
        let (shown, expected) = (pair.borrow(), again.borrow());
        prop_assert_eq!(&shown.upstream.endpoints, &expected.upstream.endpoints);
        prop_assert_eq!(&shown.upstream.upstream, &expected.upstream.upstream);
        prop_assert_eq!(&shown.callers.callers, &expected.callers.callers);
        prop_assert_eq!(&shown.callers.faults, &expected.callers.faults);
    }
}
