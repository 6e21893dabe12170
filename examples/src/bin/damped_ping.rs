//! Pings a TCP port and says when its status has really changed.
//!
//! `damped_ping 192.0.2.1:443` pings a target of yours once a second, until ^C;
//! without an argument, one in this process that comes and goes.

#![expect(clippy::print_stdout, reason = "what a program prints is its result")]

use std::time::Duration;

use evenkeel_threshold::{FirstResult, Leaky, Outlook, Status, Strategy, Timestamp};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, interval, timeout};

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    match std::env::args().nth(1) {
        Some(target) => ping(&target, Duration::from_secs(1), u32::MAX).await,
        None => {
            let (listener, target) = listen("127.0.0.1:0").await?;
            tokio::spawn(come_and_go(listener, target.clone()));
            ping(&target, Duration::from_millis(20), 40).await;
        }
    }
    Ok(())
}

async fn ping(target: &str, every: Duration, rounds: u32) {
    // Critical at the third failure more than success, passing at the second success.
    let rule = Leaky::new(2, 1);
    let started = Instant::now();
    let elapsed = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let now = || Timestamp::from_millis(elapsed());
    let mut state = rule.start(Status::Passing, FirstResult::Counted, now());
    let mut tick = interval(every);
    for _ in 0..rounds {
        tick.tick().await;
        let seen = match timeout(Duration::from_secs(1), TcpStream::connect(target)).await {
            Ok(Ok(_)) => Status::Passing,
            Ok(Err(_)) | Err(_) => Status::Critical,
        };
        let change = rule.observe(&mut state, seen.into(), now());
        let note = match (change, rule.outlook(&state, now())) {
            (Some(change), _) => format!("changed from {}", change.from),
            (
                None,
                Outlook::Counting {
                    seen,
                    needed,
                    toward,
                    ..
                },
            ) => {
                format!("{seen} of {needed} toward {toward}")
            }
            _ => String::new(),
        };
        let reported = rule.reported(&state);
        println!("probe: {seen:8}  reported: {reported:8}  {note}");
    }
}

async fn listen(address: &str) -> std::io::Result<(TcpListener, String)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?.to_string();
    Ok((listener, address))
}

/// Up, a blip, up, an outage, up: each for so many milliseconds.
async fn come_and_go(listener: TcpListener, address: String) -> std::io::Result<()> {
    let mut listener = Some(listener);
    for (up, millis) in [
        (true, 150),
        (false, 20),
        (true, 150),
        (false, 150),
        (true, 1000),
    ] {
        match (up, &listener) {
            (true, None) => listener = Some(listen(&address).await?.0),
            (false, Some(_)) => listener = None,
            _ => {}
        }
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
    Ok(())
}
