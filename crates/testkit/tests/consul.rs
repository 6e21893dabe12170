//! A real Consul starts, is killed, keeps its data, and ends.

use evenkeel_testkit::Consul;
use serde_json::json;

#[test]
fn consul_is_killed_and_comes_back_with_its_data() {
    let Some(mut consul) = Consul::start("consul_is_killed_and_comes_back_with_its_data") else {
        return;
    };
    consul.register(&json!({"Node": "n", "Address": "127.0.0.1",
                            "Check": {"Node": "n", "CheckID": "c", "Status": "passing"}}));
    assert_eq!(consul.check("n", "c").unwrap()["Status"], "passing");
    consul.kill();
    assert!(!consul.has_leader());
    consul.restart();
    consul.wait_for_leader();
    assert_eq!(consul.check("n", "c").unwrap()["Status"], "passing");
}

#[test]
fn with_acls_nothing_is_allowed_without_a_token() {
    let Some(consul) = Consul::builder()
        .acl()
        .start("with_acls_nothing_is_allowed_without_a_token")
    else {
        return;
    };
    let nodes = evenkeel_testkit::request(&consul.address(), "GET", "/v1/catalog/nodes", &[], "");
    assert_eq!(nodes, Some((200, "[]".to_owned())));
    assert!(consul.get("/v1/catalog/nodes").1.contains("server"));
}
