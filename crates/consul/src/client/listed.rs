use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::types::{CatalogService, FieldFault, HealthCheck, Node, ServiceHealth};

/// An element of a list that can be read without its faulty fields.
pub(super) trait Listed: DeserializeOwned + Default {
    /// Takes note of the fields that were left out.
    fn set_faults(&mut self, faults: Vec<FieldFault>);
}

impl Listed for HealthCheck {
    fn set_faults(&mut self, faults: Vec<FieldFault>) {
        self.faults = faults;
    }
}

impl Listed for Node {
    fn set_faults(&mut self, faults: Vec<FieldFault>) {
        self.faults = faults;
    }
}

impl Listed for CatalogService {
    fn set_faults(&mut self, faults: Vec<FieldFault>) {
        self.faults = faults;
    }
}

impl Listed for ServiceHealth {
    fn set_faults(&mut self, faults: Vec<FieldFault>) {
        self.faults = faults;
    }
}

/// Faults of one element that are kept.
const MOST_FAULTS: usize = 16;

/// Characters of a reason that are kept: it may quote the field.
const MOST_REASON: usize = 200;

/// How deep a faulty field is looked for.
const MOST_DEPTH: usize = 3;

/// Reads one element of a list. A field of an unexpected type is left out and
/// noted: one element must not make the whole list unreadable.
///
/// # Errors
/// What `serde_json` says, if the element is no JSON.
pub(super) fn listed<T: Listed>(json: &[u8]) -> Result<T, String> {
    let error = match serde_json::from_slice(json) {
        Ok(element) => return Ok(element),
        Err(error) => error,
    };
    let value: Value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let mut faults = Vec::new();
    let element = match value {
        Value::Object(map) => {
            let readable = |value: &Value| T::deserialize(value).map(drop);
            let map = readable_fields(map, "", 1, &readable, &mut faults);
            T::deserialize(Value::Object(map)).ok()
        }
        _ => None,
    };
    if element.is_none() || faults.is_empty() {
        note(&mut faults, "", &error);
    }
    let mut element = element.unwrap_or_default();
    element.set_faults(faults);
    Ok(element)
}

/// The fields of `map` with which it can be read.
fn readable_fields(
    map: Map<String, Value>,
    path: &str,
    depth: usize,
    readable: &dyn Fn(&Value) -> Result<(), serde_json::Error>,
    faults: &mut Vec<FieldFault>,
) -> Map<String, Value> {
    let mut good = Map::new();
    for (key, value) in map {
        let alone = |value: Value| Value::Object(Map::from_iter([(key.clone(), value)]));
        // An object of this one field says whether it is this one.
        let mut single = alone(value);
        let Err(error) = readable(&single) else {
            good.append(single.as_object_mut().unwrap_or(&mut Map::new()));
            continue;
        };
        let path = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        match single.get_mut(&key).map(Value::take) {
            Some(Value::Object(inner)) if depth < MOST_DEPTH => {
                let before = faults.len();
                let inside = |value: &Value| readable(&alone(value.clone()));
                let inner = readable_fields(inner, &path, depth + 1, &inside, faults);
                let inner = Value::Object(inner);
                match inside(&inner) {
                    Ok(()) => {
                        good.insert(key, inner);
                    }
                    Err(error) => {
                        faults.truncate(before);
                        note(faults, &path, &error);
                    }
                }
            }
            _ => note(faults, &path, &error),
        }
    }
    good
}

fn note(faults: &mut Vec<FieldFault>, path: &str, error: &serde_json::Error) {
    if faults.len() < MOST_FAULTS {
        let short = |text: &str| text.chars().take(MOST_REASON).collect();
        faults.push(FieldFault {
            path: short(path),
            reason: short(&error.to_string()),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(faults: &[FieldFault]) -> Vec<&str> {
        faults.iter().map(|fault| fault.path.as_str()).collect()
    }

    // P044: Consul 1.8.7 takes "-1s" and gives it back.
    #[test]
    fn a_faulty_field_is_left_out_and_the_rest_of_the_check_is_read() {
        for (field, value) in [
            ("Interval", r#""-1s""#),
            ("Timeout", "-5"),
            ("DeregisterCriticalServiceAfter", r#""abc""#),
            ("TTL", "[]"),
            ("HTTP", "5"),
            ("OutputMaxSize", "-1"),
        ] {
            let json = format!(
                r#"{{"Node":"n","CheckID":"c","Definition":{{"TCP":"a:1","{field}":{value}}}}}"#
            );
            let check: HealthCheck = listed(json.as_bytes()).unwrap();
            assert_eq!((check.node.as_str(), check.check_id.as_str()), ("n", "c"));
            assert_eq!(check.definition.tcp, "a:1");
            assert_eq!(paths(&check.faults), [format!("Definition.{field}")]);
        }
    }

    #[test]
    fn what_is_no_element_at_all_is_one_with_a_fault() {
        for json in ["null", "5", "[]", "\"x\""] {
            let check: HealthCheck = listed(json.as_bytes()).unwrap();
            assert_eq!(paths(&check.faults), [""], "{json}");
        }
        let twice: HealthCheck = listed(br#"{"Node":"a","Node":"b"}"#).unwrap();
        assert_eq!(paths(&twice.faults), [""]);
    }

    #[test]
    fn nodes_and_services_lose_only_the_faulty_field() {
        let node: Node = listed(br#"{"Node":"n","Meta":{"a":1,"b":"2"}}"#).unwrap();
        assert_eq!(node.meta.len(), 1);
        assert_eq!(paths(&node.faults), ["Meta.a"]);
        let service: CatalogService =
            listed(br#"{"Node":"n","ServiceID":"s","ServicePort":"x"}"#).unwrap();
        assert_eq!(service.service_id, "s");
        assert_eq!(paths(&service.faults), ["ServicePort"]);
    }

    #[test]
    fn broken_json_is_no_element() {
        for json in ["{", r#"{"Node":nope}"#, r#"{"Node":5,}"#, "01"] {
            assert!(listed::<HealthCheck>(json.as_bytes()).is_err(), "{json}");
        }
    }

    #[test]
    fn faults_are_bounded() {
        let meta: Vec<String> = (0..1000).map(|n| format!("\"{n}\":{n}")).collect();
        let json = format!(r#"{{"Node":"n","Meta":{{{}}}}}"#, meta.join(","));
        let node: Node = listed(json.as_bytes()).unwrap();
        assert_eq!(node.faults.len(), MOST_FAULTS);
    }
}
