//! Requests as data: each function builds one, nothing is sent.
//!
//! The path is relative (`/v1/…`); whoever sends it adds the address, the
//! token and the deadline.
//!
//! ```
//! use evenkeel_consul::request::{self, Query};
//!
//! let query = Query { index: Some(7), ..Query::external_nodes("external-node", "true") };
//! let request = request::health_state(&query);
//! assert_eq!(
//!     request.uri(),
//!     "/v1/health/state/any?index=7&node-meta=external-node%3Atrue",
//! );
//! ```

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::duration::GoDuration;
use crate::types::{AclQuestion, Deregistration, Registration};

/// All but the characters that RFC 3986 section 2.3 calls unreserved. A slash
/// in a name is escaped, so that it stays one path segment.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// How fresh an answer has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consistency {
    /// The leader answers from what it knows; it may have been deposed
    /// seconds ago.
    #[default]
    Default,
    /// Any server answers; `X-Consul-LastContact` tells how old that may be.
    Stale,
    /// The leader asks the others first that it still is the leader. Dear:
    /// only before a write that is no check-and-set.
    Consistent,
}

/// What a read asks for besides its path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// Wait until the answer's index is larger than this.
    pub index: Option<u64>,
    /// How long to wait with `index` set, at most; the server takes at most
    /// 10 minutes, 5 if not set, and adds up to a sixteenth.
    pub wait: Option<Duration>,
    /// How fresh the answer has to be.
    pub consistency: Consistency,
    /// Only what belongs to nodes with all these metadata.
    pub node_meta: Vec<(String, String)>,
    /// Consul Enterprise: the namespace; `*` is all.
    pub namespace: Option<String>,
    /// Consul Enterprise: the partition.
    pub partition: Option<String>,
    /// The datacenter; the agent's own if not set.
    pub datacenter: Option<String>,
    /// An expression of Consul's filter language.
    pub filter: Option<String>,
}

impl Query {
    /// What belongs to nodes whose metadata have `key` with `value`.
    pub fn external_nodes(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            node_meta: vec![(key.into(), value.into())],
            ..Self::default()
        }
    }

    /// Whether the answer may take until `wait` is over.
    pub fn is_blocking(&self) -> bool {
        self.index.is_some_and(|index| index > 0)
    }

    fn append(&self, path: &mut Path) {
        if let Some(index) = self.index {
            path.parameter("index", &index.to_string());
        }
        if let Some(wait) = self.wait {
            path.parameter("wait", &GoDuration::new(wait).to_string());
        }
        match self.consistency {
            Consistency::Default => {}
            Consistency::Stale => path.flag("stale"),
            Consistency::Consistent => path.flag("consistent"),
        }
        for (key, value) in &self.node_meta {
            path.parameter("node-meta", &format!("{key}:{value}"));
        }
        for (name, value) in [
            ("ns", &self.namespace),
            ("partition", &self.partition),
            ("dc", &self.datacenter),
            ("filter", &self.filter),
        ] {
            if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
                path.parameter(name, value);
            }
        }
    }
}

/// A path with its query while it is put together.
struct Path {
    text: String,
    has_query: bool,
}

impl Path {
    fn new(base: &'static str) -> Self {
        Self {
            text: base.to_owned(),
            has_query: false,
        }
    }

    fn segment(mut self, name: &str) -> Self {
        self.text.push('/');
        // A segment of dots alone would be resolved away on the road.
        match name {
            "." => self.text.push_str("%2E"),
            ".." => self.text.push_str("%2E%2E"),
            name => self.text.extend(utf8_percent_encode(name, ESCAPED)),
        }
        self
    }

    fn separate(&mut self) {
        self.text.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
    }

    fn flag(&mut self, name: &str) {
        self.separate();
        self.text.push_str(name);
    }

    fn parameter(&mut self, name: &str, value: &str) {
        self.flag(name);
        self.text.push('=');
        self.text.extend(utf8_percent_encode(value, ESCAPED));
    }

    fn build(self, method: Method, body: Bytes) -> Request<Bytes> {
        // Every character was escaped above; the only thing that can go wrong
        // is a length beyond what a URI may have (64 KiB), and that request
        // must fail at the server instead of here.
        let uri = Uri::try_from(self.text).unwrap_or_else(|_| Uri::from_static("/uri-too-long"));
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        request
    }
}

fn get(mut path: Path, query: &Query) -> Request<Bytes> {
    query.append(&mut path);
    path.build(Method::GET, Bytes::new())
}

fn put(path: Path, method: Method, body: &impl Serialize) -> Request<Bytes> {
    // Plain data of strings and numbers: nothing in it can fail to be written.
    let body = serde_json::to_vec(body).unwrap_or_default();
    with_json(path, method, body.into())
}

fn with_json(path: Path, method: Method, body: Bytes) -> Request<Bytes> {
    let mut request = path.build(method, body);
    request.headers_mut().insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    request
}

/// The raft leader's address: `GET /v1/status/leader`.
pub fn status_leader() -> Request<Bytes> {
    get(Path::new("/v1/status/leader"), &Query::default())
}

/// The agent's own settings: `GET /v1/agent/self`.
pub fn agent_self() -> Request<Bytes> {
    get(Path::new("/v1/agent/self"), &Query::default())
}

/// The nodes: `GET /v1/catalog/nodes`.
pub fn catalog_nodes(query: &Query) -> Request<Bytes> {
    get(Path::new("/v1/catalog/nodes"), query)
}

/// The names of the services with their tags: `GET /v1/catalog/services`.
pub fn catalog_services(query: &Query) -> Request<Bytes> {
    get(Path::new("/v1/catalog/services"), query)
}

/// The instances of a service: `GET /v1/catalog/service/NAME`.
pub fn catalog_service(name: &str, query: &Query) -> Request<Bytes> {
    get(Path::new("/v1/catalog/service").segment(name), query)
}

