use std::path::{Path, PathBuf};

use evenkeel_threshold::Status;
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
    /// A warning while one of the certificates that the server sent, and that
    /// are needed, ends in fewer days than this. With neither this nor
    /// `critical_days` those of the [`TlsDefaults`](crate::TlsDefaults) count.
    pub warning_days: Option<u32>,
    /// Critical while one of them ends in fewer days than this. Zero is of use
    /// without verification: then an end in the past is critical.
    pub critical_days: Option<u32>,
    /// Resume the session of the probe before, which costs less on both sides.
    /// Then the server shows its certificate, and judges the client's, only in
    /// the first handshake and in one every ten minutes; that the certificate
    /// has ended, or that a file has changed, is seen at once all the same.
    pub resumption: bool,
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
        if !self.days(CertificateDays::default()).make_sense() {
            let reason = "is above warning_days, so that a warning would never come";
            return Err(DefinitionError::option("critical_days", reason));
        }
        Ok(())
    }

    /// Its own days, if it says any, else `default`.
    pub(crate) fn days(&self, default: CertificateDays) -> CertificateDays {
        let own = CertificateDays {
            warning: self.warning_days,
            critical: self.critical_days,
        };
        if own == CertificateDays::default() {
            default
        } else {
            own
        }
    }
}

/// How soon the end of a certificate is too soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CertificateDays {
    pub(crate) warning: Option<u32>,
    pub(crate) critical: Option<u32>,
}

impl CertificateDays {
    /// There is something between the two, if both are given.
    pub(crate) fn make_sense(self) -> bool {
        self.warning
            .is_none_or(|warning| self.critical.is_none_or(|critical| critical <= warning))
    }

    /// The worst that the end of a certificate can lead to.
    pub(crate) fn worst(self) -> Option<Status> {
        let critical = self.critical.map(|_| Status::Critical);
        critical.or(self.warning.map(|_| Status::Warning))
    }
}

pub(crate) fn is_set(path: &Path) -> bool {
    !path.as_os_str().is_empty()
}
