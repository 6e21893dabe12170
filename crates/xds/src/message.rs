//! Envoy's messages: how an assignment and a response look on the wire.

use bytes::{BufMut, Bytes, BytesMut};
use envoy_types::pb::envoy::config::core::v3 as core;
use envoy_types::pb::envoy::config::endpoint::v3 as endpoint;
use envoy_types::pb::envoy::service::discovery::v3::DiscoveryResponse;
use envoy_types::pb::google::protobuf::{Any, UInt32Value};
use prost::Message;

use crate::assignment::{Assignment, Endpoint, Group, Health, Locality};

/// The one type of resource that is served.
pub(crate) const TYPE_URL: &str =
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// A resource as it lies in a response: field, length and content. The fields
/// of a protobuf message may come in any order and in pieces, so that a
/// response is a head of its own followed by these bytes, shared by all.
pub(crate) fn resource(cluster: &str, assignment: &Assignment) -> Bytes {
    let response = DiscoveryResponse {
        resources: vec![Any {
            type_url: TYPE_URL.to_owned(),
            value: message(cluster, assignment).encode_to_vec(),
        }],
        ..DiscoveryResponse::default()
    };
    response.encode_to_vec().into()
}

/// What is copied into the head instead of being a piece of its own: below the
/// size of an HTTP/2 frame a piece costs more than a copy.
const COPIED: usize = 16 * 1024;

/// A response as gRPC sends it: a prefix with its length (uncompressed), the
/// head, the resources.
pub(crate) fn response(version: &str, nonce: &str, resources: &[Bytes]) -> Vec<Bytes> {
    let head = DiscoveryResponse {
        version_info: version.to_owned(),
        type_url: TYPE_URL.to_owned(),
        nonce: nonce.to_owned(),
        ..DiscoveryResponse::default()
    };
    let length = head.encoded_len() + resources.iter().map(Bytes::len).sum::<usize>();
    let mut pieces = Vec::new();
    let mut copied = BytesMut::with_capacity(5 + head.encoded_len());
    copied.put_u8(0);
    // Far below u32::MAX: the sizes of responses are limited.
    copied.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    copied.put(head.encode_to_vec().as_slice());
    for resource in resources {
        if resource.len() < COPIED {
            copied.put(resource.as_ref());
        } else {
            if !copied.is_empty() {
                pieces.push(copied.split().freeze());
            }
            pieces.push(resource.clone());
        }
    }
    if !copied.is_empty() {
        pieces.push(copied.freeze());
    }
    pieces
}

fn message(cluster: &str, assignment: &Assignment) -> endpoint::ClusterLoadAssignment {
    let groups = assignment.groups.iter();
    endpoint::ClusterLoadAssignment {
        cluster_name: cluster.to_owned(),
        endpoints: groups
            .filter(|(_, group)| group.weight != Some(0))
            .map(|((priority, locality), group)| self::group(*priority, locality, group))
            .collect(),
        policy: assignment.overprovisioning_factor.map(|factor| {
            endpoint::cluster_load_assignment::Policy {
                overprovisioning_factor: Some(UInt32Value { value: factor }),
                ..Default::default()
            }
        }),
        ..Default::default()
    }
}

fn group(priority: u32, locality: &Locality, group: &Group) -> endpoint::LocalityLbEndpoints {
    endpoint::LocalityLbEndpoints {
        locality: Some(core::Locality {
            region: locality.region.clone(),
            zone: locality.zone.clone(),
            sub_zone: locality.sub_zone.clone(),
        }),
        priority,
        load_balancing_weight: group.weight.map(|value| UInt32Value { value }),
        lb_endpoints: group.endpoints.iter().map(lb_endpoint).collect(),
        ..Default::default()
    }
}

fn lb_endpoint(one: &Endpoint) -> endpoint::LbEndpoint {
    let address = core::SocketAddress {
        address: one.address.clone(),
        port_specifier: Some(core::socket_address::PortSpecifier::PortValue(u32::from(
            one.port,
        ))),
        ..Default::default()
    };
    let health = match one.health {
        Health::Healthy => core::HealthStatus::Healthy,
        Health::Degraded => core::HealthStatus::Degraded,
        Health::Unhealthy => core::HealthStatus::Unhealthy,
        Health::Draining => core::HealthStatus::Draining,
    };
    endpoint::LbEndpoint {
        health_status: health.into(),
        load_balancing_weight: one.weight.map(|value| UInt32Value {
            value: value.max(1),
        }),
        host_identifier: Some(endpoint::lb_endpoint::HostIdentifier::Endpoint(
            endpoint::Endpoint {
                address: Some(core::Address {
                    address: Some(core::address::Address::SocketAddress(address)),
                }),
                ..Default::default()
            },
        )),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a receiver reads it, with the whole message in one piece.
    fn read(pieces: &[Bytes]) -> DiscoveryResponse {
        let whole = pieces.concat();
        assert_eq!(whole[0], 0, "not compressed");
        let length = u32::from_be_bytes([whole[1], whole[2], whole[3], whole[4]]);
        assert_eq!(length as usize, whole.len() - 5);
        DiscoveryResponse::decode(&whole[5..]).unwrap()
    }

    fn assignment(endpoints: u16) -> Assignment {
        let mut assignment = Assignment::default();
        for port in 0..endpoints {
            let endpoint = Endpoint {
                address: "10.1.2.3".to_owned(),
                port,
                health: Health::Healthy,
                weight: None,
            };
            assignment.insert(0, &Locality::new("r", "a", ""), endpoint);
        }
        assignment
    }

    #[test]
    fn a_response_in_pieces_reads_as_one_message_with_all_its_resources() {
        let (small, large) = (assignment(3), assignment(2000));
        let resources = [
            resource("small", &small),
            resource("large", &large),
            resource("last", &small),
        ];
        let pieces = response("7", "12", &resources);
        assert!(
            pieces
                .iter()
                .any(|piece| piece.as_ptr() == resources[1].as_ptr()),
            "the large one is shared, not copied"
        );
        let read = read(&pieces);
        assert_eq!(
            (read.version_info.as_str(), read.nonce.as_str()),
            ("7", "12")
        );
        assert_eq!(read.type_url, TYPE_URL);
        let read: Vec<_> = read
            .resources
            .iter()
            .map(|any| {
                assert_eq!(any.type_url, TYPE_URL);
                let message = endpoint::ClusterLoadAssignment::decode(any.value.as_slice());
                let message = message.unwrap();
                (
                    message.cluster_name,
                    message.endpoints[0].lb_endpoints.len(),
                )
            })
            .collect();
        let expected = [("small", 3), ("large", 2000), ("last", 3)];
        assert_eq!(read, expected.map(|(name, count)| (name.to_owned(), count)));
    }

    #[test]
    fn a_locality_of_weight_zero_is_left_out() {
        let mut assignment = assignment(1);
        assignment.set_weight(0, &Locality::new("r", "a", ""), 5);
        assignment.set_weight(0, &Locality::new("r", "b", ""), 0);
        let message = message("web", &assignment);
        assert_eq!(message.endpoints.len(), 1);
        assert_eq!(
            message.endpoints[0].load_balancing_weight,
            Some(UInt32Value { value: 5 })
        );
    }
}
