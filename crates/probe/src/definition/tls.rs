use std::path::{Path, PathBuf};

use rustls_pki_types::ServerName;

use super::DefinitionError;

/// How a TLS connection is made. What is not set comes from the
/// [`TlsDefaults`](crate::TlsDefaults) of the prober; the verified name never
/// does (P091).
///
/// Empty texts and paths count as not set, since that is how Consul leaves
/// them out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TlsOptions {
    /// Accept any certificate. The server name is sent all the same.
    pub skip_verify: bool,
    /// The name that is sent (SNI) and verified; the target's host if empty
    /// (P047).
    pub server_name: String,
    /// A PEM file of CA certificates, used instead of the system's.
    pub ca_file: PathBuf,
    /// A directory of PEM files of CA certificates, used instead of the
    /// system's; together with `ca_file` both count.
    pub ca_path: PathBuf,
    /// A PEM file of the client's certificate chain.
    pub cert_file: PathBuf,
    /// A PEM file of the client's private key (PKCS #8, PKCS #1 or SEC1).
    pub key_file: PathBuf,
}

impl TlsOptions {
    pub(super) fn validate(&self) -> Result<(), DefinitionError> {
        if is_set(&self.cert_file) != is_set(&self.key_file) {
            return Err(DefinitionError::ClientCertificate);
        }
        if !self.server_name.is_empty() && ServerName::try_from(self.server_name.as_str()).is_err()
        {
            return Err(DefinitionError::ServerName(self.server_name.clone()));
        }
        Ok(())
    }
}

pub(crate) fn is_set(path: &Path) -> bool {
    !path.as_os_str().is_empty()
}
