//! The UDP probe.

use std::time::Duration;

use evenkeel_threshold::Status;
use tokio::time::timeout_at;

use crate::capture::{capture, excerpt};
use crate::connect::addresses;
use crate::datagram::{connect_any, failure};
use crate::definition::{ConnectOptions, Silence, UdpCheck};
use crate::fault::Failure;
use crate::kind::Kind;
use crate::prober::Shared;
use crate::progress::Progress;
use crate::report::{Phase, Report};

/// As much of a reply as is read. The system drops the rest of a datagram.
const REPLY: usize = 4096;

impl Kind for UdpCheck {
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
        let found = addresses(self.host(), self.port(), shared, progress).await?;
        progress.enter(Phase::FirstByte);
        let socket = connect_any(&found, progress).await?;
        let peer = socket.peer_addr().unwrap_or(found[0]);
        socket
            .send(self.payload())
            .await
            .map_err(|error| failure(peer, &error, true))?;
        let mut reply = vec![0; REPLY];
        match timeout_at(progress.deadline, socket.recv(&mut reply)).await {
            Ok(Ok(length)) => Ok(self.judge(&reply[..length])),
            // An ICMP message came instead, e.g. that the port is closed.
            Ok(Err(error)) => Err(failure(peer, &error, false)),
            Err(_) => Ok(self.silent()),
        }
    }
}

impl UdpCheck {
    fn judge(&self, reply: &[u8]) -> Report {
        let address = self.address();
        match self.expected() {
            Some(expected) if !expected.is_met(reply) => {
                let captured = capture(reply, REPLY, false);
                let said = excerpt(&captured.text).escape_debug();
                let text = format!("UDP {address}: the reply has not {expected}: \"{said}\"");
                Report {
                    failed_phase: Some(Phase::FirstByte),
                    ..Report::observed(Status::Critical, text)
                }
            }
            _ => Report::observed(Status::Passing, format!("UDP {address}: replied")),
        }
    }

    fn silent(&self) -> Report {
        let address = self.address();
        let status = match self.silence() {
            Silence::Passing => {
                // The words of Consul's agent.
                return Report::observed(
                    Status::Passing,
                    format!("UDP connect {address}: Success (no reply, and none is needed)"),
                );
            }
            Silence::Warning => Status::Warning,
            Silence::Critical => Status::Critical,
        };
        Report {
            failed_phase: Some(Phase::FirstByte),
            ..Report::observed(
                status,
                format!("UDP {address}: no reply: context deadline exceeded"),
            )
        }
    }
}
