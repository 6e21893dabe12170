use std::fmt::Write as _;
use std::path::Path;

use evenkeel_benches::target::Target;
use evenkeel_testkit::Consul;
use serde_json::{Value, json};

use crate::Failable;

/// Checks per node and per service name in Consul.
const PER_NODE: u32 = 100;

/// A file of checks, one for each address of the target.
pub(crate) fn write(
    file: &Path,
    kind: &str,
    target: &Target,
    checks: u32,
    interval: u32,
) -> Failable<()> {
    let mut text = String::new();
    for index in 0..checks {
        let address = target.address(index);
        let probe = match kind {
            "http" => format!("http = \"http://{address}/health\""),
            _ => format!("tcp = \"{address}\""),
        };
        writeln!(
            text,
            "[[check]]\nname = \"check {index}\"\n{probe}\ninterval = \"{interval}s\"\ntimeout = \"1s\"\ninitial_status = \"passing\"\n"
        )?;
    }
    std::fs::write(file, text)?;
    Ok(())
}

/// The same checks, of HTTP, as external services in Consul: passing, as they
/// will be found.
pub(crate) fn register(
    consul: &Consul,
    target: &Target,
    checks: u32,
    interval: u32,
) -> Failable<()> {
    /// What one transaction may have is 64.
    const MOST: usize = 62;
    let mut operations: Vec<Value> = Vec::new();
    for index in 0..checks {
        let address = target.address(index);
        let node = format!("node-{:03}", index / PER_NODE);
        let service = format!("web-{index:05}");
        if index % PER_NODE == 0 {
            operations.push(json!({"Node": {"Verb": "set", "Node": {
                "Node": node, "Address": address.ip(),
                "Meta": {"external-node": "true", "external-probe": "true"},
            }}}));
        }
        operations.push(json!({"Service": {"Verb": "set", "Node": node, "Service": {
            "ID": service, "Service": format!("web{}", index / PER_NODE),
            "Address": address.ip(), "Port": address.port(),
        }}}));
        operations.push(json!({"Check": {"Verb": "set", "Check": {
            "Node": node, "CheckID": format!("service:{service}"), "Name": "health",
            "Status": "passing", "ServiceID": service, "Definition": {
                "HTTP": format!("http://{address}/health"),
                "Interval": format!("{interval}s"), "Timeout": "1s",
            },
        }}}));
        if operations.len() > MOST - 3 || index + 1 == checks {
            let body = Value::from(std::mem::take(&mut operations)).to_string();
            let (status, answer) = consul.put("/v1/txn", &body);
            if status != 200 {
                return Err(format!("a registration was refused: {answer}").into());
            }
        }
    }
    Ok(())
}
