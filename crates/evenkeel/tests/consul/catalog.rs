//! Registrations and what the catalog shows, in short form.

use std::time::Duration;

use evenkeel_testkit::{Consul, eventually, wait_for};
use serde_json::{Value, json};

/// One external node with one service and one check on it.
pub(crate) struct Registration {
    node: String,
    value: Value,
}

/// Node `NAME`, service `NAME-service` of the name `web`, check `NAME-check`,
/// critical until somebody says otherwise.
pub(crate) fn external(node: &str, definition: &Value) -> Registration {
    Registration {
        node: node.to_owned(),
        value: json!({
            "Node": node,
            "Address": "127.0.0.1",
            "NodeMeta": {"external-node": "true"},
            "Service": {"ID": format!("{node}-service"), "Service": "web", "Meta": {}},
            "Checks": [{
                "Node": node,
                "CheckID": format!("{node}-check"),
                "Name": "a check",
                "Status": "critical",
                "ServiceID": format!("{node}-service"),
                "Definition": definition,
            }],
        }),
    }
}

/// An HTTP check each second.
pub(crate) fn http(url: &str) -> Value {
    json!({"HTTP": url, "Interval": "1s", "Timeout": "1s"})
}

impl Registration {
    pub(crate) fn status(mut self, status: &str) -> Self {
        self.value["Checks"][0]["Status"] = status.into();
        self
    }

    pub(crate) fn notes(mut self, notes: &str) -> Self {
        self.value["Checks"][0]["Notes"] = notes.into();
        self
    }

    pub(crate) fn service_meta(mut self, key: &str, value: &str) -> Self {
        self.value["Service"]["Meta"][key] = value.into();
        self
    }

    pub(crate) fn node_meta(mut self, key: &str, value: &str) -> Self {
        self.value["NodeMeta"][key] = value.into();
        self
    }

    pub(crate) fn service_name(mut self, name: &str) -> Self {
        self.value["Service"]["Service"] = name.into();
        self
    }

    pub(crate) fn port(mut self, port: u16) -> Self {
        self.value["Service"]["Port"] = port.into();
        self
    }

    pub(crate) fn put(self, consul: &Consul) -> String {
        consul.register(&self.value);
        self.node
    }
}

/// The status in the catalog.
pub(crate) fn status(consul: &Consul, node: &str) -> Option<String> {
    let check = consul.check(node, &format!("{node}-check"))?;
    check["Status"].as_str().map(ToOwned::to_owned)
}

pub(crate) fn eventually_status(consul: &Consul, node: &str, wanted: &str) {
    eventually(&format!("{node} is {wanted}"), || {
        (status(consul, node)? == wanted).then_some(())
    });
}

/// How many times the check was written since it was created: no two writes
/// have the same index.
pub(crate) fn index(consul: &Consul, node: &str) -> u64 {
    let check = consul.check(node, &format!("{node}-check")).unwrap();
    check["ModifyIndex"].as_u64().unwrap()
}

/// Checks of external nodes with this status.
pub(crate) fn count(consul: &Consul, status: &str) -> usize {
    let path = "/v1/health/state/any?node-meta=external-node:true";
    let checks = consul.get_json(path);
    checks
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["Status"] == status)
        .count()
}

/// Waits until `condition` has become true, and fails if it does not within
/// `limit`. For promises with a time in them; the limits are those of the
/// promise plus what a loaded machine needs.
pub(crate) fn within(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    assert!(
        wait_for(limit, || condition().then_some(())).is_some(),
        "not within {limit:?}: {what}"
    );
}
