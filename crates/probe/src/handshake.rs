//! The TLS probe: a handshake and its certificate, and nothing spoken after it.

use std::time::Duration;

use evenkeel_threshold::Status;
use rustls::ProtocolVersion;

use crate::connect::connect;
use crate::definition::{ConnectOptions, TlsCheck};
use crate::fault::Failure;
use crate::kind::{Kind, outcome_of};
use crate::prober::Shared;
use crate::progress::Progress;
use crate::report::Report;
use crate::tls::{self, Alpn};

impl Kind for TlsCheck {
    const TELLS_EXPIRY: bool = true;

    fn timeout(&self) -> Duration {
        self.timeout()
    }

    fn target(&self) -> &str {
        self.address()
    }

    fn connect(&self) -> &ConnectOptions {
        self.connect()
    }

    async fn run(&self, shared: &Shared, progress: &mut Progress) -> Result<Report, Failure> {
        let text = Box::pin(shake_hands(self, shared, progress)).await?;
        Ok(Report::observed(Status::Passing, text))
    }

    fn failed(&self, failure: Failure, progress: &Progress) -> Report {
        let text = failure.text.strip_prefix("tls: ").unwrap_or(&failure.text);
        Report {
            failed_phase: Some(progress.phase()),
            ..Report::of(
                outcome_of(&failure),
                format!("TLS {}: {text}", self.address()),
            )
        }
    }
}

async fn shake_hands(
    check: &TlsCheck,
    shared: &Shared,
    progress: &mut Progress,
) -> Result<String, Failure> {
    let (policy, resolver) = (&shared.policy, &*shared.resolver);
    let stream = connect(check.host(), check.port(), policy, resolver, progress).await?;
    let alpn = match check.protocols() {
        [] => Alpn::None,
        protocols => Alpn::Given(protocols.into()),
    };
    let mut stream = shared
        .tls
        .handshake(stream, check.host(), check.tls(), alpn, progress)
        .await?;
    let session = stream.get_ref().1;
    let mut text = format!("TLS {}: {}", check.address(), version(session));
    match session.alpn_protocol() {
        Some(chosen) => {
            text.push_str(", ALPN ");
            text.push_str(&String::from_utf8_lossy(chosen));
        }
        None if !check.protocols().is_empty() => {
            return Err(Failure::critical(format!(
                "the server chose none of the protocols {} (ALPN)",
                check.protocols().join(", ")
            )));
        }
        None => {}
    }
    tls::farewell(&mut stream, progress.deadline).await?;
    if let Some(expiry) = progress.expiry() {
        text.push_str(", ");
        text.push_str(&expiry.text);
    } else if let Some(certificate) = progress.seen.as_ref().and_then(|seen| seen.certificate) {
        let name = tls::name(check.host(), check.tls());
        let ends = tls::ends_in(certificate.days_left);
        text.push_str(&format!(", certificate of {name} {ends}"));
    }
    Ok(text)
}

fn version(session: &rustls::ClientConnection) -> &'static str {
    match session.protocol_version() {
        Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
        Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
        // The library speaks no others.
        _ => "TLS",
    }
}
