//! The HTTP/2 ping.

use std::time::Duration;

use evenkeel_threshold::Status;

use crate::definition::{ConnectOptions, H2PingCheck};
use crate::fault::Failure;
use crate::http2;
use crate::kind::{Kind, outcome_of};
use crate::prober::Shared;
use crate::progress::{Awaited, Progress};
use crate::report::Report;

impl Kind for H2PingCheck {
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
        Box::pin(ping(self, shared, progress)).await?;
        let text = format!("HTTP2 ping {}: Success", self.address());
        Ok(Report::observed(Status::Passing, text))
    }

    fn failed(&self, failure: Failure, progress: &Progress) -> Report {
        let text = format!("HTTP2 ping {}: {}", self.address(), failure.text);
        Report {
            failed_phase: Some(progress.phase()),
            ..Report::of(outcome_of(&failure), text)
        }
    }
}

async fn ping(
    check: &H2PingCheck,
    shared: &Shared,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let target = (check.host(), check.port());
    let (requests, mut driver) = http2::open(shared, target, check.tls(), progress).await?;
    progress.waiting_for = Some(Awaited::Pong);
    let Some(mut pings) = driver.ping_pong() else {
        // It is there once for each connection, and this one is new.
        return Err(Failure::critical("http2: the connection takes no ping"));
    };
    http2::drive(driver, async move {
        // Held: without anybody who could send requests the connection says goodbye.
        let _requests = requests;
        // An answer with other bytes than the ping's is no answer to it (RFC 9113 section 6.7).
        let ponged = pings.ping(h2::Ping::opaque()).await;
        ponged.map(drop).map_err(|error| http2::failure(&error))
    })
    .await
}
