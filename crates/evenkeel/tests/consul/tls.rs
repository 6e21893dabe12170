//! Certificates.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// A server's certificate from a CA of its own, as PEM.
pub(crate) struct Certificate {
    ca: String,
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Certificate {
    /// For a name or an address.
    pub(crate) fn of(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &ca).unwrap();
        Self {
            ca: ca.pem(),
            chain: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// The CA's certificate in a file.
    pub(crate) fn ca_file(&self, dir: &Path) -> PathBuf {
        let path = dir.join("ca.pem");
        std::fs::write(&path, &self.ca).unwrap();
        path
    }
}
