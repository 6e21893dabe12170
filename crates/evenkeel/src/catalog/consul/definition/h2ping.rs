use std::time::Duration;

use evenkeel_consul::types::CheckDefinition;
use evenkeel_probe::{Definition, DefinitionError, H2PingCheck};

use super::Kind;
use super::http::tls;

pub(super) const KIND: Kind = Kind {
    word: "h2ping",
    made: |definition, timeout| {
        let is_h2ping = !definition.h2ping.is_empty();
        is_h2ping.then(|| made(definition, timeout))
    },
    fields: &["H2PING", "H2PingUseTLS", "TLSServerName", "TLSSkipVerify"],
};

fn made(definition: &CheckDefinition, timeout: Duration) -> Result<Definition, DefinitionError> {
    let check = H2PingCheck::new(&definition.h2ping)?.with_timeout(timeout);
    // TLS is the default of an agent's own checks. In the catalog the field is what the
    // registration said, and a server leaves it out of its answer if that is false.
    let check = if definition.h2ping_use_tls == Some(true) {
        check.with_tls(tls(definition))?
    } else {
        check
    };
    Ok(check.into())
}
