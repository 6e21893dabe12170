use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::text::Listen;
use crate::delivery::Mode;

/// Endpoints and weights for proxies: over xDS, or in files.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct XdsSettings {
    /// Addresses on which Envoys are served over gRPC (ADS and EDS). Empty: none.
    #[schemars(example = ["127.0.0.1:18000"])]
    pub listen: Vec<Listen>,

    /// What Envoys are told: "envoy", endpoints with their zone and health, from
    /// which Envoy calculates itself; or "weights", the weight of each zone by
    /// `zones.rule`, for clusters with locality_weighted_lb_config.
    pub mode: Mode,

    /// The server's certificate chain, in PEM, for TLS.
    #[schemars(example = &"/etc/evenkeel/xds.crt")]
    pub cert_file: Option<PathBuf>,

    /// The key of that certificate.
    #[schemars(example = &"/etc/evenkeel/xds.key")]
    pub key_file: Option<PathBuf>,

    /// Authorities in PEM; only proxies with a certificate of one of them are
    /// served.
    #[schemars(example = &"/etc/evenkeel/proxies-ca.crt")]
    pub client_ca_file: Option<PathBuf>,

    /// Directory for files: NAME.eds.json for Envoy's file-based EDS, and
    /// NAME.from-CALLERS.json with the weights as /v1/zones has them.
    #[schemars(example = &"/var/lib/evenkeel/eds")]
    pub files: Option<PathBuf>,

    /// The services of which there are files.
    #[schemars(example = ["web"])]
    pub services: Vec<String>,

    /// The services that call them.
    #[schemars(example = ["shop"])]
    pub callers: Vec<String>,
}
