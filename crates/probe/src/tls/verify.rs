//! Which certificates are accepted.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme,
    client::verify_server_name,
};

use super::certificate::{Parsed, common_name, date};
use super::text::{OUT_OF_TIME, certificate_fault};

/// The rule of `skip_verify`: any certificate, any signature. Who asks for this
/// gains nothing from a check of the signature, and loses old devices whose
/// certificates (X.509 version 1) the library cannot read.
#[derive(Debug)]
pub(super) struct AnyCertificate {
    schemes: Vec<SignatureScheme>,
}

impl AnyCertificate {
    pub(super) fn new(provider: &CryptoProvider) -> Self {
        Self {
            schemes: provider
                .signature_verification_algorithms
                .supported_schemes(),
        }
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

/// The web's rule, and beside it what Go, and so every Consul user, takes for
/// granted: a self-signed certificate that is itself in the CA file is trusted
/// although it is marked as a CA (which `openssl req -x509` does).
#[derive(Debug)]
pub(super) struct PinnedOrWebPki {
    inner: Arc<WebPkiServerVerifier>,
    pinned: Vec<CertificateDer<'static>>,
}

impl PinnedOrWebPki {
    pub(super) fn new(
        inner: Arc<WebPkiServerVerifier>,
        pinned: Vec<CertificateDer<'static>>,
    ) -> Self {
        Self { inner, pinned }
    }
}

impl ServerCertVerifier for PinnedOrWebPki {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verdict {
            // The library looks at the times before it looks at the CA mark, and at nothing else
            // that would matter here but the name. (A test holds it to that.)
            Err(Error::InvalidCertificate(CertificateError::Other(other)))
                if is_ca_as_end_entity(&other) && self.pinned.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            Err(Error::InvalidCertificate(fault)) => {
                let fault = explained(fault, end_entity, intermediates);
                Err(Error::InvalidCertificate(fault))
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// A fault in our words, with what only the certificates tell of it.
#[derive(Debug)]
pub(super) struct Explained(String);

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Explained {}

/// The fault with which of the certificates it is of, where the library does
/// not say it.
fn explained(
    fault: CertificateError,
    end_entity: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
) -> CertificateError {
    let why = match &fault {
        CertificateError::UnknownIssuer => unknown_issuer(end_entity, intermediates),
        CertificateError::ExpiredContext { not_after, .. } => {
            let sent = intermediates.iter().filter_map(|sent| Parsed::of(sent));
            let own = Parsed::of(end_entity);
            let ended = |parsed: &Parsed<'_>| parsed.not_after == not_after.as_secs();
            if own.as_ref().is_some_and(ended) {
                None
            } else {
                let name = sent
                    .filter(ended)
                    .find_map(|sent| common_name(sent.subject));
                name.map(|name| {
                    let at = date(not_after.as_secs());
                    format!("{OUT_OF_TIME}: intermediate certificate {name:?} ended at {at}")
                })
            }
        }
        _ => None,
    };
    match why {
        Some(why) => CertificateError::Other(OtherError(Arc::new(Explained(why)))),
        None => fault,
    }
}

/// The most certificates of a chain that are looked at for a text.
const MAX_LOOKED_AT: usize = 20;

/// Who would have to be trusted, or to be sent.
fn unknown_issuer(
    end_entity: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
) -> Option<String> {
    let mut last = Parsed::of(end_entity)?;
    let fault = certificate_fault(&CertificateError::UnknownIssuer);
    if last.issuer == last.subject {
        return Some(format!("{fault} (it is self-signed)"));
    }
    for _ in 0..MAX_LOOKED_AT {
        let sent = intermediates.iter().take(MAX_LOOKED_AT);
        let mut sent = sent.filter_map(|sent| Parsed::of(sent));
        let issuer = sent.find(|sent| sent.subject == last.issuer && sent.issuer != sent.subject);
        match issuer {
            Some(issuer) => last = issuer,
            None => break,
        }
    }
    let name = common_name(last.issuer)?;
    let hint = match intermediates {
        [] => ", and no intermediate certificate was sent",
        _ => "",
    };
    Some(format!("{fault} {name:?}{hint}"))
}

/// The library wraps this one so that its type cannot be named without one more
/// dependency; its text is `CaUsedAsEndEntity`.
fn is_ca_as_end_entity(error: &OtherError) -> bool {
    error.to_string().contains("CaUsedAsEndEntity")
}
