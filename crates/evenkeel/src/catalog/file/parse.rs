//! From the file's bytes to checks, with every fault named. Pure.

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use super::{EndpointEntry, Entry, File};
use crate::document::{self, Format, Node, Path, Place, Shape, Value};

/// What a file says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parsed {
    /// The checks, each with the line in which it begins; 0 where it is not
    /// known.
    pub checks: Vec<(usize, Entry)>,
    /// The endpoints, each with the line in which it begins.
    pub endpoints: Vec<(usize, EndpointEntry)>,
    /// What is likely not meant, but can be used.
    pub warnings: Vec<FileFault>,
}

/// What is wrong in a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFault {
    /// The line, from 1 on; 0 where it is not known.
    pub line: usize,
    /// The check, as far as it is known.
    pub check: Option<String>,
    /// The key within the check, or in the file; empty for the whole.
    pub key: String,
    /// What is wrong, for people.
    pub text: String,
}

impl FileFault {
    /// A fault of the file as a whole.
    pub(super) fn whole(text: String) -> Self {
        Self {
            line: 0,
            check: None,
            key: String::new(),
            text,
        }
    }
}

impl FileFault {
    /// As text, where there is but one check and no file.
    pub fn told_of_one(&self) -> String {
        match self.key.as_str() {
            "" => self.text.clone(),
            key => format!("{key}: {}", self.text),
        }
    }
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if let Some(check) = &self.check {
            write!(f, "check {check:?}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.text)
    }
}

/// More faults than these are not told of one file.
pub(super) const MOST_FAULTS: usize = 1_000;

/// Reads the checks of a file.
///
/// # Errors
///
/// Everything that is wrong in it, by line.
pub fn parse(text: &[u8], format: Format) -> Result<Parsed, Vec<FileFault>> {
    let mut root = document::read(text, format).map_err(|(root, faults)| {
        let placed = |fault: &document::Fault| placed(&root, fault);
        faults.iter().map(placed).collect::<Vec<_>>()
    })?;
    if matches!(&root.value, Value::Table(entries) if entries.is_empty()) {
        // What a file is for a moment while it is written.
        let text = "the file is empty; to watch nothing, write check = []";
        return Err(vec![FileFault::whole(text.to_owned())]);
    }
    let before = root.clone();
    let hint = |path: &Path, key: &str| hint(path, key);
    let mut faults: Vec<FileFault> = document::verify(&mut root, shape(), &hint)
        .iter()
        .map(|fault| placed(&before, fault))
        .collect();
    let mut parsed = Parsed::default();
    let list = |key: &str| match root.get(key).map(|node| &node.value) {
        Some(Value::List(nodes)) => nodes.as_slice(),
        _ => &[],
    };
    let mut known: HashMap<(String, String, String), usize> = HashMap::new();
    for node in list("check") {
        // One that lacks what it needs has its fault already.
        let Ok(entry) = serde_json::from_value::<Entry>(node.to_json()) else {
            continue;
        };
        let line = line(&node.place);
        let fault = |key: String, text: String| FileFault {
            line: node.find(&key).map_or(line, |node| self::line(&node.place)),
            check: Some(short(&entry.name)),
            key,
            text,
        };
        let wrong = entry.faults().into_iter();
        faults.extend(wrong.map(|(key, text)| fault(key, text)));
        let identity = (
            entry.node.clone(),
            entry.service.clone().unwrap_or_default(),
            entry.id().to_owned(),
        );
        if let Some(other) = known.insert(identity, line) {
            let text = format!(
                "the check in line {other} has the same node, service and id; give one of them an \
                 id of its own"
            );
            faults.push(fault(String::new(), text));
        }
        // P113
        if let (Some(interval), Some(timeout)) = (entry.interval, entry.timeout)
            && timeout > interval
        {
            let text = "longer than the interval: a hanging target is probed less often";
            parsed
                .warnings
                .push(fault("timeout".to_owned(), text.to_owned()));
        }
        parsed.checks.push((line, entry));
    }
    for node in list("endpoint") {
        let Ok(entry) = serde_json::from_value::<EndpointEntry>(node.to_json()) else {
            continue;
        };
        let line = line(&node.place);
        let wrong = entry.faults(&parsed.checks).into_iter();
        faults.extend(wrong.map(|(key, text)| FileFault {
            line: node.find(&key).map_or(line, |node| self::line(&node.place)),
            check: None,
            key: format!("endpoint.{key}"),
            text,
        }));
        parsed.endpoints.push((line, entry));
    }
    if faults.is_empty() {
        return Ok(parsed);
    }
    faults.sort_by_key(|fault| fault.line);
    faults.truncate(MOST_FAULTS);
    Err(faults)
}

/// What a file of checks may hold.
pub fn shape() -> &'static Shape {
    static SHAPE: LazyLock<Shape> = LazyLock::new(Shape::of::<File>);
    &SHAPE
}

const fn line(place: &Place) -> usize {
    match place {
        Place::Line(line) => *line,
        Place::Unknown | Place::Named(_) => 0,
    }
}

fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

/// A document's fault, said in terms of checks: `check[3].interval` is the
/// interval of the check of that name.
fn placed(root: &Node, fault: &document::Fault) -> FileFault {
    let path = fault.path.as_str();
    let of_check = path
        .strip_prefix("check[")
        .and_then(|rest| rest.split_once(']'))
        .map(|(index, key)| (index, key.strip_prefix('.').unwrap_or(key)));
    let (check, key) = match of_check {
        None => (None, path),
        Some((index, key)) => {
            let name = root
                .find(&format!("check[{index}].name"))
                .and_then(Node::as_text)
                .map_or_else(|| format!("#{index}"), short);
            (Some(name), key)
        }
    };
    FileFault {
        line: line(&fault.place),
        check,
        key: key.to_owned(),
        text: fault.text.clone(),
    }
}

/// Names that suggest themselves, from Consul's definitions and elsewhere.
fn hint(path: &Path, key: &str) -> Option<String> {
    if path.is_root() {
        return matches!(key, "checks" | "Checks" | "Check")
            .then(|| "did you mean check?".to_owned());
    }
    let meant = match key {
        "url" | "HTTP" => "http",
        "address" | "TCP" => "tcp",
        "header" | "Header" => "headers",
        "disable_redirects" => "follow_redirects",
        "tls_skip_verify" => "tls.skip_verify",
        "tls_server_name" => "tls.server_name",
        "service_id" | "service_name" => "service",
        "check_id" => "id",
        "status" => "initial_status",
        "docker_container_id" => "docker.container",
        "args" | "script_args" => "script.command",
        "ttl" | "os_service" | "alias_service" | "alias_node" => {
            let kinds = super::kind::all_keys();
            return Some(format!(
                "this kind of check is not supported yet; there are {kinds}"
            ));
        }
        "deregister_critical_service_after" => {
            return Some("a file has no services to remove".into());
        }
        _ => return None,
    };
    Some(format!("did you mean {meant}?"))
}
