//! Envoy's file-based EDS: what `path_config_source` reads.

use serde_json::{Map, Value, json};

use crate::assignment::{Assignment, Endpoint, Group, Health, Locality};
use crate::message::TYPE_URL;

/// The text of a file with the assignment of one cluster, as Envoy's
/// `eds_config.path_config_source` takes it. The name must end in `.json`, and
/// the file must be replaced by a rename: Envoy looks at renames only.
pub fn file(cluster: &str, assignment: &Assignment, version: u64) -> String {
    let mut resource = json!({
        "@type": TYPE_URL,
        "cluster_name": cluster,
        "endpoints": assignment
            .groups
            .iter()
            .filter(|(_, group)| group.weight != Some(0))
            .map(|((priority, locality), group)| self::group(*priority, locality, group))
            .collect::<Vec<_>>(),
    });
    if let Some(factor) = assignment.overprovisioning_factor {
        resource["policy"] = json!({ "overprovisioning_factor": factor });
    }
    let response = json!({ "version_info": version.to_string(), "resources": [resource] });
    format!("{response:#}\n")
}

fn group(priority: u32, locality: &Locality, group: &Group) -> Value {
    let mut value = json!({
        "locality": {
            "region": locality.region,
            "zone": locality.zone,
            "sub_zone": locality.sub_zone,
        },
        "priority": priority,
        "lb_endpoints": group.endpoints.iter().map(endpoint).collect::<Vec<_>>(),
    });
    if let Some(weight) = group.weight {
        value["load_balancing_weight"] = weight.into();
    }
    value
}

fn endpoint(endpoint: &Endpoint) -> Value {
    let mut value = Map::new();
    let health = match endpoint.health {
        Health::Healthy => "HEALTHY",
        Health::Degraded => "DEGRADED",
        Health::Unhealthy => "UNHEALTHY",
        Health::Draining => "DRAINING",
    };
    value.insert("health_status".to_owned(), health.into());
    if let Some(weight) = endpoint.weight {
        value.insert("load_balancing_weight".to_owned(), weight.max(1).into());
    }
    let address = json!({ "address": endpoint.address, "port_value": endpoint.port });
    value.insert(
        "endpoint".to_owned(),
        json!({ "address": { "socket_address": address } }),
    );
    Value::Object(value)
}
