use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::watch;

/// What the server shows of itself, and what it wants of its clients. Clones are
/// the same one: what [`replace`](Self::replace) is told, all of them know.
#[derive(Debug, Clone)]
pub struct Tls {
    config: Arc<watch::Sender<Arc<ServerConfig>>>,
}

/// Certificates that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The certificate chain.
    #[error("the certificate is no PEM: {0}")]
    Certificate(#[source] rustls_pki_types::pem::Error),
    /// The chain is empty.
    #[error("there is no certificate in the PEM text")]
    NoCertificate,
    /// The private key.
    #[error("the private key is no PEM: {0}")]
    Key(#[source] rustls_pki_types::pem::Error),
    /// The authorities that sign the certificates of clients.
    #[error("the clients' authorities are no PEM: {0}")]
    Authorities(#[source] rustls_pki_types::pem::Error),
    /// None of them can be used.
    #[error("the clients' authorities cannot be used: {0}")]
    Verifier(#[source] rustls::server::VerifierBuilderError),
    /// Certificate and key do not belong together, or are of an unknown kind.
    #[error("certificate and key cannot be used: {0}")]
    Unusable(#[source] rustls::Error),
}

impl Tls {
    /// From PEM texts: the server's chain and key and, if clients have to show
    /// a certificate (mTLS), the authorities that sign those.
    ///
    /// # Errors
    /// If a text is no PEM, or certificate and key do not fit.
    pub fn new(certificate: &[u8], key: &[u8], clients: Option<&[u8]>) -> Result<Self, TlsError> {
        let config = config(certificate, key, clients)?;
        Ok(Self {
            config: Arc::new(watch::Sender::new(config)),
        })
    }

    /// The same with other texts, for connections from now on, in a server that
    /// runs. Those that are there stay.
    ///
    /// # Errors
    /// As [`new`](Self::new); then nothing changes.
    pub fn replace(
        &self,
        certificate: &[u8],
        key: &[u8],
        clients: Option<&[u8]>,
    ) -> Result<(), TlsError> {
        let config = config(certificate, key, clients)?;
        self.config.send_replace(config);
        Ok(())
    }

    /// What holds for the next connection.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.borrow())
    }
}

fn config(
    certificate: &[u8],
    key: &[u8],
    clients: Option<&[u8]>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .map_err(TlsError::Certificate)?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Key)?;
    // Named, not the process's default, which nobody may have set.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Unusable)?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authorities) => {
            let mut roots = rustls::RootCertStore::empty();
            for authority in CertificateDer::pem_slice_iter(authorities) {
                let authority = authority.map_err(TlsError::Authorities)?;
                roots.add(authority).map_err(TlsError::Unusable)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(TlsError::Verifier)?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(TlsError::Unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}
