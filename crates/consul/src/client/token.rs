use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use tokio::time::Instant;

use super::ConfigError;
use super::files::{MOST_TOKEN_BYTES, read_text};
use crate::config::{Config, Secret};

/// How often the token's file is looked at, at most.
const LOOK: Duration = Duration::from_secs(1);

/// Where the ACL token comes from.
pub(super) enum TokenSource {
    None,
    Fixed(HeaderValue),
    File {
        path: PathBuf,
        state: Mutex<FileState>,
    },
}

pub(super) struct FileState {
    header: Option<HeaderValue>,
    version: Version,
    looked: Option<Instant>,
}

/// Tells one content of the file from the next: time of change and length.
type Version = (Option<SystemTime>, u64);

impl TokenSource {
    pub(super) fn new(config: &Config) -> Result<Self, ConfigError> {
        if let Some(token) = &config.token {
            return Ok(header(token)?.map_or(Self::None, Self::Fixed));
        }
        let Some(path) = &config.token_file else {
            return Ok(Self::None);
        };
        let read = |source| ConfigError::Read {
            path: path.clone(),
            source,
        };
        let version = version(path).map_err(read)?;
        let text = read_text(path, MOST_TOKEN_BYTES).map_err(read)?;
        let state = FileState {
            header: header(&Secret::from(text))?,
            version,
            looked: None,
        };
        Ok(Self::File {
            path: path.clone(),
            state: Mutex::new(state),
        })
    }

    /// The header's value for the next request.
    ///
    /// A file is looked at once a second at most: the call blocks for a
    /// `stat` of a small local file. While the file cannot be read or used,
    /// the last good token goes on.
    pub(super) fn current(&self) -> Option<HeaderValue> {
        match self {
            Self::None => None,
            Self::Fixed(header) => Some(header.clone()),
            Self::File { path, state } => {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                let now = Instant::now();
                if state
                    .looked
                    .is_none_or(|looked| now.duration_since(looked) >= LOOK)
                {
                    state.looked = Some(now);
                    state.refresh(path);
                }
                state.header.clone()
            }
        }
    }
}

impl FileState {
    fn refresh(&mut self, path: &Path) {
        let Ok(version) = version(path) else { return };
        if version == self.version {
            return;
        }
        let Ok(text) = read_text(path, MOST_TOKEN_BYTES) else {
            return;
        };
        // An empty file is one that is being written.
        if let Ok(Some(header)) = header(&Secret::from(text)) {
            self.header = Some(header);
            self.version = version;
        }
    }
}

fn version(path: &Path) -> std::io::Result<Version> {
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.modified().ok(), metadata.len()))
}

fn header(token: &Secret) -> Result<Option<HeaderValue>, ConfigError> {
    if token.is_empty() {
        return Ok(None);
    }
    let mut value =
        HeaderValue::from_str(token.reveal()).map_err(|_| ConfigError::Header { what: "token" })?;
    value.set_sensitive(true);
    Ok(Some(value))
}
