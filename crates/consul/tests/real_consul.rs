//! The calls, against a real Consul.

mod common;

use std::time::Duration;

use common::{client, external};
use evenkeel_consul::blocking::{Rules, Step, Watch};
use evenkeel_consul::types::{
    AclQuestion, CheckRef, Deregistration, HealthCheck, Registration, ServiceRegistration,
};
use evenkeel_consul::{Config, Query};
use evenkeel_testkit::Consul;
use serde_json::json;

fn external_nodes() -> Query {
    Query::external_nodes("external-node", "true")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_works() {
    let Some(consul) = Consul::start("every_call_works") else {
        return;
    };
    let client = client(&consul);

    assert!(client.leader().await.unwrap().is_some());
    let agent = client.agent_self().await.unwrap().config;
    assert_eq!(agent.node_name, "server");
    assert!(agent.server && agent.version_numbers().is_some());
    assert_eq!(client.check_server().await.unwrap(), Some(agent.version));

    let mut check = HealthCheck {
        node: "web-1".into(),
        check_id: "http check".into(),
        service_id: "web/1".into(),
        status: "critical".into(),
        notes: "by hand".into(),
        ..HealthCheck::default()
    };
    check.definition.http = "http://127.0.0.1:1/".into();
    check.definition.interval = Duration::from_secs(90).into();
    let registration = Registration {
        node: "web-1".into(),
        address: "127.0.0.1".into(),
        node_meta: [("external-node".to_owned(), "true".to_owned())].into(),
        service: Some(ServiceRegistration {
            id: "web/1".into(),
            service: "web".into(),
            tags: vec!["a".into()],
            port: 80,
            meta: [("zone".to_owned(), "z1".to_owned())].into(),
            ..ServiceRegistration::default()
        }),
        checks: vec![check.clone()],
        ..Registration::default()
    };
    client.register(&registration).await.unwrap();

    let checks = client.list_checks(&external_nodes()).await.unwrap();
    assert!(checks.index().unwrap() > 0);
    assert_eq!(checks.meta.known_leader, Some(true));
    assert_eq!(checks.value.len(), 1);
    let listed = &checks.value[0];
    assert_eq!(listed.definition, check.definition);
    assert_eq!(
        (listed.kind.as_str(), listed.service_name.as_str()),
        ("http", "web")
    );
    assert_eq!(
        client
            .health_node("web-1", &Query::default())
            .await
            .unwrap()
            .value,
        checks.value
    );

    let nodes = client.list_nodes(&external_nodes()).await.unwrap().value;
    assert_eq!(nodes[0].node, "web-1");
    let services = client.list_services(&external_nodes()).await.unwrap().value;
    assert_eq!(services["web"], ["a"]);
    let instances = client
        .catalog_service("web", &Query::default())
        .await
        .unwrap()
        .value;
    assert_eq!(instances[0].service_meta["zone"], "z1");
    assert_eq!(instances[0].node_meta["external-node"], "true");
    let node = client
        .catalog_node("web-1", &Query::default())
        .await
        .unwrap()
        .value
        .unwrap();
    assert_eq!(node.services["web/1"].port, 80);
    assert_eq!(
        client
            .catalog_node("none", &Query::default())
            .await
            .unwrap()
            .value,
        None
    );
    let health = client
        .health_service("web", &Query::default())
        .await
        .unwrap()
        .value;
    assert_eq!(health[0].checks.len(), 1);
    assert!(
        client
            .health_service("none", &Query::default())
            .await
            .unwrap()
            .value
            .is_empty()
    );

    // Without ACLs everything is allowed, whatever is asked, beyond 64 too.
    let questions = vec![AclQuestion::new("node", "web-1", "read"); 130];
    assert_eq!(client.authorize(&questions).await.unwrap(), vec![true; 130]);

    let reference = listed.reference();
    client
        .deregister(&Deregistration::service_of(&reference).unwrap())
        .await
        .unwrap();
    assert!(
        client
            .list_checks(&external_nodes())
            .await
            .unwrap()
            .value
            .is_empty()
    );
    assert_eq!(
        client
            .list_nodes(&external_nodes())
            .await
            .unwrap()
            .value
            .len(),
        1
    );
    client
        .deregister(&Deregistration::node("web-1", ""))
        .await
        .unwrap();
    assert!(
        client
            .list_nodes(&external_nodes())
            .await
            .unwrap()
            .value
            .is_empty()
    );
    // To remove what is not there is no error.
    client
        .deregister(&Deregistration::check(&reference).unwrap())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_sees_a_change_at_once_and_survives_a_restart() {
    let test = "a_watch_sees_a_change_at_once_and_survives_a_restart";
    let Some(mut consul) = Consul::start(test) else {
        return;
    };
    consul.register(&external("n1", &json!({"TCP": "127.0.0.1:1"})));
    let client = client(&consul);
    let start = tokio::time::Instant::now();
    let now = move || start.elapsed().as_millis() as u64;
    let mut watch = Watch::new(Rules::default(), 1);

    // Reads until the list has that many checks.
    let mut read_until = async |wanted: usize, change: &mut (dyn FnMut() + Send)| {
        let mut change = Some(change);
        loop {
            let ask = match watch.step(now()) {
                Step::Ask(ask) => ask,
                Step::Wait(until) => {
                    let until = start + Duration::from_millis(until);
                    tokio::time::sleep_until(until).await;
                    continue;
                }
            };
            let mut count = 0;
            let query = ask.applied_to(&external_nodes());
            let reading = client.each_check(&query, |_| count += 1);
            let answer = if let (Some(_), Some(change)) = (ask.index, change.take()) {
                // The change comes while the query waits.
                let (answer, ()) = tokio::join!(reading, async { change() });
                answer
            } else {
                reading.await
            };
            match answer {
                Ok(meta) => {
                    assert!(watch.answered(now(), &meta).changed);
                    if count == wanted {
                        return;
                    }
                }
                Err(error) => {
                    assert!(error.is_retryable(), "{error}");
                    watch.failed(now(), &error);
                }
            }
        }
    };
    read_until(1, &mut || ()).await;
    read_until(2, &mut || {
        consul.register(&external("n2", &json!({"TCP": "127.0.0.1:1"})));
    })
    .await;
    consul.kill();
    consul.restart();
    consul.wait_for_leader();
    consul.register(&external("n3", &json!({"TCP": "127.0.0.1:1"})));
    read_until(3, &mut || ()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_leader_nobody_is_the_leader_and_reads_say_so() {
    let test = "without_a_leader_nobody_is_the_leader_and_reads_say_so";
    // Two servers are wanted and one is there: no leader, ever.
    let settings = json!({"bootstrap_expect": 2});
    let Some(consul) = Consul::builder()
        .settings(settings)
        .without_leader()
        .start(test)
    else {
        return;
    };
    let client = client(&consul);
    assert_eq!(client.leader().await.unwrap(), None);
    let error = client.list_checks(&Query::default()).await.unwrap_err();
    assert!(error.is_no_leader() && error.is_retryable(), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_rights_gets_empty_lists_and_no_mark() {
    let test = "a_token_without_rights_gets_empty_lists_and_no_mark";
    let Some(consul) = Consul::builder().acl().start(test) else {
        return;
    };
    consul.register(&external("n1", &json!({"TCP": "127.0.0.1:1"})));
    let rights = json!({"Name": "seer", "Rules": r#"node "n1" { policy = "read" }"#});
    let (status, body) = consul.put("/v1/acl/policy", &rights.to_string());
    assert_eq!(status, 200, "{body}");
    let token = json!({"Policies": [{"Name": "seer"}]});
    let (status, body) = consul.put("/v1/acl/token", &token.to_string());
    assert_eq!(status, 200, "{body}");
    let seer: serde_json::Value = serde_json::from_str(&body).unwrap();
    let seer = seer["SecretID"].as_str().unwrap();
    let with = |token: Option<&str>| {
        let config = Config {
            address: consul.address().parse().unwrap(),
            token: token.map(Into::into),
            ..Config::default()
        };
        evenkeel_consul::Client::new(&config).unwrap()
    };
    let count = async |token| {
        let answer = with(token).list_checks(&external_nodes()).await.unwrap();
        // Consul 1.8.7 does not say that it has left something out.
        (answer.value.len(), answer.meta.filtered_by_acls)
    };
    assert_eq!(count(consul.token()).await, (1, false));
    assert_eq!(count(Some(seer)).await, (1, false));
    assert_eq!(count(None).await.0, 0);

    // This is how the two are told apart.
    let questions = [
        AclQuestion::new("node", "n1", "read"),
        AclQuestion::new("node", "n1", "write"),
        AclQuestion::new("service", "web", "read"),
    ];
    assert_eq!(
        with(consul.token()).authorize(&questions).await.unwrap(),
        [true; 3]
    );
    assert_eq!(
        with(Some(seer)).authorize(&questions).await.unwrap(),
        [true, false, false]
    );
    assert_eq!(with(None).authorize(&questions).await.unwrap(), [false; 3]);
    // More than one request may carry.
    let many = vec![AclQuestion::new("node", "n1", "read"); 130];
    assert_eq!(
        with(Some(seer)).authorize(&many).await.unwrap(),
        vec![true; 130]
    );

    // An unknown token is refused, and so is what needs more rights.
    let unknown = with(Some("00000000-0000-0000-0000-0000000000ff"));
    let error = unknown.list_checks(&external_nodes()).await.unwrap_err();
    assert!(error.is_denied() && !error.is_retryable(), "{error}");
    let reference = CheckRef {
        node: "n1".into(),
        check_id: "c".into(),
        ..CheckRef::default()
    };
    let gone = Deregistration::check(&reference).unwrap();
    let error = with(Some(seer)).deregister(&gone).await.unwrap_err();
    assert!(error.is_denied() && !error.is_retryable(), "{error}");
    // It may not look at the agent, but transactions are there.
    assert_eq!(with(Some(seer)).check_server().await.unwrap(), None);
}

/// What wakes a blocking query, by which a daemon decides what it has to watch.
#[tokio::test(flavor = "multi_thread")]
async fn metadata_wakes_the_services_and_a_status_wakes_the_checks() {
    let test = "metadata_wakes_the_services_and_a_status_wakes_the_checks";
    let Some(consul) = Consul::start(test) else {
        return;
    };
    let client = client(&consul);
    let node = |zone: &str| {
        json!({"Node": "n", "Address": "127.0.0.1",
               "NodeMeta": {"external-node": "true", "zone": zone}})
    };
    let service = |zone: &str| {
        json!({"Node": "n", "SkipNodeUpdate": true,
               "Service": {"ID": "w", "Service": "w", "Meta": {"zone": zone}}})
    };
    let check = |status: &str| {
        json!({"Node": "n", "SkipNodeUpdate": true,
               "Check": {"Node": "n", "CheckID": "c", "ServiceID": "w", "Status": status,
                         "Definition": {"TCP": "127.0.0.1:1"}}})
    };
    for part in [node("a"), service("a"), check("passing")] {
        consul.register(&part);
    }

    // Whether each of the three lists has another index after the change, as
    // the queries say that wait for it.
    let wakes = async |change: serde_json::Value| {
        let now = external_nodes();
        let checks = client.list_checks(&now).await.unwrap().index();
        let nodes = client.list_nodes(&now).await.unwrap().index();
        let services = client.list_services(&now).await.unwrap().index();
        let until = |index| Query {
            index,
            wait: Some(Duration::from_secs(2)),
            ..external_nodes()
        };
        let (checks_query, nodes_query, services_query) =
            (until(checks), until(nodes), until(services));
        let (checks_then, nodes_then, services_then, ()) = tokio::join!(
            client.list_checks(&checks_query),
            client.list_nodes(&nodes_query),
            client.list_services(&services_query),
            async { consul.register(&change) },
        );
        [
            checks_then.unwrap().index() != checks,
            nodes_then.unwrap().index() != nodes,
            services_then.unwrap().index() != services,
        ]
    };
    // Checks, nodes, services.
    assert_eq!(
        wakes(check("critical")).await,
        [true, false, false],
        "a status"
    );
    // A check that is registered as it is wakes its readers all the same.
    assert_eq!(
        wakes(check("critical")).await,
        [true, false, false],
        "no change"
    );
    assert_eq!(
        wakes(service("b")).await,
        [false, false, true],
        "a service's metadata"
    );
    assert_eq!(
        wakes(node("b")).await,
        [false, true, true],
        "a node's metadata"
    );
}
