use envoy_types::pb::envoy::service::discovery::v3::DiscoveryRequest;
use envoy_types::pb::envoy::service::endpoint::v3::endpoint_discovery_service_client::EndpointDiscoveryServiceClient;
use evenkeel_xds::{Assignments, Audience, Locality, Protocol, Server, Settings};
use tonic::Code;
use tonic::transport::Channel;

use crate::support::{Proxy, Running, cluster, node, only, ports, until};

#[tokio::test]
async fn a_subscriber_gets_what_it_asked_for_and_then_each_change() {
    let running = Running::start().await;
    running
        .server
        .publish(&only("web", cluster([1, 2])))
        .unwrap();
    let mut proxy = Proxy::connect(running.address).await;
    proxy.subscribe(&["web"], Some(node("proxy-1", "a"))).await;
    let response = proxy.response().await;
    assert_eq!(ports(&response), [("web".to_owned(), vec![1, 2])]);
    assert_eq!(response.version_info, "1");
    proxy.answer(&response, &["web"], None).await;

    running.server.publish(&only("web", cluster([3]))).unwrap();
    let response = proxy.response().await;
    assert_eq!(ports(&response), [("web".to_owned(), vec![3])]);
    proxy.answer(&response, &["web"], None).await;
    let seen = until("the second acknowledgement", || {
        let seen = running.server.subscribers().pop()?;
        (seen.acked == Some(2)).then_some(seen)
    })
    .await;
    assert_eq!(seen.protocol, Protocol::Ads);
    assert_eq!(
        (seen.node.id.as_str(), seen.node.cluster.as_str()),
        ("proxy-1", "shop")
    );
    assert_eq!(seen.node.locality, Locality::new("r", "a", ""));
    assert_eq!((seen.counters.acks, seen.counters.nacks), (2, 0));
    assert!(seen.unanswered.is_none());

    // Nothing new, and therefore no new version.
    let published = running.server.publish(&only("web", cluster([3]))).unwrap();
    assert_eq!((published.version, published.encoded), (2, 0));
}

#[tokio::test]
async fn a_refusal_is_kept_with_its_text_after_the_proxy_has_gone() {
    let running = Running::start().await;
    running.server.publish(&only("web", cluster([1]))).unwrap();
    let mut proxy = Proxy::connect(running.address).await;
    proxy.subscribe(&["web"], Some(node("proxy-1", "a"))).await;
    let response = proxy.response().await;
    proxy
        .answer(&response, &["web"], Some("malformed IP address: x"))
        .await;
    let seen = until("the refusal", || {
        let seen = running.server.subscribers().pop()?;
        seen.last_nack.is_some().then_some(seen)
    })
    .await;
    assert!(seen.is_refusing());
    assert_eq!(seen.acked, None);
    let nack = seen.last_nack.unwrap();
    assert_eq!(
        (nack.version, nack.text.as_str()),
        (1, "malformed IP address: x")
    );

    drop(proxy);
    until("it has gone", || {
        running.server.subscribers().is_empty().then_some(())
    })
    .await;
    assert_eq!(running.server.refusals(), [nack]);
    assert_eq!(running.server.counters().nacks, 1);
}

#[tokio::test]
async fn callers_of_each_zone_see_the_weights_that_are_for_them() {
    let running = Running::start().await;
    let mut assignments = only("web", cluster([1]));
    let audience = |zone| Audience {
        callers: "shop".to_owned(),
        locality: Locality::new("r", zone, ""),
    };
    assignments.insert_for(audience("b"), "web", cluster([2]));
    running.server.publish(&assignments).unwrap();
    for (zone, expected) in [("a", 1), ("b", 2)] {
        let mut proxy = Proxy::connect(running.address).await;
        proxy.subscribe(&["web"], Some(node(zone, zone))).await;
        let response = proxy.response().await;
        assert_eq!(ports(&response), [("web".to_owned(), vec![expected])]);
        let interest = running.server.interest();
        assert!(interest[&audience(zone)].contains("web"));
    }
}

#[tokio::test]
async fn eds_without_ads_is_served_too() {
    let running = Running::start().await;
    running.server.publish(&only("web", cluster([7]))).unwrap();
    let address = format!("http://{}", running.address);
    let mut client = EndpointDiscoveryServiceClient::connect(address)
        .await
        .unwrap();
    let request = DiscoveryRequest {
        resource_names: vec!["web".to_owned()],
        ..Default::default()
    };
    let requests = futures_util::stream::iter([request]);
    let mut responses = client
        .stream_endpoints(requests)
        .await
        .unwrap()
        .into_inner();
    let response = responses.message().await.unwrap().unwrap();
    assert_eq!(ports(&response), [("web".to_owned(), vec![7])]);
}

#[tokio::test]
async fn the_delta_variant_is_refused_in_words() {
    let running = Running::start().await;
    let address = format!("http://{}", running.address);
    let mut client = EndpointDiscoveryServiceClient::connect(address)
        .await
        .unwrap();
    let refused = client.delta_endpoints(futures_util::stream::empty()).await;
    let status = refused.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    assert!(status.message().contains("state of the world"), "{status}");
}

#[tokio::test]
async fn another_type_over_ads_is_left_unanswered_and_counted() {
    let running = Running::start().await;
    running.server.publish(&only("web", cluster([1]))).unwrap();
    let mut proxy = Proxy::connect(running.address).await;
    proxy
        .send(DiscoveryRequest {
            type_url: "type.googleapis.com/envoy.config.cluster.v3.Cluster".to_owned(),
            ..Default::default()
        })
        .await;
    proxy.subscribe(&["web"], None).await;
    let response = proxy.response().await;
    assert_eq!(ports(&response), [("web".to_owned(), vec![1])]);
    assert_eq!(running.server.counters().other_types, 1);
}

