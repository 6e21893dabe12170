use std::time::Duration;

use evenkeel_consul::client::Client;
use tokio::sync::mpsc;

/// How often Consul is asked while it has no leader: docs/flow.md promises it.
const PERIOD: Duration = Duration::from_secs(1);

/// What is known of Consul's leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Leadership {
    /// There is one: writes can go on.
    Known,
    /// There is none, or nobody answers; the text says which.
    Unknown(String),
}

/// Asks for the leader from when it is told to until there is one.
#[derive(Debug)]
pub(super) struct LeaderWatch {
    ask: mpsc::Sender<()>,
}

impl LeaderWatch {
    /// A watch on `client`'s Consul. Its task ends with it.
    pub(super) fn start(client: Client) -> (Self, mpsc::Receiver<Leadership>) {
        let (ask, mut asked) = mpsc::channel(1);
        let (tell, told) = mpsc::channel(4);
        tokio::spawn(async move {
            while asked.recv().await.is_some() {
                loop {
                    let leadership = match client.leader().await {
                        Ok(Some(_)) => Leadership::Known,
                        Ok(None) => Leadership::Unknown("Consul has no leader".into()),
                        Err(error) => Leadership::Unknown(error.to_string()),
                    };
                    let known = leadership == Leadership::Known;
                    if tell.send(leadership).await.is_err() {
                        return;
                    }
                    if known {
                        break;
                    }
                    tokio::time::sleep(PERIOD).await;
                }
            }
        });
        (Self { ask }, told)
    }

    /// Asks now, and each second until there is a leader. Asking again in the
    /// meantime changes nothing.
    pub(super) fn ask(&self) {
        let _ = self.ask.try_send(());
    }
}
