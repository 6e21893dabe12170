//! The daemon is away for a while, or the way to it.

use std::time::Duration;

use evenkeel::zones::RuleName;
use evenkeel_testkit::{Caller, Envoy, Wire, eventually, wait_for};

use super::{NONE, REQUESTS, Town, agrees, ask, bootstrap, has};
use crate::daemon::TestDaemon;

const CHANGES: &str = "cluster.web.membership_change";

/// With what was assigned last, and without a change.
fn goes_on(town: &Town, envoy: &Envoy, caller: &mut Caller, changes: u64) {
    let predicted = town.prediction(RuleName::Envoy, [3, 3, 3], NONE);
    agrees(&ask(caller, REQUESTS), &predicted);
    assert_eq!(envoy.stat(CHANGES), changes);
}

/// Within two seconds of the return, in one step.
fn catches_up(town: &Town, envoy: &Envoy, caller: &mut Caller, changes: u64) {
    wait_for(Duration::from_secs(2), || {
        (envoy.stat("cluster.web.membership_total") == 12).then_some(())
    })
    .expect("what is so now, within 2 s of the return");
    assert_eq!(
        envoy.stat(CHANGES),
        changes + 1,
        "one step, nothing between"
    );
    let predicted = town.prediction(RuleName::Envoy, [6, 3, 3], NONE);
    agrees(&ask(caller, REQUESTS), &predicted);
}

#[test]
#[ignore = "a quarter of a minute: run by .ci/run minutes"]
fn envoy_goes_on_without_the_daemon_and_is_up_to_date_within_two_seconds_of_its_return() {
    let test = "envoy_goes_on_without_the_daemon";
    let Some(town) = Town::new(test, [4, 1, 1]) else {
        return;
    };
    town.endpoints([3, 3, 3], NONE);
    let daemon = TestDaemon::start(town.settings());
    let Some(envoy) = town.envoy(test, |bootstrap| bootstrap) else {
        return;
    };
    has(&envoy, "web", 9, 9);
    has(&envoy, "shop", 6, 6);
    let mut caller = Caller::connect(&envoy.listener("out"));
    let before = envoy.stat(CHANGES);
    drop(daemon);
    eventually("it has noticed", || {
        (envoy.stat("control_plane.connected_state") == 0).then_some(())
    });
    goes_on(&town, &envoy, &mut caller, before);
    town.endpoints([6, 3, 3], NONE);
    let daemon = TestDaemon::start(town.settings());
    catches_up(&town, &envoy, &mut caller, before);
    daemon.stop();
}

#[test]
#[ignore = "a quarter of a minute: run by .ci/run minutes"]
fn envoy_that_is_cut_off_goes_on_and_is_up_to_date_within_two_seconds_of_the_return() {
    let test = "envoy_that_is_cut_off";
    let Some(town) = Town::new(test, [4, 1, 1]) else {
        return;
    };
    town.endpoints([3, 3, 3], NONE);
    let _daemon = TestDaemon::start(town.settings());
    let wire = Wire::to(town.serving());
    let bootstrap = bootstrap(wire.address().port());
    let Some(envoy) = Envoy::start(test, &bootstrap, 2) else {
        return;
    };
    has(&envoy, "web", 9, 9);
    has(&envoy, "shop", 6, 6);
    let mut caller = Caller::connect(&envoy.listener("out"));
    // Broken connections, and then a network that swallows everything.
    for silent in [false, true] {
        town.endpoints([3, 3, 3], NONE);
        has(&envoy, "web", 9, 9);
        let before = envoy.stat(CHANGES);
        if silent {
            wire.hold();
        } else {
            wire.cut();
            eventually("it has noticed", || {
                (envoy.stat("control_plane.connected_state") == 0).then_some(())
            });
        }
        let version = town.xds().version;
        town.endpoints([6, 3, 3], NONE);
        if silent {
            // Sent, and not arrived.
            eventually("it is published", || {
                let report = town.xds();
                let waits = report.subscribers.first()?.unanswered_ms.is_some();
                (report.version > version && waits).then_some(())
            });
        }
        goes_on(&town, &envoy, &mut caller, before);
        wire.mend();
        catches_up(&town, &envoy, &mut caller, before);
    }
}
