//! One endpoint of a service as the file has it: for zones.

use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_engine::CheckId;
use evenkeel_threshold::Status;
use evenkeel_zone_weights::{Locality, MAX_PRIORITY};
use http::uri::Authority;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Entry, Parsed};
use crate::zones::{Endpoint, FileServices, Instance, Weights};

/// An instance of a service: where it is, and which checks say how well it is.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct EndpointEntry {
    /// The service that it belongs to.
    #[schemars(example = &"shop")]
    pub service: String,

    /// Where requests are sent to, host:port. One that only calls needs none.
    #[serde(default)]
    #[schemars(example = &"10.0.1.5:8080")]
    pub address: Option<String>,

    /// Its zone.
    #[serde(default)]
    #[schemars(example = &"eu-central-1a")]
    pub zone: String,

    /// Its region.
    #[serde(default)]
    #[schemars(example = &"eu-central-1")]
    pub region: String,

    /// The part of its zone.
    #[serde(default)]
    pub sub_zone: String,

    /// Its node.
    #[serde(default)]
    #[schemars(example = &"db7")]
    pub node: Option<String>,

    /// Its identity among the endpoints of the service; the address or the place
    /// in the list, when left out.
    #[serde(default)]
    #[schemars(example = &"shop-1")]
    pub id: Option<String>,

    /// The checks, by id, of which the worst is its health. When left out, those
    /// of the same node and service; with none, it counts as passing.
    #[serde(default)]
    #[schemars(example = &["shop-http"])]
    pub checks: Option<Vec<String>>,

    /// Its capacity in proportion to others.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub weight: u32,

    /// Endpoints of a higher number get what those of lower ones cannot take.
    #[serde(default)]
    #[schemars(range(max = 128))]
    pub priority: u32,
}

const fn one() -> u32 {
    1
}

impl EndpointEntry {
    /// What is wrong with it, as pairs of the key and a sentence.
    pub(super) fn faults(&self, checks: &[(usize, Entry)]) -> Vec<(String, String)> {
        let mut faults = Vec::new();
        let mut fault = |key: &str, text: String| faults.push((key.to_owned(), text));
        if self.service.trim().is_empty() {
            fault("service", "must not be empty".to_owned());
        }
        if let Some(address) = &self.address
            && host_and_port(address).is_none()
        {
            let text = format!("{address:?} is not of the form host:port");
            fault("address", text);
        }
        if self.priority > MAX_PRIORITY {
            fault("priority", format!("more than {MAX_PRIORITY}"));
        }
        for id in self.checks.iter().flatten() {
            match checks
                .iter()
                .filter(|(_, check)| self.is_named(check, id))
                .count()
            {
                0 => fault("checks", format!("there is no check {id:?}")),
                1 => {}
                several => fault(
                    "checks",
                    format!("{several} checks have the id {id:?}; name the node"),
                ),
            }
        }
        faults
    }

    fn is_named(&self, check: &Entry, id: &str) -> bool {
        check.id() == id && self.node.as_ref().is_none_or(|node| *node == check.node)
    }

    fn depends_on(&self, check: &Entry) -> bool {
        match &self.checks {
            Some(ids) => ids.iter().any(|id| self.is_named(check, id)),
            None => {
                self.node.as_ref() == Some(&check.node)
                    && check.service.as_ref() == Some(&self.service)
            }
        }
    }

    fn instance(&self, place: usize, checks: &[(usize, Entry)]) -> Instance {
        let (address, port) = self
            .address
            .as_deref()
            .and_then(host_and_port)
            .unwrap_or_default();
        let id = match (&self.id, &self.address) {
            (Some(id), _) => id.clone(),
            (None, Some(address)) => address.clone(),
            (None, None) => format!("#{place}"),
        };
        let checks = checks
            .iter()
            .filter(|(_, check)| self.depends_on(check))
            .map(|(_, check)| {
                let service = check.service.as_deref().unwrap_or_default();
                let id = CheckId::new("", "", &check.node, service, check.id());
                (id, Status::from(check.initial_status))
            })
            .collect();
        Instance {
            endpoint: Endpoint {
                id: id.into(),
                address: address.into(),
                port,
                locality: Locality::new(&self.region, &self.zone, &self.sub_zone),
                priority: self.priority,
            },
            weights: Weights {
                passing: self.weight,
                warning: self.weight,
            },
            checks,
        }
    }
}