/// A node with its services: `GET /v1/catalog/node/NAME`.
pub fn catalog_node(name: &str, query: &Query) -> Request<Bytes> {
    get(Path::new("/v1/catalog/node").segment(name), query)
}

/// Checks of every status: `GET /v1/health/state/any`.
pub fn health_state(query: &Query) -> Request<Bytes> {
    get(Path::new("/v1/health/state/any"), query)
}

/// The checks of a node: `GET /v1/health/node/NAME`.
pub fn health_node(name: &str, query: &Query) -> Request<Bytes> {
    get(Path::new("/v1/health/node").segment(name), query)
}

/// The instances of a service with their checks: `GET /v1/health/service/NAME`.
pub fn health_service(name: &str, query: &Query) -> Request<Bytes> {
    get(Path::new("/v1/health/service").segment(name), query)
}

/// Registers a node, a service, checks: `PUT /v1/catalog/register`.
pub fn register(registration: &Registration) -> Request<Bytes> {
    put(Path::new("/v1/catalog/register"), Method::PUT, registration)
}

/// As [`register`] with a body that is JSON already, for records that go back
/// as they came.
pub fn register_json(body: Bytes, query: &Query) -> Request<Bytes> {
    let mut path = Path::new("/v1/catalog/register");
    query.append(&mut path);
    with_json(path, Method::PUT, body)
}

/// Removes a check, a service or a node: `PUT /v1/catalog/deregister`.
pub fn deregister(what: &Deregistration) -> Request<Bytes> {
    let mut path = Path::new("/v1/catalog/deregister");
    // Named in the body and in the query: which one counts has changed
    // between versions, and both are empty outside Consul Enterprise.
    let scope = Query {
        namespace: Some(what.namespace().to_owned()),
        partition: Some(what.partition().to_owned()),
        ..Query::default()
    };
    scope.append(&mut path);
    put(path, Method::PUT, what)
}

/// A transaction: `PUT /v1/txn`. `body` is a JSON array of operations.
pub fn txn(body: Bytes, query: &Query) -> Request<Bytes> {
    let mut path = Path::new("/v1/txn");
    query.append(&mut path);
    with_json(path, Method::PUT, body)
}

/// Which of these rights the token has: `POST /v1/internal/acl/authorize`.
/// Consul takes at most 64 at once.
pub fn authorize(questions: &[AclQuestion]) -> Request<Bytes> {
    put(
        Path::new("/v1/internal/acl/authorize"),
        Method::POST,
        &questions,
    )
}

/// Method and path of a request, for messages; without the query, which may
/// be long and carries names that people may not want in a log.
pub fn name_of<B>(request: &Request<B>) -> String {
    format!("{} {}", request.method(), request.uri().path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;

    #[test]
    fn every_parameter_is_sent_under_consuls_name() {
        let query = Query {
            index: Some(12),
            wait: Some(Duration::from_secs(45)),
            consistency: Consistency::Stale,
            node_meta: vec![("a".into(), "b c".into()), ("d".into(), "e&f".into())],
            namespace: Some("*".into()),
            partition: Some("p".into()),
            datacenter: Some("dc2".into()),
            filter: Some("Status == \"x\"".into()),
        };
        assert_eq!(
            health_state(&query).uri(),
            "/v1/health/state/any?index=12&wait=45s&stale&node-meta=a%3Ab%20c&node-meta=d%3Ae%26f\
             &ns=%2A&partition=p&dc=dc2&filter=Status%20%3D%3D%20%22x%22"
        );
        let query = Query {
            consistency: Consistency::Consistent,
            ..Query::default()
        };
        assert_eq!(
            health_node("n", &query).uri(),
            "/v1/health/node/n?consistent"
        );
    }

    #[test]
    fn names_stay_one_segment() {
        let query = Query::default();
        assert_eq!(
            catalog_node("a/../b?c", &query).uri(),
            "/v1/catalog/node/a%2F..%2Fb%3Fc"
        );
        assert_eq!(health_node("..", &query).uri(), "/v1/health/node/%2E%2E");
        assert_eq!(
            catalog_service("Käse", &query).uri(),
            "/v1/catalog/service/K%C3%A4se"
        );
    }

    #[test]
    fn the_namespace_is_named_when_something_is_removed() {
        // P064
        let check = crate::types::CheckRef {
            namespace: "ns1".into(),
            partition: "p1".into(),
            node: "n".into(),
            check_id: "c".into(),
            ..Default::default()
        };
        let request = deregister(&Deregistration::check(&check).unwrap());
        assert_eq!(request.uri(), "/v1/catalog/deregister?ns=ns1&partition=p1");
    }

    #[test]
    fn a_name_beyond_all_measure_is_no_panic() {
        let request = health_node(&"x".repeat(100_000), &Query::default());
        assert_eq!(request.uri().path(), "/uri-too-long");
    }

    proptest! {
        #[test]
        fn any_name_and_value_arrives_as_it_was(name in "\\PC{1,20}", key in "\\PC{0,20}", value in "\\PC{0,20}") {
            let query = Query::external_nodes(key.clone(), value.clone());
            let uri = health_service(&name, &query).uri().clone();
            let segment = uri.path().strip_prefix("/v1/health/service/").unwrap();
            prop_assert!(!segment.contains('/'));
            prop_assert_eq!(percent_decode_str(segment).decode_utf8().unwrap(), name);
            let parameter = uri.query().unwrap().strip_prefix("node-meta=").unwrap();
            prop_assert!(!parameter.contains('&'));
            prop_assert_eq!(
                percent_decode_str(parameter).decode_utf8().unwrap(),
                format!("{key}:{value}")
            );
        }
    }
}
