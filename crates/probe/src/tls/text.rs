//! TLS faults in words, Go's where it has any.

use std::io;

use rustls::{CertificateError, Error, InvalidMessage, PeerIncompatible};
use rustls_pki_types::UnixTime;

use super::certificate::date;
use super::verify::Explained;

/// One line for an error of a TLS stream; `doing` stands in front of what is
/// not told by the text itself to be of TLS.
pub(crate) fn describe(error: &io::Error, doing: &str) -> String {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        None => format!("{doing}: {}", crate::fault::describe(error)),
        Some(Error::InvalidCertificate(fault)) => format!(
            "tls: failed to verify certificate: x509: {}",
            certificate_fault(fault)
        ),
        Some(Error::AlertReceived(name)) => alert(&format!("{name:?}")),
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            // Where there is no handshake any more, it is another record.
            let what = match doing.ends_with("handshake") {
                true => "first record does not look like a TLS handshake",
                false => "what came is no TLS record",
            };
            format!("{doing}: {what}")
        }
        Some(Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion)) => {
            format!("{doing}: unknown protocol version")
        }
        Some(Error::InvalidMessage(
            InvalidMessage::HandshakePayloadTooLarge | InvalidMessage::CertificatePayloadTooLarge,
        )) => format!("{doing}: the server's message is longer than 64 KiB"),
        Some(Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        )) => format!("{doing}: the server speaks a version of TLS before 1.2"),
        Some(other) => format!("{doing}: {other}"),
    }
}

pub(super) fn certificate_fault(fault: &CertificateError) -> String {
    use CertificateError as E;
    match fault {
        E::UnknownIssuer => "certificate signed by unknown authority".to_owned(),
        E::Expired | E::NotValidYet => OUT_OF_TIME.to_owned(),
        E::ExpiredContext { not_after, .. } => {
            format!("{OUT_OF_TIME}: it ended at {}", at(*not_after))
        }
        E::NotValidYetContext { not_before, .. } => {
            format!("{OUT_OF_TIME}: it begins at {}", at(*not_before))
        }
        E::NotValidForName => "certificate is not valid for the server name".to_owned(),
        E::NotValidForNameContext {
            expected,
            presented,
        } => {
            let expected = expected.to_str();
            if presented.is_empty() {
                return format!("certificate is not valid for any names, but wanted {expected}");
            }
            let names: Vec<&str> = presented.iter().map(|name| plain_name(name)).collect();
            format!(
                "certificate is valid for {}, not {expected}",
                names.join(", ")
            )
        }
        E::Revoked => "certificate has been revoked".to_owned(),
        E::Other(other) => match other.0.downcast_ref::<Explained>() {
            Some(explained) => explained.to_string(),
            None => library_fault(&other.to_string()),
        },
        E::BadEncoding => "certificate cannot be read".to_owned(),
        E::BadSignature => "a signature is not right".to_owned(),
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => {
            "certificate is not meant for servers".to_owned()
        }
        E::UnhandledCriticalExtension => {
            "certificate has a critical extension that is not known".to_owned()
        }
        other => other.to_string(),
    }
}

/// A fault that the library only gives the name of.
fn library_fault(name: &str) -> String {
    match name {
        "CaUsedAsEndEntity" => "certificate is one of an authority and not of a server".to_owned(),
        "EndEntityUsedAsCa" => "an intermediate certificate is not one of an authority".to_owned(),
        "MaximumPathDepthExceeded"
        | "MaximumPathBuildCallsExceeded"
        | "MaximumSignatureChecksExceeded" => "the chain of certificates is too long".to_owned(),
        "NameConstraintViolation" => "an authority may not sign for this name".to_owned(),
        "PathLenConstraintViolated" => "an authority may not sign for another".to_owned(),
        other => words(other),
    }
}

pub(super) const OUT_OF_TIME: &str = "certificate has expired or is not yet valid";

fn at(time: UnixTime) -> String {
    date(time.as_secs())
}

/// `DnsName("a.test")` and the like, without the type.
fn plain_name(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_, inner)| inner);
    inner.trim_end_matches(')').trim_matches('"')
}

/// The server's objection, by the library's name for it.
pub(crate) fn alert(name: &str) -> String {
    let text = match name {
        "CertificateExpired" => "expired certificate",
        "CertificateRevoked" => "revoked certificate",
        "DecodeError" => "error decoding message",
        "DecryptError" => "error decrypting message",
        "InsufficientSecurity" => "insufficient security level",
        "ProtocolVersion" => "protocol version not supported",
        "UnknownCA" => "unknown certificate authority",
        other => return format!("remote error: tls: {}", words(other)),
    };
    format!("remote error: tls: {text}")
}

/// `HandshakeFailure` becomes `handshake failure`.
fn words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    let mut after_small = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && after_small {
            words.push(' ');
        }
        after_small = c.is_ascii_lowercase();
        words.push(c.to_ascii_lowercase());
    }
    words
}
