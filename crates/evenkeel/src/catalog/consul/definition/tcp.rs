use std::time::Duration;

use evenkeel_consul::types::CheckDefinition;
use evenkeel_probe::{Definition, DefinitionError, TcpCheck};

use super::Kind;
use super::http::tls;

pub(super) const KIND: Kind = Kind {
    word: "tcp",
    made: |definition, timeout| {
        let is_tcp = !definition.tcp.is_empty();
        is_tcp.then(|| made(definition, timeout))
    },
    fields: &["TCP", "TCPUseTLS", "TLSServerName", "TLSSkipVerify"],
};

fn made(definition: &CheckDefinition, timeout: Duration) -> Result<Definition, DefinitionError> {
    let check = TcpCheck::new(&definition.tcp)?.with_timeout(timeout);
    // P050: plain TCP in place of TLS would pass although the handshake fails.
    let check = if definition.tcp_use_tls {
        check.with_tls(tls(definition))?
    } else {
        check
    };
    Ok(check.into())
}
