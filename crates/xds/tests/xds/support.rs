use std::net::SocketAddr;

use envoy_types::pb::envoy::config::core::v3 as core;
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use envoy_types::pb::google::rpc;
use evenkeel_xds::{Assignment, Assignments, Endpoint, Health, Locality, Server, Settings, Tls};
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tonic::transport::Channel;

pub(crate) const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// A server that listens, until it is dropped or told to end.
pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::with(Settings::default(), None).await
    }

    pub(crate) async fn with(settings: Settings, tls: Option<Tls>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, Server::new(settings, 1), tls)
    }

    pub(crate) fn on(listener: TcpListener, server: Server, tls: Option<Tls>) -> Self {
        let address = listener.local_addr().unwrap();
        let (end, ended) = oneshot::channel();
        let serving = server.clone();
        let task = tokio::spawn(async move {
            let ended = async {
                let _ = ended.await;
            };
            serving.serve(listener, tls, ended).await;
        });
        Self {
            server,
            address,
            end: Some(end),
            task,
        }
    }

    pub(crate) async fn end(mut self) {
        let _ = self.end.take().unwrap().send(());
        self.task.await.unwrap();
    }
}

pub(crate) fn endpoint(port: u16) -> Endpoint {
    Endpoint {
        address: "127.0.0.1".to_owned(),
        port,
        health: Health::Healthy,
        weight: None,
    }
}

/// A cluster with one endpoint per port, in one zone.
pub(crate) fn cluster(ports: impl IntoIterator<Item = u16>) -> Assignment {
    let mut assignment = Assignment::default();
    for port in ports {
        assignment.insert(0, &Locality::new("r", "a", ""), endpoint(port));
    }
    assignment
}

pub(crate) fn only(name: &str, assignment: Assignment) -> Assignments {
    let mut assignments = Assignments::new();
    assignments.insert(name, assignment);
    assignments
}

/// A proxy that does as it is told.
pub(crate) struct Proxy {
    requests: mpsc::Sender<DiscoveryRequest>,
    responses: tonic::Streaming<DiscoveryResponse>,
}

pub(crate) fn node(id: &str, zone: &str) -> core::Node {
    core::Node {
        id: id.to_owned(),
        cluster: "shop".to_owned(),
        locality: Some(core::Locality {
            region: "r".to_owned(),
            zone: zone.to_owned(),
            sub_zone: String::new(),
        }),
        ..Default::default()
    }
}

impl Proxy {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let channel = Channel::from_shared(format!("http://{address}")).unwrap();
        Self::over(channel.connect().await.unwrap()).await.unwrap()
    }

    pub(crate) async fn over(channel: Channel) -> Result<Self, tonic::Status> {
        let (requests, outgoing) = mpsc::channel(16);
        let outgoing = futures_util::stream::unfold(outgoing, |mut outgoing| async move {
            outgoing.recv().await.map(|request| (request, outgoing))
        });
        let mut client = AggregatedDiscoveryServiceClient::new(channel);
        let responses = client.stream_aggregated_resources(outgoing).await?;
        Ok(Self {
            requests,
            responses: responses.into_inner(),
        })
    }

    pub(crate) async fn send(&self, request: DiscoveryRequest) {
        self.requests.send(request).await.unwrap();
    }

    pub(crate) async fn subscribe(&self, names: &[&str], node: Option<core::Node>) {
        self.send(DiscoveryRequest {
            node,
            type_url: EDS.to_owned(),
            resource_names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Default::default()
        })
        .await;
    }

    pub(crate) async fn answer(
        &self,
        response: &DiscoveryResponse,
        names: &[&str],
        fault: Option<&str>,
    ) {
        self.send(DiscoveryRequest {
            version_info: response.version_info.clone(),
            type_url: EDS.to_owned(),
            resource_names: names.iter().map(|name| (*name).to_owned()).collect(),
            response_nonce: response.nonce.clone(),
            error_detail: fault.map(|text| rpc::Status {
                code: 13,
                message: text.to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        })
        .await;
    }

    pub(crate) async fn response(&mut self) -> DiscoveryResponse {
        self.next().await.unwrap().expect("the stream goes on")
    }

    pub(crate) async fn next(&mut self) -> Result<Option<DiscoveryResponse>, tonic::Status> {
        tokio::time::timeout(std::time::Duration::from_secs(30), self.responses.message())
            .await
            .expect("an answer within 30 s")
    }
}

/// Name and ports of each resource.
pub(crate) fn ports(response: &DiscoveryResponse) -> Vec<(String, Vec<u32>)> {
    response
        .resources
        .iter()
        .map(|any| one(&any.value))
        .collect()
}

fn one(value: &[u8]) -> (String, Vec<u32>) {
    use core::address::Address;
    use core::socket_address::PortSpecifier;
    use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;

    let message = ClusterLoadAssignment::decode(value).unwrap();
    let endpoints = message.endpoints.into_iter();
    let ports = endpoints
        .flat_map(|group| group.lb_endpoints)
        .map(|endpoint| {
            let Some(HostIdentifier::Endpoint(endpoint)) = endpoint.host_identifier else {
                panic!("no endpoint");
            };
            let Some(Address::SocketAddress(socket)) = endpoint.address.unwrap().address else {
                panic!("no socket address");
            };
            let Some(PortSpecifier::PortValue(port)) = socket.port_specifier else {
                panic!("no port");
            };
            port
        })
        .collect();
    (message.cluster_name, ports)
}

/// Waits until `condition` gives a value.
pub(crate) async fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let waiting = async {
        loop {
            if let Some(value) = condition() {
                return value;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), waiting)
        .await
        .unwrap_or_else(|_| panic!("not within a minute: {what}"))
}
