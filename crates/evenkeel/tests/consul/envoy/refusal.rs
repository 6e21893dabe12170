//! What Envoy refuses, and where that is seen.

use evenkeel_testkit::{Envoy, eventually};

use super::files::Listed;
use super::{bootstrap, evenkeel, free_port, has, printed, replaced, xds};
use crate::daemon::TestDaemon;

/// Endpoints of a second choice.
fn second_choice(service: &str) -> String {
    format!(
        "[[endpoint]]\nservice = {service:?}\naddress = \"127.0.0.9:9\"\nzone = \"b\"\nregion = \"r\"\npriority = 7\n"
    )
}

#[test]
fn envoys_refusal_is_told_in_its_words_until_it_accepts() {
    let listed = Listed::new();
    listed.write([2, 2, 2], &second_choice("web"));
    let port = free_port();
    let mut settings = listed.settings();
    settings.xds.listen = vec![format!("127.0.0.1:{port}").parse().unwrap()];
    let daemon = TestDaemon::start(settings);
    // It takes the called service for its own, and Envoy wants no priorities there.
    let wrong = replaced(
        &bootstrap(port),
        "local_cluster_name: shop",
        "local_cluster_name: web",
    );
    let Some(envoy) = Envoy::start("envoys_refusal_is_told", &wrong, 1) else {
        return;
    };
    let text = "Unexpected non-zero priority for local cluster 'web'.";
    let report = eventually("a refusal", || {
        let report = xds(listed.dir.path());
        let refused = &report.subscribers.first()?.refused;
        (*refused == ["web"]).then_some(report)
    });
    let nack = report.subscribers[0].last_nack.as_ref().unwrap();
    assert!(nack.text.contains(text), "{}", nack.text);
    assert_eq!(report.refusals.last().unwrap().node, "shop-1");
    let admin = format!("unix:{}", listed.dir.path().join("admin.sock").display());
    let output = evenkeel(&["zones", "proxies", "--admin", &admin]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let shown = printed(&output);
    assert!(shown.contains("REFUSES web"), "{shown}");
    assert!(shown.contains(text), "{shown}");
    assert!(daemon.metric("evenkeel_xds_nacks_total") >= 1.0);
    assert_eq!(daemon.metric("evenkeel_xds_refusing"), 1.0);
    // The other cluster is not kept from it.
    has(&envoy, "shop", 6, 6);

    listed.write([2, 2, 2], "");
    has(&envoy, "web", 6, 6);
    eventually("accepted", || {
        let output = evenkeel(&["zones", "proxies", "--admin", &admin]);
        let shown = printed(&output);
        let good = output.status.success() && shown.contains("accepted");
        // What was refused stays to be read.
        (good && shown.contains(text)).then_some(())
    });
    assert_eq!(daemon.metric("evenkeel_xds_refusing"), 0.0);
}

#[test]
fn callers_with_priorities_are_told_as_envoy_takes_them() {
    let listed = Listed::new();
    listed.write([2, 2, 2], &(second_choice("shop") + &second_choice("web")));
    let port = free_port();
    let mut settings = listed.settings();
    settings.xds.listen = vec![format!("127.0.0.1:{port}").parse().unwrap()];
    let _daemon = TestDaemon::start(settings);
    let Some(envoy) = Envoy::start("callers_with_priorities", &bootstrap(port), 1) else {
        return;
    };
    has(&envoy, "shop", 7, 7);
    has(&envoy, "web", 7, 7);
    let report = eventually("acknowledged", || {
        let report = xds(listed.dir.path());
        (report.subscribers.first()?.acked == report.version).then_some(report)
    });
    assert_eq!(report.subscribers[0].nacks, 0);
}
