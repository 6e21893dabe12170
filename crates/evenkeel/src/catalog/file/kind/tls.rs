use std::path::PathBuf;

use evenkeel_probe::TlsOptions;
use schemars::JsonSchema;
use serde::Deserialize;

/// How TLS is spoken.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Tls {
    /// Do not verify the target's certificate.
    pub skip_verify: bool,
    /// Name that the certificate must have, when it is not the host's.
    #[schemars(example = &"shop.example")]
    pub server_name: Option<String>,
    /// File of certificate authorities in PEM form, instead of the daemon's.
    #[schemars(example = &"/etc/evenkeel/shop-ca.pem")]
    pub ca_file: Option<PathBuf>,
    /// Directory of certificate authorities.
    #[schemars(example = &"/etc/evenkeel/shop-ca.d")]
    pub ca_path: Option<PathBuf>,
    /// Client certificate; needs `key_file`.
    #[schemars(example = &"/etc/evenkeel/shop.pem")]
    pub cert_file: Option<PathBuf>,
    /// Key of the client certificate; needs `cert_file`.
    #[schemars(example = &"/etc/evenkeel/shop-key.pem")]
    pub key_file: Option<PathBuf>,
    /// Warning while a certificate that the target showed ends in fewer days.
    #[schemars(example = &21)]
    pub warning_days: Option<u32>,
    /// Critical while a certificate that the target showed ends in fewer days.
    #[schemars(example = &7)]
    pub critical_days: Option<u32>,
    /// Resume the session of the probe before; there is a full handshake every ten
    /// minutes.
    pub resumption: bool,
}

impl From<&Tls> for TlsOptions {
    fn from(tls: &Tls) -> Self {
        Self {
            skip_verify: tls.skip_verify,
            server_name: tls.server_name.clone().unwrap_or_default(),
            ca_file: tls.ca_file.clone().unwrap_or_default(),
            ca_path: tls.ca_path.clone().unwrap_or_default(),
            cert_file: tls.cert_file.clone().unwrap_or_default(),
            key_file: tls.key_file.clone().unwrap_or_default(),
            warning_days: tls.warning_days,
            critical_days: tls.critical_days,
            resumption: tls.resumption,
        }
    }
}
