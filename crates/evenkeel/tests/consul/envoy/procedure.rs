//! How the documentation of Service Connect says to see whether requests stay in
//! their zone.

use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evenkeel_testkit::{Caller, Envoy, eventually, wait_for};

use super::{NONE, Town, ask, evenkeel, has, printed};
use crate::daemon::TestDaemon;

/// `zones verify`, with requests meanwhile.
fn verified(envoy: &Envoy, address: &str) -> Output {
    let ended = Arc::new(AtomicBool::new(false));
    let (seen, listener) = (Arc::clone(&ended), envoy.listener("out"));
    let asking = std::thread::spawn(move || {
        let mut caller = Caller::connect(&listener);
        while !seen.load(Ordering::SeqCst) {
            ask(&mut caller, 10);
        }
    });
    let output = evenkeel(&["zones", "verify", "web", "--envoy", address, "--for", "1s"]);
    ended.store(true, Ordering::SeqCst);
    asking.join().unwrap();
    output
}

/// Envoy's admin, on a unix socket too.
fn over_a_socket(path: &Path, admin: &str) {
    let listener = UnixListener::bind(path).unwrap();
    let admin = admin.to_owned();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = std::net::TcpStream::connect(&admin).unwrap();
            let (mut to, mut from) = (server.try_clone().unwrap(), server);
            let (mut asked, mut answer) = (client.try_clone().unwrap(), client);
            std::thread::spawn(move || std::io::copy(&mut asked, &mut to));
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut answer);
                let _ = answer.shutdown(std::net::Shutdown::Both);
            });
        }
    });
}

#[test]
#[ignore = "counters that must stand still for 30 s: run by .ci/run minutes"]
fn the_counters_of_the_service_connect_procedure_move_as_it_says() {
    let test = "the_counters_of_the_service_connect_procedure";
    let Some(town) = Town::new(test, [2, 2, 2]) else {
        return;
    };
    town.endpoints([2, 2, 2], NONE);
    let _daemon = TestDaemon::start(town.settings());
    let Some(envoy) = town.envoy(test, |bootstrap| bootstrap) else {
        return;
    };
    has(&envoy, "shop", 6, 6);
    has(&envoy, "web", 6, 6);
    let mut caller = Caller::connect(&envoy.listener("out"));
    let names = ["lb_zone_routing_cross_zone", "lb_zone_cluster_too_small"];
    let counters = || names.map(|name| envoy.stat(&format!("cluster.web.{name}")));
    let before = counters();
    let moved = wait_for(Duration::from_secs(30), || {
        assert_eq!(ask(&mut caller, 10), BTreeMap::from([("a".to_owned(), 10)]));
        (counters() != before).then(counters)
    });
    assert_eq!(moved, None, "they stood at {before:?}");
    let output = verified(&envoy, envoy.admin());
    let text = printed(&output);
    assert!(output.status.success(), "{output:?}");
    for words in [
        "Envoy 1.40.0 in zone r/a, callers shop, cluster web",
        "Zone-aware routing is ON: all requests stay in the zone.",
        "The requests go where the rule says.",
    ] {
        assert!(text.contains(words), "{words}\nis not in\n{text}");
    }

    // Five: one per worker and one for the main thread, at each update.
    let workers = 2;
    town.endpoints([2, 2, 1], NONE);
    has(&envoy, "web", 5, 5);
    let mut expected = before[1];
    for (all, critical, healthy) in [
        ([2, 2, 1], NONE, 5),
        ([2, 2, 1], [1, 0, 0], 4),
        ([2, 2, 1], NONE, 5),
        ([2, 2, 1], [0, 1, 0], 4),
        ([2, 2, 1], NONE, 5),
    ] {
        town.endpoints(all, critical);
        has(&envoy, "web", 5, healthy);
        expected += workers + 1;
        eventually(&format!("{expected} counted"), || {
            (counters()[1] == expected).then_some(())
        });
    }
    let socket = town.dir.path().join("envoy.sock");
    over_a_socket(&socket, envoy.admin());
    let output = verified(&envoy, &format!("unix:{}", socket.display()));
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    for words in [
        "Zone-aware routing is OFF: 5 of the 6 healthy endpoints that it takes.",
        "To switch it on: healthy endpoints that are missing: 1; or lower min_cluster_size.",
        "✗ cluster_too_small",
        &format!("lb_zone_cluster_too_small          {expected:>8}  (+0)"),
    ] {
        assert!(text.contains(words), "{words}\nis not in\n{text}");
    }

    // On again by itself.
    town.endpoints([2, 2, 2], NONE);
    has(&envoy, "web", 6, 6);
    let output = verified(&envoy, envoy.admin());
    assert!(output.status.success(), "{output:?}");
}
