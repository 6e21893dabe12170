//! The layers that come from environment variables and flags.

use std::sync::Arc;

use super::layer::{Fault, Layer, LayerName, boolean, from_text};
use super::names;
use crate::document::{Node, Place, Shape, Value, nearest};
use crate::environment::Environment;

/// What comes before the name of a setting.
const PREFIX: &str = "EVENKEEL_";

/// Variables with our prefix that are no settings: they say which files to
/// read, or which programs our tests start.
const OTHERS: [&str; 4] = ["CONFIG_FILE", "CONFIG_DIR", "CONSUL", "ENVOY"];

/// The variables of Consul's own tools, and the settings that they are.
const CONSUL: [(&str, &str); 12] = [
    ("CONSUL_HTTP_ADDR", "consul.address"),
    ("CONSUL_HTTP_TOKEN", "consul.token"),
    ("CONSUL_HTTP_TOKEN_FILE", "consul.token_file"),
    ("CONSUL_HTTP_AUTH", "consul.http_auth"),
    ("CONSUL_HTTP_SSL", "consul.tls"),
    ("CONSUL_CACERT", "consul.ca_file"),
    ("CONSUL_CAPATH", "consul.ca_path"),
    ("CONSUL_CLIENT_CERT", "consul.cert_file"),
    ("CONSUL_CLIENT_KEY", "consul.key_file"),
    ("CONSUL_TLS_SERVER_NAME", "consul.tls_server_name"),
    ("CONSUL_NAMESPACE", "consul.namespace"),
    ("CONSUL_PARTITION", "consul.partition"),
];

/// The one that says the opposite of its setting.
const SSL_VERIFY: &str = "CONSUL_HTTP_SSL_VERIFY";

fn named(name: &str) -> Place {
    Place::Named(Arc::from(name))
}

fn fault(name: &str, key: &str, text: String) -> Fault {
    Fault {
        origin: super::Origin::Named(Arc::from(name)),
        key: key.to_owned(),
        text,
    }
}

fn put(root: &mut Node, key: &str, node: Node) {
    let path: Vec<&str> = key.split('.').collect();
    root.put(&path, node);
}

/// `CONSUL_*`, and the state directory that systemd gives.
pub(super) fn consul(environment: &Environment, shape: &Shape, faults: &mut Vec<Fault>) -> Layer {
    let mut root = Node::table();
    for (name, key) in CONSUL {
        let Some(text) = environment.get(name) else {
            continue;
        };
        let path: Vec<&str> = key.split('.').collect();
        let Some(shape) = shape.find(&path) else {
            continue;
        };
        match from_text(text, shape, &named(name)) {
            Ok(node) => put(&mut root, key, node),
            Err(text) => faults.push(fault(name, "", text)),
        }
    }
    let name = SSL_VERIFY;
    if let Some(text) = environment.get(name) {
        match boolean(text) {
            Some(verify) => {
                let node = Node::new(named(name), Value::Boolean(!verify));
                put(&mut root, "consul.tls_skip_verify", node);
            }
            None => faults.push(fault(name, "", "expected true or false".to_owned())),
        }
    }
    // Systemd separates several directories by colons.
    let name = "STATE_DIRECTORY";
    if let Some(directory) = environment
        .get(name)
        .and_then(|text| text.split(':').next())
    {
        let node = Node::new(named(name), Value::Text(directory.to_owned()));
        put(&mut root, "state_dir", node);
    }
    Layer {
        name: LayerName::Variables,
        root,
    }
}

/// `EVENKEEL_*`: `EVENKEEL_CONSUL__ADDRESS` is `consul.address`.
pub(super) fn ours(environment: &Environment, shape: &Shape, faults: &mut Vec<Fault>) -> Layer {
    let mut root = Node::table();
    for (name, text) in environment.iter() {
        let Some(rest) = name.strip_prefix(PREFIX) else {
            continue;
        };
        if OTHERS.contains(&rest) || is_service_link(rest) {
            continue;
        }
        let key = rest.to_ascii_lowercase().replace("__", ".");
        if let Err(text) = set(&mut root, &key, text, shape, &named(name)) {
            let text = match text {
                SetError::Value(text) => text,
                SetError::Unknown => unknown_variable(rest, shape),
            };
            faults.push(fault(name, "", text));
        }
    }
    Layer {
        name: LayerName::Environment,
        root,
    }
}

/// Variables that would be read if they were text.
pub(super) fn not_utf8(environment: &Environment, faults: &mut Vec<Fault>) {
    for name in environment.not_utf8() {
        let consul = name == SSL_VERIFY || CONSUL.iter().any(|(known, _)| *known == name);
        if consul || name.starts_with(PREFIX) || name == "STATE_DIRECTORY" {
            faults.push(fault(name, "", "is not UTF-8".to_owned()));
        }
    }
}

/// Kubernetes and Docker set such variables for a service that is called
/// `evenkeel`; they are not for us.
fn is_service_link(rest: &str) -> bool {
    let port = |text: &str| {
        let mut words = text.split('_');
        words
            .next()
            .is_some_and(|number| number.parse::<u16>().is_ok())
            && words
                .next()
                .is_some_and(|protocol| ["TCP", "UDP", "SCTP"].contains(&protocol))
    };
    rest == "SERVICE_HOST"
        || rest == "SERVICE_PORT"
        || rest.starts_with("SERVICE_PORT_")
        || rest == "PORT"
        || rest.strip_prefix("PORT_").is_some_and(port)
}

fn unknown_variable(rest: &str, shape: &Shape) -> String {
    let keys = names::keys(shape);
    let known: Vec<String> = keys
        .iter()
        .map(|key| key.replace('.', "__").to_ascii_uppercase())
        .collect();
    // The usual mistake: one `_` between table and key.
    let single = known.iter().find(|name| name.replace("__", "_") == rest);
    match single
        .map(String::as_str)
        .or_else(|| nearest(rest, known.iter().map(String::as_str)))
    {
        Some(name) => format!("no setting; did you mean {PREFIX}{name}?"),
        None => "no setting".to_owned(),
    }
}

/// The flags, each as the key it sets, its text, and what the user typed.
pub(super) fn flags(
    flags: &[(String, String, String)],
    shape: &Shape,
    faults: &mut Vec<Fault>,
) -> Layer {
    let mut root = Node::table();
    for (key, text, typed) in flags {
        if let Err(text) = set(&mut root, key, text, shape, &named(typed)) {
            let text = match text {
                SetError::Value(text) => text,
                SetError::Unknown => {
                    let keys = names::keys(shape);
                    match names::hint(key).or_else(|| {
                        nearest(key, keys.iter().map(String::as_str))
                            .map(|name| format!("did you mean {name}?"))
                    }) {
                        Some(hint) => format!("unknown key; {hint}"),
                        None => "unknown key".to_owned(),
                    }
                }
            };
            faults.push(fault(typed, key, text));
        }
    }
    Layer {
        name: LayerName::Flags,
        root,
    }
}

enum SetError {
    Unknown,
    Value(String),
}

fn set(
    root: &mut Node,
    key: &str,
    text: &str,
    shape: &Shape,
    place: &Place,
) -> Result<(), SetError> {
    let text = names::meant(key, text);
    let key = names::ALIASES
        .iter()
        .find_map(|(alias, meant)| (*alias == key).then_some(*meant))
        .unwrap_or(key);
    let path: Vec<&str> = key.split('.').collect();
    let shape = shape.find(&path).ok_or(SetError::Unknown)?;
    let node = from_text(text, shape, place).map_err(SetError::Value)?;
    root.put(&path, node);
    Ok(())
}