/// `host:port` or `[v6]:port`, the host without brackets.
fn host_and_port(address: &str) -> Option<(String, u16)> {
    // An authority may have a user before an `@`.
    let authority: Authority = address.parse().ok().filter(|_| !address.contains('@'))?;
    let port = authority.port_u16().filter(|port| *port != 0)?;
    let host = authority.host();
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let host = bare.unwrap_or(host);
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// The endpoints of a file, by service.
pub(super) fn services(parsed: &Parsed) -> FileServices {
    let mut services: HashMap<Arc<str>, Vec<Instance>> = HashMap::new();
    for (place, (_, entry)) in parsed.endpoints.iter().enumerate() {
        let instances = services
            .entry(Arc::from(entry.service.as_str()))
            .or_default();
        instances.push(entry.instance(place, &parsed.checks));
    }
    services
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::file::parse;
    use crate::document::Format;

    fn parsed(text: &str) -> Parsed {
        parse(text.as_bytes(), Format::Toml).unwrap_or_else(|faults| panic!("{faults:?}"))
    }

    fn faults(text: &str) -> Vec<String> {
        let faults = parse(text.as_bytes(), Format::Toml).unwrap_err();
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_endpoint_depends_on_the_checks_that_it_names_or_on_those_of_its_node_and_service() {
        let parsed = parsed(
            r#"
            [[check]]
            name = "a"
            node = "n1"
            service = "shop"
            tcp = "h:1"
            [[check]]
            name = "b"
            node = "n2"
            service = "shop"
            tcp = "h:2"
            initial_status = "passing"
            [[endpoint]]
            service = "shop"
            address = "10.0.0.1:80"
            zone = "z"
            node = "n2"
            [[endpoint]]
            service = "shop"
            address = "[::1]:80"
            region = "r"
            zone = "z"
            checks = ["a"]
            weight = 7
            priority = 2
            [[endpoint]]
            service = "web"
            zone = "z"
            "#,
        );
        let services = services(&parsed);
        let shop = &services["shop"];
        let check = |node| CheckId::new("", "", node, "shop", if node == "n1" { "a" } else { "b" });
        assert_eq!(shop[0].checks, [(check("n2"), Status::Passing)]);
        assert_eq!(shop[1].checks, [(check("n1"), Status::Critical)]);
        let second = &shop[1].endpoint;
        assert_eq!((&*second.address, second.port), ("::1", 80));
        assert_eq!(second.locality.to_string(), "r/z");
        assert_eq!((shop[1].weights.passing, second.priority), (7, 2));
        // One that only calls.
        assert!(!services["web"][0].endpoint.is_reachable());
        assert!(services["web"][0].checks.is_empty());
    }

    #[test]
    fn what_is_wrong_with_an_endpoint_is_told_with_its_line() {
        let text = r#"
[[endpoint]]
service = ""
address = "10.0.0.1"
checks = ["x"]
weight = 0
"#;
        let faults = faults(text);
        for part in [
            "service: must not be empty",
            "host:port",
            "no check \"x\"",
            "weight",
        ] {
            assert!(
                faults.iter().any(|fault| fault.contains(part)),
                "{part}: {faults:?}"
            );
        }
        assert!(
            faults.iter().all(|fault| fault.starts_with("line ")),
            "{faults:?}"
        );
    }

    #[test]
    fn addresses() {
        assert_eq!(host_and_port("a:1"), Some(("a".to_owned(), 1)));
        assert_eq!(
            host_and_port("[::1]:65535"),
            Some(("::1".to_owned(), 65535))
        );
        for wrong in [
            "a",
            "a:",
            ":1",
            "a:0",
            "a:65536",
            "::1:80",
            "[::1:80",
            "a b:1",
            "u@a:1",
            "http://a:1",
        ] {
            assert_eq!(host_and_port(wrong), None, "{wrong}");
        }
    }
}
