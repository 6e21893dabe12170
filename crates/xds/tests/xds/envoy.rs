//! The real Envoy, with the bootstrap that the documentation gives.

use evenkeel_testkit::{Envoy, filled};
use evenkeel_xds::{Assignments, Endpoint, Health, Locality, file};

use crate::support::{Running, cluster, until};

const BOOTSTRAP: &str = include_str!("../../../../docs/envoy/bootstrap.yaml");

fn bootstrap(xds: u16) -> String {
    filled(
        BOOTSTRAP,
        &[
            ("<shop-1>", "shop-1"),
            ("<shop>", "shop"),
            ("<web>", "web"),
            ("<eu>", "r"),
            ("<eu-a>", "a"),
            ("port_value: 10000", "port_value: 0"),
            ("port_value: 9901", "port_value: 0"),
            ("port_value: 18000", &format!("port_value: {xds}")),
        ],
    )
}

fn healthy(envoy: &Envoy, cluster: &str) -> u64 {
    envoy.stat(&format!("cluster.{cluster}.membership_healthy"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn envoys_refusal_is_shown_in_its_words_and_the_other_cluster_goes_on() {
    let running = Running::start().await;
    let name = "envoys_refusal_is_shown_in_its_words";
    let Some(envoy) = Envoy::start(name, &bootstrap(running.address.port()), 1) else {
        return;
    };
    let mut bad = cluster([1, 2]);
    let named = Endpoint {
        address: "db.example".to_owned(),
        port: 80,
        health: Health::Healthy,
        weight: None,
    };
    bad.insert(0, &Locality::new("r", "a", ""), named);
    let mut assignments = Assignments::new();
    assignments.insert("shop", cluster([1, 2, 3]));
    assignments.insert("web", bad);
    running.server.publish(&assignments).unwrap();
    let seen = until("a refusal", || {
        running
            .server
            .subscribers()
            .into_iter()
            .find(|seen| seen.last_nack.is_some())
    })
    .await;
    assert_eq!(seen.node.id, "shop-1");
    assert_eq!(seen.node.cluster, "shop");
    assert_eq!(seen.node.locality, Locality::new("r", "a", ""));
    assert!(
        seen.node.agent.starts_with("envoy 1."),
        "{}",
        seen.node.agent
    );
    let text = seen.last_nack.unwrap().text;
    assert!(text.contains("malformed IP address: db.example"), "{text}");
    until("the callers are there", || {
        (healthy(&envoy, "shop") == 3).then_some(())
    })
    .await;

    // Put right, it is taken.
    assignments.insert("web", cluster([1, 2]));
    let published = running.server.publish(&assignments).unwrap();
    until("two endpoints", || {
        (healthy(&envoy, "web") == 2).then_some(())
    })
    .await;
    let seen = until("acknowledged", || {
        let seen = running.server.subscribers().pop()?;
        (seen.acked == Some(published.version)).then_some(seen)
    })
    .await;
    assert!(!seen.is_refusing());
    assert!(seen.last_nack.is_some(), "and still to be seen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn envoy_reads_the_file_and_each_that_takes_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("web.eds.json");
    let put = |ports: std::ops::Range<u16>, version| {
        let mut assignment = cluster(ports);
        assignment.overprovisioning_factor = Some(140);
        assignment.set_weight(0, &Locality::new("r", "a", ""), 7);
        let new = directory.path().join(".new");
        std::fs::write(&new, file("web", &assignment, version)).unwrap();
        std::fs::rename(new, &path).unwrap();
    };
    put(1..4, 1);
    let bootstrap = serde_json::json!({
        "node": {"id": "shop-1", "cluster": "shop"},
        "static_resources": {"clusters": [{
            "name": "web",
            "type": "EDS",
            "eds_cluster_config": {"eds_config": {
                "resource_api_version": "V3",
                "path_config_source": {"path": path},
            }},
        }]},
        "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}},
    });
    let Some(envoy) = Envoy::start("envoy_reads_the_file", &bootstrap.to_string(), 1) else {
        return;
    };
    until("three endpoints", || {
        (healthy(&envoy, "web") == 3).then_some(())
    })
    .await;
    put(1..6, 2);
    until("five endpoints", || {
        (healthy(&envoy, "web") == 5).then_some(())
    })
    .await;
    assert_eq!(envoy.stat("cluster.web.update_rejected"), 0);
}