#[tokio::test]
async fn too_many_names_end_the_stream_with_the_limit() {
    let settings = Settings {
        max_clusters: 2,
        ..Settings::default()
    };
    let running = Running::with(settings, None).await;
    let mut proxy = Proxy::connect(running.address).await;
    proxy.subscribe(&["a", "b", "c"], None).await;
    let status = proxy.next().await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("at most 2"), "{status}");
    assert_eq!(running.server.counters().ended, 1);
}

#[tokio::test]
async fn a_request_above_the_limit_ends_the_stream() {
    let settings = Settings {
        max_request: 1000,
        ..Settings::default()
    };
    let running = Running::with(settings, None).await;
    let mut proxy = Proxy::connect(running.address).await;
    proxy.subscribe(&["x".repeat(2000).as_str()], None).await;
    let status = proxy.next().await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);
    until("it is counted", || {
        (running.server.counters().ended == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn connections_above_the_limit_are_closed_and_counted() {
    let settings = Settings {
        max_connections: 1,
        ..Settings::default()
    };
    let running = Running::with(settings, None).await;
    let first = Proxy::connect(running.address).await;
    let channel = Channel::from_shared(format!("http://{}", running.address)).unwrap();
    let second = match channel.connect().await {
        Ok(channel) => Proxy::over(channel).await.map(|_| ()).is_err(),
        Err(_) => true,
    };
    assert!(second, "there is no room for it");
    assert!(running.server.counters().connections_refused >= 1);
    drop(first);
    until("the place is free again", || {
        running.server.subscribers().is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_end_of_the_server_is_told_to_its_subscribers() {
    let running = Running::start().await;
    let mut proxy = Proxy::connect(running.address).await;
    proxy.subscribe(&["web"], None).await;
    until("it has asked", || {
        (running.server.counters().requests == 1).then_some(())
    })
    .await;
    running.end().await;
    let status = proxy.next().await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
}

/// The smallest thing that holds what a connection may hold: a proxy that does
/// not read gets nothing queued for it, and the newest when it reads again.
#[tokio::test]
async fn a_proxy_that_does_not_answer_misses_what_is_between() {
    let running = Running::start().await;
    running.server.publish(&only("web", cluster([1]))).unwrap();
    let mut proxy = Proxy::connect(running.address).await;
    proxy.subscribe(&["web"], None).await;
    let first = proxy.response().await;
    for port in 2..1000 {
        running
            .server
            .publish(&only("web", cluster([port])))
            .unwrap();
    }
    proxy.answer(&first, &["web"], None).await;
    let response = proxy.response().await;
    assert_eq!(ports(&response), [("web".to_owned(), vec![999])]);
    assert_eq!(running.server.counters().responses, 2);
}

#[tokio::test]
async fn what_is_no_grpc_gets_an_answer_and_the_server_goes_on() {
    let running = Running::start().await;
    // HTTP/1.1 to a port of HTTP/2.
    let address = running.address.to_string();
    let plain = tokio::task::spawn_blocking(move || {
        evenkeel_testkit::request(&address, "GET", "/", &[], "")
    });
    assert_eq!(plain.await.unwrap(), None);
    running.server.publish(&only("web", cluster([1]))).unwrap();
    let mut proxy = Proxy::connect(running.address).await;
    proxy.subscribe(&["web"], None).await;
    proxy.response().await;
}

#[tokio::test]
async fn versions_go_on_from_where_the_caller_says() {
    let server = Server::new(Settings::default(), 41);
    assert_eq!(server.version(), None);
    server.publish(&only("web", cluster([1]))).unwrap();
    server.publish(&only("web", cluster([2]))).unwrap();
    assert_eq!(server.version(), Some(42));
}

/// One endpoint of 10,000 changes: it is encoded once for 200 proxies, and each
/// gets the cluster that it is in and nothing else.
#[tokio::test]
async fn one_change_among_ten_thousand_endpoints_is_encoded_once_for_two_hundred_proxies() {
    const PROXIES: u64 = 200;
    let running = Running::start().await;
    let mut assignments = Assignments::new();
    for number in 0..100 {
        assignments.insert(format!("web-{number}"), cluster(1..=100));
    }
    running.server.publish(&assignments).unwrap();
    let mut proxies = Vec::new();
    for number in 0..PROXIES {
        let mut proxy = Proxy::connect(running.address).await;
        let id = format!("proxy-{number}");
        proxy.subscribe(&["*"], Some(node(&id, "a"))).await;
        let response = proxy.response().await;
        assert_eq!(response.resources.len(), 100);
        proxy.answer(&response, &["*"], None).await;
        proxies.push(proxy);
    }
    let before = running.server.counters();
    assignments.insert("web-7", cluster((1..100).chain([200])));
    let published = running.server.publish(&assignments).unwrap();
    assert_eq!((published.encoded, published.removed), (1, 0));
    for proxy in &mut proxies {
        let response = proxy.response().await;
        let changed = ports(&response);
        assert_eq!((changed.len(), changed[0].0.as_str()), (1, "web-7"));
    }
    let after = running.server.counters();
    assert_eq!(after.responses - before.responses, PROXIES);
    // The encoded cluster, and beside it version, type and number.
    let each = (after.response_bytes - before.response_bytes) / PROXIES;
    let beside = each - published.bytes as u64;
    assert!(beside < 120, "{beside} bytes beside {}", published.bytes);
}
