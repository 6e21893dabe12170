use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use evenkeel_consul::request::Consistency;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::duration;
use crate::config::text::{DurationText, Secret};

/// The Consul whose external nodes are watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct ConsulSettings {
    /// HTTP API of a Consul server or agent: a URL, "host:port", or
    /// "unix:///path/to/socket". CONSUL_HTTP_ADDR sets it too.
    pub address: String,

    /// ACL token. CONSUL_HTTP_TOKEN sets it too.
    #[schemars(example = &"00000000-0000-0000-0000-000000000000")]
    pub token: Option<Secret>,

    /// File that holds the ACL token, instead of `token`. CONSUL_HTTP_TOKEN_FILE
    /// sets it too.
    #[schemars(example = &"/etc/evenkeel/consul-token")]
    pub token_file: Option<PathBuf>,

    /// User and password of HTTP basic authentication, as "user:password".
    /// CONSUL_HTTP_AUTH sets it too.
    #[schemars(example = &"user:password")]
    pub http_auth: Option<Secret>,

    /// Speak TLS although `address` names no scheme. CONSUL_HTTP_SSL sets it
    /// too.
    pub tls: bool,

    /// Do not verify Consul's certificate. CONSUL_HTTP_SSL_VERIFY=false sets it
    /// too.
    pub tls_skip_verify: bool,

    /// File of the certificate authority that signed Consul's certificate, in
    /// PEM form. Without it and `ca_path`, the system's authorities.
    /// CONSUL_CACERT sets it too.
    #[schemars(example = &"/etc/evenkeel/consul-ca.pem")]
    pub ca_file: Option<PathBuf>,

    /// Directory of certificate authorities, instead of `ca_file`.
    /// CONSUL_CAPATH sets it too.
    #[schemars(example = &"/etc/evenkeel/consul-ca.d")]
    pub ca_path: Option<PathBuf>,

    /// Client certificate in PEM form; needs `key_file`. CONSUL_CLIENT_CERT sets
    /// it too.
    #[schemars(example = &"/etc/evenkeel/consul-client.pem")]
    pub cert_file: Option<PathBuf>,

    /// Key of the client certificate in PEM form; needs `cert_file`.
    /// CONSUL_CLIENT_KEY sets it too.
    #[schemars(example = &"/etc/evenkeel/consul-client-key.pem")]
    pub key_file: Option<PathBuf>,

    /// Name that Consul's certificate must have, when it is not the host of
    /// `address`. CONSUL_TLS_SERVER_NAME sets it too.
    #[schemars(example = &"server.dc1.consul")]
    pub tls_server_name: Option<String>,

    /// Datacenter; without it, the one of the server or agent.
    #[schemars(example = &"dc1")]
    pub datacenter: Option<String>,

    /// Namespace (Consul Enterprise); "*" for all. CONSUL_NAMESPACE sets it too.
    #[schemars(example = &"default")]
    pub namespace: Option<String>,

    /// Admin partition (Consul Enterprise). CONSUL_PARTITION sets it too.
    #[schemars(example = &"default")]
    pub partition: Option<String>,

    /// Node metadata that mark an external node; a node must have all of them.
    pub external_node_meta: BTreeMap<String, String>,

    /// Read from any server, also one that is not the leader and may lag.
    pub stale: bool,

    /// How long Consul may hold a watching request open; at most 10m.
    #[serde(with = "duration")]
    #[schemars(with = "DurationText")]
    pub wait: Duration,

    /// How long any other request may take, lists aside, which may take 30s.
    #[serde(with = "duration")]
    #[schemars(with = "DurationText")]
    pub request_timeout: Duration,
}

impl Default for ConsulSettings {
    fn default() -> Self {
        Self {
            // As in Consul's own client.
            address: "127.0.0.1:8500".to_owned(),
            token: None,
            token_file: None,
            http_auth: None,
            tls: false,
            tls_skip_verify: false,
            ca_file: None,
            ca_path: None,
            cert_file: None,
            key_file: None,
            tls_server_name: None,
            datacenter: None,
            namespace: None,
            partition: None,
            // As consul-esm's external_node_meta.
            external_node_meta: BTreeMap::from([("external-node".to_owned(), "true".to_owned())]),
            stale: false,
            // As consul-esm's: shorter than the 60 s after which many load
            // balancers drop what is silent. (P017)
            wait: Duration::from_secs(45),
            request_timeout: Duration::from_secs(10),
        }
    }
}

impl ConsulSettings {
    /// Which server may answer reads of lists.
    pub const fn consistency(&self) -> Consistency {
        if self.stale {
            Consistency::Stale
        } else {
            Consistency::Default
        }
    }
}
