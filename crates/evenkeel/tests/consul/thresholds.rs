use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel::thresholds::Source;
use evenkeel_testkit::{Consul, eventually};
use evenkeel_threshold::Status;
use serde_json::json;

use crate::catalog::{eventually_status, external, http, index, status, within};
use crate::daemon::{TestDaemon, settings};
use crate::targets::{Health, Targets};

#[test]
fn two_hundred_nodes_are_probed_at_their_intervals_and_follow_their_targets() {
    const TEST: &str = "two_hundred_nodes_are_probed_at_their_intervals_and_follow_their_targets";
    let Some(consul) = Consul::start(TEST) else {
        return;
    };
    let targets = Targets::start();
    let dir = tempfile::tempdir().unwrap();
    for n in 0..100 {
        let name = format!("h{n}");
        external(&name, &http(&targets.url(&name))).put(&consul);
        let tcp = json!({"TCP": targets.address(), "Interval": "1s", "Timeout": "1s"});
        external(&format!("t{n}"), &tcp).put(&consul);
    }
    external("t-down", &json!({"TCP": "127.0.0.1:1", "Interval": "1s"})).put(&consul);
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));

    eventually("all with a target are passing", || {
        (crate::catalog::count(&consul, "passing") == 200).then_some(())
    });
    assert_eq!(status(&consul, "t-down").unwrap(), "critical");
    for n in 0..10 {
        targets.set(&format!("h{n}"), Health::Down);
    }
    eventually("ten are critical", || {
        (crate::catalog::count(&consul, "critical") == 11).then_some(())
    });
    for n in 0..10 {
        targets.set(&format!("h{n}"), Health::Up);
    }
    eventually("and back", || {
        (crate::catalog::count(&consul, "passing") == 200).then_some(())
    });

    // At their intervals: five more probes of one go with five of each other,
    // one up or down for the phase.
    let start: Vec<u64> = (0..100).map(|n| targets.probes(&format!("h{n}"))).collect();
    eventually("five intervals", || {
        (targets.probes("h0") >= start[0] + 5).then_some(())
    });
    for (n, start) in start.iter().enumerate() {
        let probes = targets.probes(&format!("h{n}")) - start;
        assert!((4..=7).contains(&probes), "h{n}: {probes}");
    }
    daemon.stop();
}

fn reported(daemon: &TestDaemon, node: &str) -> Option<Status> {
    Some(daemon.check(node, &format!("{node}-check"))?.reported)
}

/// The target has given exactly these results, or one more while we looked.
fn assert_given(targets: &Targets, name: &str, wanted: &str) {
    let given = targets.given(name);
    let more = given.len().saturating_sub(wanted.len());
    assert!(given.starts_with(wanted) && more <= 1, "{name}: {given}");
}

// P001, P002.
#[test]
fn thresholds_mean_what_they_say() {
    let Some(consul) = Consul::start("thresholds_mean_what_they_say") else {
        return;
    };
    let targets = Targets::start();
    let dir = tempfile::tempdir().unwrap();
    let register = |name: &str| external(name, &http(&targets.url(name))).status("passing");

    register("plain").put(&consul);
    register("noted")
        .notes("owned by ops [evenkeel critical-threshold=3 passing-threshold=1]")
        .put(&consul);
    register("service")
        .service_name("s")
        .service_meta("evenkeel-critical-threshold", "3")
        .service_meta("evenkeel-passing-threshold", "1")
        .put(&consul);
    register("node")
        .node_meta("evenkeel-critical-threshold", "3")
        .node_meta("evenkeel-passing-threshold", "1")
        .put(&consul);
    register("readme")
        .notes("[evenkeel critical-threshold=3]")
        .put(&consul);
    register("alternating")
        .notes("[evenkeel critical-threshold=1]")
        .put(&consul);
    register("varying")
        .notes("[evenkeel critical-threshold=1]")
        .put(&consul);

    targets.set("plain", Health::Script("PF"));
    for name in ["noted", "service", "node"] {
        targets.set(name, Health::Script("PFFFF"));
    }
    targets.set("readme", Health::Script("PFFPFFPFF"));
    targets.set("alternating", Health::Cycle("PF"));
    targets.set("varying", Health::Cycle("PF"));
    targets.vary("varying");
    let untouched = ["alternating", "varying"].map(|node| index(&consul, node));

    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    let mut failing: BTreeMap<&str, &str> = BTreeMap::from([
        ("plain", "PF"),
        ("noted", "PFFFF"),
        ("service", "PFFFF"),
        ("node", "PFFFF"),
        ("readme", "PFFPFFPFF"),
    ]);
    let mut recovering: BTreeMap<&str, &str> = BTreeMap::new();
    eventually("all have flipped, and three of them back", || {
        failing.retain(|name, wanted| {
            let flipped = reported(&daemon, name) == Some(Status::Critical);
            if flipped {
                assert_given(&targets, name, wanted);
                eventually_status(&consul, name, "critical");
            }
            if flipped && *wanted == "PFFFF" {
                // Two successes and not one.
                targets.set(name, Health::Script("PFPP"));
                recovering.insert(*name, "PFPP");
            }
            !flipped
        });
        recovering.retain(|name, wanted| {
            let back = reported(&daemon, name) == Some(Status::Passing);
            if back {
                assert_given(&targets, name, wanted);
                eventually_status(&consul, name, "passing");
            }
            !back
        });
        (failing.is_empty() && recovering.is_empty()).then_some(())
    });

    let check = daemon.check("service", "service-check").unwrap();
    assert!(
        check
            .thresholds
            .parameters
            .iter()
            .any(|parameter| parameter.key == "critical-threshold"
                && parameter.value == "3"
                && parameter.source == Source::ServiceMeta.to_string()),
        "{:?}",
        check.thresholds
    );
    // Some twenty results later the alternating ones have never been written.
    eventually("twenty results", || {
        (targets.given("varying").len() >= 20).then_some(())
    });
    for (name, untouched) in ["alternating", "varying"].into_iter().zip(untouched) {
        assert_eq!(index(&consul, name), untouched, "{name} was written");
    }
    daemon.stop();
}

