use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How a target behaves, by the number of the request: the first is 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Character {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    behave: fn(u64) -> Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Ok,
    Fail,
    /// 200 after longer than the probe waits.
    Late,
}

/// All of them. Each shows one thing: that what is well stays quiet, that an
/// outage is reported, and three kinds of noise that are not.
pub(super) const CHARACTERS: [Character; 5] = [
    Character {
        name: "steady",
        what: "always answers",
        behave: |_| Answer::Ok,
    },
    Character {
        name: "down",
        what: "down for 12 s of every 30 s",
        behave: |n| match n % 60 {
            10..34 => Answer::Fail,
            _ => Answer::Ok,
        },
    },
    Character {
        name: "blips",
        what: "one answer in seven fails",
        behave: |n| if n % 7 == 6 { Answer::Fail } else { Answer::Ok },
    },
    Character {
        name: "flapping",
        what: "every other answer fails",
        behave: |n| if n % 2 == 1 { Answer::Fail } else { Answer::Ok },
    },
    Character {
        name: "slow",
        what: "one answer in three is too late",
        behave: |n| if n % 3 == 2 { Answer::Late } else { Answer::Ok },
    },
];

/// How long a probe waits in the demo.
pub(super) const TIMEOUT: Duration = Duration::from_millis(250);

/// Binds a target and serves it from now on, until the runtime ends.
pub(super) async fn start(character: Character) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        let mut number = 0;
        loop {
            // An error is that of one connection.
            if let Ok((stream, _)) = listener.accept().await {
                let answer = (character.behave)(number);
                number += 1;
                tokio::spawn(async move {
                    // A prober that has given up reads no more.
                    let _ = serve(stream, answer).await;
                });
            }
        }
    });
    Ok(address)
}

async fn serve(mut stream: TcpStream, answer: Answer) -> std::io::Result<()> {
    let mut request = [0; 1024];
    // The prober's request fits in one segment; nothing depends on what it says.
    let _ = stream.read(&mut request).await?;
    if answer == Answer::Late {
        tokio::time::sleep(TIMEOUT * 2).await;
    }
    let text: &[u8] = match answer {
        Answer::Ok | Answer::Late => {
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
        }
        Answer::Fail => {
            b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndown"
        }
    };
    stream.write_all(text).await?;
    stream.shutdown().await
}
