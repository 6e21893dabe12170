//! What the tests of the client share.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "only tests are compiled with this")]

use evenkeel_consul::types::HealthCheck;
use evenkeel_consul::write::{StatusWrite, WriteForm};
use evenkeel_consul::{Client, Config, Query, types::Status};
use evenkeel_testkit::{Consul, Reply, Request, Stub};
use serde_json::{Value, json};

/// A client of `consul` with the management token, if it has one.
pub(crate) fn client(consul: &Consul) -> Client {
    let config = Config {
        address: consul.address().parse().unwrap(),
        token: consul.token().map(Into::into),
        ..Config::default()
    };
    Client::new(&config).unwrap()
}

/// The settings for a client of `stub`.
pub(crate) fn config(stub: &Stub) -> Config {
    Config {
        address: stub.address().parse().unwrap(),
        ..Config::default()
    }
}

/// A client of `stub` with the default settings.
pub(crate) fn stub_client(stub: &Stub) -> Client {
    Client::new(&config(stub)).unwrap()
}

/// The registration of an external node with one critical check `c`.
pub(crate) fn external(node: &str, definition: &Value) -> Value {
    json!({
        "Node": node, "Address": "127.0.0.1", "NodeMeta": {"external-node": "true"},
        "Check": {"Node": node, "CheckID": "c", "Name": "the check", "Notes": "by hand",
                  "Status": "critical", "Definition": definition}
    })
}

/// A write for a check as a list has it.
pub(crate) fn write(check: &HealthCheck, status: Status, output: &str) -> StatusWrite {
    StatusWrite {
        check: check.reference(),
        status,
        output: output.into(),
        index: check.modify_index,
        form: WriteForm::of(check),
    }
}

/// All checks of external nodes.
pub(crate) async fn checks(client: &Client) -> Vec<HealthCheck> {
    let query = Query::external_nodes("external-node", "true");
    client.list_checks(&query).await.unwrap().value
}

/// What the real Consul at `address` answers to a request that came to a stub.
pub(crate) fn forward(address: &str, request: &Request) -> Reply {
    let body = String::from_utf8(request.body.clone()).unwrap();
    match evenkeel_testkit::request(address, &request.method, &request.target, &[], &body) {
        Some((status, body)) => Reply::status(status, body),
        None => Reply::Close,
    }
}
