use std::time::Duration;

use evenkeel_testkit::{Consul, eventually, wait_for};

use crate::catalog::{count, eventually_status, external, http, status, within};
use crate::daemon::{TestDaemon, settings};
use crate::targets::{Health, Targets};

// With a short outage; `the_outage_of_a_minute` below is the whole
// one, for .ci/long.
#[test]
fn an_outage_of_consul_loses_no_change_and_writes_no_wrong_one() {
    outage("an_outage_of_consul", Duration::from_secs(4));
}

#[test]
#[ignore = "a minute long: run by .ci/run minutes"]
fn the_outage_of_a_minute() {
    outage("the_outage_of_a_minute", Duration::from_secs(60));
}

fn outage(test: &str, length: Duration) {
    let Some(mut consul) = Consul::start(test) else {
        return;
    };
    let targets = Targets::start();
    let dir = tempfile::tempdir().unwrap();
    for n in 0..20 {
        let name = format!("n{n}");
        external(&name, &http(&targets.url(&name))).put(&consul);
    }
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    eventually("all are passing", || {
        (count(&consul, "passing") == 20).then_some(())
    });

    consul.kill();
    for n in 0..20 {
        targets.set(&format!("n{n}"), Health::Down);
    }
    let probes = targets.all_probes();
    // Some go down for good, some come back before Consul does.
    wait_for(length, || None::<()>);
    for n in 0..10 {
        targets.set(&format!("n{n}"), Health::Up);
    }
    eventually("the last results are in", || {
        let report = daemon.report();
        let passing = report
            .checks
            .iter()
            .filter(|check| check.reported == evenkeel_threshold::Status::Passing);
        (passing.count() == 10).then_some(())
    });
    assert!(targets.all_probes() > probes + 40, "probing stood still");

    consul.restart();
    consul.wait_for_leader();
    let written = wait_for(Duration::from_secs(5), || {
        (count(&consul, "critical") == 10).then_some(())
    });
    assert!(
        written.is_some(),
        "the final statuses are not in the catalog within 5 s: {:?}, {:#?}",
        daemon.readiness(),
        daemon.report().checks
    );
    for n in 0..20 {
        let wanted = if n < 10 { "passing" } else { "critical" };
        assert_eq!(status(&consul, &format!("n{n}")).unwrap(), wanted);
    }
    eventually("ready again", || daemon.readiness().ready.then_some(()));
    daemon.stop();
}

// A target that fails and comes back within one interval is never wrong for
// longer than an interval: an answer of the list that was under way while we
// wrote must not be taken for news.
#[test]
fn a_blip_is_gone_with_the_next_good_probe() {
    let Some(consul) = Consul::start("a_blip_is_gone_with_the_next_good_probe") else {
        return;
    };
    let targets = Targets::start();
    let dir = tempfile::tempdir().unwrap();
    for n in 0..1000 {
        let name = format!("n{n}");
        external(&name, &http(&targets.url(&name)))
            .status("passing")
            .put(&consul);
    }
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    eventually("all are probed", || {
        (targets.all_probes() >= 3000).then_some(())
    });
    for round in 0..3 {
        for n in 0..20 {
            targets.set(&format!("n{}", n * 37 + round), Health::Script("FP"));
        }
        eventually("both results were given", || {
            (0..20)
                .all(|n| targets.given(&format!("n{}", n * 37 + round)).len() >= 2)
                .then_some(())
        });
        // One interval is 1 s; the rest is for a loaded machine.
        within(Duration::from_secs(3), "all are passing again", || {
            count(&consul, "critical") == 0
        });
    }
    eventually_status(&consul, "n0", "passing");
    daemon.stop();
}
