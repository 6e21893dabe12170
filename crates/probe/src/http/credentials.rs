//! Secrets in files.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::HeaderValue;

use crate::definition::HttpCredentials;
use crate::fault::{Failure, describe};
use crate::off_thread::off_thread;
use crate::progress::Progress;
use crate::report::Cause;

/// The longest file that is read. A header of a request has to fit into what
/// servers take, which is 8 KiB for most.
const MAX_FILE: u64 = 64 * 1024;

/// The most files whose turns are kept.
const MAX_TURNS: usize = 1024;

/// One thread at a time reads a file: a file system that hangs holds one
/// thread for each file, not one for each probe.
#[derive(Default)]
pub(crate) struct CredentialFiles {
    turns: Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
}

/// A header line that nobody else may see.
pub(super) struct Secret<'a> {
    pub(super) name: &'a str,
    pub(super) value: String,
}

impl CredentialFiles {
    /// The header of `credentials`, as the file is now.
    pub(super) async fn secret<'a>(
        &self,
        credentials: &'a HttpCredentials,
        progress: &mut Progress,
    ) -> Result<Secret<'a>, Failure> {
        let path = credentials.file();
        let fault = |what: &str| format!("credentials: {}: {what}", path.display());
        let unprobed = |what: &str| Failure::unprobed(Cause::Credentials, fault(what));
        // Should the time run out on it, it is not the target's fault.
        progress.own_fault = Some((Cause::Credentials, fault("context deadline exceeded")));
        let turn = self.turn(path).lock_owned().await;
        let owned = path.to_owned();
        let reading = off_thread(move || {
            let read = read(&owned);
            drop(turn);
            read
        });
        let text = match reading.await {
            Ok(Ok(text)) => text,
            Ok(Err(what)) => return Err(unprobed(&what)),
            // There are too many threads, or it panicked.
            Err(error) => return Err(unprobed(&describe(&error))),
        };
        progress.own_fault = None;
        let (name, value) = match credentials {
            HttpCredentials::Bearer { .. } => ("Authorization", format!("Bearer {text}")),
            HttpCredentials::Basic { user, .. } => {
                let pair = BASE64_STANDARD.encode(format!("{user}:{text}"));
                ("Authorization", format!("Basic {pair}"))
            }
            HttpCredentials::Header { header, .. } => (&**header, text),
        };
        if HeaderValue::from_str(&value).is_err() {
            return Err(unprobed("has a character that a header cannot carry"));
        }
        Ok(Secret { name, value })
    }

    fn turn(&self, path: &Path) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(path) {
            return turn.clone();
        }
        if turns.len() >= MAX_TURNS {
            turns.clear();
        }
        turns.entry(path.to_owned()).or_default().clone()
    }
}

/// The text of a file without the line end that editors leave. Blocks.
fn read(path: &Path) -> Result<String, String> {
    let io = |error: std::io::Error| describe(&error);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(io)?;
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(io)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err("larger than 64 KiB".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|_| "is no UTF-8".to_owned())?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    Ok(text.to_owned())
}
