use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::text::{FileMode, Listen};
use crate::delivery::Mode;

/// Endpoints and weights for proxies: over xDS, or in files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct XdsSettings {
    /// Where Envoys are served over gRPC (ADS and EDS): addresses, or
    /// "unix:/path/to/socket". Empty: nowhere.
    #[schemars(example = ["127.0.0.1:18000", "unix:/run/evenkeel/xds.sock"])]
    pub listen: Vec<Listen>,

    /// Access bits of such a unix socket, in octal.
    pub socket_mode: FileMode,

    /// Group that owns it, by name or number: that of the Envoys, say. Without it,
    /// the group of the process.
    #[schemars(example = &"envoy")]
    pub socket_group: Option<String>,

    /// What Envoys are told: "envoy", endpoints with their zone and health, from
    /// which Envoy calculates itself; or "weights", the weight of each zone by
    /// `zones.rule`, for clusters with locality_weighted_lb_config.
    pub mode: Mode,

    /// The server's certificate chain, in PEM, for TLS. These three files are read
    /// again when they change.
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
    /// NAME.from-CALLERS.json with the weights as /v1/zones has them; with the mode
    /// "weights" NAME.from-CALLERS.REGION.ZONE.eds.json for Envoys in each zone, too.
    #[schemars(example = &"/var/lib/evenkeel/eds")]
    pub files: Option<PathBuf>,

    /// The services of which there are files.
    #[schemars(example = ["web"])]
    pub services: Vec<String>,

    /// The services that call them.
    #[schemars(example = ["shop"])]
    pub callers: Vec<String>,
}

impl Default for XdsSettings {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            socket_mode: FileMode(0o660),
            socket_group: None,
            mode: Mode::default(),
            cert_file: None,
            key_file: None,
            client_ca_file: None,
            files: None,
            services: Vec::new(),
            callers: Vec::new(),
        }
    }
}
