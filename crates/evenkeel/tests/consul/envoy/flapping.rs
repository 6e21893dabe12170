//! An endpoint that is up and down within its thresholds.

use evenkeel::delivery::Mode;
use evenkeel::zones::RuleName;
use evenkeel_testkit::{Origin, eventually};

use super::{NONE, Town, has, weighted};
use crate::catalog::{external, http};
use crate::daemon::TestDaemon;
use crate::targets::{Health, Targets};

fn moves_nothing(test: &str, mode: Mode, rule: RuleName) {
    let Some(town) = Town::new(test, [2, 2, 2]) else {
        return;
    };
    town.endpoints([2, 2, 2], NONE);
    let targets = Targets::start();
    let flapping = Origin::start("a", 1);
    external("flap", &http(&targets.url("flap")))
        .service_name("web")
        .node_meta("zone", "a")
        .node_meta("region", "r")
        .port(flapping.address().port())
        .status("passing")
        .notes("[evenkeel critical-threshold=3 passing-threshold=1]")
        .put(&town.consul);
    let mut settings = town.settings();
    settings.xds.mode = mode;
    settings.zones.rule = rule;
    settings.zones.least_change = 0;
    let _daemon = TestDaemon::start(settings);
    let alter = |bootstrap: String| match mode {
        Mode::Envoy => bootstrap,
        Mode::Weights => weighted(&bootstrap),
    };
    let Some(envoy) = town.envoy(test, alter) else {
        return;
    };
    has(&envoy, "shop", 6, 6);
    // With weights, zones without requests from `a` are left out.
    let (all, less) = match mode {
        Mode::Envoy => ((7, 7), (7, 6)),
        Mode::Weights => ((3, 3), (2, 2)),
    };
    has(&envoy, "web", all.0, all.1);
    let changes = || {
        let count = |name: &str| envoy.stat(&format!("cluster.web.{name}"));
        let structures = count("lb_recalculate_zone_structures");
        (
            structures,
            count("membership_change"),
            count("update_success"),
        )
    };
    let before = eventually("it has come to rest", || {
        let report = town.xds();
        let acked = report.subscribers.first()?.acked;
        (acked == report.version).then(|| (changes(), report.version))
    });
    targets.set("flap", Health::Cycle("FP"));
    let probes = targets.probes("flap");
    eventually("eight probes", || {
        (targets.probes("flap") > probes + 8).then_some(())
    });
    assert_eq!((changes(), town.xds().version), before);
    // One that is down for good does move it.
    targets.set("flap", Health::Down);
    has(&envoy, "web", less.0, less.1);
}

#[test]
#[ignore = "ten seconds of probes: run by .ci/run minutes"]
fn an_endpoint_that_flaps_moves_nothing_in_envoy() {
    moves_nothing("an_endpoint_that_flaps", Mode::Envoy, RuleName::Envoy);
}

#[test]
#[ignore = "ten seconds of probes: run by .ci/run minutes"]
fn an_endpoint_that_flaps_moves_no_weights_of_bounded() {
    moves_nothing("flaps_bounded", Mode::Weights, RuleName::Bounded);
}

#[test]
#[ignore = "ten seconds of probes: run by .ci/run minutes"]
fn an_endpoint_that_flaps_moves_no_weights_of_joint() {
    moves_nothing("flaps_joint", Mode::Weights, RuleName::Joint);
}
