use std::time::Duration;

use evenkeel_consul::types::CheckDefinition;
use evenkeel_probe::{Definition, DefinitionError, GrpcCheck};

use super::Kind;
use super::http::tls;

pub(super) const KIND: Kind = Kind {
    word: "grpc",
    made: |definition, timeout| {
        let is_grpc = !definition.grpc.is_empty();
        is_grpc.then(|| made(definition, timeout))
    },
    fields: &["GRPC", "GRPCUseTLS", "TLSServerName", "TLSSkipVerify"],
};

fn made(definition: &CheckDefinition, timeout: Duration) -> Result<Definition, DefinitionError> {
    let check = GrpcCheck::new(&definition.grpc)?.with_timeout(timeout);
    let check = if definition.grpc_use_tls {
        check.with_tls(tls(definition))?
    } else {
        check
    };
    Ok(check.into())
}