// A metadata change takes effect within 30 s with the counters kept.
#[test]
fn changed_metadata_apply_and_keep_the_count() {
    let Some(consul) = Consul::start("changed_metadata_apply_and_keep_the_count") else {
        return;
    };
    let targets = Targets::start();
    let dir = tempfile::tempdir().unwrap();
    let register = |name: &str| external(name, &http(&targets.url(name))).status("passing");
    let by_service = |value| {
        register("service")
            .service_name("s")
            .service_meta("evenkeel-critical-threshold", value)
            .put(&consul)
    };
    let by_node = |value| {
        register("node")
            .node_meta("evenkeel-critical-threshold", value)
            .put(&consul)
    };
    by_service("1000");
    by_node("1000");
    for name in ["service", "node"] {
        targets.set(name, Health::Down);
    }
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    for name in ["service", "node"] {
        eventually("five failures are counted", || {
            let pending = daemon.check(name, &format!("{name}-check"))?.pending?;
            (pending.seen? >= 5).then_some(())
        });
    }
    // More than 40 failures do not come within 30 s: what was counted before
    // must count.
    by_service("5");
    by_node("5");
    for name in ["service", "node"] {
        // Registering again wrote the status: nothing else of the check changed.
        within(Duration::from_secs(30), "the new threshold applies", || {
            daemon
                .check(name, &format!("{name}-check"))
                .is_some_and(|check| check.reported == Status::Critical)
        });
        eventually_status(&consul, name, "critical");
    }
    daemon.stop();
}

// Each faulty value is reported where docs/thresholds.md says.
#[test]
fn faulty_thresholds_are_reported_and_the_daemons_own_apply() {
    let Some(consul) = Consul::start("faulty_thresholds_are_reported") else {
        return;
    };
    let targets = Targets::start();
    let dir = tempfile::tempdir().unwrap();
    let register = |name: &str| external(name, &http(&targets.url(name)));
    register("notes")
        .notes("[evenkeel critical-threshold=lots]")
        .put(&consul);
    register("service")
        .service_name("s")
        .service_meta("evenkeel-critical-treshold", "3")
        .put(&consul);
    register("node")
        .node_meta("evenkeel-strategy", "magic")
        .put(&consul);
    let mut settings = settings(&consul.address(), dir.path());
    settings.threshold.set("critical_threshold", 7);
    let daemon = TestDaemon::start(settings);
    for (name, words) in [
        ("notes", "lots"),
        ("service", "evenkeel-critical-treshold"),
        ("node", "magic"),
    ] {
        let check = eventually("the check is known", || {
            daemon.check(name, &format!("{name}-check"))
        });
        let faults = &check.thresholds.faults;
        assert!(
            faults.iter().any(|fault| fault.contains(words)),
            "{name}: {faults:?}"
        );
        assert!(
            check
                .thresholds
                .parameters
                .iter()
                .any(|parameter| parameter.value == "7"),
            "{name}: {:?}",
            check.thresholds
        );
    }
    assert_eq!(daemon.metric("evenkeel_threshold_faults") as u64, 3);
    daemon.stop();
    let events = std::fs::read_to_string(dir.path().join("state/events.jsonl")).unwrap();
    assert_eq!(events.matches("threshold_fault").count(), 3, "{events}");
}

