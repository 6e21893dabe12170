//! TLS faults in words, Go's where it has any.

use std::io;

use rustls::{CertificateError, Error, InvalidMessage};

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
            format!("{doing}: first record does not look like a TLS handshake")
        }
        Some(Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion)) => {
            format!("{doing}: unknown protocol version")
        }
        Some(other) => format!("{doing}: {other}"),
    }
}

fn certificate_fault(fault: &CertificateError) -> String {
    use CertificateError as E;
    match fault {
        E::UnknownIssuer => "certificate signed by unknown authority".to_owned(),
        E::Expired | E::ExpiredContext { .. } | E::NotValidYet | E::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
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
        other => other.to_string(),
    }
}

/// `DnsName("a.test")` and the like, without the type.
fn plain_name(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_, inner)| inner);
    inner.trim_end_matches(')').trim_matches('"')
}

/// The server's objection, by the library's name for it.
pub(crate) fn alert(name: &str) -> String {
    format!("remote error: tls: {}", words(name))
}

/// `HandshakeFailure` becomes `handshake failure`.
fn words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    for (index, c) in name.char_indices() {
        if c.is_ascii_uppercase() && index > 0 {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}
