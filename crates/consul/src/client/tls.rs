use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_rustls::TlsConnector;

use super::ConfigError;
use super::files;
use crate::config::{Address, Tls};

/// The connector for `address` and the name its certificate must be for;
/// `None` if no TLS is spoken there.
pub(super) fn connector(
    address: &Address,
    settings: &Tls,
) -> Result<Option<(TlsConnector, ServerName<'static>)>, ConfigError> {
    let Address::Tcp {
        https: true,
        authority,
        ..
    } = address
    else {
        return Ok(None);
    };
    let host = settings
        .server_name
        .as_deref()
        .unwrap_or_else(|| authority.host().trim_matches(['[', ']']));
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| rustls::Error::General(format!("{host:?} is no name of a server")))?;

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let builder = if settings.verify {
        builder.with_root_certificates(roots(settings)?)
    } else {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unverified(provider)))
    };
    let mut config = match (&settings.cert_file, &settings.key_file) {
        (Some(cert), Some(key)) => {
            let text = read(key)?;
            let key =
                PrivateKeyDer::from_pem_slice(&text).map_err(|error| pem(key, "key", &error))?;
            builder.with_client_auth_cert(certificates(cert)?, key)?
        }
        (None, None) => builder.with_no_client_auth(),
        _ => return Err(ConfigError::HalfCertificate),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some((TlsConnector::from(Arc::new(config)), name)))
}

fn roots(settings: &Tls) -> Result<RootCertStore, ConfigError> {
    let mut store = RootCertStore::empty();
    if let Some(file) = &settings.ca_file {
        add(&mut store, file, certificates(file)?)?;
    }
    if let Some(directory) = &settings.ca_path {
        let read = |source| ConfigError::Read {
            path: directory.clone(),
            source,
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(read)? {
            let path = entry.map_err(read)?.path();
            if path.is_file() {
                files.push(path);
            }
        }
        files.sort();
        let before = store.len();
        for file in files {
            // Other things may lie there too, as long as there is one certificate.
            if let Ok(found) = certificates(&file) {
                add(&mut store, &file, found)?;
            }
        }
        if store.len() == before {
            return Err(ConfigError::Pem {
                path: directory.clone(),
                what: "certificate",
                reason: "no file in it has one".to_owned(),
            });
        }
    }
    if settings.ca_file.is_none() && settings.ca_path.is_none() {
        // Some of a system's certificates may be unusable; the others do.
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if store.is_empty() {
            return Err(ConfigError::NothingToTrust);
        }
    }
    Ok(store)
}

fn add(
    store: &mut RootCertStore,
    path: &Path,
    certificates: Vec<CertificateDer<'static>>,
) -> Result<(), ConfigError> {
    for certificate in certificates {
        store.add(certificate).map_err(|error| ConfigError::Pem {
            path: path.to_owned(),
            what: "certificate",
            reason: error.to_string(),
        })?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    files::read(path, files::MOST_PEM_BYTES).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })
}

pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let text = read(path)?;
    let found = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| pem(path, "certificate", &error))?;
    if found.is_empty() {
        return Err(ConfigError::Pem {
            path: path.to_owned(),
            what: "certificate",
            reason: "there is none in it".to_owned(),
        });
    }
    Ok(found)
}

fn pem(path: &Path, what: &'static str, error: &rustls::pki_types::pem::Error) -> ConfigError {
    ConfigError::Pem {
        path: path.to_owned(),
        what,
        reason: error.to_string(),
    }
}

/// Takes any certificate, as told; the handshake's signatures are checked all
/// the same.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
