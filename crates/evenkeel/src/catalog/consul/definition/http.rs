use std::time::Duration;

use evenkeel_consul::types::CheckDefinition;
use evenkeel_probe::{Definition, DefinitionError, HttpCheck, TlsOptions};

use super::{Kind, output_max_size};

pub(super) const KIND: Kind = Kind {
    word: "http",
    made: |definition, timeout| {
        let is_http = !definition.http.is_empty();
        is_http.then(|| made(definition, timeout))
    },
    fields: &[
        "HTTP",
        "Header",
        "Method",
        "Body",
        "DisableRedirects",
        "TLSServerName",
        "TLSSkipVerify",
    ],
};

fn made(definition: &CheckDefinition, timeout: Duration) -> Result<Definition, DefinitionError> {
    let mut check = HttpCheck::new(&definition.http)?
        .with_method(&definition.method)?
        .with_body(definition.body.as_bytes())
        .with_timeout(timeout)
        .with_follow_redirects(!definition.disable_redirects)
        .with_output_max_size(output_max_size(definition))
        .with_tls(tls(definition))?;
    for (name, values) in &definition.header {
        for value in values {
            check = check.with_header(name, value)?;
        }
    }
    Ok(check.into())
}

/// What a definition says of TLS, in every kind that speaks it.
pub(super) fn tls(definition: &CheckDefinition) -> TlsOptions {
    TlsOptions {
        skip_verify: definition.tls_skip_verify,
        server_name: definition.tls_server_name.clone(),
        ..TlsOptions::default()
    }
}