fn parameter(daemon: &TestDaemon, node: &str, key: &str) -> Option<String> {
    let check = daemon.check(node, &format!("{node}-check"))?;
    let found = check
        .thresholds
        .parameters
        .into_iter()
        .find(|parameter| parameter.key == key)?;
    Some(found.value)
}

// A brown-out that no count in a row would ever see.
#[test]
fn a_window_in_notes_reports_a_target_that_fails_every_other_probe() {
    let Some(consul) = Consul::start("a_window_in_notes_reports_a_brown_out") else {
        return;
    };
    let targets = Targets::start();
    let dir = tempfile::tempdir().unwrap();
    let register = |name: &str| external(name, &http(&targets.url(name))).status("passing");
    register("window")
        .notes("[evenkeel results=5 failures=3 recovered-at=1]")
        .put(&consul);
    register("in-a-row")
        .notes("[evenkeel failures-before-critical=3 success-before-passing=1]")
        .put(&consul);
    targets.set("window", Health::Script("PPFPFPF"));
    targets.set("in-a-row", Health::Cycle("PF"));
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    eventually("three of five", || {
        (reported(&daemon, "window") == Some(Status::Critical)).then_some(())
    });
    assert_given(&targets, "window", "PPFPFPF");
    eventually_status(&consul, "window", "critical");
    let check = daemon.check("window", "window-check").unwrap();
    assert_eq!(check.thresholds.strategy, "window");
    assert_eq!(
        parameter(&daemon, "window", "recovered-at").as_deref(),
        Some("1")
    );
    // Three failures have to leave the window, but one.
    targets.set("window", Health::Script("PPPP"));
    eventually_status(&consul, "window", "passing");
    eventually("twenty results", || {
        (targets.given("in-a-row").len() >= 20).then_some(())
    });
    assert_eq!(reported(&daemon, "in-a-row"), Some(Status::Passing));
    daemon.stop();
}

// P144, P146: flapping is a state of its own, with a start and an end.
#[test]
fn flapping_and_suppression_show_in_the_status_and_as_pairs_of_events() {
    let Some(consul) = Consul::start("flapping_and_suppression_show") else {
        return;
    };
    let targets = Targets::start();
    let dir = tempfile::tempdir().unwrap();
    let register = |name: &str| external(name, &http(&targets.url(name))).status("passing");
    register("penalty")
        .notes(
            "[evenkeel strategy=penalty suppress=2000 half-life=4s longest=8s reuse=900 \
             while-suppressed=critical]",
        )
        .put(&consul);
    register("flap")
        .notes("[evenkeel strategy=flap while-flapping=last-stable]")
        .put(&consul);
    for name in ["penalty", "flap"] {
        targets.set(name, Health::Cycle("PF"));
    }
    let daemon = TestDaemon::start(settings(&consul.address(), dir.path()));
    let mark = |name: &str| daemon.check(name, &format!("{name}-check"))?.mark;
    for (name, wanted) in [("penalty", "suppressed"), ("flap", "flapping")] {
        eventually("it is marked", || {
            (mark(name).as_deref() == Some(wanted)).then_some(())
        });
    }
    // What is reported meanwhile is what the directive says.
    eventually_status(&consul, "penalty", "critical");
    for name in ["penalty", "flap"] {
        targets.set(name, Health::Up);
    }
    for name in ["penalty", "flap"] {
        eventually("it is not marked any more", || {
            mark(name).is_none().then_some(())
        });
        eventually_status(&consul, name, "passing");
    }
    for kind in ["flapping", "suppressed"] {
        let series = format!("evenkeel_marks_total{{mark=\"{kind}\"}}");
        assert!(daemon.metric(&series) >= 1.0, "{series}");
    }
    daemon.stop();
    let events = std::fs::read_to_string(dir.path().join("state/events.jsonl")).unwrap();
    for (start, end) in [
        ("flapping_started", "flapping_ended"),
        ("suppression_started", "suppression_ended"),
    ] {
        let (starts, ends) = (events.matches(start).count(), events.matches(end).count());
        assert!(
            starts >= 1 && starts == ends,
            "{start} {starts} {end} {ends}"
        );
    }
}
